"""Read controller requests out of a broker's request log, whatever the release.

Three shapes occur: "Name:LeaderAndIsrRequest;..." (0.8, 0.9), "{api_key=4,...} -- {...}" and
"RequestHeader(apiKey=LEADER_AND_ISR, ...) -- {...}" (0.10 to 2.5), JSON (2.6 and later).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

APIS = {
    "4": "LeaderAndIsr", "5": "StopReplica", "6": "UpdateMetadata", "LEADER_AND_ISR": "LeaderAndIsr",
    "STOP_REPLICA": "StopReplica", "UPDATE_METADATA": "UpdateMetadata",
}  # fmt: skip
OLD = re.compile(
    r"Completed request:\s?Name:\s?(LeaderAndIsr|UpdateMetadata|StopReplica)Request;(.*?) from (?:client|connection) "
)
MIDDLE = re.compile(
    r"Completed request:(?:\{api_key=(?P<k1>\d+),.*?\}|RequestHeader\(apiKey=(?P<k2>\w+),.*?\)) -- (?P<body>\{.*)"
)
OLD_STATE = re.compile(
    r"[\[(]([^\[\](),\s]+),\s?(\d+)[\])] -> "
    r"\(LeaderAndIsrInfo:\(Leader:(-?\d+),ISR:([\d,]*),LeaderEpoch:(-?\d+),ControllerEpoch:(-?\d+)\)"
    r",ReplicationFactor:\d+\),AllReplicas:([\d,]*)\)"
)
OLD_BROKER = re.compile(r"(?:id:(?=\d+,host:)|BrokerEndPoint\(|(?<![\d.])(?=\d+ : \(EndPoint))(\d+)")


def parse_struct(text: str, at: int = 0) -> tuple[Any, int]:
    """Parse {key=value,...}, [item,...] and bare words; return (value, next position)."""
    if text[at] == "{":
        fields: dict[str, Any] = {}
        at += 1
        while text[at] != "}":
            eq = text.index("=", at)
            key = text[at:eq].strip(", ")
            fields[key], at = parse_struct(text, eq + 1)
            while text[at] in ", ":
                at += 1
        return fields, at + 1
    if text[at] == "[":
        items: list[Any] = []
        at += 1
        while text[at] != "]":
            item, at = parse_struct(text, at)
            items.append(item)
            while text[at] in ", ":
                at += 1
        return items, at + 1
    word = re.split(r"[,\]}]", text[at:], maxsplit=1)[0]
    at += len(word)
    if re.fullmatch(r"-?\d+", word):
        return int(word), at
    return {"null": None, "true": True, "false": False}.get(word, word), at


def ids(text: str) -> list[int]:
    return [int(x) for x in text.split(",") if x]


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def flat(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake(k): flat(v) for k, v in value.items()}
    if isinstance(value, list):
        return [flat(v) for v in value]
    return value


FIELDS = (
    "leader", "leader_epoch", "isr", "controller_epoch", "zk_version", "replicas", "adding_replicas", "removing_replicas",
    "is_new", "offline_replicas",
)  # fmt: skip


def partition_entry(p: dict[str, Any]) -> dict[str, Any]:
    p = dict(p)
    if "partition_epoch" in p:
        p["zk_version"] = p.pop("partition_epoch")
    return {k: p[k] for k in FIELDS if k in p}


def from_body(api: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request from a decoded request body (0.10 and later)."""
    states: dict[str, dict[str, Any]] = {}
    for group in body.get("topic_states") or body.get("topics") or []:
        name = group.get("topic_name") or group.get("topic") or group.get("name")
        for p in group.get("partition_states") or group.get("partitions") or []:
            if isinstance(p, dict):
                states[f"{name}-{p.get('partition_index', p.get('partition'))}"] = p
            else:
                states[f"{name}-{p}"] = {}
        for p in group.get("partition_indexes") or []:
            states[f"{name}-{p}"] = {}
    for p in (
        body.get("partition_states")
        or body.get("ungrouped_partition_states")
        or body.get("partitions")
        or body.get("ungrouped_partitions")
        or []
    ):
        name = p.get("topic") or p.get("topic_name")
        states[f"{name}-{p.get('partition', p.get('partition_index'))}"] = p
    out = {"by": body["controller_id"], "api": api, "controller_epoch": body["controller_epoch"]}
    if api == "StopReplica":
        if "delete_partitions" in body:
            out["delete"] = body["delete_partitions"]
            out["partitions"] = {tp: {} for tp in states}
        else:
            out["partitions"] = {
                tp: {"leader_epoch": s.get("leader_epoch"), "delete": s.get("delete_partition", False)}
                for tp, s in states.items()
            }
    else:
        out["partitions"] = {tp: partition_entry(s) for tp, s in states.items()}
    if api == "UpdateMetadata":
        out["live_brokers"] = sorted(b.get("id", b.get("broker_id")) for b in body["live_brokers"])
    if api == "LeaderAndIsr":
        live = body.get("live_leaders") or []
        out["live_leaders"] = sorted(b.get("id", b.get("broker_id")) for b in live)
        if "type" in body:
            out["type"] = body["type"]
    return out


def from_old(api: str, text: str) -> dict[str, Any]:
    """One request from the wording of 0.8 and 0.9."""

    def number(key: str) -> int:
        return int(re.findall(key + r":\s?(-?\d+)", text)[0])

    if api == "StopReplica":
        tps = re.findall(
            r"[\[(]([^\[\](),\s]+),\s?(\d+)[\])]", text[text.index("Partitions:", text.index("DeletePartitions") + 12) :]
        )
        return {
            "by": number("ControllerId"),
            "api": api,
            "controller_epoch": number("ControllerEpoch"),
            "delete": "DeletePartitions: true" in text or "DeletePartitions:true" in text,
            "partitions": {f"{t}-{p}": {} for t, p in tps},
        }
    states = {}
    for t, p, leader, isr, epoch, controller, replicas in OLD_STATE.findall(text):
        states[f"{t}-{p}"] = {
            "leader": int(leader), "leader_epoch": int(epoch), "isr": ids(isr), "controller_epoch": int(controller),
            "replicas": ids(replicas),
        }  # fmt: skip
    out = {"by": number("Controller"), "api": api, "controller_epoch": number("ControllerEpoch"), "partitions": states}
    named = re.findall(r";(?:AliveBrokers|Leaders):([^;]*)", text)[0]
    out["live_brokers" if api == "UpdateMetadata" else "live_leaders"] = sorted(int(x) for x in OLD_BROKER.findall(named))
    return out


def request(message: str) -> dict[str, Any] | None:
    if not message.startswith("Completed request:"):
        return None
    m = OLD.match(message)
    if m:
        return from_old(m.group(1), m.group(2))
    m = MIDDLE.match(message)
    if m:
        api = APIS.get(m.group("k1") or m.group("k2"))
        return from_body(api, flat(parse_struct(m.group("body"))[0])) if api else None
    if message.startswith('Completed request:{"'):
        whole = json.loads(message[len("Completed request:") :])
        api = APIS.get(whole["requestHeader"]["requestApiKeyName"])
        return from_body(api, flat(whole["request"])) if api else None
    return None


def requests_of(ident: int, lines: Iterable[tuple[str, str, str]]) -> list[tuple[str, dict[str, Any]]]:
    """(time stamp, request) for each controller request among a broker's request log lines."""
    out = []
    for stamp, message, _ in lines:
        r = request(message)
        if r:
            first = {"by": r.pop("by"), "to": ident}
            out.append((stamp, {**first, **r}))
    return out
