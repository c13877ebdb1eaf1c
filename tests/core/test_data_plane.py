"""The data side: what is replicated, committed, acknowledged, cut and lost, in worlds whose brokers keep logs."""

from __future__ import annotations

import pytest

from kcontrol.broker import replication as replica
from kcontrol.broker.log import EpochStart
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.core.model import EpochEnd, LogRecord
from kcontrol.search.invariants import violation
from tests.core import logs
from tests.core.durability import committed_records_survive, replicas_agree
from tests.core.support import T0, cluster, of_kind, settle, stored


def acknowledged(world: World) -> list[str]:
    return [record.fields["value"] for record in of_kind(world, "acknowledged")]


def answers(world: World) -> list[str]:
    return [r.fields["body"]["error"] for r in of_kind(world, "respond") if r.fields["correlation_id"].endswith("-Produce")]


# ---------------------------------------------------------------- replication


def test_a_record_goes_to_the_leader_then_to_its_followers() -> None:
    """A leader appends what a client sends, and each follower has it after its own fetch."""
    world = logs.with_logs()
    logs.produce(world, "a", "b")
    assert logs.values(world) == {1: "a b", 2: "", 3: ""}
    logs.fetch(world, 3)
    assert logs.values(world) == {1: "a b", 2: "", 3: "a b"}
    assert logs.log(world, 3).records == (LogRecord(0, 0, "a"), LogRecord(1, 0, "b"))
    world.run()
    assert logs.values(world) == {1: "a b", 2: "a b", 3: "a b"}


def test_followers_get_the_high_watermark_one_fetch_later() -> None:
    """A fetch confirms the records before its offset; the last ISR member's confirmation raises the leader's high watermark."""
    # A follower learns that from the answer to its next fetch, since the leader reads its log before it takes note. Source:
    # ReplicaManager.fetchMessages and Partition.maybeIncrementLeaderHW (2.8).
    world = logs.with_logs()
    logs.produce(world, "a")
    logs.fetch(world, 2, 3, 2)
    assert logs.high_watermarks(world) == {1: 0, 2: 0, 3: 0}
    logs.fetch(world, 3)
    assert logs.high_watermarks(world) == {1: 1, 2: 0, 3: 0}
    logs.fetch(world, 2)
    assert logs.high_watermarks(world) == {1: 1, 2: 1, 3: 0}
    logs.fetch(world, 3)
    assert logs.high_watermarks(world) == {1: 1, 2: 1, 3: 1}


def test_a_new_leader_keeps_its_high_watermark() -> None:
    """It knows no follower's end yet, and what it has committed stays so: a leader's high watermark never falls."""
    # Source: Log.maybeIncrementHighWatermark (2.8).
    world = logs.with_logs()
    logs.produce(world, "a")
    world.run()
    world.step(("kill", 1))
    logs.without(world, "fetch")
    assert stored(world)["t-0"] == (2, (2, 3))
    assert (logs.high_watermarks(world), logs.log(world, 2).follower_end_offset(3)) == ({1: 1, 2: 1, 3: 1}, -1)


def test_a_follower_that_catches_up_learns_the_high_watermark_with_the_records() -> None:
    """It takes over the leader's high watermark as far as its log goes after the fetch, not before."""
    # Source: ReplicaFetcherThread.processPartitionData (2.8).
    world = logs.with_logs()
    world.step(("freeze", 2))
    logs.produce(world, "a", "b")
    world.run()
    settle(world, ("shrink_isr", 1, "t-0", 2))
    world.step(("thaw", 2))
    logs.fetch(world, 2)
    assert (logs.values(world)[2], logs.high_watermarks(world)) == ("a b", {1: 2, 2: 2, 3: 2})


def test_a_followers_high_watermark_falls_with_its_leaders() -> None:
    """A new leader may have a lower high watermark than the old leader, and its followers take it over."""
    # Source: Log.updateHighWatermarkMetadata (2.8), which only warns of a non-monotonic update.
    world = logs.with_logs()
    logs.produce(world, "a")
    logs.fetch(world, 2, 3, 2, 3, 3)
    assert logs.high_watermarks(world) == {1: 1, 2: 0, 3: 1}
    world.step(("kill", 1))
    logs.without(world, "fetch", "checkpoint")
    logs.fetch(world, 3)
    assert {n: high for n, high in logs.high_watermarks(world).items() if n != 1} == {2: 1, 3: 0}
    logs.fetch(world, 3)
    assert {n: high for n, high in logs.high_watermarks(world).items() if n != 1} == {2: 1, 3: 1}


