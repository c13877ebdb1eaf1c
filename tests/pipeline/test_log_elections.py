"""Leaders, elections and outages of broker logs that have few lines: what the lines show, and what is inferred.

The lines are those of Kafka's own logs; the expected values follow from the release's source, which the comments name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.lab.run import Run
from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.releases import WORDINGS, release_of
from tests.pipeline.test_log_journal import line, move, rows, run_of

NEW, ONLINE, OFFLINE, GONE = "NewPartition", "OnlinePartition", "OfflinePartition", "NonExistentPartition"


def state(n: int, source: str, leader: int, *isr: int, epoch: int = 0, **more: Any) -> Line:
    """Return the line of a transition to Online with the whole leadership (1.1 on)."""
    return move(n, 0, source, ONLINE, leader=leader, isr=list(isr), leader_epoch=epoch, zk_version=epoch, **more)


def replica(n: int, broker: int, source: str | None, target: str, epoch: int = 4) -> Line:
    """Return the line of a replica's transition by controller 1; `source` None is a line of 0.8.0."""
    facts = {"controller": 1, "epoch": epoch, "topic": "t", "partition": 0, "replica": broker, "to_state": target}
    return line(n, "replica_transition", **facts, **({"from_state": source} if source else {}))


def created(*replicas: int) -> Line:
    return move(1, 0, GONE, NEW, replicas=list(replicas))


def kinds(run: Run) -> list[tuple[str, ...]]:
    return rows(run.tables.elections(), "kind", "inferred")


# ---------------------------------------------------------------- outages


def test_a_leader_that_no_line_starts_runs() -> None:
    """state-change.log alone has no line of a broker's start: elected leaders run, and no partition has an outage."""
    run = run_of(created(2, 3), state(2, NEW, 2, 2, 3), state(3, ONLINE, 3, 3, epoch=1))
    assert run.tables.offline_windows().empty
    assert set(run.tables.broker_lives().inferred) == {"record"}


def test_an_outage_begins_at_the_line_to_offline() -> None:
    """The line from OnlinePartition to OfflinePartition has the begin of an outage, and the line of the election its end."""
    run = run_of(
        created(2, 3), state(2, NEW, 2, 2, 3), move(7, 0, ONLINE, OFFLINE), state(9, OFFLINE, 3, 3, epoch=1), release="1.1"
    )
    columns = ("led_before", "led_after", "begin_ms", "end_ms", "reason")
    assert rows(run.tables.offline_windows(), *columns) == [("2", "3", "1007", "1009", "death")]


def test_a_leader_that_only_a_shrunk_isr_names_runs() -> None:
    """At INFO 2.8 logs only that a replica has left the ISR; its leader runs, unless a line has shown the leader's end."""
    shrunk = {"controller": 1, "epoch": 4, "topic": "t", "partition": 0, "leader": 2, "isr": [2], "leader_epoch": 3}
    left = line(2, "isr_removed_on_offline", **shrunk, replica=3, to_state="OfflineReplica", zk_version=5)
    assert run_of(left).tables.offline_windows().empty
    live = [line(1, "brokers_changed", controller=1, added=[2], deleted=[], live=[1, 2]),
            line(2, "brokers_changed", controller=1, added=[], deleted=[2, 3], live=[1])]  # fmt: skip
    assert run_of(*live, left._replace(n=3)).tables.offline_windows().led_before.tolist() == [2]


def test_a_follower_that_no_line_starts_is_in_the_first_isr() -> None:
    """Up to 1.0 the line of a new partition has the leader alone: the inferred ISR has each replica that has not ended."""
    run = run_of(created(2, 3), move(2, 0, NEW, ONLINE, leader=2), release="0.9")
    assert rows(run.tables.isr_history(), "isr", "inferred") == [("[2, 3]", "isr, leader_epoch")]


# ---------------------------------------------------------------- kinds of elections

SELECTED = {"topic": "t", "partition": 0, "leader": 2, "isr": [2], "leader_epoch": 1}
BEFORE_ELECTION = (created(1, 2), move(2, 0, NEW, ONLINE, leader=1), move(3, 0, ONLINE, OFFLINE))


@pytest.mark.parametrize(
    ("found", "kind", "inferred"),
    [
        (("clean_election", "leader_selected"), "clean", "<NA>"), (("unclean_election", "leader_selected"), "unclean", "<NA>"),
        (("leader_selected",), "clean", "<NA>"), ((), "clean", "isr, leader_epoch, kind"),
    ],
)  # fmt: skip
def test_the_selectors_lines_show_the_kind(found: tuple[str, ...], kind: str, inferred: str) -> None:
    """Up to 1.0 the warning shows an unclean election and the line of the selected leader a clean one; else it is inferred."""
    # Source: selectLeader of OfflinePartitionLeaderSelector (0.8.0 to 1.0).
    lines = [line(4, name, **SELECTED) for name in found]
    run = run_of(*BEFORE_ELECTION, *lines, move(9, 0, OFFLINE, ONLINE, leader=2), release="0.9")
    assert kinds(run) == [(kind, inferred)]


