"""Cases of kind `coordinator`: the verbs of FORMAT-group.md, section 4, and what can be checked of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kcontrol.core.effects import LogBatch
from kcontrol.core.model import TopicPartition
from kcontrol.group import events as e
from kcontrol.group.context import GroupConfig
from kcontrol.group.coordinator_partition import partition_for
from kcontrol.group.error_codes import ERRORS
from kcontrol.group.model import Group, GroupProtocol, GroupState, Member, OffsetAndMetadata
from kcontrol.group.offsets_topic_records import encode, group_key, offset_key, offset_value
from tests.conformance.cases import Case
from tests.conformance.group.stage import Stage
from tests.conformance.values import CannotPlay, look_up

Step = dict[str, Any]
SETTINGS = {
    "min_session": "min_session_timeout_ms", "max_session": "max_session_timeout_ms", "initial_delay": "initial_delay_ms",
    "max_size": "max_size", "partitions": "partitions", "retention_ms": "retention_ms", "metadata_max": "metadata_max",
}  # fmt: skip


class Play:
    """One case under way: its coordinator, and what each label stands for."""

    def __init__(self, case: Case, release: str) -> None:
        self.case, self.release = case, release
        given = (case.get("given") or {}).get("config") or {}
        config = GroupConfig.of(release, **{SETTINGS[key]: value for key, value in given.items() if key in SETTINGS})
        if unknown := given.keys() - SETTINGS.keys() - {"owned", "loading"}:
            raise CannotPlay.unknown("setting", min(unknown), [*SETTINGS, "owned", "loading"])
        numbers = {key: {partition_for(group, config.partitions) for group in given.get(key, ())} for key in ("owned", "loading")}
        owned = numbers["owned"] if "owned" in given else set(range(config.partitions)) - numbers["loading"]
        self.stage = Stage(release, config, owned, numbers["loading"])
        self.client = ("client", "/host")
        self.ids: dict[str, str] = {}
        self.verbs: dict[str, str] = {}
        self.seen: dict[str, Any] = {}
        self.epochs: dict[int, int] = {}
        self.count = 0

    def run(self) -> dict[str, Any]:
        """All steps; what was seen, by label, in the fields of each verb."""
        steps = [*((self.case.get("given") or {}).get("setup") or ()), *(self.case.get("when") or ())]
        for step in steps:
            self.stage.advance(step.get("at", self.stage.now))
            self.count += 1
            args = self.resolved({NAMED.get(key, key): value for key, value in step.items() if key not in ("at", "do", "as")})
            label = step.get("as", f"#{self.count}")
            self.verbs[label] = step["do"]
            seen = look_up(VERBS, "verb", step["do"])(self, label, **args)
            if seen is not None:
                self.seen[label] = seen
            self.stage.advance(self.stage.now)  # a timer without delay fires before the next step
            self.note_ids()
        return {label: self.outcome(label) for label in self.verbs}

    def resolved(self, value: Any) -> Any:
        """The value with member ids in place of `$label`."""
        match value:
            case str() if value.startswith("$"):
                return look_up(self.ids, "join", value[1:])
            case dict():
                return {self.resolved(key): self.resolved(item) for key, item in value.items()}
            case list():
                return [self.resolved(item) for item in value]
        return value

    def note_ids(self) -> None:
        """The member id of each join: the one in its answer, or that of the member that is parked for it."""
        for label, verb in self.verbs.items():
            if verb == "join" and label not in self.ids:
                answer = self.stage.answers.get(label)
                parked = (m for group in self.stage.context.groups.values() for m in group.members.values())
                found = answer.body.member_id if answer else next((m.member_id for m in parked if m.awaiting_join == label), None)
                if found is not None:
                    self.ids[label] = found

    def outcome(self, label: str) -> Any:
        if label in self.seen:
            return self.seen[label]
        answer = self.stage.answers.get(label)
        if answer is None:
            return {"status": "pending"}
        return {"status": "answered", "at": answer.at} | SHOW[self.verbs[label]](answer.body)

    # ---- verbs: requests

    def join(self, label: str, group: str = "g", member: str = "", session: int = 500, rebalance: int | None = None,
             type: str = "consumer", protocols: Any = ("range",), instance: str | None = None,
             require_known: bool = False) -> None:  # fmt: skip
        offered = tuple(
            GroupProtocol(p) if isinstance(p, str) else GroupProtocol(p["name"], raw(p.get("meta"))) for p in protocols
        )
        if member:
            self.ids[label] = member
        timeouts = session, session if rebalance is None else rebalance
        uuid = f"00000000-0000-4000-8000-{self.count:012d}"
        self.stage.handle(e.JoinGroup(
            label, group, member, *timeouts, type, offered, instance, *self.client, uuid, require_known
        ))  # fmt: skip

    def sync(self, label: str, member: str, gen: int, group: str = "g", assignment: Any = None, instance: str | None = None,
             type: str | None = None, protocol: str | None = None) -> None:  # fmt: skip
        each = {id: raw(text) for id, text in (assignment or {}).items()}
        self.stage.handle(e.SyncGroup(label, group, member, gen, each, instance, type, protocol))

    def heartbeat(self, label: str, member: str, gen: int, group: str = "g", instance: str | None = None) -> None:
        self.stage.handle(e.Heartbeat(label, group, member, gen, instance))

    def leave(self, label: str, members: Any, group: str = "g") -> None:
        each = tuple(e.MemberIdentity(item.get("member", ""), item.get("instance")) for item in members)
        self.stage.handle(e.LeaveGroup(label, group, each))

    def commit(self, label: str, gen: int, offsets: Any, group: str = "g", member: str = "", metadata: Any = None,
               instance: str | None = None, retention_ms: int | None = None, commit_timestamp: int | None = None,
               producer: int | None = None) -> None:  # fmt: skip
        each = {
            tp(name): e.CommittedOffset(offset, (metadata or {}).get(name, ""), commit_timestamp)
            for name, offset in offsets.items()
        }
        self.stage.handle(e.OffsetCommit(label, group, member, gen, each, instance, retention_ms, producer))

    def fetch(self, label: str, group: str = "g", partitions: Any = None, require_stable: bool = False) -> None:
        wanted = None if partitions is None else tuple(map(tp, partitions))
        self.stage.handle(e.OffsetFetch(label, group, wanted, require_stable))

    def describe(self, label: str, group: str = "g") -> None:
        self.stage.handle(e.DescribeGroup(label, group))

    def list(self, label: str, states: Any = ()) -> None:
        self.stage.handle(e.ListGroups(label, tuple(states)))

    def delete(self, label: str, groups: Any) -> Any:
        return self.with_tombstones(label, e.DeleteGroups(label, tuple(groups)))

    def offset_delete(self, label: str, partitions: Any, group: str = "g") -> Any:
        return self.with_tombstones(label, e.OffsetDelete(label, group, tuple(map(tp, partitions))))

    def with_tombstones(self, label: str, event: Any) -> Any:
        before = len(self.stage.tombstones)
        self.stage.handle(event)
        found = self.stage.names_of(self.stage.tombstones[before:])
        return errors(self.stage.answers[label].body) | {"tombstones": found}

    # ---- verbs: the world around it

    def end_txn(self, label: str, producer: int, groups: Any, commit: bool) -> None:
        numbers = tuple(sorted({self.stage.context.partition_of(group) for group in groups}))
        self.stage.handle(e.TransactionCompleted(producer, numbers, commit))

    def load(self, label: str, records: Any, group: str = "g", epoch: int | None = None) -> None:
        partition = self.stage.context.topic_partition(group)
        self.stage.logs[partition] = [self.batch(offset, record) for offset, record in enumerate(records)]
        self.stage.handle(e.PartitionElected(partition.partition, self.epoch(partition.partition, epoch)))

    def unload(self, label: str, group: str = "g", epoch: int | None = None) -> None:
        number = self.stage.context.partition_of(group)
        self.stage.handle(e.PartitionResigned(number, self.epoch(number, epoch)))

    def epoch(self, partition: int, given: int | None) -> int:
        self.epochs[partition] = self.epochs.get(partition, 0) + 1 if given is None else given
        return self.epochs[partition]

    def batch(self, offset: int, record: Step) -> LogBatch:
        """One record of `load`, in the bytes that this release writes."""
        value, rules = record.get("value"), self.stage.context.rules
        match record["kind"]:
            case "marker":
                return LogBatch(offset, (), record["producer"], "commit" if record["commit"] else "abort")
            case "offset":
                expire = -1 if value is None else value.get("expire", -1)
                data = None if value is None else OffsetAndMetadata(
                    value["offset"], value.get("metadata", ""), value["commit"], None if expire < 0 else expire
                )  # fmt: skip
                raw_value = None if data is None else offset_value(data, rules.offset_value)
                return LogBatch(offset, ((offset_key(record["group"], tp(record["tp"])), raw_value),), record.get("producer"))
        data = None if value is None else encode("group_value", rules.group_value, group_fields(value))
        return LogBatch(offset, ((group_key(record["group"]), data),))

    def append(self, label: str, mode: str, error: str = "NONE") -> None:
        if mode == "release":
            self.stage.release_held(error)
        else:
            self.stage.mode, self.stage.error = mode, error

    def cleanup(self, label: str) -> Any:
        stage = self.stage
        offsets, groups, before = stage.committed(), set(stage.context.groups), len(stage.tombstones)
        stage.handle(e.ExpireOffsets())
        return {
            "expired": offsets - stage.committed(),
            "groups_removed": groups - stage.context.groups.keys(),
            "tombstones": stage.names_of(stage.tombstones[before:]),
        }

    def inject(self, label: str, group: str, state: str) -> None:
        self.stage.context.groups[group] = Group(group, GroupState(state))  # type: ignore[index]

    def probe(self, label: str, group: str = "g") -> Any:
        found = self.stage.context.groups.get(group)
        if found is None:
            return {"exists": False}
        return {
            "exists": True, "state": self.stage.context.name_of(found.state), "generation": found.generation,
            "leader": found.leader, "members": set(found.members), "size": len(found.members),
            "pending": len(found.pending_members), "protocol": found.protocol,
        }  # fmt: skip

    def peek(self, label: str, request: str) -> Any:
        return {"status": "answered" if request in self.stage.answers else "pending"}


NAMED = {"label": "request"}  # the label that `peek` asks about, and not its own
VERBS: dict[str, Callable[..., Any]] = {
    name: getattr(Play, name)
    for name in (
        "join", "sync", "heartbeat", "leave", "commit", "fetch", "describe", "list", "delete", "offset_delete", "end_txn", "load",
        "unload", "append", "cleanup", "inject", "probe", "peek",
    )
}  # fmt: skip


def raw(text: str | None) -> bytes:
    return bytes.fromhex(text or "")


def tp(text: str) -> TopicPartition:
    return TopicPartition.parse(text)


def group_fields(value: Step) -> Step:
    """A group's record as `load` gives it, in the names of the codec."""
    members = [
        {
            "member_id": member["id"], "group_instance_id": member.get("instance"), "client_id": "client", "client_host": "/host",
            "rebalance_timeout": member.get("rebalance", member["session"]), "session_timeout": member["session"],
            "subscription": raw(member.get("subscription")), "assignment": raw(member.get("assignment")),
        }
        for member in value["members"]
    ]  # fmt: skip
    head = {"protocol_type": value["type"], "generation": value["generation"], "protocol": value.get("protocol")}
    return head | {"leader": value.get("leader"), "current_state_timestamp": value.get("timestamp", -1), "members": members}