def test_acks_decide_when_a_producer_is_answered() -> None:
    """With acks=1 the leader answers once it has the record, with acks=all once the high watermark has passed it."""
    world = logs.with_logs()
    logs.produce(world, "all")
    logs.produce(world, "one", acks="1")
    assert acknowledged(world) == ["one"]
    logs.fetch(world, 2, 3, 2)
    assert acknowledged(world) == ["one"]
    logs.fetch(world, 3)
    assert acknowledged(world) == ["one", "all"]


def test_each_producer_waits_for_its_own_record() -> None:
    """A high watermark that has reached a record and not passed it answers the one before, and not that one."""
    world = logs.with_logs()
    logs.produce(world, "a")
    logs.fetch(world, 2, 3)
    logs.produce(world, "b")
    logs.fetch(world, 2, 3)
    assert (logs.log(world, 1).high_watermark, acknowledged(world)) == (1, ["a"])
    logs.fetch(world, 2, 3)
    assert (logs.log(world, 1).high_watermark, acknowledged(world)) == (2, ["a", "b"])


def test_a_broker_that_does_not_lead_says_so() -> None:
    """A client with old metadata is answered NOT_LEADER_OR_FOLLOWER, and nothing is appended."""
    world = logs.with_logs()
    logs.produce(world, "a", leader=2)
    assert (answers(world), logs.values(world)) == (["NOT_LEADER_OR_FOLLOWER"], {1: "", 2: "", 3: ""})


def test_a_waiting_producer_gets_an_error_when_its_broker_resigns() -> None:
    """A leader that becomes a follower responds NOT_LEADER_OR_FOLLOWER to a producer that waits for the high watermark."""
    world = logs.with_logs()
    world.step(("freeze", 2))
    world.step(("freeze", 3))
    logs.produce(world, "a")
    world.step(("freeze", 1))
    for action in (("thaw", 2), ("thaw", 3), ("expire_session", 1)):
        world.step(action)
    world.run()
    world.step(("thaw", 1))
    assert stored(world)["t-0"][0] == 2
    world.run()
    assert answers(world) == ["NOT_LEADER_OR_FOLLOWER"]
    assert logs.values(world) == {1: "", 2: "", 3: ""}


def test_a_world_comes_to_rest() -> None:
    """A fetch that would change nothing is not an action, and is refused."""
    world = logs.with_logs()
    logs.produce(world, "a")
    world.run()
    assert not [action for action in world.actions() if action[0] in ("fetch", "checkpoint")]
    with pytest.raises(UserError, match="is not possible now"):
        world.step(("fetch", 2, "t-0"))


def test_without_data_there_is_nothing_to_produce_to() -> None:
    """A world that keeps no logs refuses `produce`, offers no such action and writes no such record."""
    world = cluster({"t": ((1, 2),)}, brokers=(1, 2), faults=("produce", "kill"))
    with pytest.raises(UserError, match="with data=True"):
        world.step(("produce", 1, "t-0", "a", "1"))
    assert {action[0] for action in world.actions()} == {"fire_timer", "kill"}
    assert "data" not in world.journal.records[0].fields
    assert "logs" not in world.snapshot()


# ---------------------------------------------------------------- the ISR


def test_only_who_is_behind_can_be_left_out() -> None:
    """A follower at the leader's end cannot be said to lag; one that is behind leaves, and then the record is committed."""
    # Source: Partition.isFollowerOutOfSync (2.8).
    world = logs.with_logs()
    logs.produce(world, "a")
    world.run()
    with pytest.raises(UserError, match="Broker 2 has all records of t-0"):
        world.step(("shrink_isr", 1, "t-0", 2))
    world.step(("freeze", 2))
    logs.produce(world, "b")
    world.run()
    assert acknowledged(world) == ["a"]
    settle(world, ("shrink_isr", 1, "t-0", 2))
    assert (stored(world)["t-0"], acknowledged(world)) == ((1, (1, 3)), ["a", "b"])


def test_a_leader_of_0_8_1_writes_its_isr_itself() -> None:
    """There is no AlterIsr: what is behind leaves by a write of the leader's own, and then the record is committed."""
    # Source: Partition.updateIsr and maybeShrinkIsr (0.8.1).
    world = logs.with_logs(release="0.8.1")
    world.step(("freeze", 2))
    logs.produce(world, "a")
    world.step(("fetch", 3, "t-0"))
    world.step(("fetch", 3, "t-0"))
    world.step(("shrink_isr", 1, "t-0", 2))
    assert acknowledged(world) == []
    world.step(("advance", 1, "requests"))
    assert (stored(world)["t-0"], acknowledged(world), of_kind(world, "submit")) == ((1, (1, 3)), ["a"], [])
    settle(world, ("thaw", 2))
    assert (stored(world)["t-0"], logs.values(world)[2]) == ((1, (1, 3, 2)), "a")


