"""Yields the rows of tables about brokers: their processes, the terms and requests of controllers, and lost log records."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH, MalformedZnode, broker_path, decode_controller
from kcontrol.lab.history.entries import Entries, Entry, Row, interval, znode_writes

ENDS = {"close": "session ended", "delete": "znode deleted", "set": "znode overwritten"}


def tenures(run: Entries) -> Iterator[Row]:
    """Each term of a controller, from a write of `/controller` to the next, or to its deletion.

    `controller_epoch` is the last value that was written to `/controller_epoch` in this time, missing if none was. `ended_by` is
    "session ended", "znode deleted" or "znode overwritten".
    """
    writes = list(znode_writes(run, lambda path: path == CONTROLLER))
    epochs = [w for w in znode_writes(run, lambda path: path == CONTROLLER_EPOCH) if w.op in ("create", "set")]
    for write, after in zip_longest(writes, writes[1:]):
        if write.op in ("create", "set"):
            of_tenure = [e for e in epochs if write.entry.n <= e.entry.n and (after is None or e.entry.n < after.entry.n)]
            row = {"broker": _broker(write.data), "controller_epoch": _number(of_tenure[-1].data) if of_tenure else None}
            yield interval(write.entry, after and after.entry) | row | {"ended_by": ENDS.get(after.op) if after else None}


def _number(data: str | None) -> int | None:
    return int(data) if data and data.isdecimal() else None


def _broker(data: str | None) -> int | None:
    try:
        return decode_controller((data or "").encode())
    except MalformedZnode:
        return None


def broker_lives(run: Entries) -> Iterator[Row]:
    """Each process of a broker, from its start to its end.

    `registered_record` is the record that registered the broker in ZooKeeper. `ended_by` is "killed", "halted" or "shut down".
    """
    registered = {w.entry.n: w for w in znode_writes(run, lambda p: p.startswith(broker_path(0)[:-1])) if w.op == "create"}
    lives: dict[int, Row] = {}
    for entry in run.entries:
        if entry.r.kind == "start":
            fields = entry.r.fields
            named = {"broker": fields["broker"], "incarnation": fields["incarnation"]}
            lives[fields["broker"]] = named | {"begin": entry, "registered_record": None, "registered_ms": None}
        elif entry.r.kind == "stop" and (life := lives.pop(entry.r.fields["broker"], None)):
            yield _life(life, entry)
        elif write := registered.get(entry.n):
            broker = int(write.path.rpartition("/")[2])
            if (life := lives.get(broker)) and life["registered_record"] is None:
                life |= {"registered_record": str(entry.r.id), "registered_ms": entry.time_ms}
    yield from (_life(life, None) for life in lives.values())


def _life(life: Row, end: Entry | None) -> Row:
    code = end.r.fields["exit_code"] if end else None
    ended_by = None if end is None else "killed" if code is None else "halted" if code else "shut down"
    begin = life.pop("begin")
    return interval(begin, end) | life | {"exit_code": code, "ended_by": ended_by}


def requests(run: Entries) -> Iterator[Row]:
    """Each request of a controller to a broker, in the order of sending.

    `state` is "answered", "refused" (the response has an error), "dropped" (lost) or "waiting"; missing if broker logs do not
    show responses. `error` has the error codes of the response, sorted; missing without an error.
    """
    answers = _answers(run)
    # Lines about responses of a broker to a controller are in the logs of this run.
    shown = {(int(sender.partition(".")[0]), receiver) for sender, receiver, _ in answers}
    ends = list(run.of("stop", "close_channels"))
    for entry in run.of("send"):
        batch, (node, incarnation, seq) = entry.r.fields["requests"], entry.r.id
        for api, receiver, partitions in _queued(batch):
            answer = answers.get((f"{node}.{incarnation}.{seq}", receiver, api))
            error = _errors(answer) if answer else None
            if answer:
                state = "refused" if error else "answered"
            elif "line" in entry.r.fields and (node, receiver) not in shown:
                state = None
            else:
                # Without a response a request is dropped if later the process of the sender or receiver, or the channel between
                # them, has ended.
                state = "dropped" if any(e.n > entry.n and _drops(e, node, receiver) for e in ends) else "waiting"
            yield entry.evidence | {
                "api": api, "sender": node, "receiver": receiver, "controller_epoch": batch["controller_epoch"], "partitions":
                partitions, "state": state, "error": error, "response_record": answer and str(answer.r.id),
            }  # fmt: skip


def _queued(batch: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    leaderships = batch.get("leader_and_isr", {"to": {}})
    for receiver, positions in leaderships["to"].items():
        yield "LeaderAndIsr", int(receiver), [leaderships["values"][i]["partition"] for i in positions]
    metadata = batch.get("update_metadata", {"to": [], "partitions": {}})
    for receiver in metadata["to"]:
        yield "UpdateMetadata", int(receiver), list(metadata["partitions"])
    for receiver, stopped in batch.get("stop_replica", {"to": {}})["to"].items():
        yield "StopReplica", int(receiver), list(stopped)


def _answers(run: Entries) -> dict[tuple[str, int, str], Entry]:
    """Return the journal record of each response, by (id of the request's `send` record, receiving broker, API)."""
    # One `send` record can have requests to several brokers. Recordings have no responses.
    received: dict[str, tuple[str, int, str]] = {}
    found: dict[tuple[str, int, str], Entry] = {}
    for entry in run.of("receive", "respond", "response"):
        fields = entry.r.fields
        if entry.r.kind == "receive":
            received[str(entry.r.id)] = (str(entry.r.cause), entry.r.id.node, fields["api"])
        elif entry.r.kind == "respond" and fields["correlation_id"].count("-") == 3:
            sender, receiver, seq, api = fields["correlation_id"].split("-")
            if receiver.isdecimal():
                found[f"{sender}.{seq}", int(receiver), api] = entry
        elif entry.r.kind == "response" and str(entry.r.cause) in received:
            found[received[str(entry.r.cause)]] = entry
    return found


def _errors(entry: Entry) -> str | None:
    """Return the error codes of a response, such as "STALE_CONTROLLER_EPOCH", sorted, with commas; None without an error."""
    body: dict[str, Any] = entry.r.fields.get("body") or {}
    return ", ".join(sorted({body.get("error", "NONE"), *(body.get("errors") or {}).values()} - {"NONE"})) or None


def _drops(entry: Entry, sender: int, receiver: int) -> bool:
    if entry.r.kind == "stop":
        return entry.r.fields["broker"] in (sender, receiver)
    return entry.r.id.node == sender and receiver in entry.r.fields["to"]


def records_lost(run: Entries) -> Iterator[Row]:
    """Each log record that a leader has acknowledged and that no replica has any more."""
    for entry in run.of("record_lost"):
        fields = entry.r.fields
        kept = {name: fields[name] for name in ("partition", "offset", "leader_epoch", "value")}
        cause = entry.r.cause and str(entry.r.cause)
        yield entry.evidence | kept | {"acks": str(fields["acks"]), "acknowledged_by": fields["leader"], "cause": cause}