# ---------------------------------------------------------------- what an answer shows


def errors(body: e.ErrorsResult) -> dict[str, Any]:
    codes = {str(key): code(error) for key, error in body.errors.items()}
    return {"error": code(body.error), "errors": codes}


def code(name: str) -> int:
    return ERRORS[name]


def show_join(body: e.JoinResult) -> dict[str, Any]:
    return {
        "error": code(body.error), "generation": body.generation, "member": body.member_id, "leader": body.leader,
        "protocol": body.protocol, "members": {id for id, _ in body.members}, "members_count": len(body.members),
    }  # fmt: skip


def show_commit(body: e.ErrorsResult) -> dict[str, Any]:
    codes = {code(error) for error in body.errors.values()}
    return {
        "error": codes.pop() if len(codes) == 1 else sorted(codes),
        "errors": {str(k): code(v) for k, v in body.errors.items()},
    }


def show_fetch(body: e.FetchResult) -> dict[str, Any]:
    each = {str(k): {"offset": v.offset, "metadata": v.metadata, "error": code(v.error)} for k, v in body.offsets.items()}
    return {"error": code(body.error), "offsets": each}


def show_describe(body: e.DescribeResult) -> dict[str, Any]:
    def by_id(index: int) -> dict[str, str]:
        return {entry[0].member_id: bytes(entry[index]).hex() for entry in body.members}  # type: ignore[arg-type]

    members: set[str] = {member.member_id for member, _, _ in body.members if isinstance(member, Member)}
    said = {"state": body.state, "type": body.protocol_type, "protocol": body.protocol, "members": members}
    return {"error": code(body.error), **said, "metadata": by_id(1), "assignment": by_id(2)}