def test_a_shrink_that_is_not_written_yet_commits_nothing() -> None:
    """Until the controller has answered, the high watermark counts the follower that is to leave."""
    # Source: isrState.maximalIsr in Partition.scala (2.7 on, KIP-497).
    world = logs.with_logs()
    world.step(("freeze", 2))
    logs.produce(world, "a")
    logs.without(world, "send_to_controller")
    world.step(("shrink_isr", 1, "t-0", 2))
    logs.without(world, "send_to_controller")
    assert (logs.log(world, 1).high_watermark, acknowledged(world)) == (0, [])
    world.run()
    assert (logs.log(world, 1).high_watermark, acknowledged(world)) == (1, ["a"])


def out_of_sync() -> World:
    """Broker 2 has missed a record, has left the ISR for that, and goes on now."""
    world = logs.with_logs()
    world.step(("freeze", 2))
    logs.produce(world, "a")
    world.run()
    settle(world, ("shrink_isr", 1, "t-0", 2))
    world.step(("thaw", 2))
    return world


def test_who_is_asked_into_the_isr_is_counted_at_once() -> None:
    """Before the controller has answered, nothing is committed that the follower which is to enter does not have."""
    # Source: isrState.maximalIsr in Partition.scala (2.7 on, KIP-497).
    world = out_of_sync()
    logs.fetch(world, 2, 2)
    assert world.processes[1].driver.broker.hosted[T0].pending_isr == (1, 3, 2)
    logs.produce(world, "b")
    logs.fetch(world, 3, 3)
    assert (logs.log(world, 1).high_watermark, acknowledged(world)) == (1, ["a"])
    logs.fetch(world, 2, 2)
    assert (logs.log(world, 1).high_watermark, acknowledged(world)) == (2, ["a", "b"])


def test_a_follower_enters_the_isr_when_it_is_at_the_high_watermark() -> None:
    """One that fetches again is asked into the ISR by the fetch that shows that it has caught up, not by one before."""
    world = out_of_sync()
    logs.fetch(world, 2)
    assert of_kind(world, "submit")[-1].fields["body"][T0].isr == (1, 3)
    logs.fetch(world, 2)
    assert of_kind(world, "submit")[-1].fields["body"][T0].isr == (1, 3, 2)
    world.run()
    assert stored(world)["t-0"] == (1, (1, 3, 2))


def test_a_follower_must_have_reached_the_epoch_of_its_leader() -> None:
    """A leader whose high watermark lags takes an empty follower into the ISR before 1.1.2, and none since (KAFKA-7128)."""
    # The follower asks from offset 0, which is the leader's high watermark and is not where the leader's epoch begins.
    outcome = {}
    for rule in ("high_watermark", "leader_epoch_start"):
        world = logs.with_logs((1, 2, 3, 5), rule_changes={"rejoins_at": rule})
        settle(world, ("kill", 5))
        logs.produce(world, "a")
        logs.fetch(world, 2, 3, 2, 3)
        assert (acknowledged(world), logs.log(world, 2).high_watermark) == (["a"], 0)
        for action in (("freeze", 3), ("kill", 1)):
            world.step(action)
        logs.without(world, "fetch")
        assert stored(world)["t-0"] == (2, (2, 3))
        world.step(("start", 5))
        logs.without(world, "fetch")
        logs.fetch(world, 5)
        logs.without(world, "fetch")
        outcome[rule] = stored(world)["t-0"]
    assert outcome == {"high_watermark": (2, (2, 3, 5)), "leader_epoch_start": (2, (2, 3))}


# ---------------------------------------------------------------- unclean elections


def test_an_unclean_election_loses_record_7() -> None:
    """The new leader's shorter log wins: the old leader cuts its own when it fetches, and record 7 is on no replica any more."""
    world = logs.lost_by_unclean_election()
    assert logs.values(world) == dict.fromkeys((1, 2, 3), "0 1 2 3 4 5 6")
    (cut,), (lost,) = of_kind(world, "log_truncate"), of_kind(world, "record_lost")
    assert (cut.id.node, cut.fields["offset"], [r.value for r in cut.fields["removed"]]) == (1, 7, ["7"])
    named = {name: lost.fields[name] for name in ("partition", "offset", "value", "acks", "leader")}
    assert named == {"partition": T0, "offset": 7, "value": "7", "acks": "1", "leader": 1}
    assert (lost.cause, [a.value for a in world.acknowledged[T0]]) == (cut.id, ["0", "1", "2", "3", "4", "5", "6"])


