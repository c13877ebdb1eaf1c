"""The log of a replica as a value: how it changes, what it knows of leader epochs, and where two logs part."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.effects import WriteLog
from kcontrol.events import FetchResponse, FollowerFetch
from kcontrol.generations import KAFKA_2_8
from kcontrol.model import EpochEnd, LeaderAndIsr, LogRecord
from kcontrol.replica.context import BrokerContext, HostedPartition
from kcontrol.replica.data import fetch_response, keep_up, may_join, note_fetch, position
from kcontrol.replica.log import (
    DIVERGES,
    Append,
    Checkpoint,
    Configure,
    MoveHighWatermark,
    NoteFollower,
    ReplicaLog,
    TakeRole,
    Truncate,
    Waiting,
    apply,
    truncation_offset,
)
from tests.core.support import T0


def log_of(*leader_epochs: int) -> ReplicaLog:
    """A follower's log whose records were appended first under these leader epochs."""
    records = tuple(LogRecord(offset, epoch, f"{epoch}/{offset}") for offset, epoch in enumerate(leader_epochs))
    return apply(ReplicaLog(), Append(records))


def starts(log: ReplicaLog) -> list[tuple[int, int]]:
    """The leader epoch cache."""
    return [tuple(entry) for entry in log.epochs]


def test_epochs_are_noted_as_records_come() -> None:
    """Each leader epoch has the offset of its first record. Source: LeaderEpochFileCache.assign (2.8)."""
    assert starts(log_of(0, 0, 2, 2, 5)) == [(0, 0), (2, 2), (5, 4)]


def test_an_epoch_without_records_gives_way() -> None:
    """A leader notes its epoch at its end; if the next epoch begins there too, only the later one is kept.

    Source: LeaderEpochFileCache.maybeTruncateNonMonotonicEntries (2.8).
    """
    log = log_of(0, 0)
    for epoch in (1, 3):
        log = apply(log, TakeRole(7, epoch, leads=True))
    assert starts(log) == [(0, 0), (3, 2)]


def test_an_epoch_that_is_smaller_than_others_makes_them_give_way() -> None:
    """Who gets a record of an earlier leader epoch forgets the later ones: the epochs grow, and so do their offsets.

    Source: LeaderEpochFileCache.maybeTruncateNonMonotonicEntries (2.8).
    """
    assert starts(apply(log_of(0, 0, 2, 2, 5), Append((LogRecord(5, 2, "x"),)))) == [(0, 0), (2, 5)]
    assert starts(apply(log_of(0, 0, 2, 2, 5), Append((LogRecord(5, 3, "x"),)))) == [(0, 0), (2, 2), (3, 5)]


def test_truncation_forgets_epochs_and_lowers_the_high_watermark() -> None:
    """Epochs that begin at the new end or behind it are forgotten, the high watermark is never beyond the end.

    Source: Log.truncateTo, LeaderEpochFileCache.truncateFromEnd (2.8).
    """
    log = apply(log_of(0, 0, 2, 2, 5), MoveHighWatermark(4))
    cut = apply(log, Truncate(2, ""))
    assert (len(cut.records), starts(cut), cut.high_watermark) == (2, [(0, 0)], 2)
    kept = apply(log, Truncate(5, ""))
    assert kept == log


def test_truncation_at_the_end_forgets_an_epoch_without_records() -> None:
    """An old leader that appended nothing under its last epoch forgets that epoch, though no record goes."""
    log = apply(log_of(0, 0), TakeRole(7, 3, leads=True))
    assert starts(apply(log, Truncate(2, ""))) == [(0, 0)]


def test_a_new_leader_knows_nothing_of_its_followers() -> None:
    """It starts with unknown ends; whoever leads on under a newer epoch keeps what it knows.

    Source: Partition.makeLeader (2.8).
    """
    led = apply(apply(log_of(0), TakeRole(1, 1, leads=True)), NoteFollower(2, 1))
    assert led.end_of(2) == 1
    assert apply(led, TakeRole(1, 2, leads=True)).end_of(2) == 1
    followed = apply(led, TakeRole(2, 2))
    assert followed.followers == ()
    assert apply(followed, TakeRole(1, 3, leads=True)).end_of(2) == -1


