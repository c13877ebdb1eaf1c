"""Broker logs of ten releases give back the tables of the runs that wrote them; what a release does not log is marked.

The other party is the journal of each run. Spark parses all files at once; the lines are then read without Spark.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.pipeline.logs import log_tables
from tests.pipeline.log_rows import lines_of, rows_of
from tests.pipeline.log_runs import Journals, run_of_lines
from tests.pipeline.test_log_journal import rows

RELEASES = ("0.8.0", "0.8.1", "0.8.2", "0.9", "0.10.2", "0.11.0", "1.0", "1.1", "2.4", "2.8", "3.9")
DELETES = {"delete.topic.enable": True}
"""Up to 0.11 a controller ignores requests to delete topics unless this is set."""
BROKERS = [0, 10, 1001, 7]
TABLES = {
    "transitions": ("controller", "machine", "partition", "replica", "source", "target", "write"),
    "leaderships": ("partition", "leader", "leader_epoch", "controller_epoch"),
    "offline_windows": ("partition", "led_before", "led_after", "reason"),
    "elections": ("partition", "led_before", "leader", "isr_before", "isr", "leader_epoch", "kind"),
    "isr_history": ("partition", "isr_before", "isr", "leader_epoch"),
    "deletions": ("topic", "ineligible"),
    "tenures": ("broker", "controller_epoch", "ended_by"),
    "broker_lives": ("broker", "incarnation", "ended_by"),
}
"""The columns that a log gives back, by table."""
KILLED = {"record", "record, end", "end"}
"""A killed broker leaves no line, so each end of its process is inferred, and each window that begins with this end."""
EPOCH = {"leaderships": {"leader_epoch"}, "isr_history": {"isr, leader_epoch"}, "elections": {"isr, leader_epoch"}}
"""Up to 1.0 the line of a new leader has neither the ISR nor the leader epoch, but the LeaderAndIsr lines of 0.9 to 0.11 have."""
SHRUNK = {
    "transitions": {"write"}, "leaderships": {"leader, leader_epoch"}, "isr_history": {"isr, leader_epoch"},
    "elections": {"kind"},
}  # fmt: skip
"""From 1.1 to 2.5 no line has the write of a smaller ISR at the transition to OfflineReplica."""
INFERRED: dict[str, dict[str, set[str]]] = {
    "0.8.0": EPOCH | {"transitions": {"source"}}, "0.8.1": EPOCH, "0.8.2": EPOCH, "1.0": EPOCH,
    "1.1": SHRUNK, "2.4": SHRUNK, "2.8": {"elections": {"kind"}}, "3.9": {"elections": {"kind"}},
}  # fmt: skip
"""By release and table, what is marked as inferred besides the consequences of kills."""


def varied(release: str) -> Lab:
    """Return a run with kills, restarts, a shutdown, a failover, clean and unclean elections, and a deletion."""
    topics = {"a-1.b_c-10": [[0, 10], [10, 1001], [7]], "__x": [[1001, 7]], "gone.t": [[1001, 0]]}
    config = DELETES if release in RELEASES[1:6] else {}
    unclean = {"unclean.leader.election.enable": True} if release in RELEASES[5:] else {}  # the default up to 0.10
    lab = Lab(brokers=BROKERS, release=release, topics=topics, runs=None, config=config | unclean).run()
    for action in [("kill", 10), ("kill", 7), ("start", 10), ("start", 7), ("terminate", 1001), ("kill", 0)]:
        lab.step(action).run()
    if release != "0.8.0":  # which cannot delete a topic
        lab.delete_topic("gone.t").run()
    for action in [("start", 1001), ("start", 0), ("kill", 7), ("kill", 1001), ("start", 7)]:
        lab.step(action).run()
    return lab


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Journals:
    """By release, a run and the run that was made from its log files."""
    place = tmp_path_factory.mktemp("logs of releases")
    labs = {release: varied(release) for release in RELEASES}
    for release, lab in labs.items():
        lab.save_logs(place / "logs" / release)
    log_tables.write_logs(spark, sorted((place / "logs").iterdir()), place / "out")
    records = rows_of(place / "out", "records")
    return {
        release: (lab, run_of_lines(lines_of(records, place / "logs" / release), release, BROKERS))
        for release, lab in labs.items()
    }


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("release", RELEASES)
def test_the_logs_of_each_release_give_back_its_tables(journals: Journals, release: str, name: str) -> None:
    """Each row of the journal's table is there, with no row more, and no transition contradicts the release's machines."""
    lab, run = journals[release]
    theirs, ours = (Counter(rows(getattr(owner.tables, name)(), *TABLES[name])) for owner in (lab, run))
    assert (theirs - ours, ours - theirs) == (Counter(), Counter())
    assert theirs or (name, release) == ("deletions", "0.8.0")
    assert name != "transitions" or getattr(run.tables, name)().mismatch.isna().all()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_does_not_log_is_marked(journals: Journals, release: str) -> None:
    """The column `inferred` names the values without a line: those of the release, and the consequences of kills."""
    run, marked = journals[release][1], {}
    for name in ("transitions", "leaderships", "isr_history", "elections", "deletions", "offline_windows"):
        found = set(getattr(run.tables, name)().inferred.dropna()) - KILLED
        marked |= {name: found} if found else {}
    assert marked == INFERRED.get(release, {})


@pytest.mark.spark
@pytest.mark.slow
def test_the_runs_have_each_kind_of_election_of_a_log(journals: Journals) -> None:
    """The runs have clean and unclean elections and elections at a shutdown, so that the tables above compare them."""
    for release, (lab, _) in journals.items():
        assert set(lab.tables.elections().kind) >= {"clean", "unclean", "shutdown"}, release
