"""Each invariant fails in a run that breaks it, holds in all others, and is checked for its releases only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kcontrol.cluster.world import World
from kcontrol.controller.context import apply_update
from kcontrol.controller.leader_election import Elected, ElectionInput
from kcontrol.core.effects import UpdateContext
from kcontrol.core.model import LeaderAndIsr, PartitionState
from kcontrol.core.transitions import Changes
from kcontrol.core.znodes import delete_topic_path, topic_path
from kcontrol.group.events import JoinResult, SessionTimedOut, SyncResult
from kcontrol.group.model import CommitRecordMetadataAndOffset, OffsetAndMetadata, Offsets
from kcontrol.search.invariants import ALWAYS, AT_REST, INVARIANTS, Invariant, violation
from kcontrol.search.museum import BY_RULE
from kcontrol.search.search import report
from tests.core.support import T0, cluster, settle
from tests.group.test_coordinators_in_a_cluster import stable
from tests.search.support import DEPOSED_WRITE, pasted, two_brokers
from tests.search.test_museum import SHORTEST

ROW = {row.name: row for row in INVARIANTS}
STATE = "/brokers/topics/t/partitions/0/state"
FIRST_RELEASES = ("0.8", "0.8.1", "0.9", "0.11", "1.1", "2.0.1", "2.1", "2.2")
"""The first releases of the rows, in their order, without a last number 0."""


def broken_by(changes: Changes) -> World:
    """A cluster in which a learner's own election has just chosen the next leader after a death."""
    world = cluster({"t": ((3, 2, 1),)}, changes=changes)
    world.step(("kill", 3))
    world.step(("expire_session", 3))
    while not any(r.kind == "change" and r.fields["write"] for r in world.last_step):
        world.step(world.actions()[0])
    return world


def elects(leader: int, *isr: int) -> Callable[[ElectionInput], Elected]:
    return lambda candidates: Elected(leader, isr)


def decides(**fields: int) -> Callable[..., LeaderAndIsr]:
    """An action for Offline -> Online that lets 2 lead, and gets something else wrong."""

    def action(ctx: Any, tp: Any, question: Any) -> LeaderAndIsr:
        right = question.stored.new_leader_and_isr(2, (2, 1), ctx.controller_epoch)
        wrong: LeaderAndIsr = right._replace(**fields)
        return wrong

    return action


OFFLINE_TO_ONLINE = (PartitionState.OFFLINE, PartitionState.ONLINE)


def sent_too_early() -> World:
    """A controller whose memory has a leadership that was never written sends it to a broker that has just started."""
    world = cluster({"t": ((1, 2),)}, brokers=(1, 2, 3))
    settle(world, ("kill", 3))
    memory = world.processes[1].driver.controller
    apply_update(memory, UpdateContext("leadership", {T0: memory.leadership[T0]._replace(leader=2, leader_epoch=5)}))
    world.step(("start", 3))
    return until_sent(world)


def sent_under_a_future_epoch() -> World:
    """A controller whose memory has a later epoch than the epoch that it registered."""
    world = cluster({"t": ((1, 2),)}, brokers=(1, 2, 3))
    apply_update(world.processes[1].driver.controller, UpdateContext("controller_epoch", 9))
    world.step(("kill", 2))
    world.step(("expire_session", 2))
    return until_sent(world)


def until_sent(world: World) -> World:
    while not any(r.kind == "send" and r.fields["requests"].update_metadata for r in world.last_step):
        world.step(world.actions()[0])
    return world


def deposed() -> World:
    """Broker 1 writes what it decided before broker 2 became controller, under rules without a fence."""
    world = two_brokers(fenced_writes=False)
    for action in DEPOSED_WRITE:
        world.step(action)
    return world


def two_under_one_epoch() -> World:
    """The second controller of a run writes under the epoch of the first."""
    world = cluster({"t": ((1, 2, 3),)}, changes=Changes({OFFLINE_TO_ONLINE: decides(controller_epoch=1)}))
    world.step(("kill", 1))
    world.step(("expire_session", 1))
    while ROW["one writer per epoch"](world) is None:
        world.step(world.actions()[0])
    return world


def two_controllers() -> World:
    """A broker that takes itself for controller, and is not named."""
    world = cluster()
    apply_update(world.processes[2].driver.controller, UpdateContext("active_controller_id", 2))
    return world


def forgetful() -> World:
    """A controller whose memory is one decision behind."""
    world = cluster()
    memory = world.processes[1].driver.controller
    apply_update(memory, UpdateContext("leadership", {T0: memory.leadership[T0]._replace(leader_epoch=7)}))
    return world


def request_first() -> World:
    """A controller that does not know the topic when it reads the request, and does when it drops it."""
    world = cluster({"t": ((1, 2),)})
    memory = world.processes[1].driver.controller
    apply_update(memory, UpdateContext("all_topics", remove=("t",)))
    world.step(("delete_topic", "t"))
    for action in (("deliver_notification", 1), ("begin", 1, "controller"), ("advance", 1, "controller")):
        world.step(action)
    apply_update(memory, UpdateContext("all_topics", ("t",)))
    world.step(("advance", 1, "controller"))
    return world