def test_nothing_is_lost_while_some_replica_has_it() -> None:
    """While the old leader is dead its disk still has record 7, and no record_lost is written."""
    world = logs.lost_by_unclean_election()
    again = World(world.settings)
    for action in world.done[: world.done.index(("kill", 1)) + 1]:
        again.step(action)
    again.run()
    assert (logs.values(again)[1][-1], of_kind(again, "record_lost")) == ("7", [])


def test_a_clean_cluster_waits_for_its_old_leader() -> None:
    """Where unclean election is off, a partition has no leader until its one replica in sync is back, and nothing is lost."""
    world = logs.with_logs()
    world.step(("freeze", 2))
    world.step(("freeze", 3))
    logs.produce(world, "7")
    logs.kill_the_only_replica_in_sync(world)
    assert stored(world)["t-0"] == (-1, (1,))
    settle(world, ("start", 1))
    assert logs.values(world) == {1: "7", 2: "7", 3: "7"}


# ---------------------------------------------------------------- truncation: KIP-101 and KIP-279


@pytest.mark.parametrize("rule", ["high_watermark", "leader_epoch", "common_epoch"])
def test_a_follower_that_cuts_at_its_high_watermark_loses_what_was_committed(rule: str) -> None:
    """KIP-101, scenario 1: truncation to the high watermark, followed at once by the death of the leader."""
    # Before 0.11 the follower has thrown record b away by then, is elected from the ISR and leads without it; b, though it was
    # acknowledged with acks=all, is gone once the others follow. With leader epochs nothing is thrown away.
    world = logs.high_watermark_not_fetched(rule)
    world.step(("kill", 2))
    logs.without(world, "fetch", "checkpoint")
    assert stored(world)["t-0"] == (3, (3,))
    assert logs.values(world)[3] == ("a" if rule == "high_watermark" else "a b")
    broken = violation(world, (committed_records_survive,))
    assert broken == ("t-0: broker 3 leads without record 1 (b), acknowledged by 1" if rule == "high_watermark" else None)
    logs.produce(world, "c", leader=3)
    for broker in (1, 2):
        settle(world, ("start", broker))
    lost = [(r.fields["value"], r.fields["acks"]) for r in of_kind(world, "record_lost")]
    assert (lost, logs.values(world)[1]) == (([("b", "all")], "a c") if rule == "high_watermark" else ([], "a b c"))


@pytest.mark.parametrize("release", ["0.8.1", "2.8"])
def test_a_committed_record_above_the_high_watermark_by_release(release: str) -> None:
    """The same with nothing changed: 0.8.1 throws the committed record away before it asks its leader, 2.8 keeps it."""
    world = logs.high_watermark_not_fetched(None, release=release)
    assert logs.values(world)[3] == {"0.8.1": "a", "2.8": "a b"}[release]
    world.run()
    assert logs.values(world)[3] == "a b"


@pytest.mark.parametrize("rule", ["high_watermark", "leader_epoch", "common_epoch"])
def test_replicas_diverge_after_hard_failures(rule: str) -> None:
    """KIP-101, scenario 2: both replicas lose power; one returns without its tail, leads, and takes another record there."""
    # Before 0.11 the other one, whose high watermark is beyond, keeps its own record at that offset: the logs differ from then
    # on, while both are in sync. With leader epochs it cuts its log where the epochs part.
    world = logs.with_logs((1, 2), rule_changes={"truncate_to": rule})
    logs.produce(world, "a", "b")
    world.run()
    for action in (("freeze", 4), ("kill", 2), ("expire_session", 2), ("kill", 1), ("expire_session", 1), ("thaw", 4)):
        world.step(action)
    world.run()
    survivor, other = (1, 2) if stored(world)["t-0"][1] == (1,) else (2, 1)
    settle(world, ("lose_tail", survivor, "t-0", 1), ("start", survivor))
    logs.produce(world, "c", leader=survivor)
    settle(world, ("start", other))
    assert stored(world)["t-0"] == (survivor, (survivor, other))
    assert logs.values(world) == {survivor: "a c", other: "a b" if rule == "high_watermark" else "a c"}
    assert (violation(world, (replicas_agree,)) is None) == (rule != "high_watermark")


