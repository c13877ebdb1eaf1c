"""Cases of the other kinds: pure functions and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.core.java_hash import java_hash
from kcontrol.core.model import TopicPartition
from kcontrol.group.assignors import Subscription, partitions_of, read_sticky_user_data, sticky_user_data
from kcontrol.group.context import GroupConfig, GroupContext
from kcontrol.group.coordinator_partition import partition_for
from kcontrol.group.group_machine import first_state, transitions
from kcontrol.group.group_rules import group_rules
from kcontrol.group.model import Group, GroupProtocol, GroupState, Member
from kcontrol.group.offsets_topic_records import decode, encode
from kcontrol.group.sticky import ASSIGNORS, path
from kcontrol.group.timing_wheel import Timer
from tests.conformance.cases import Case
from tests.conformance.group.coordinator import coordinator, squeezed
from tests.conformance.values import CannotPlay, look_up
from tests.group.purgatory import Operation, Purgatory

Seen = tuple[Any, Any]


def hashes(case: Case, release: str) -> Seen:
    partitions = case["given"]["partitions"]
    rows = case["then"]["rows"]
    found = [
        {"group": r["group"], "hash": java_hash(r["group"]), "partition": partition_for(r["group"], partitions)} for r in rows
    ]
    return rows, [{key: seen[key] for key in row} for row, seen in zip(rows, found, strict=True)]


def state_machine(case: Case, release: str) -> Seen:
    """Along a path from the first state, then what is allowed from there."""
    rules = group_rules(release)
    context = GroupContext(rules, GroupConfig.of(release))
    by_name = {context.name_of(state): state for state in GroupState}
    state, table = first_state(rules), transitions(context)
    found: dict[str, Any] = {"start": context.name_of(state)}
    for name in case["given"]["path"]:
        if table.find(state, by_name[name]) is None:
            raise CannotPlay(f"the path of the case is illegal: {state} to {name}")
        state = by_name[name]
    tried = {name: table.find(state, by_name[name]) for name in case["then"]["to"]}
    found["to"] = {name: "allowed" if row else "illegal" for name, row in tried.items()}
    return case["then"], {key: found[key] for key in case["then"]}


def protocol_vote(case: Case, release: str) -> Seen:
    """Candidates, votes and the choice."""
    group = Group("g", GroupState.PREPARING, protocol_type="consumer")
    for id, names in case["given"]["members"].items():
        group = group.with_member(Member(id, "c", "/h", 1, 1, tuple(map(GroupProtocol, names))))
    then, found = dict(case["then"]), dict[str, Any]()
    for key in then:
        match key:
            case "candidates":
                then[key], found[key] = sorted(then[key]), sorted(group.candidates)
            case "votes":
                found[key] = group.votes
            case "selected_any_of":
                chosen = group.select_protocol()
                found[key] = then[key] if chosen in then[key] else chosen
            case "supports":
                asked = [row["protocols"] for row in then[key]]
                found[key] = [{"protocols": names, "supported": group.supports("consumer", names)} for names in asked]
    return then, found


BYTES = ("user_data", "subscription", "assignment")


def from_case(value: Any, key: str = "") -> Any:
    """Fields as the codec has them: bytes, and lists of partitions by topic."""
    if key in BYTES and isinstance(value, str):
        return bytes.fromhex(value.replace(" ", ""))
    if key in ("owned", "partitions", "previous_assignment") and isinstance(value, dict):
        return [{"topic": topic, "partitions": numbers} for topic, numbers in value.items()]
    if isinstance(value, dict):
        return {name: from_case(item, name) for name, item in value.items()}
    return [from_case(item) for item in value] if isinstance(value, list) else value


def codec(case: Case, release: str) -> Seen:
    record, given = case["given"]["record"], dict(case["given"]["fields"])
    fields = from_case({key: value for key, value in given.items() if key != "version"})
    if record == "sticky_user_data":
        data = sticky_user_data(fields["previous_assignment"], fields.get("generation"))
        back: Any = read_sticky_user_data(data)
    else:
        data = encode(record, given["version"], fields)
        version, back = decode(record, data)
        back["version"] = version
    then = {key: squeezed(value) if key == "hex" else value for key, value in case["then"].items()}
    found = {"length": len(data), "hex": data.hex()}
    wanted = from_case(given)
    return then | {"back": wanted}, {key: found[key] for key in then} | {"back": kept(back, wanted)}


def kept(back: Any, given: Any) -> Any:
    """What was decoded, without the optional fields that were not given and have the value that says so."""
    if isinstance(given, dict) and isinstance(back, dict):
        absent = {"leader_epoch": -1, "group_instance_id": None, "expire_timestamp": -1}
        items = {key: value for key, value in back.items() if key in given or absent.get(key, LARGEST_INT) != value}
        return {key: kept(value, given.get(key)) for key, value in items.items()}
    if isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        return [kept(one, other) for one, other in zip(back, given, strict=True)]
    return back


# ---------------------------------------------------------------- assignors


def assignor(case: Case, release: str) -> Seen:
    """Walked in the order given, or in id order and its reverse where the result must not depend on it."""
    given, then = case["given"], case["then"]
    named = look_up(ASSIGNORS, "assignor", given["assignor"])
    order = given.get("iteration_order")
    orders = [order] if order else [sorted(given["members"]), sorted(given["members"], reverse=True)]
    results = []
    for ids in orders:
        members = {id: subscription(given["members"][id]) for id in ids}
        assigned = named(given["partitions"], members)
        found: dict[str, Any] = {}
        for key in then:
            match key:
                case "assignment":
                    found[key] = {id: list(map(str, held)) for id, held in assigned.items()}
                case "assignment_sets":
                    found[key] = {id: set(map(str, held)) for id, held in assigned.items()}
                case "path":
                    found[key] = path(given["partitions"], members)
                case "withheld":
                    topics = {topic for member in members.values() for topic in member.topics}
                    wanted = {tp for topic in topics for tp in partitions_of(given["partitions"], topic)}
                    found[key] = set(map(str, wanted.difference(*assigned.values())))
        results.append(found)
    expected = dict(then)
    if "assignment_sets" in then:
        expected["assignment_sets"] = {id: set(held) for id, held in then["assignment_sets"].items()}
    if "withheld" in then:
        expected["withheld"] = set(then["withheld"])
    return [expected] * len(results), results


def subscription(member: dict[str, Any]) -> Subscription:
    owned = tuple(map(TopicPartition.parse, member.get("owned", ())))
    return Subscription(tuple(member["topics"]), owned, member.get("generation"), member.get("instance"))


# ---------------------------------------------------------------- timer and purgatory


def timing_wheel(case: Case, release: str) -> Seen:
    """Tasks are named by their deadlines."""
    given = case["given"]
    timer, now = Timer(given["tick_ms"], given["wheel_size"], given["start_ms"]), given["start_ms"]
    found: dict[str, Any] = {"placement": {}, "fired": [], "moves": []}
    for step in case["when"]:
        if "add" in step:
            now, deadline = step.get("at", now), step["add"]
            bucket = timer.add(str(deadline), deadline)
            if bucket is None:
                found["fired"].append([deadline, now])
            at = {"level": bucket.level, "bucket": bucket.index, "bucket_expiration": bucket.expiration_ms} if bucket else None
            found["placement"][deadline] = at or "immediate"
            continue
        now = step["advance_to"]
        while timer.next_ms is not None and timer.next_ms <= now:
            for move in timer.advance(now):
                to = list(move.target) if move.target else "run"
                found["moves"].append([int(move.task), move.level, move.expiration_ms, to])
                found["fired"] += [] if move.target else [[int(move.task), now]]
    wheel, found["wheels"] = timer.wheel, []
    while wheel:
        found["wheels"].append([wheel.tick_ms, wheel.interval_ms, wheel.now_ms])
        wheel = wheel.above  # type: ignore[assignment]
    then = case["then"]
    placed = found["placement"]
    found["placement"] = {task: placed[task] for task in then.get("placement", ())}
    return then, {key: found[key] for key in then}


class Waiting:
    """The operations of a purgatory case by name, what happened to each, and which are ready."""

    def __init__(self) -> None:
        self.now = 0
        self.purgatory = Purgatory()
        self.operations: dict[str, Operation] = {}
        self.events: dict[str, list[str]] = {}
        self.ready: set[str] = set()

    def watch(self, op: str, delay: int, keys: list[str], completable: bool = False) -> bool:
        self.events[op] = []
        if completable:
            self.ready.add(op)
        note = self.events[op].append
        self.operations[op] = Operation(op, lambda: op in self.ready, lambda: note("complete"), lambda: note("expire"))
        return self.purgatory.try_complete_else_watch(self.operations[op], self.now + delay, keys)

    def check(self, key: str) -> int:
        return self.purgatory.check_and_complete(key)

    def make_completable(self, op: str) -> None:
        self.ready.add(op)

    def try_complete(self, op: str) -> bool:
        return self.purgatory.try_complete(self.operations[op])

    def counts(self) -> dict[str, int]:
        purgatory = self.purgatory
        return {"delayed": len(purgatory.timer), "watched": purgatory.watched, "keys": len(purgatory.watchers)}

    def events_of(self, op: str) -> list[str]:
        return list(self.events[op])


PURGATORY_VERBS = {
    "watch": Waiting.watch, "check": Waiting.check, "make_completable": Waiting.make_completable,
    "try_complete": Waiting.try_complete, "counts": Waiting.counts, "events": Waiting.events_of,
}  # fmt: skip


def purgatory(case: Case, release: str) -> Seen:
    """Each labelled step's value."""
    stage, found = Waiting(), dict[str, Any]()
    for step in case["when"]:
        stage.now = step.get("at", stage.now)
        stage.purgatory.advance(stage.now)
        args = {key: value for key, value in step.items() if key not in ("at", "do", "as")}
        found[step.get("as", "")] = look_up(PURGATORY_VERBS, "verb", step["do"])(stage, **args)
    return case["then"], {key: found[key] for key in case["then"]}


KINDS: dict[str, Callable[[Case, str], Seen]] = {
    "coordinator": coordinator, "hash": hashes, "state_machine": state_machine, "protocol_vote": protocol_vote, "codec": codec,
    "assignor": assignor, "timing_wheel": timing_wheel, "purgatory": purgatory,
}  # fmt: skip