def group_of(assignment: Callable[[Any], bytes] | None = None, **fields: Any) -> World:
    """A coordinator with a record of its group as no coordinator makes it."""
    world = stable()
    driver = world.processes[1].driver
    assert driver.group is not None
    group = driver.group.groups["g"].with_changes(**fields)
    if assignment:
        group = group.with_each_member(assignment=assignment(group.members.values()))
    driver.log("group", None, **{"from": "Stable", "to": "Stable"}, group_id="g", rule="", group_metadata=group)
    return world


def last_assignment_lost() -> World:
    """A Stable group without the assignment of the member that owns the last partition of the topic."""
    world = stable()
    driver = world.processes[1].driver
    assert driver.group is not None
    group = driver.group.groups["g"]
    last = min(group.members.values(), key=lambda member: member.assignment)  # it owns t-2 alone
    left = group.with_members(replace(m, assignment=b"" if m is last else m.assignment) for m in group.members.values())
    driver.log("group", None, **{"from": "Stable", "to": "Stable"}, group_id="g", rule="", group_metadata=left)
    return world


def responses_of(*bodies: Any) -> World:
    """A coordinator that sends these responses, the first to consumer a, the second to consumer b."""
    world = stable()
    for name, body in zip("ab", bodies, strict=False):
        world.processes[1].driver.log("respond", None, correlation_id=f"consumer {name} 99", body=body)
    return world


def answered_twice() -> World:
    """A coordinator that sends its last response again."""
    world = stable()
    answer = next(r for r in reversed(world.journal.records) if r.kind == "respond")
    world.processes[1].driver.log("respond", None, **answer.fields)
    return world


def parked_and_gone() -> World:
    """A coordinator that lets a session timeout remove a member whose JoinGroup is parked."""
    world = stable()
    driver = world.processes[1].driver
    assert driver.group is not None
    group = driver.group.groups["g"]
    (first, *_) = group.members
    parked = group.with_each_member(awaiting_join="consumer a 9")
    driver.log("update", None, context="group", field="groups", container="map", clear=False, remove=(), put={"g": parked})
    apply_update(driver.group, UpdateContext("groups", {"g": group.without(first)}, context="group"))
    cause = driver.log("enqueue", None, thread="coordinator", event=SessionTimedOut("g", first), is_notification=False)
    driver.log("begin", cause, thread="coordinator", event="SessionTimedOut")
    return world


def offset_without_record() -> World:
    """A coordinator with a committed offset in its cache that no record of its log has."""
    world = stable()
    driver = world.processes[1].driver
    assert driver.group is not None
    held = {T0: CommitRecordMetadataAndOffset(OffsetAndMetadata(7), 0)}
    apply_update(driver.group, UpdateContext("offsets", {"g": Offsets(held)}, context="group"))
    return world


def in_the_museum(rule: str) -> World:
    """The end of the shortest run that shows a published bug."""
    world = BY_RULE[rule].world()
    for action in SHORTEST[rule]:
        world.step(action)
    return world


BREAKS: dict[str, Callable[[], World]] = {
    "leader in ISR": lambda: broken_by(Changes(strategies={"offline": elects(2, 1)})),
    "ISR in assignment": lambda: broken_by(Changes(strategies={"offline": elects(2, 2, 9)})),
    "ISR never empty": lambda: broken_by(Changes(strategies={"offline": elects(-1)})),
    "leader epoch counts decisions": lambda: broken_by(Changes({OFFLINE_TO_ONLINE: decides(leader_epoch=3)})),
    "state epoch is known": lambda: broken_by(Changes({OFFLINE_TO_ONLINE: decides(controller_epoch=2)})),
    "a deposed controller writes nothing": deposed,
    "one writer per epoch": two_under_one_epoch,
    "only the named controller writes": lambda: in_the_museum("handlers_outlive_session"),
    "leaders know": lambda: in_the_museum("broker_epochs"),
    "a removed member has no deadline": lambda: in_the_museum("ends_removed_sessions"),
    "no request before its write": sent_too_early,
    "no epoch from the future": sent_under_a_future_epoch,
    "a request outlives its topic": request_first,
    "one controller": two_controllers,
    "cache equals znode": forgetful,
    "one leader, one protocol": lambda: group_of(leader="x"),
    "assigned once": lambda: group_of(assignment=lambda members: next(m.assignment for m in members if m.assignment)),
    "answered once": answered_twice,
    "a parked member stays": parked_and_gone,
    "a generation never falls": lambda: group_of(generation=0),
    "committed offsets are stored": offset_without_record,
}


@pytest.mark.parametrize("row", INVARIANTS, ids=lambda row: row.name)
def test_each_promise_can_be_broken(row: Invariant) -> None:
    """For every invariant there is a world that breaks this invariant alone, and the violation has its name."""
    world = BREAKS[row.name]()
    properties = ALWAYS if row in ALWAYS else AT_REST
    found = violation(world, (row,))
    assert found is not None and found.startswith(f"{row.name}: ")
    assert violation(world, properties) is not None


