"""The journal of a trace as lines: which kinds of records it shows, and how each reads. No line differs from run to run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kcontrol.group.events import ErrorsResult
from kcontrol.group.handlers import SCHEDULER
from kcontrol.journal.journal import Record, to_json
from kcontrol.views import group_state
from kcontrol.views.text import short

Lines = Iterator[str]


def leadership(value: Any) -> str:
    return f"leader {value.leader} isr {','.join(map(str, value.isr)) or 'empty'} epoch {value.leader_epoch}"


def _change(r: Record) -> Lines:
    f = r.fields
    value = f["leadership"]
    written = f" | {f['write']} v{value.zk_version} {leadership(value)} controller {value.controller_epoch}" if f["write"] else ""
    yield f"{r.id.node}  {f['machine']} {f['subject']}  {short(f['source'])} -> {short(f['target'])}{written}"


def _refuse(r: Record) -> Lines:
    f = r.fields
    how = "lost the race" if r.kind == "conflict" else f"refused: {f['reason']}"
    yield f"{r.id.node}  {f['machine']} {f['subject']}  {short(f['source'])} -> {short(f['target'])} {how}"


SHOWN = ("/controller_epoch", "/state")  # whose data a line shows


def _write(r: Record) -> Lines:
    f, who = r.fields, "tool" if r.id.broker is None else r.id.broker
    parts = []
    for kind, path, data, version, ephemeral in f["ops"]:
        shown = f" {to_json(data)}" if path.endswith(SHOWN) and kind in ("create", "set") else ""
        at = f" v{version}" if kind == "set" and f["error"] is None else ""
        parts.append(f"{kind} {path}{at}{shown}{' ephemeral' if ephemeral else ''}")
    checked = f" | checked epoch v{f['epoch_zk_version']}" if f["epoch_zk_version"] != -1 else ""
    yield f"{who}  {' + '.join(parts)}{checked}" + (f" | {f['error']}" if f["error"] else "")


def _close(r: Record) -> Lines:
    yield f"zk  session of {r.fields['broker']} ends: {' '.join(r.fields['deleted']) or 'nothing'} deleted"


def _send(r: Record) -> Lines:
    q = r.fields["requests"]
    for to, partitions in q.leader_and_isr.items():
        said = "; ".join(f"{tp} {leadership(e)}{' new' if e.is_new else ''}" for tp, e in partitions.items())
        yield f"{r.id.node} -> {to}  LeaderAndIsr  {said}"
    if q.update_metadata_to:
        said = "; ".join(f"{tp} {leadership(e)}" for tp, e in q.update_metadata.items()) or "no partition"
        live = ",".join(map(str, q.live_brokers))
        yield f"{r.id.node} -> {','.join(map(str, q.update_metadata_to))}  UpdateMetadata  {said}; live {live}"
    for to, stopped in q.stop_replica.items():
        said = "; ".join(f"{tp}{' delete' if e.delete else ''}" for tp, e in stopped.items())
        yield f"{r.id.node} -> {to}  StopReplica  {said or 'no partition'}"


def _respond(r: Record) -> Lines:
    body = to_json(r.fields["body"]) or {}
    errors = {k: v for k, v in {**body.get("errors", {}), **body.get("partitions", {})}.items() if isinstance(v, str | int)}
    yield f"{r.id.node}  answers {body.get('error', 'nothing')}" + "".join(f" {tp}={v}" for tp, v in errors.items())


def _read(r: Record) -> Lines:
    f = r.fields
    missing = " | missing" if set(f["seen"]) == {None} else ""
    yield f"{r.id.node}  {f['how']} {' '.join(f['paths'])}{' watch' if f['watch'] else ''}{missing}"


FIELDS = {
    "topic_deletion_thread": "deletion_thread", "unfetched_partitions": "unfetched", "ineligible_replicas": "refused",
    "scheduler_is_running": "scheduler_runs",
}  # fmt: skip
"""The plays' names of fields of a context; all others are the journal's."""


def _learn(r: Record) -> Lines:
    f = r.fields
    name = FIELDS.get(f["field"], f["field"])
    is_shown = isinstance(f["put"], int) and f["field"] != "broker_epoch"  # which is a zxid
    shown = f" = {f['put']}" if is_shown else " cleared" if f["clear"] and not f["put"] else ""
    yield f"{r.id.node}  {f['context']}.{name}{shown}"


def _decided(r: Record) -> Lines:
    f = r.fields
    if f["thread"] != "requests" and not f["event"].endswith("ResponseReceived"):
        yield f"{r.id.node}  {f['thread']}: {f['event']}"


def asked(effect: Any) -> str:
    """An effect in one line: its kind, and the path, field or timer that it is about."""
    paths = getattr(effect, "paths", None) or (getattr(effect, "path", None),)
    about = [*filter(None, paths), *(getattr(effect, name) for name in ("field", "timer") if hasattr(effect, name))]
    children = " children" if getattr(effect, "children", False) else ""
    return f"{type(effect).__name__} {' '.join(map(str, about))}{children}".rstrip()


GROUP_KEY = b"\x00\x02"  # the version of a group's key


def client(member_id: str | None) -> str:
    """The client id of a member id, without the UUID after it; an id that a client made up stays."""
    return re.sub(r"-[0-9a-f]{32}$", "", member_id or "nobody")


def _group(r: Record) -> Lines:
    f = r.to_json().fields
    generation = f["group_metadata"]["generation"] if f["group_metadata"] else "none"
    yield f"{r.id.node}  {f['group_id']}  {f['from']} -> {f['to']} generation {generation}: {f['rule']}"


def _group_answer(r: Record) -> Lines:
    """The response to a consumer or to a client: its error; of a JoinGroup the generation, the leader, and how many members."""
    body, (who, *rest) = r.fields["body"], r.fields["correlation_id"].split(" ")
    if body is None or isinstance(body, dict):
        return  # the response to a controller
    to = rest[0] if who == "consumer" else who
    if hasattr(body, "generation"):
        known = f", {len(body.members)} members listed" if body.members else ""
        said = f" generation {body.generation} leader {client(body.leader)}{known}" if body.error == "NONE" else ""
        yield f"{r.id.node}  answers {to}: JoinGroup {body.error}{said}"
    elif hasattr(body, "assignment"):
        partitions = ", ".join(group_state.partitions(body.assignment.hex())) or "no partition"
        yield f"{r.id.node}  answers {to}: SyncGroup {body.error}" + (f" {partitions}" if body.error == "NONE" else "")
    elif isinstance(body, ErrorsResult):
        codes = "".join(f" {tp}={code}" for tp, code in body.errors.items())
        yield f"{r.id.node}  answers {to}:{codes if body.error == 'NONE' else f' {body.error}'}"
    elif hasattr(body, "broker"):
        yield f"{r.id.node}  answers {to}: FindCoordinator {body.error} broker {body.broker}"
    else:
        yield f"{r.id.node}  answers {to}: {type(body).__name__.removesuffix('Result')} {body.error}"


def _park(r: Record) -> Lines:
    _, *rest = sender = r.fields["correlation_id"].split(" ")
    yield f"{r.id.node}  parks {client((rest or sender)[0])} until {r.fields['key']}"


def _append(r: Record) -> Lines:
    for key, value in r.fields["records"]:
        what = "a group" if key[:2] == GROUP_KEY else "an offset"
        yield f"{r.id.node}  appends {'the tombstone' if value is None else 'a record'} of {what}"


def _cache(r: Record) -> Lines:
    """What a coordinator's memory has more or less than before: partitions by number, groups and offsets by the group's name."""
    f = r.fields
    if f["context"] == "group":
        more, less = (list(map(str, f[of] or ())) for of in ("put", "remove"))
        change = [*(f"+ {name}" for name in more), *(f"- {name}" for name in less)]
        yield f"{r.id.node}  {f['field']} {' '.join(change)}"


def _operation(r: Record) -> Lines:
    f = r.fields
    what = {"try_complete": "tryComplete", "watch_operation": "watches", "check_and_complete": "checkAndComplete"}[r.kind]
    result = f" is {str(f['is_complete']).lower()}" if "is_complete" in f else ""
    attempt = f" {f['attempt']}" if "attempt" in f else ""
    yield f"{r.id.node}  {f['purgatory']}: {what}{attempt} {f['operation']} {_named(f['key'])}{result}"


def _named(text: str) -> str:
    """A name in which member ids are without their UUIDs."""
    return re.sub(r"-[0-9a-f]{32}\b", "", text)


# fmt: off
KINDS: dict[str, dict[str, Callable[[Record], Lines]]] = {
    # what a trace asks for: the kinds of records that are shown, and how
    "moves":    {"change": _change, "failed_change": _refuse, "conflict": _refuse},
    "writes":   {"write": _write, "close": _close, "change": lambda r: _change(r) if r.fields["write"] else iter(())},
    "requests": {"send": _send},
    "answers":  {"respond": _respond},
    "events":   {"begin": lambda r: iter([f"{r.id.node}  {r.fields['thread']}: {r.fields['event']}"]),
                 "preempt": lambda r: iter([f"{r.id.node}  preempted: {r.fields['event'].name}"]),
                 "drop_notification": lambda r: iter([f"{r.id.node}  drops {r.fields['type']} {r.fields['path']}"]),
                 "handler_error": lambda r: iter([f"{r.id.node}  {r.fields['event']} fails: {r.fields['error']}"]),
                 "exception": lambda r: iter([f"{r.id.node}  {r.fields['error']} is thrown"])},
    "turns":    {"begin": _decided,  # without requests and answers, which other traces have
                 "drop_notification": lambda r: iter([f"{r.id.node}  drops {r.fields['type']} {r.fields['path']}"]),
                 "handler_error": lambda r: iter([f"{r.id.node}  {r.fields['event']} fails: {r.fields['error']}"])},
    "reads":    {"read": _read},
    "watches":  {"notify": lambda r: iter([f"zk -> {r.fields['to']}  {r.fields['type']} {r.fields['path']}"])},
    "memory":   {"update": _learn},
    "groups":   {"group": _group, "respond": _group_answer, "park": _park, "append": _append},
    "lives":    {"start": lambda r: iter([f"-  broker {r.fields['broker']} starts"]),
                 "stop": lambda r: iter([f"-  broker {r.fields['broker']} stops, exit code {r.fields['exit_code']}"]),
                 "set_timer": lambda r: iter([f"{r.id.node}  arms {_named(r.fields['timer'])}"]),
                 "cancel_timer": lambda r: iter([f"{r.id.node}  cancels {_named(r.fields['timer'])}"])},
    "times":    {"set_timer": lambda r: iter([f"{r.id.node}  arms {_named(r.fields['timer'])} until {r.fields['fires_at_ms']}"]),
                 "cancel_timer": lambda r: iter([f"{r.id.node}  cancels {_named(r.fields['timer'])}"]),
                 "fire_timer": lambda r: iter([f"{r.id.node}  fires {_named(r.fields['timer'])} at {r.at_ms}"])},
    "cache":    {"update": _cache,
                 "handler_error": lambda r: iter([f"{r.id.node}  {r.fields['event']} fails: {r.fields['message']}"]),
                 "read_log": lambda r: iter([f"{r.id.node}  reads {r.fields['partition']} from offset {r.fields['offset']}"])},
    "tasks":    {"begin": lambda r: iter([f"{r.id.node}  {r.fields['thread']}: {r.fields['event']}"]
                                         if r.fields["thread"] == SCHEDULER else [])},
    "cleaner":  {"log_clean": lambda r: iter([f"{r.id.node}  removes {' '.join(str(x.offset) for x in r.fields['removed'])}"]),
                 "read_log": lambda r: iter([f"{r.id.node}  reads from {r.fields['offset']}"])},
    "purgatory": dict.fromkeys(("try_complete", "watch_operation", "check_and_complete"), _operation),
    "marks":    {"high_watermark": lambda r: iter([f"{r.id.node}  high watermark {r.fields['now']['high_watermark']}"])},
}
# fmt: on
TRIED = {"NodeExists", "NoNode"}  # what a broker tries to create, or to delete, without knowing whether it is there


def lines(records: Iterable[Record], kinds: Iterable[str]) -> Lines:
    """The records that a trace asks for, as lines, in the order in which they were made."""
    wanted: dict[str, Callable[[Record], Lines]] = {}
    for kind in kinds:
        wanted |= {k: v for k, v in KINDS[kind].items() if k not in wanted}
    for record in records:
        in_vain = record.kind == "write" and record.fields["error"] in TRIED and len(record.fields["ops"]) == 1
        if record.kind in wanted and not in_vain:
            yield from wanted[record.kind](record)