def test_a_fast_series_of_leaders_needs_the_common_epoch() -> None:
    """KIP-279: a follower with records of an epoch that the leader does not know keeps some of them by KIP-101 alone."""
    # The leader's first larger epoch begins beyond them. Since 2.0 it says which epoch it knows, and the follower goes back.
    outcome = {}
    for rule in ("leader_epoch", "common_epoch"):
        world = logs.with_logs((1, 2), rule_changes={"truncate_to": rule}, config=logs.UNCLEAN)
        logs.produce(world, "a")
        world.run()
        world.step(("freeze", 2))
        logs.produce(world, "b1", acks="1")
        settle(world, ("shrink_isr", 1, "t-0", 2))
        settle(world, ("kill", 1), ("thaw", 2))
        assert logs.log(world, 2).epochs == (EpochStart(0, 0), EpochStart(1, 1))
        logs.produce(world, "b2", leader=2, acks="1")
        settle(world, ("kill", 2), ("start", 1))
        logs.produce(world, "c", "d", leader=1, acks="1")
        assert (logs.values(world)[1], logs.log(world, 1).epochs) == ("a b1 c d", (EpochStart(0, 0), EpochStart(2, 2)))
        settle(world, ("start", 2))
        outcome[rule] = logs.values(world)[2]
    assert outcome == {"leader_epoch": "a b2 c d", "common_epoch": "a b1 c d"}


# ---------------------------------------------------------------- disks and restarts


def test_a_restart_keeps_the_log_and_the_checkpointed_high_watermark() -> None:
    """A killed process finds its records and epochs again, and the high watermark as it was when it was last written to disk."""
    world = logs.with_logs()
    logs.produce(world, "a")
    world.run()
    logs.produce(world, "b")
    logs.without(world, "checkpoint")
    assert (logs.log(world, 2).high_watermark, logs.log(world, 2).checkpoint) == (2, 1)
    world.step(("kill", 2))
    found = logs.log(world, 2)
    assert (logs.values(world)[2], found.high_watermark, found.leader, found.epochs) == ("a b", 1, -1, (EpochStart(0, 0),))
    world.run()
    settle(world, ("start", 2))
    assert (logs.values(world)[2], logs.log(world, 2).high_watermark, logs.log(world, 2).checkpoint) == ("a b", 2, 2)


def test_a_broker_that_stops_in_order_writes_its_high_watermark() -> None:
    """At the end of a controlled shutdown nothing of the high watermark is forgotten. Source: ReplicaManager.shutdown (2.8)."""
    world = logs.with_logs()
    logs.produce(world, "a")
    logs.without(world, "checkpoint")
    world.step(("terminate", 2))
    logs.without(world, "checkpoint")
    assert 2 not in world.processes
    assert logs.log(world, 2).checkpoint == logs.log(world, 2).high_watermark == 1


def test_only_a_dead_brokers_disk_loses_its_tail() -> None:
    """`lose_tail` needs a broker that does not run, and an offset that its log has."""
    world = logs.with_logs()
    logs.produce(world, "a", "b")
    world.run()
    for action in (("lose_tail", 2, "t-0", 1),):
        with pytest.raises(UserError, match="Broker 2 is running"):
            world.step(action)
    world.step(("kill", 2))
    for offset in (2, -1):
        with pytest.raises(UserError, match="log end offsets"):
            world.step(("lose_tail", 2, "t-0", offset))
    world.step(("lose_tail", 2, "t-0", 1))
    assert (logs.values(world)[2], logs.log(world, 2).high_watermark, of_kind(world, "record_lost")) == ("a", 1, [])
    world.step(("start", 2))
    with pytest.raises(UserError, match="Broker 2 is running"):
        world.step(("lose_tail", 2, "t-0", 0))


# ---------------------------------------------------------------- fencing


@pytest.mark.parametrize("fenced", [True, False])
def test_a_fetch_under_another_leader_epoch_is_fenced(fenced: bool) -> None:
    """Since 2.1 a leader serves only fetches with its own leader epoch; before 2.1 it serves every fetch (KIP-320)."""
    world = logs.with_logs(rule_changes={"fenced_fetches": fenced})
    logs.produce(world, "a")
    held = world.processes[2].driver.broker.hosted
    held[T0] = held[T0]._replace(leadership=held[T0].leadership._replace(leader_epoch=7))  # type: ignore[index]
    assert (("fetch", 2, "t-0") in world.actions()) != fenced


def test_a_leader_reads_before_it_takes_note() -> None:
    """A fetch with the leader's latest epoch gets records; a fetch with another epoch gets the offset where the logs diverge."""
    world = logs.with_logs()
    logs.produce(world, "a", "b")
    broker = world.processes[1].driver.broker
    answers = [replica.read_for_fetch(broker, T0, offset, epoch) for offset, epoch in ((0, -1), (1, 0), (3, 0))]
    assert [[r.value for r in answer.records] for answer in answers] == [["a", "b"], ["b"], []]
    assert [answer.diverging for answer in answers] == [None, None, EpochEnd(0, 2)]