def test_who_waits_is_served_by_the_high_watermark() -> None:
    """A producer waits until the high watermark is beyond his record, and no longer than his broker leads."""
    log = apply(apply(log_of(0), Append((LogRecord(1, 0, "a"),), "one")), Append((LogRecord(2, 0, "b"),), "two"))
    assert log.waiting == (Waiting(1, "one"), Waiting(2, "two"))
    assert apply(log_of(0), Append((LogRecord(1, 0, "a"), LogRecord(2, 0, "b")), "both")).waiting == (Waiting(2, "both"),)
    assert apply(log, MoveHighWatermark(2)).waiting == (Waiting(2, "two"),)
    assert apply(log, TakeRole(2, 1)).waiting == ()


def test_a_stop_leaves_the_disk() -> None:
    """Records, epochs and the checkpoint stay; the high watermark is the checkpoint, or the end if that comes first."""
    log = apply(apply(log_of(0, 0, 0), TakeRole(1, 0, leads=True)), MoveHighWatermark(2))
    log = apply(apply(log, Checkpoint()), MoveHighWatermark(3))
    stopped = log.after_a_stop()
    assert stopped == ReplicaLog(log.records, log.epochs, 2, 2)
    assert apply(stopped, Truncate(1, "")).after_a_stop().high_watermark == 1


ENDS = [
    # asked    the epoch that the answer is about, and its end    why
    (5, EpochEnd(5, 5)),  # the latest epoch ends with the log
    (2, EpochEnd(2, 4)),  # one that is over ends where the next one begins
    (3, EpochEnd(2, 4)),  # of one that the log does not know, the largest below
    (0, EpochEnd(0, 2)),
    (6, EpochEnd(-1, -1)),  # beyond all: unknown
]


@pytest.mark.parametrize(("leader_epoch", "end"), ENDS)
def test_where_an_epoch_ends(leader_epoch: int, end: EpochEnd) -> None:
    """The largest known epoch up to the one asked for, with the start of the next.

    Source: LeaderEpochFileCache.endOffsetFor (2.0).
    """
    assert log_of(0, 0, 2, 2, 5).end_of_epoch(leader_epoch) == end


def test_before_all_epochs() -> None:
    """An epoch below all that are known ends where the first one begins. Source: LeaderEpochFileCache.endOffsetFor (2.0)."""
    assert log_of(2, 2).end_of_epoch(1) == EpochEnd(1, 0)


def cut(rule: str, leader: ReplicaLog, follower: ReplicaLog) -> list[int]:
    """Where a follower cuts its log, round by round, until its leader finds that the two agree; by KIP-101 there is one round."""
    rounds = list[int]()
    follower = apply(follower, TakeRole(1, leader.leader_epoch))
    while diverging := DIVERGES[rule](leader, *position(broker(rule, follower), T0)):
        rounds.append(truncation_offset(follower, diverging))
        follower = apply(follower, Truncate(rounds[-1], rule))
        assert len(rounds) < 10, "that never ends"
    return rounds


def broker(rule: str, log: ReplicaLog) -> BrokerContext:
    """A broker that has this log of t-0."""
    return BrokerContext(2, KAFKA_2_8.but(truncate_to=rule), keeps_logs=True, logs={T0: log})


def test_when_a_follower_asks_with_its_epoch() -> None:
    """By KIP-101 from the start of its role until it has cut its log or has a record more; by the common epoch always.

    Source: AbstractFetcherThread.maybeTruncate and the Truncating state of PartitionFetchState (2.8).
    """
    follower = apply(log_of(0, 0), TakeRole(1, 1))
    cut, longer = Truncate(1, "leader_epoch"), Append((LogRecord(2, 1, "x"),))
    asks = [follower, apply(follower, cut), apply(follower, longer), apply(follower, TakeRole(-1, 1))]
    assert [position(broker("leader_epoch", log), T0) for log in asks] == [(2, 0), (1, -1), (3, -1), (2, -1)]
    assert [position(broker("common_epoch", log), T0) for log in asks] == [(2, 0), (1, 0), (3, 1), (2, 0)]


def test_by_the_common_epoch_there_may_be_another_round() -> None:
    """A follower that has cut its log has not found its leader's yet, unless it had before. Source: KIP-279."""
    follower = apply(log_of(0, 0, 0), TakeRole(1, 1))
    assert follower.truncating
    assert apply(follower, Truncate(2, "common_epoch")).truncating
    assert not apply(follower, Truncate(2, "leader_epoch")).truncating
    assert not apply(log_of(0, 0, 0), Truncate(2, "common_epoch")).truncating
    assert not apply(follower, TakeRole(2, 2, leads=True)).truncating


def led(*leader_epochs: int, by: int) -> ReplicaLog:
    """A leader's log, with the epoch under which it leads now."""
    return apply(log_of(*leader_epochs), TakeRole(1, by, leads=True))


