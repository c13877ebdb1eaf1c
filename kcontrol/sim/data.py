"""The data side of a world: clients that produce, followers that fetch, disks that outlive processes, and what is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.controller.context import apply_learn
from kcontrol.effects import Learn
from kcontrol.events import FetchResponse, FollowerFetch, Produce
from kcontrol.model import TopicPartition
from kcontrol.replica import data as replica
from kcontrol.replica import log as changes
from kcontrol.replica.context import BrokerContext
from kcontrol.replica.log import ReplicaLog
from kcontrol.runtime import logs
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import RecordId
from kcontrol.sim.exchange import begin_if_idle, hears

if TYPE_CHECKING:
    from kcontrol.sim.world import Action, World

ACKS = ("1", "all")
PRODUCE = "-Produce"


class Acknowledged(NamedTuple):
    """A record of whose safety a leader has assured the producer; `acks` is what the producer had asked for."""

    offset: int
    leader_epoch: int
    value: str
    acks: str
    leader: int


# ---------------------------------------------------------------- producers


def can_produce(world: World, leader: int, partition: str, value: str, acks: str) -> bool:
    """Whether this broker can be spoken to; if it does not lead, it says so. Raises ValueError for anything of another form."""
    if acks not in ACKS or not isinstance(value, str):
        raise ValueError
    TopicPartition.parse(partition)
    return world.settings.data and hears(world, leader)


def produce(world: World, leader: int, partition: str, value: str, acks: str) -> None:
    """A client sends one record to a broker that it takes for the leader."""
    driver = world.processes[leader].driver
    cause = world.log("act", None, action=["produce", leader, partition, value, acks])
    correlation_id = f"{leader}.{driver.incarnation}-{cause.seq}{PRODUCE}"
    driver.enqueue(Produce(correlation_id, TopicPartition.parse(partition), value, acks), cause, "requests")
    begin_if_idle(world, leader)


def offers(world: World, n: int, broker: BrokerContext) -> Iterator[Action]:
    """One record for each partition that a broker believes to lead, with a value that no other record has."""
    for tp in sorted(broker.hosted):
        if broker.leads(tp):
            log = broker.logs[tp]
            yield ("produce", n, str(tp), f"{n}.{log.leader_epoch}.{log.end_offset}", "all")


def note_answer(world: World, driver: Driver, correlation_id: str, body: dict[str, Any], record: RecordId) -> bool:
    """The answer to a producer; whoever was promised something is remembered. Return False for any other answer."""
    if not correlation_id.endswith(PRODUCE):
        return False
    if body["error"] == "NONE":
        tp = body["partition"]
        promise = Acknowledged(body["offset"], body["leader_epoch"], body["value"], body["acks"], driver.node)
        world.acknowledged[tp] = (*world.acknowledged.get(tp, ()), promise)
        world.log("acknowledged", record, partition=tp, **promise._asdict())
    return True


# ---------------------------------------------------------------- followers


class Fetch(NamedTuple):
    """What a follower would ask its leader now, and the answer that it would get."""

    leader: int
    asked: FollowerFetch
    answer: FetchResponse


def fetches(world: World) -> Iterator[tuple[int, TopicPartition]]:
    """Followers whose next fetch would change something on one of both sides."""
    for n, p in sorted(world.processes.items()):
        for tp in p.driver.broker.hosted if not p.frozen else ():
            if (found := _fetch(world, n, tp)) is not None and _changes_something(world, n, found):
                yield n, tp


def can_fetch(world: World, follower: int, partition: str) -> bool:
    tp = TopicPartition.parse(partition)
    found = _fetch(world, follower, tp) if hears(world, follower) else None
    return found is not None and _changes_something(world, follower, found)


def _fetch(world: World, n: int, tp: TopicPartition) -> Fetch | None:
    """The next fetch of a follower whose leader can be spoken to, believes that it leads and, since 2.1, under the same epoch."""
    held, has_log = world.processes[n].driver.broker.hosted.get(tp), tp in world.processes[n].driver.broker.logs
    if held is None or not has_log or not world.processes[n].driver.broker.fetches(tp) or not hears(world, held.value.leader):
        return None
    broker = world.processes[held.value.leader].driver.broker
    agreed = broker.leads(tp) and (
        not broker.rules.fenced_fetches or broker.hosted[tp].value.leader_epoch == held.value.leader_epoch
    )
    if not agreed or tp not in broker.logs or not (_is_idle(world, n) and _is_idle(world, broker.broker_id)):
        return None
    offset, latest_epoch = replica.position(world.processes[n].driver.broker, tp)
    asked = FollowerFetch(tp, n, held.value.leader_epoch, offset)
    return Fetch(broker.broker_id, asked, replica.answer(broker, tp, offset, latest_epoch))


def _is_idle(world: World, n: int) -> bool:
    thread = world.processes[n].driver.threads["requests"]
    return thread.handler is None and not thread.queue


def _changes_something(world: World, n: int, fetch: Fetch) -> bool:
    tp, offset, answer = fetch.asked.partition, fetch.asked.offset, fetch.answer
    if answer.diverging or answer.records:
        return True
    mine, leader = world.processes[n].driver.broker.logs[tp], world.processes[fetch.leader].driver.broker
    held = leader.hosted[tp]
    joins = n not in held.value.isr and not held.pending_isr and replica.may_join(leader, tp, n, offset)
    learns = min(offset, answer.high_watermark) != mine.high_watermark
    return joins or learns or leader.logs[tp].end_of(n) != offset


def fetch(world: World, follower: int, partition: str) -> None:
    """A follower asks its leader, who takes note of it, and does with the answer what it says.

    Of a follower whose log parts from the leader's no note is taken: how far it is says nothing before it has cut its log.
    Source: ReplicaManager.updateFollowerFetchState (2.8).
    """
    found = _fetch(world, follower, TopicPartition.parse(partition))
    assert found is not None, "only a possible action is performed"
    record = None
    if found.answer.diverging is None:
        record = world.processes[found.leader].driver.enqueue(found.asked, None, "requests")
        begin_if_idle(world, found.leader)
    world.processes[follower].driver.enqueue(found.answer, record, "requests")
    begin_if_idle(world, follower)


def lags(world: World, leader: int, tp: TopicPartition, follower: int) -> bool:
    """Whether a follower is behind its leader as far as that one knows. Source: Partition.isFollowerOutOfSync (2.8)."""
    log = world.processes[leader].driver.broker.logs.get(tp)
    return log is not None and log.end_of(follower) != log.end_offset


# ---------------------------------------------------------------- disks


def is_due(world: World, n: int) -> bool:
    """Whether a living broker has a high watermark that is not on its disk yet."""
    living = world.processes[n].driver.broker.logs.values() if hears(world, n) else ()
    return any(log.checkpoint != log.high_watermark for log in living)


def checkpoint(world: World, n: int) -> None:
    logs.checkpoint(world.processes[n].driver)


def keep(world: World, n: int, driver: Driver) -> None:
    """A process has ended: what it had on disk stays."""
    if driver.broker.logs:
        world.disks[n] = {tp: log.after_a_stop() for tp, log in driver.broker.logs.items()}


def load(world: World, n: int, broker: BrokerContext) -> None:
    """A process starts with what the disk holds."""
    apply_learn(broker, Learn("logs", world.disks.pop(n, {})))


def has_tail(world: World, n: int, partition: str, offset: int) -> bool:
    """Whether the log of a broker that does not run goes beyond an offset."""
    log = world.disks.get(n, {}).get(TopicPartition.parse(partition))
    return log is not None and 0 <= offset < log.end_offset


def lose_tail(world: World, n: int, partition: str, offset: int) -> None:
    """Its machine has lost power: records from `offset` on had not been flushed to the disk."""
    tp = TopicPartition.parse(partition)
    before = world.disks[n][tp]
    after = changes.apply(before, changes.Truncate(offset, ""))
    world.disks[n] = {**world.disks[n], tp: after}
    cause = world.log("act", None, action=["lose_tail", n, partition, offset])
    removed, now = before.records[offset:], logs.difference(before, after)
    world.log("tail_lost", cause, broker=n, partition=tp, offset=offset, removed=removed, now=now)


# ---------------------------------------------------------------- losses


def replicas(world: World) -> dict[int, dict[TopicPartition, ReplicaLog]]:
    """Every log there is, by broker, those of brokers that do not run included."""
    living = {n: dict(p.driver.broker.logs) for n, p in world.processes.items()}
    return {n: found for n, found in sorted({**world.disks, **living}.items()) if found}


def look_for_losses(world: World, before: int) -> None:
    """Say which acknowledged records no replica has any more, once a log has been cut, or deleted, which is no loss."""
    for cut in world.journal.since(before):
        if cut.kind in ("log_truncate", "tail_lost", "log_delete"):
            _look(world, cut.fields["partition"], cut.id, deleted=cut.kind == "log_delete")


def _look(world: World, tp: TopicPartition, cause: RecordId, *, deleted: bool) -> None:
    there = {(r.offset, r.leader_epoch) for found in replicas(world).values() if tp in found for r in found[tp].records}
    promised = world.acknowledged.get(tp, ())
    kept = tuple(a for a in promised if (a.offset, a.leader_epoch) in there)
    if kept != promised:
        world.acknowledged.pop(tp)
        world.acknowledged |= {tp: kept} if kept else {}
    for gone in promised:
        if gone in kept:
            continue
        if deleted:
            world.log("record_deleted", cause, partition=tp, **gone._asdict())
        else:
            world.log("record_lost", cause, partition=tp, **gone._asdict())