@pytest.mark.parametrize(("name", "world"), [
    ("one leader, one protocol", lambda: responses_of(*(JoinResult("NONE", id, 1, "range", id) for id in "ab"))),
    ("assigned once", last_assignment_lost),
    ("assigned once", lambda: responses_of(SyncResult("NONE", b"another assignment"))),
], ids=["two leaders in the responses", "the last partition without owner", "a response with another assignment"])  # fmt: skip
def test_a_promise_about_groups_can_be_broken_in_other_ways(name: str, world: Callable[[], World]) -> None:
    """The rows about groups find a second leader, a lost last partition, and a response that differs from the group."""
    found = violation(world(), (ROW[name],))
    assert found is not None and found.startswith(f"{name}: ")


@pytest.mark.parametrize("row", INVARIANTS, ids=lambda row: row.name)
def test_a_promise_speaks_for_its_releases(row: Invariant) -> None:
    """A row is promised by its first release and by later ones, and by none before."""
    assert row.is_promised_by(row.since)
    assert row.is_promised_by("2.8") and row.is_promised_by("3.9")
    assert not row.is_promised_by("0.7")
    assert row.is_promised_by("0.8.1.1") is (row.since in ("0.8.0", "0.8.1"))
    own = FIRST_RELEASES.index(row.since.removesuffix(".0"))
    assert [row.is_promised_by(f"{release}.0") for release in FIRST_RELEASES] == [
        place >= own for place in range(len(FIRST_RELEASES))
    ]


@pytest.mark.parametrize("row", INVARIANTS, ids=lambda row: row.name)
def test_a_release_of_two_numbers_has_the_promises_of_its_patches(row: Invariant) -> None:
    """A release of two numbers promises each row that one of its patches promises, as 1.1 promises the rows since 1.1.0."""
    assert row.is_promised_by(".".join(row.since.split(".")[:2]))


def test_what_was_promised_later_is_no_violation_before() -> None:
    """The same writes of a deposed controller break a promise of 2.8 and none of 2.0."""
    row, world = ROW["a deposed controller writes nothing"], deposed()
    assert row(world)
    object.__setattr__(world.settings, "release", "2.0")
    assert row.broken(world) and row(world) is None


def test_an_outside_write_voids_an_invariant() -> None:
    """After a state znode was written from outside, rows about state znodes are void, and the other rows are still checked."""
    world, broken = cluster({"t": ((1, 2),)}), set[str]()
    world.step(("set", STATE, '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[2,9]}'))
    world.step(("kill", 2))
    while (action := world.actions()[0]).routine:
        world.step(action)
        broken |= {row.name for row in INVARIANTS if row.broken(world)}
        assert violation(world, INVARIANTS) is None
    assert broken == {"leader in ISR", "ISR in assignment"}
    apply_update(world.processes[3].driver.controller, UpdateContext("active_controller_id", 3))
    found = violation(world, INVARIANTS)
    assert found is not None and found.startswith("one controller: ")


def test_a_request_may_go_right_after_its_topic() -> None:
    """The promise holds where the records of the topic's deletion and of the request's deletion follow one another."""
    world = cluster({"t": ((1, 2),)})
    world.step(("delete_topic", "t"))
    for path in (topic_path("t"), delete_topic_path("t")):
        ops = [["delete", path, b"", None, False]]
        world.processes[1].driver.log("write", None, ops=ops, zxid=0, error=None, epoch_zk_version=-1)
    assert [r.kind for r in world.last_step[-2:]] == ["write", "write"]
    assert ROW["a request outlives its topic"].broken(world) is None


def test_the_report_names_rule_step_and_run() -> None:
    """The report of a violation has its invariant, the step, and a program that repeats the run."""
    world = deposed()
    found = violation(world)
    assert found == "a deposed controller writes nothing: t-0: broker 1 has written under epoch 1 when 2 was the newest"
    text = report(world, found)
    assert text.splitlines()[0] == f"# After step {len(world.done)}, ('advance', 1, 'controller'): {found}"
    assert text.splitlines()[-1] == f"# {found}"
    assert violation(pasted(text)) == found


def test_a_step_that_touches_nothing_is_not_looked_at() -> None:
    """After a step without a write or a request no row is asked, so that looking costs next to nothing."""
    world = cluster()
    world.step(("kill", 3))
    asked: list[str] = []
    rows = [
        Invariant(row.name, "", "0.8.0", row.when, row.after, "", lambda w, name=row.name: asked.append(name), "")
        for row in ALWAYS
    ]
    assert violation(world, rows) is None and asked == []
    while not any(r.kind == "send" for r in world.last_step):
        asked.clear()
        world.step(world.actions()[0] if world.actions() else ("expire_session", 3))
        violation(world, rows)
    assert "no request before its write" in asked