def test_the_kind_since_1_1_is_inferred_from_the_isr() -> None:
    """From 1.1 on no line names the kind: it follows from the ISR before, and is marked; without that ISR it is missing."""
    lines = (created(1, 2), state(2, NEW, 1, 1), move(3, 0, ONLINE, OFFLINE), state(4, OFFLINE, 2, 2, epoch=2))
    assert kinds(run_of(*lines)) == [("unclean", "kind")]
    assert kinds(run_of(lines[-1])) == [("<NA>", "<NA>")]


def test_a_recovering_leader_was_elected_unclean() -> None:
    """From 3.2 on the state RECOVERING shows an unclean election; a later election of a recovering partition shows nothing."""
    # Source: Election.leaderForOffline and LeaderAndIsr.newRecoveringLeaderAndIsr (3.2).
    recovering = {"recovery": "RECOVERING"}
    run = run_of(
        created(1, 2), state(2, NEW, 1, 1, 2), move(3, 0, ONLINE, OFFLINE), state(4, OFFLINE, 2, 2, epoch=2, **recovering),
        move(5, 0, ONLINE, OFFLINE), state(6, OFFLINE, 2, 2, epoch=4, **recovering), release="3.9",
    )  # fmt: skip
    assert kinds(run) == [("unclean", "<NA>"), ("clean", "kind")]


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (line(3, "broker_shutting_down", controller=1, broker=2), "shutdown"),
        (line(3, "leader_moved_on_shutdown", topic="t", partition=0, old_leader=2, leader=3), "shutdown"),
        (line(3, "preferred_election_started", controller=1, partitions=["u-0", "t-0"]), "preferred"),
        (line(3, "preferred_election_started", controller=1, election_type="PREFERRED", partitions=["t-0"]), "preferred"),
        (line(3, "preferred_not_leader", topic="t", partition=0, leader=2), "preferred"),
        (line(3, "reassign_reelect", controller=1, topic="t", partition=0, leader=2, replicas=[3]), "reassignment"),
        (line(3, "preferred_election_started", controller=1, election_type="UNCLEAN", partitions=["t-0"]), "<NA>"),
        (line(3, "broker_shutting_down", controller=1, broker=4), "<NA>"),
    ],
)  # fmt: skip
def test_lines_before_an_election_show_its_kind(found: Line, kind: str) -> None:
    """The kind of an online partition's election is that of the line before it, and missing without such a line."""
    run = run_of(created(3, 2), state(2, NEW, 2, 2, 3), found, state(4, ONLINE, 3, 3, 2, epoch=1))
    assert kinds(run) == [(kind, "<NA>")]


def test_a_preferred_election_may_be_completed_before_its_transition_in_one_millisecond() -> None:
    """The lines of one millisecond are in the order of their files: controller.log, then state-change.log."""
    started = line(3, "preferred_election_started", controller=1, partitions=["t-0"])
    completed = line(5, "preferred_election_completed", controller=1, topic="t", partition=0, leader=2)
    moved = state(5, ONLINE, 2, 3, 2, epoch=1)._replace(file="state-change.log")
    assert kinds(run_of(created(2, 3), state(2, NEW, 3, 3, 2), started, completed, moved)) == [("preferred", "<NA>")]


def test_a_preferred_election_without_a_transition_names_no_later_one() -> None:
    """The line about a completed preferred election ends it, and an election of another replica is no preferred one."""
    started = line(3, "preferred_election_started", controller=1, partitions=["t-0"])
    completed = line(4, "preferred_election_completed", controller=1, topic="t", partition=0, leader=3)
    back = state(6, ONLINE, 3, 3, epoch=2)
    for lines in ((started, completed, back), (started, state(6, ONLINE, 2, 2, epoch=2))):
        assert kinds(run_of(created(3, 2), state(2, NEW, 3, 3, 2), *lines)) == [("<NA>", "<NA>")]


# ---------------------------------------------------------------- what a release does not log


