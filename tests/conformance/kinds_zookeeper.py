"""The kinds about ZooKeeper: fenced calls of its client, and the text that is stored there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from kcontrol.core import znodes
from kcontrol.core.effects import ControllerMoved, Op
from kcontrol.core.model import LeaderAndIsr
from kcontrol.driver import fenced_writes
from tests.conformance.bench import Bench
from tests.conformance.values import CannotPlay, assignment, look_up, partition, partitions

Case = dict[str, Any]


# ---------------------------------------------------------------- fenced calls


def zk_client(case: Case) -> dict[str, Any]:
    """Call after call on one client, each with the fence that it names."""
    bench = Bench(case["version"])
    for path, version in sorted(case["given"]["nodes"].items()):
        bench.put(path, version=version)
    results = [_call(bench, item) for item in case["when"]]
    expected = case["then"].get("versions", {})
    stats = bench.tool.exists(list(expected), False)
    return {"results": results, "versions": {path: stat and stat.version for path, stat in zip(expected, stats, strict=True)}}


def _call(bench: Bench, item: Case) -> str:
    op = Op(
        look_up({kind: kind for kind in ("create", "set", "delete")}, "op", item["op"]),
        item["path"],
        b"",
        item.get("version", -1),
    )
    try:
        done = fenced_writes.write(bench.driver.client, [(op,)], item.get("expected_epoch_zk_version", fenced_writes.UNFENCED))
    except ValueError:
        return "IllegalArgumentException"
    if done.error is None:
        return done.results[0].code.upper()
    if isinstance(done.error, ControllerMoved):
        return "ControllerMovedException"
    if isinstance(done.error, fenced_writes.FenceCheckFailed):
        return f"{done.error.code}Exception"
    raise done.error


# ---------------------------------------------------------------- stored text


class Codec(NamedTuple):
    """Both directions, between the format's value and the text."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _state(value: LeaderAndIsr) -> Case:
    return {name: getattr(value, name) for name in ("leader", "leader_epoch", "isr", "controller_epoch")}


def _encode_state(value: Case) -> bytes:
    known = LeaderAndIsr(value["leader"], tuple(value["isr"]), value["leader_epoch"], 0, value["controller_epoch"])
    return znodes.encode_state(known)


def _encode_topic(value: Case) -> bytes:
    return znodes.encode_topic(znodes.TopicZnode({int(p): assignment(a) for p, a in value["partitions"].items()}))


def _decode_topic(data: bytes) -> Case:
    return {"partitions": {p: a._asdict() for p, a in znodes.decode_topic(data).partitions.items()}}


def _encode_reassignment(value: Case) -> bytes:
    return znodes.encode_reassignment({partition(tp): tuple(replicas) for tp, replicas in value.items()})


_PARTITION_LIST = Codec(lambda v: znodes.encode_partition_list(partitions(v)), znodes.decode_partition_list)

_CONTROLLER = Codec(
    lambda value: znodes.encode_controller(value["broker"], value["timestamp"]),
    lambda data: {"broker": znodes.decode_controller(data, or_bare_id=False)},  # the cases are of 1.1 and later
)

CODECS = {
    "controller": _CONTROLLER,
    "controller_epoch": Codec(znodes.encode_controller_epoch, znodes.decode_controller_epoch),
    "state": Codec(_encode_state, lambda b: _state(znodes.decode_state(b))),
    "topic": Codec(_encode_topic, _decode_topic),
    "reassign_partitions": Codec(_encode_reassignment, znodes.decode_reassignment),
    "preferred_replica_election": _PARTITION_LIST,
    "isr_change_notification": _PARTITION_LIST,
    "log_dir_event_notification": Codec(znodes.encode_log_dir_event, znodes.decode_log_dir_event),
}


def codec(case: Case) -> dict[str, Any]:
    """The text of a value, or the value of a text: `error` where it cannot be decoded."""
    given = case["given"]
    chosen: Codec = look_up(CODECS, "codec", given["codec"])
    if "json" in given:
        try:
            return {"value": chosen.decode(given["json"].encode())}
        except znodes.MalformedZnode:
            return {"value": "error"}
    if "value" not in given:
        raise CannotPlay("a codec case gives a value or a json")
    text = chosen.encode(given["value"]).decode()
    return {"json": text, "object": json.loads(text)}


KINDS = {
    # kind         what it did, under the keys of `then`
    "zk_client":   zk_client,
    "codec":       codec,
}  # fmt: skip
