"""Clients that do what they like to a coordinator, and what must hold of it whatever they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kcontrol.cluster.snapshot import context as shown
from kcontrol.core.model import TopicPartition
from kcontrol.core.releases import is_since
from kcontrol.group import events as e
from kcontrol.group.context import GroupConfig
from kcontrol.group.group_machine import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from kcontrol.group.model import Group, GroupProtocol
from kcontrol.group.rebalance import join_timer, session_timer
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record, to_json
from tests.conformance.group.stage import BROKER, Stage

GROUP, PARTITION = "g", 0
WAITS_MS = (1, 50, 250, 1_000, 5_000)


@dataclass
class Client:
    """What one consumer remembers: its id, and the generation that it takes itself to be in."""

    name: str
    instance: str | None = None
    member_id: str = ""
    generation: int = -1
    waits_for: str = ""


class Run:
    """One coordinator, four clients, and a list of what they did; `choose` makes one thing happen."""

    def __init__(self, release: str) -> None:
        changes = {"partitions": 1, "min_session_timeout_ms": 1, "max_size": 3, "retention_ms": 2_000, "initial_delay_ms": 100}
        self.stage = Stage(release, GroupConfig.of(release, **changes), [])
        self.stage.handle(e.PartitionElected(PARTITION, 1))
        static = "i" if self.stage.context.rules.static_rejoin == "stored" else None
        self.clients = [Client("a"), Client("b"), Client("c"), Client("s", static)]
        self.count, self.epoch, self.has_failed = 0, 1, False
        self.said: list[str] = []

    def choose(self, what: int, who: int, how: int) -> None:
        """Let the client do the thing, or the world. Raises what the coordinator must never do."""
        self.count += 1
        client = self.clients[who % len(self.clients)]
        act = ACTS[what % len(ACTS)]
        self.said.append(f"{act.__name__}({client.name}, {how})")
        act(self, client, how)
        self.stage.advance(self.stage.now)
        for other in self.clients:
            self.take_answer(other)

    def take_answer(self, client: Client) -> None:
        """Give a client the answer to its pending JoinGroup, if there is one."""
        answer = self.stage.answers.get(client.waits_for)
        if answer and isinstance(answer.body, e.JoinResult):
            client.waits_for = ""
            if answer.body.error in ("NONE", "MEMBER_ID_REQUIRED"):
                client.member_id, client.generation = answer.body.member_id, answer.body.generation
            elif answer.body.error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"):
                client.member_id = ""

    # ---- what happens

    def join(self, client: Client, how: int) -> None:
        client.waits_for = f"r{self.count}"
        names = (("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("range",))[how % 4]
        subscription = bytes.fromhex("0000 00000001 0001 74 ffffffff")
        protocols = tuple(GroupProtocol(name, subscription) for name in names)
        timeouts = (400, 800) if how % 3 else (1_500, 600)
        member_id = "" if how % 7 == 6 else client.member_id
        self.stage.handle(e.JoinGroup(
            client.waits_for, GROUP, member_id, *timeouts, "consumer", protocols, client.instance, client.name, "/h",
            f"u{self.count}", how % 2 == 0,
        ))  # fmt: skip

    def sync(self, client: Client, how: int) -> None:
        group = self.stage.context.groups.get(GROUP)
        each = {id: f"{id}{how}".encode() for id in (group.members if group else ())}
        self.stage.handle(e.SyncGroup(f"r{self.count}", GROUP, client.member_id, client.generation, each, client.instance))

    def heartbeat(self, client: Client, how: int) -> None:
        generation = client.generation + (how % 9 == 8)
        self.stage.handle(e.Heartbeat(f"r{self.count}", GROUP, client.member_id, generation, client.instance))

    def leave(self, client: Client, how: int) -> None:
        self.stage.handle(e.LeaveGroup(f"r{self.count}", GROUP, (e.MemberIdentity(client.member_id, client.instance),)))

    def commit(self, client: Client, how: int) -> None:
        is_alone = how % 4 == 3
        member_id, generation = ("", -1) if is_alone else (client.member_id, client.generation)
        offsets = {TopicPartition("tu"[how % 2], how % 3): e.CommittedOffset(self.count)}
        instance = None if is_alone else client.instance
        self.stage.handle(e.OffsetCommit(f"r{self.count}", GROUP, member_id, generation, offsets, instance))

    def wait(self, client: Client, how: int) -> None:
        self.stage.advance(self.stage.now + WAITS_MS[how % len(WAITS_MS)])

    def hold(self, client: Client, how: int) -> None:
        self.stage.mode = "hold"

    def release(self, client: Client, how: int) -> None:
        error = ("NONE", "NONE", "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS")[how % 4]
        self.has_failed |= error != "NONE" and bool(self.stage.held)
        self.stage.release_held(error)

    def expire(self, client: Client, how: int) -> None:
        self.stage.handle(e.ExpireOffsets())

    def delete(self, client: Client, how: int) -> None:
        if is_since("1.1.0", self.stage.release):  # DeleteGroups (KIP-229)
            self.has_failed |= bool(self.stage.held)  # a commit that is on its way outlives the deletion, in Kafka too
            self.stage.handle(e.DeleteGroups(f"r{self.count}", (GROUP,)))

    def move_away(self, client: Client, how: int) -> None:
        """Another broker coordinates, and then this one again; what was on its way is lost or not."""
        self.stage.handle(e.PartitionResigned(PARTITION, self.epoch))
        if how % 2:
            self.release(client, how)
        self.stage.advance(self.stage.now + WAITS_MS[how % 3])
        self.epoch += 1
        self.stage.handle(e.PartitionElected(PARTITION, self.epoch))


MANY, FEW = 6, 1
WEIGHTS: tuple[tuple[Callable[[Run, Client, int], None], int], ...] = (
    (Run.join, 9), (Run.sync, MANY), (Run.heartbeat, MANY), (Run.wait, MANY), (Run.commit, 3), (Run.leave, FEW), (Run.hold, FEW),
    (Run.release, 2), (Run.expire, FEW), (Run.delete, FEW), (Run.move_away, FEW),
)  # fmt: skip
ACTS = [act for act, weight in WEIGHTS for _ in range(weight)]


# ---------------------------------------------------------------- what must hold


def broken(run: Run, before: dict[str, Group], records: list[Record]) -> Iterator[str]:
    """What is wrong after a step that began with these groups and wrote these records."""
    context = run.stage.context
    moves = [record.fields["group_metadata"] for record in records if record.kind == "group"]
    for id, group in context.groups.items():
        yield from _broken_group(run, group)
        if id in before and group.generation < before[id].generation and None not in moves:
            yield f"the generation fell from {before[id].generation} to {group.generation}"
    for record in records:
        body = record.fields.get("body") if record.kind == "respond" else None
        if isinstance(body, e.JoinResult) and body.members and body.leader != body.member_id:
            yield f"{body.member_id} is a follower and got the list of members"
    members = {session_timer(id, m) for id, g in context.groups.items() for m in (*g.members, *g.pending_members)}
    ends = run.stage.context.rules.ends_removed_sessions  # before 2.0.1 the deadline of a removed member stays
    stale = [name for name in run.stage.driver.timers if ends and name.startswith("session") and name not in members]
    yield from (f"the timer {name} has no member" for name in stale)


def _broken_group(run: Run, group: Group) -> Iterator[str]:
    timers, members = run.stage.driver.timers, group.members
    if group.state is DEAD:
        yield "a Dead group is in the cache"
    if (group.leader is None) == bool(members) or (group.leader is not None and group.leader not in members):
        yield f"{group.leader} leads {list(members)}"
    if (group.state is EMPTY or (group.state is STABLE and run.stage.context.rules.keeps_empty_groups)) and bool(members) == (
        group.state is EMPTY
    ):
        yield f"{group.state} with members {list(members)}"
    if group.state in (COMPLETING, STABLE) and members and group.protocol not in group.candidates:
        yield f"{group.protocol} is not supported by all of {group.state}"
    if group.state is PREPARING and join_timer(group.group_id) not in timers:
        yield "nothing ends the join phase"
    if group.state is COMPLETING and any(member.awaiting_join for member in members.values()):
        yield "a JoinGroup is parked although the join phase is over"
    if group.state in (STABLE, PREPARING) and any(member.awaiting_sync for member in members.values()):
        yield f"a SyncGroup is parked in {group.state}"
    for member in members.values():
        if not member.is_parked and session_timer(group.group_id, member.member_id) not in timers:
            yield f"no session timer can remove {member.member_id}"


def folded(run: Run) -> tuple[object, object]:
    """What the journal says of the coordinator, and what it is."""
    fold = Fold()
    fold.state["nodes"][str(BROKER)] = {"queues": {}, "handling": {}, "timers": {}, "parked": {}, "group": {}}
    for record in run.stage.journal.records:
        fold.add(record)
    ours = {name: value for name, value in shown(run.stage.context).items() if value}
    ours["timers"] = {name: to_json(timer.event) for name, timer in run.stage.driver.timers.items()}
    node = fold.state["nodes"][str(BROKER)]
    theirs = {name: value for name, value in node["group"].items() if value}
    return theirs | {"timers": {name: timer["event"] for name, timer in node["timers"].items()}}, ours


def reloaded(run: Run) -> Stage:
    """Another coordinator that has read the log of this one."""
    other = Stage(run.stage.release, run.stage.context.config, ())
    other.logs, other.now = run.stage.logs, run.stage.now
    other.handle(e.PartitionElected(PARTITION, run.epoch + 1))
    return other