# The leader's records and its epoch now, the follower's records, and the rounds of truncation under each rule.
PARTINGS = {
    "nothing in common but epoch 0": ((0, 0), 2, (0, 0, 0), {"high_watermark": [2], "leader_epoch": [2], "common_epoch": [2]}),
    "the follower has led in between": ((0, 0), 2, (0, 1, 1), {"high_watermark": [2], "leader_epoch": [2], "common_epoch": [1]}),
    "back to back leaders": ((0, 0, 2), 3, (0, 1, 1), {"high_watermark": [], "leader_epoch": [2], "common_epoch": [1]}),
    "two steps back": ((0, 1, 3), 5, (0, 0, 2, 4), {"high_watermark": [3], "leader_epoch": [3], "common_epoch": [3, 2, 1]}),
    "only behind": ((0, 0, 0), 2, (0,), {"high_watermark": [], "leader_epoch": [], "common_epoch": []}),
    "at the end of an epoch": ((0, 0, 2), 3, (0, 0), {"high_watermark": [], "leader_epoch": [], "common_epoch": []}),
    "empty": ((0, 0), 1, (), {"high_watermark": [], "leader_epoch": [], "common_epoch": []}),
}


@pytest.mark.parametrize("rule", DIVERGES)
@pytest.mark.parametrize("name", PARTINGS)
def test_where_two_logs_part(name: str, rule: str) -> None:
    """What each rule makes of a follower's log; by the common epoch, and by it alone, what is left is always the leader's.

    Source: KIP-101, KIP-279; AbstractFetcherThread.getOffsetTruncationState (2.8).
    """
    leads, by, follows, rounds = PARTINGS[name]
    leader, follower = led(*leads, by=by), log_of(*follows)
    assert cut(rule, leader, follower) == rounds[rule]
    left = follower.records[: min([len(follows), *rounds[rule]])]
    assert rule != "common_epoch" or left == leader.records[: len(left)]


def test_an_unknown_end_sends_a_follower_to_its_high_watermark() -> None:
    """If the leader knows nothing of the epoch, the high watermark is all that is left to go by."""
    follower = apply(log_of(0, 0, 7), MoveHighWatermark(1))
    assert truncation_offset(follower, EpochEnd(-1, -1)) == 1


TRUNCATIONS = [
    # the follower's records    what the leader has said    where it cuts its log
    ((0, 0), EpochEnd(-1, 5), 2),  # nothing of an epoch, and more than there is: at its own end
    ((0, 0, 0), EpochEnd(-1, 1), 1),
    (
        (0, 0, 0, 3),
        EpochEnd(1, 2),
        3,
    ),  # an epoch that it does not know: where the largest below ends
    ((0, 1, 1), EpochEnd(1, 2), 2),  # one that both know: where the first of both ends it
    ((0, 1, 2), EpochEnd(1, 5), 2),
    ((2, 2), EpochEnd(1, 1), 0),  # only later ones: all of it
]


@pytest.mark.parametrize(("follows", "said", "offset"), TRUNCATIONS)
def test_where_a_follower_cuts_its_log(follows: tuple[int, ...], said: EpochEnd, offset: int) -> None:
    """By what its leader has said of an epoch and by its own end of that epoch, and never beyond its end.

    Source: AbstractFetcherThread.getOffsetTruncationState (2.8).
    """
    assert truncation_offset(log_of(*follows), said) == offset


def hosting(leader: int, log: ReplicaLog, leader_epoch: int = 0, **rules: Any) -> BrokerContext:
    """Broker 2, told that this broker leads t-0, of which it has this log and knows the topic's settings."""
    hosted = {T0: HostedPartition(LeaderAndIsr(leader, (1, 2, 3), leader_epoch), (1, 2, 3))}
    return BrokerContext(2, KAFKA_2_8.but(**rules), keeps_logs=True, logs={T0: apply(log, Configure(1))}, hosted=hosted)


def test_a_leader_notes_whatever_end_a_follower_has() -> None:
    """Also one that is lower than before, as after the loss of a tail; a known end is no change, and a follower notes none."""
    leader = apply(led(0, 0, by=0), NoteFollower(3, 2))
    asked = [FollowerFetch(T0, 3, 0, offset) for offset in (1, 2, 3)]
    assert [list(note_fetch(hosting(2, leader), event)) for event in asked] == [
        [WriteLog(T0, NoteFollower(3, 1))],
        [],
        [WriteLog(T0, NoteFollower(3, 3))],
    ]
    assert [list(note_fetch(hosting(1, leader), event)) for event in asked] == [[], [], []]