def test_a_shrunk_isr_without_a_line_is_inferred() -> None:
    """From 1.1 to 2.5 no line has the write at OfflineReplica: the leader epoch of the next election shows the write."""
    # Source: removeReplicasFromIsr of ReplicaStateMachine (1.1 to 2.5).
    offline = replica(5, 2, "OnlineReplica", "OfflineReplica")
    for epoch, leaders in ((2, [2, -1, 3]), (1, [2, 3])):
        lines = (created(2, 3), state(2, NEW, 2, 2, 3), offline, state(6, OFFLINE, 3, 3, epoch=epoch))
        table = run_of(*lines, release="2.4").tables.leaderships()
        assert table.leader.tolist() == leaders
        assert table[table.leader < 0].inferred.tolist() == ["leader, leader_epoch"] * leaders.count(-1)


def test_states_before_a_transition_of_0_8_0_are_those_of_a_new_controllers_start() -> None:
    """0.8.0 prints no source: the replicas of a new controller begin Online, or Offline where the broker is not live."""
    # Source: initializeReplicaState and initializePartitionState (0.8.0).
    run = run_of(
        created(2, 3), move(2, 0, ONLINE, ONLINE, leader=2), line(3, "controller_epoch", controller=1, epoch=5),
        line(4, "live_brokers", controller=1, live=[1, 3]), replica(5, 3, None, "OnlineReplica", 5),
        replica(6, 2, None, "OfflineReplica", 5), move(7, 0, ONLINE, ONLINE, leader=3)._replace(
            facts=move(7, 0, ONLINE, ONLINE, leader=3).facts | {"epoch": 5}), release="0.8.0",
    )  # fmt: skip
    table = run.tables.transitions()
    assert rows(table, "source", "target") == [
        (GONE, NEW), (NEW, ONLINE), ("OnlineReplica", "OnlineReplica"), ("OfflineReplica", "OfflineReplica"), (OFFLINE, ONLINE),
    ]  # fmt: skip
    assert table.inferred.fillna("").tolist() == ["", "source", "source", "source", "source"]


# ---------------------------------------------------------------- log files

OF_0_9 = """\
[2016-01-01 10:00:01,000] TRACE Controller 0 epoch 1 changed partition [t,0] state from NonExistentPartition to NewPartition with assigned replicas 1,2 (state.change.logger)
[2016-01-01 10:00:01,001] TRACE Controller 0 epoch 1 changed partition [t,0] from NewPartition to OnlinePartition with leader 1 (state.change.logger)
[2016-01-01 10:00:05,005] TRACE Controller 0 epoch 1 changed partition [t,0] state from OnlinePartition to OfflinePartition (state.change.logger)
[2016-01-01 10:00:05,013] TRACE Controller 0 epoch 1 changed partition [t,0] from OfflinePartition to OnlinePartition with leader 2 (state.change.logger)
"""  # noqa: E501
CONTROLLER_OF_0_9 = """\
[2016-01-01 10:00:05,010] WARN [OfflinePartitionLeaderSelector]: No broker in ISR is alive for [t,0]. Elect leader 2 from live brokers 2. There's potential data loss. (kafka.controller.OfflinePartitionLeaderSelector)
[2016-01-01 10:00:05,011] INFO [OfflinePartitionLeaderSelector]: Selected new leader and ISR {"leader":2,"leader_epoch":1,"isr":[2]} for offline partition [t,0] (kafka.controller.OfflinePartitionLeaderSelector)
[2016-01-01 10:00:06,000] INFO [delete-topics-thread-0], Deletion of topic t successfully completed (kafka.controller.TopicDeletionManager$DeleteTopicsThread)
"""  # noqa: E501


@pytest.mark.spark
@pytest.mark.slow
def test_files_of_0_9_show_an_outage_an_unclean_election_and_a_deletion(tmp_path: Path, spark: Any) -> None:
    """The outage begins at the line to OfflinePartition, the warning names the election, and the thread ends the deletion."""
    (tmp_path / "state-change.log").write_text(OF_0_9)
    (tmp_path / "controller.log").write_text(CONTROLLER_OF_0_9)
    run = Lab.open_logs(tmp_path)
    assert run.records[0].fields["release"] == "0.8.1"
    (window,) = run.tables.offline_windows().itertuples()
    assert (window.duration_ms, window.led_before, window.led_after) == (8, 1, 2)
    assert kinds(run) == [("unclean", "<NA>")]
    assert run.tables.deletions().topic.tolist() == ["t"]


def test_states_of_partitions_show_that_a_log_is_not_of_0_8_0() -> None:
    """0.8.0 prints short names of a partition's states; the first release with long names is 0.8.1."""
    wording = next(pattern for part, pattern, *_ in WORDINGS if part == " state from ")
    assert release_of((), [wording]) == "0.8.1"