SHOW: dict[str, Callable[[Any], dict[str, Any]]] = {
    "join": show_join,
    "sync": lambda body: {"error": code(body.error), "assignment": body.assignment.hex()},
    "heartbeat": lambda body: {"error": code(body.error)},
    "leave": lambda body: {"error": code(body.error), "member_errors": [code(error) for error in body.members]},
    "commit": show_commit,
    "delete": errors,
    "offset_delete": errors,
    "fetch": show_fetch,
    "describe": show_describe,
    "list": lambda body: {
        "error": code(body.error),
        "groups": [dict(zip(("group", "type", "state"), entry, strict=True)) for entry in body.groups],
    },
}


# ---------------------------------------------------------------- comparing


def expected_of(play: Play, then: Step) -> Step:
    """`then` of this release, with ids, codes and sets as they are compared."""
    if "by_release" in then:
        then = then["by_release"][play.release]
    return {label: {key: wanted(key, play.resolved(value)) for key, value in fields.items()} for label, fields in then.items()}


SETS = ("members", "expired", "groups_removed", "tombstones")


def wanted(key: str, value: Any) -> Any:
    match key:
        case "error":
            return code(value)
        case "errors":
            return {name: code(error) for name, error in value.items()}
        case "member_errors":
            return [code(error) for error in value]
        case "offsets":
            return {name: {k: code(v) if k == "error" else v for k, v in fields.items()} for name, fields in value.items()}
        case "assignment" | "metadata":
            return squeezed(value) if isinstance(value, str) else {id: squeezed(text) for id, text in value.items()}
    return set(value) if key in SETS else value


def squeezed(text: str) -> str:
    return text.replace(" ", "")


def picked(expected: Any, actual: Any) -> Any:
    """Of what was seen, what is asked about: a field that is not listed is free."""
    found: dict[str, Any] = {}
    for key, value in expected.items():
        if key not in actual:
            found[key] = f"nothing: the outcome has {', '.join(map(str, actual))}"
        elif key == "offsets" and actual[key].keys() == value.keys():
            found[key] = {name: {k: actual[key][name][k] for k in fields} for name, fields in value.items()}
        elif key == "groups":
            cut = [{k: entry[k] for k in (value[0] if value else entry)} for entry in actual[key]]
            found[key] = value if sorted(map(str, cut)) == sorted(map(str, value)) else cut
        else:
            found[key] = actual[key]
    return found


def coordinator(case: Case, release: str) -> tuple[Any, Any]:
    """What was expected and what was seen, label by label."""
    play = Play(case, release)
    seen = play.run()
    expected = expected_of(play, case["then"])
    return expected, {label: picked(fields, look_up(seen, "label", label)) for label, fields in expected.items()}