def test_only_a_follower_takes_what_was_fetched() -> None:
    """An answer that comes when the broker leads itself, or has lost its replica, is left alone."""
    answer = FetchResponse(T0, 0, 1, None, (LogRecord(2, 0, "x"),))
    follower, leader = hosting(1, log_of(0, 0)), hosting(2, log_of(0, 0))
    gone = BrokerContext(2, KAFKA_2_8, keeps_logs=True, logs={T0: log_of(0, 0)})
    assert next(fetch_response(follower, answer)) == WriteLog(T0, Append(answer.records))
    assert list(fetch_response(leader, answer)) == list(fetch_response(gone, answer)) == []


@pytest.mark.parametrize(("rule", "from_offset"), [("high_watermark", 1), ("leader_epoch_start", 2)])
def test_from_where_on_a_follower_may_join(rule: str, from_offset: int) -> None:
    """At the high watermark or beyond and, since 1.1.2, not before the leader's own epoch begins, at its very start included.

    Source: Partition.isFollowerInSync (2.8), KAFKA-7128.
    """
    leader = apply(led(0, 0, by=1), MoveHighWatermark(1))
    ctx = BrokerContext(1, KAFKA_2_8.but(rejoins_at=rule), keeps_logs=True, logs={T0: leader})
    assert [offset for offset in range(3) if may_join(ctx, T0, 2, offset)] == list(range(from_offset, 3))
    beyond = apply(apply(leader, Append((LogRecord(2, 1, "x"), LogRecord(3, 1, "y")))), MoveHighWatermark(3))
    ctx = BrokerContext(1, KAFKA_2_8.but(rejoins_at=rule), keeps_logs=True, logs={T0: beyond})
    assert [offset for offset in range(5) if may_join(ctx, T0, 2, offset)] == [3, 4]


# ---------------------------------------------------------------- roles


READ = Configure(1)  # the settings of the topic have been read
FOLLOWER = apply(apply(apply(log_of(0, 0, 0), READ), TakeRole(1, 5)), MoveHighWatermark(1))
LEADER = apply(apply(apply(log_of(0), READ), TakeRole(2, 5, leads=True)), Append((LogRecord(1, 5, "a"),), "asked"))
ROLES: dict[str, tuple[ReplicaLog, int, int, list[Any]]] = {
    # the log, who leads now and under which epoch, and what becomes of the log where it is cut at the high watermark
    "as before": (FOLLOWER, 1, 5, []),
    "the same leader again": (FOLLOWER, 1, 6, [TakeRole(1, 6)]),
    "another leader": (FOLLOWER, 3, 5, [TakeRole(3, 5), Truncate(1, "high_watermark")]),
    "nobody": (FOLLOWER, -1, 6, [TakeRole(-1, 6)]),
    "itself": (FOLLOWER, 2, 6, [TakeRole(2, 6, leads=True)]),
    "it leads on": (LEADER, 2, 6, [TakeRole(2, 6, leads=True)]),
    "it does not lead any more": (LEADER, 1, 6, [TakeRole(1, 6), "asked", Truncate(0, "high_watermark")]),
}


@pytest.mark.parametrize("rule", ["high_watermark", "leader_epoch"])
@pytest.mark.parametrize("name", ROLES)
def test_what_a_replica_makes_of_who_leads(name: str, rule: str) -> None:
    """Another leader or another epoch is another role; before 0.11 whoever follows another leader than before cuts its log.

    A producer who waits is told by a leader that does not lead on. Source: ReplicaManager.makeFollowers and
    Partition.makeFollower (0.8.0 to 0.10.2), whose result says whether the leader is another one.
    """
    log, leader, leader_epoch, expected = ROLES[name]
    effects = list(keep_up(hosting(leader, log, leader_epoch, truncate_to=rule)))
    seen = [effect.change if isinstance(effect, WriteLog) else effect.correlation_id for effect in effects]
    assert seen == [change for change in expected if rule == "high_watermark" or not isinstance(change, Truncate)]


def test_a_replica_that_is_not_there_any_more_has_no_leader() -> None:
    """Of a partition that was taken from a broker the log stays, without a role; who waits is told, and only once."""
    ctx = BrokerContext(2, KAFKA_2_8, keeps_logs=True, logs={T0: LEADER})
    first, answer = keep_up(ctx)
    assert (first, answer.correlation_id) == (WriteLog(T0, TakeRole(-1, -1)), "asked")
    ctx = BrokerContext(2, KAFKA_2_8, keeps_logs=True, logs={T0: apply(LEADER, TakeRole(-1, -1))})
    assert list(keep_up(ctx)) == []
