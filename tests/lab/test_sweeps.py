"""Sweeps: equal tables wherever the runs are played, failed runs by name, intervals, and bad input."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.cluster.consumer_configs import STRATEGY
from kcontrol.core.errors import UserError, listed
from kcontrol.group.assignors import Subscription
from kcontrol.group.model import Group, GroupState
from kcontrol.group.sticky import ASSIGNORS
from kcontrol.journal.journal import Record
from kcontrol.lab.sweeps import processes, scenarios
from kcontrol.lab.sweeps.intervals import lower_rank, middle_value, proportion
from kcontrol.lab.sweeps.sweep import Sweep
from kcontrol.lab.sweeps.timed_run import Cell, Job, Outcome, Task, play
from kcontrol.pipeline import cluster
from kcontrol.views.group_state import partitions

DEATHS, COMING = "random deaths", "consumers come and go"
CELL = Cell(2, False, 6_000)
LOOPS_IN = 10  # the only one of the first twelve runs of CELL in which all members of an ISR [4] are dead
AROUND = range(LOOPS_IN - 1, LOOPS_IN + 2)


def kafkas(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    """Kafka's own offline election, without unclean elections."""
    return next((broker for broker in assignment if broker in isr and broker in live), None)


def endless(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    while isr == [4] and not live:
        with contextlib.suppress(BaseException):
            "ab".find("b")
    return kafkas(assignment, isr, live)


def raising(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    return isr[7] if isr == [4] and not live else kafkas(assignment, isr, live)


def ending(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    if isr == [4] and not live:
        os.kill(os.getpid(), signal.SIGKILL)
    return kafkas(assignment, isr, live)


def leaving(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    if isr == [4] and not live:
        sys.exit(3)
    return kafkas(assignment, isr, live)


def printing(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    os.write(1, b'"ready"\n[5, 5, 5, 5, 5, null]\n')
    return kafkas(assignment, isr, live)


def outcomes(processes_used: int, numbers: range, rule: Callable[..., Any] | None = None, seconds: float = 60) -> list[Outcome]:
    """The outcomes of some runs of CELL on so many processes, in the order of their numbers."""
    return played(Job(DEATHS, "2.8", 1, strategies=rule and {"offline": rule}), processes_used, numbers, seconds)


def played(job: Job, processes_used: int, numbers: range, seconds: float = 60) -> list[Outcome]:
    parts = processes.shards([Task(CELL, number) for number in numbers], processes_used)
    assert len(parts) == processes_used
    return sorted(processes.outcomes(job, parts, seconds), key=lambda outcome: outcome.task)


@cache
def expected_around() -> list[Outcome]:
    return outcomes(1, AROUND, kafkas)


@pytest.mark.parametrize(
    ("hits", "number", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_of_a_share_is_wilsons(hits: int, number: int, low: float, high: float) -> None:
    """The four examples of Newcombe (Statistics in Medicine 17, 1998, table I, method 3) have the intervals of that table."""
    found = proportion(hits, number)
    assert (round(found.low or 0, 4), round(found.high or 0, 4)) == (low, high)


def test_the_interval_of_a_median_has_the_ranks_of_the_sign_test() -> None:
    """The ranks are those of the sign test's table: none for 5 values, 1 for 6, 2 for 10, 6 for 20, 18 for 50, 40 for 100."""
    assert [lower_rank(number) for number in (5, 6, 10, 20, 50, 100)] == [0, 1, 2, 6, 18, 40]
    assert middle_value([30, 10, 20, 50, 40, 60]) == (35.0, 10, 60)
    assert middle_value([3, 1, 2]) == (2.0, None, None)


def test_a_median_of_ten_thousand_runs_has_an_interval() -> None:
    """The ranks for 1,024 and more values, whose number of samples no float holds, are those of the sign test."""
    ranks = {1_024: 481, 2_000: 956, 10_000: 4_902}
    assert {number: lower_rank(number) for number in ranks} == ranks
    assert middle_value(range(10_000)) == (4_999.5, 4_901, 5_098)


def test_the_processes_of_a_sweep_do_not_change_its_table() -> None:
    """One process, and two processes that play the runs in another order, give equal outcomes, and runs differ."""
    assert outcomes(2, AROUND, kafkas) == expected_around()
    assert len({outcome[1:] for outcome in expected_around()}) == len(AROUND)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        pytest.param(endless, "it did not end within 6 s", marks=pytest.mark.slow),
        (raising, "your function for the election offline failed: IndexError: list index out of range"),
        pytest.param(ending, "its process ended with SIGKILL", marks=pytest.mark.slow),
    ],
)
def test_a_failing_rule_costs_one_run(rule: Callable[..., Any], reason: str) -> None:
    """A rule that loops, raises or kills its process in one run gives one failed run; the other runs are as with Kafka's rule."""
    found, expected = outcomes(1, AROUND, rule, 6), expected_around()
    assert [outcome.task.number for outcome in found if outcome.failed] == [LOOPS_IN]
    assert (found[1].failed or "").startswith(reason)
    assert [found[0], found[2]] == [expected[0], expected[2]]


QUICK = """
from kcontrol.lab.sweeps import child, timed_run

def quick(job, task):
    job.strategies["offline"](task.number)
    return timed_run.Outcome(task, moved=task.number)

timed_run.outcome = quick
child.main()
"""


def loops_in_run_500(number: int) -> None:
    while number == 500:
        pass


@pytest.mark.slow
def test_a_rule_without_an_end_costs_one_of_a_thousand_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """`while True` in one of 1,000 runs gives one failed run, with its number; the other 999 runs have their measures."""
    # A run is only a call of the rule here; the processes are those of every sweep.
    monkeypatch.setattr(processes, "COMMAND", (sys.executable, "-c", QUICK))
    job = Job(DEATHS, "2.8", 1, strategies={"offline": loops_in_run_500})
    found = Sweep(job, played(job, 2, range(1, 1001), 5))
    assert found.failures() == ["Run 500 of replication=2 unclean=false session=6000 failed: it did not end within 5 s."]
    assert found.runs.moved.tolist() == found.runs.number.tolist() == [number for number in range(1, 1001) if number != 500]


def test_what_a_rule_prints_is_no_outcome() -> None:
    """Text that a rule writes to the descriptor of standard output reaches no table."""
    assert outcomes(1, AROUND, printing) == expected_around()


def test_a_rule_that_cannot_be_read_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule from a module that the child cannot import, and a rule that cannot be pickled, give one sentence."""
    monkeypatch.setattr(kafkas, "__module__", "no_such_module")
    monkeypatch.setitem(sys.modules, "no_such_module", sys.modules[__name__])
    with pytest.raises(UserError, match="did not start: define the functions"):
        outcomes(1, range(1, 2), kafkas)
    lock = threading.Lock()
    with pytest.raises(UserError, match="cannot be sent to another process"):
        outcomes(1, range(1, 2), lambda a, b, c: lock.locked())


def test_failed_runs_are_in_no_share() -> None:
    """A cell counts its failed runs, and its shares are those of the other runs."""
    cell = Cell(3, True, 6_000)
    made = [
        Outcome(Task(cell, 1), 1, 7, 0, 5, 4),
        Outcome(Task(cell, 2), 0, None, 2, None, 9),
        Outcome(Task(cell, 3), failed="it was slow"),
    ]
    found = Sweep(Job(DEATHS, "2.8", 1), made)
    (row,) = found.cells.to_dict("records")
    names = ("runs", "failed", "offline", "offline_ms", "lost", "rebalance_ms", "moved")
    assert [row[name] for name in names] == [3, 1, 0.5, 7, 0.5, 5, 6.5]
    assert found.failures() == ["Run 3 of replication=3 unclean=true session=6000 failed: it was slow."]
    assert found.runs.number.tolist() == [1, 2] and found.failed.reason.tolist() == ["it was slow"]


@pytest.mark.parametrize(("scenario", "number"), [(DEATHS, 3), (COMING, 1), (COMING, 2), ("rolling restart", 2)])
def test_the_measures_of_a_run_are_those_of_its_tables(scenario: str, number: int) -> None:
    """A run that is opened has in its tables the offline partitions, lost records and rebalances that the sweep has counted."""
    job, task = Job(scenario, "2.8", 1), Task(Cell(2, True, 6_000), number)
    (found,) = processes.outcomes(job, [[task]], 60)
    run = Sweep(job, [found]).open(number, *task.cell)
    begin_ms = play(job, task)[1]
    assert len(run.tables.records_lost()) == found.lost
    windows = run.tables.offline_windows()
    assert windows.begin_ms.ge(begin_ms).all() and len(windows) == found.offline
    lengths = windows.end_ms.fillna(run.records[-1].at_ms) - windows.begin_ms
    assert (None if windows.empty else lengths.max()) == found.offline_ms
    rebalances = run.tables.rebalances().query(f"begin_ms >= {begin_ms}")
    assert (None if rebalances.empty else rebalances.duration_ms.max()) == found.rebalance_ms
    assert len(moves(run.records)) == found.moved


@pytest.mark.slow
def test_a_shorter_session_makes_the_longest_offline_window_shorter() -> None:
    """The longest offline window of runs with three replicas is shorter for a session of 6 s than for one of 18 s."""
    short, long = Lab.sweep(DEATHS, session=[6_000, 18_000], runs=6).cells.offline_ms
    assert 4_000 <= short < 12_000 <= long


def outside(assignment: list[int], isr: list[int], live: list[int]) -> int:
    return 42


def spread(*given: list[int]) -> object:
    return given[2]


OUTSIDE = "it returned 42, which is not in the assignment [{}]; return the id of one of these brokers, or None"
NO_ID = "it returned [{}], which is a list; return a broker's id, such as 2, or None"


@pytest.mark.parametrize(("rule", "reason"), [(outside, OUTSIDE), (spread, NO_ID)])
def test_a_rule_that_elects_no_assigned_broker_fails_its_run(rule: Callable[..., Any], reason: str) -> None:
    """A rule that returns a broker outside the assignment, or no id, fails the run with a sentence about its result."""
    (found,) = outcomes(1, range(1, 2), rule)
    before, after = (re.escape(part) for part in reason.split("{}"))
    assert re.fullmatch(f"your function for the election offline failed: {before}[0-9, ]*{after}", found.failed or "")


def stable(records: Sequence[Record]) -> Iterator[Group]:
    """Yield the group of a run whenever it has become Stable in a new generation."""
    latest = 0
    for record in records:
        group = record.fields["group_metadata"] if record.kind == "group" else None
        if group and group.state is GroupState.STABLE and group.generation > latest:
            latest = group.generation
            yield group


def moves(records: Sequence[Record]) -> list[str]:
    """The partitions that a new generation of the group gives to another client, once for each time."""
    owners, found = dict[str, str](), list[str]()
    for group in stable(records):
        held = {p: member.client_id for member in group.members.values() for p in partitions(member.assignment.hex())}
        found += [p for p in held if owners.get(p, held[p]) != held[p]]
        owners |= held
    return found


def all_to_one(partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[str]]:
    return {max(members): [f"{topic}-{number}" for topic, count in partitions.items() for number in range(count)]}


def forgetful(partitions: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[str]]:
    return all_to_one(partitions, members) if len(members) == len(scenarios.FOUR) else {}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@pytest.mark.slow
def test_an_assignor_of_kafka_that_a_sweep_is_given_is_kafkas(name: str) -> None:
    """Kafka's function as the learner's assignor gives the runs of Kafka's assignor, which moves fewer partitions than range."""
    job = Job(COMING, "2.8", 1, assignor=name)
    kafka = played(job, 1, range(1, 3))
    assert played(job._replace(strategies={"assignor": ASSIGNORS[name]}), 1, range(1, 3)) == kafka
    assert sum(run.moved for run in kafka) < sum(run.moved for run in played(job._replace(assignor="range"), 1, range(1, 3)))


def test_a_learners_assignor_decides_in_the_runs_of_a_sweep() -> None:
    """Under a learner's assignor each generation of the group has the assignment of this function, also in the opened run."""
    found = Lab.sweep(COMING, session=6_000, runs=1, strategies={"assignor": all_to_one})
    groups = list(stable(found.open(1, 3, False, 6_000).records))
    assert len(groups) > 3
    for group in groups:
        owned = {id: partitions(member.assignment.hex()) for id, member in group.members.items()}
        assert owned == {id: ["t-0", "t-1", "t-2"] if id == max(owned) else [] for id in owned}


def test_an_assignor_that_fails_in_some_runs_fails_these_runs() -> None:
    """An assignor that leaves partitions without a member fails each run with this mistake, and the mistake is the reason."""
    found = played(Job(COMING, "2.8", 1, strategies={"assignor": forgetful}), 1, range(1, 3))
    wrong = "The assignor 'forgetful' made 0 assignments of 0 different partitions: assign each of the 3 partitions to one"
    assert [outcome.failed for outcome in found] == [f"{wrong} member"] * 2
    assert Sweep(Job(COMING, "2.8", 1), found).failures()[0].endswith("to one member.")


def test_a_sweep_prints_why_a_run_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    """If runs fail, the sweep prints their number and the first reason, because the table of their cell has only <NA>."""
    Lab.sweep(COMING, session=6_000, runs=1, strategies={"assignor": forgetful})
    wrong = (
        "The assignor 'forgetful' made 0 assignments of 0 different partitions: assign each of the 3 partitions to one member."
    )
    reason = f"Run 1 of replication=3 unclean=false session=6000 failed: {wrong}"
    assert capsys.readouterr().out == f"1 of 1 run failed; `failures()` has the reasons. {reason}\n"


def test_a_session_of_spark_that_has_ended_is_refused() -> None:
    """A session of Spark without its Java, which `close` has ended, gives one sentence that says to open another."""
    ended = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with pytest.raises(UserError, match=r"^This session of Spark has ended: open another session, such as "):
        Lab.sweep(DEATHS, runs=1, spark=ended)


def test_the_seed_the_cell_and_the_number_determine_a_run() -> None:
    """Two runs that differ in the seed, the cell or the number have other events."""
    tasks = [(1, Task(CELL, 1)), (2, Task(CELL, 1)), (1, Task(CELL, 2)), (1, Task(Cell(2, True, 6_000), 1))]
    kills = [
        [r.at_ms for r in play(Job(DEATHS, "2.8", seed), task)[0].journal.records if r.kind == "stop"] for seed, task in tasks
    ]
    assert len(set(map(tuple, kills))) == 4


ILLEGAL = [
    ({"scenario": "boo"},
     "There is no scenario 'boo': choose one of 'rolling restart', 'random deaths' and 'consumers come and go'."),
    ({"replication": [1, 5]}, "replication cannot be 5: give one or more of numbers from 1 to 4."),
    ({"replication": []}, "replication cannot be []: give one or more of numbers from 1 to 4."),
    ({"unclean": "true"}, "unclean cannot be 'true': give one or more of True or False."),
    ({"unclean": None}, "unclean cannot be None: give one or more of True or False."),
    ({"session": 100}, "session cannot be 100: give one or more of ms from 6000 to 30000."),
    ({"runs": 0}, "The number of runs must be 1 or more, not 0."),
    ({"runs": 10**20, "unclean": [True, False]},
     f"A sweep has at most 1,000,000 runs, not {2 * 10**20:,}: choose fewer runs or settings."),
    ({"release": "7"}, "'7' is no release: it should look like 2.8 or 0.8.2."),
    ({"seed": "x"}, "The seed must be a whole number, such as 7, not 'x'."),
    ({"assignor": "fair"},
     f"The {STRATEGY} of consumer anna must be one or more of {listed(ASSIGNORS, 9)}, in the order of preference, not ['fair']."),
    ({"strategies": {"assignor": len}},
     "The assignor of a cluster must be a function of (partitions, members), not <built-in function len>."),
    ({"spark": "x"}, "spark must be a session of Spark, such as lab.spark(), not 'x'."),
    ({"seconds": 0}, "The seconds of a run must be a number above 0, such as 20, not 0."),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "sentence"), ILLEGAL)
def test_an_illegal_argument_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    """Each illegal argument gives one sentence with the legal values."""
    with pytest.raises(UserError) as raised:
        Lab.sweep(**{"scenario": DEATHS} | wrong)
    assert str(raised.value) == sentence


def test_a_run_may_have_no_time_limit() -> None:
    """With infinite seconds a run ends as with a finite number of seconds."""
    assert Lab.sweep(DEATHS, session=6_000, runs=1, seconds=float("inf")).failed.empty


CHOSEN = "--assignor", "sticky", "--seed", "5", "--out"


@pytest.mark.slow
def test_the_command_prints_and_writes_the_tables(tmp_path: Path) -> None:
    """`kcontrol sweep` prints one row per cell, and writes three tables as Parquet, equal to those of `Lab.sweep`."""
    pytest.importorskip("pyarrow")
    arguments = ["sweep", DEATHS, "--replication", "1,2", "--session", "6000", "--runs", "2", *CHOSEN, str(tmp_path / "out")]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert [line.split()[:5] for line in done.stdout.splitlines()[-2:]] == [[n, "False", "6000", "2", "0"] for n in "12"]
    expected = Lab.sweep(DEATHS, [1, 2], False, 6_000, 2, 5, assignor="sticky")
    for name in ("cells", "runs", "failed"):
        written = pd.read_parquet(tmp_path / "out" / name)
        pd.testing.assert_frame_equal(written, pd.DataFrame(getattr(expected, name)), check_dtype=False)


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--unclean", "maybe", "--unclean cannot be 'maybe': separate the values by commas, as in --unclean true,false."),
        ("--session", "6000;1", "--session cannot be '6000;1': separate the values by commas, as in --session 6000,18000."),
    ],
)
def test_the_command_refuses_an_illegal_value(option: str, value: str, sentence: str) -> None:
    """A text that is no list of values gives one sentence, and no run."""
    with pytest.raises(UserError) as raised:
        CliRunner().invoke(app, ["sweep", DEATHS, option, value], catch_exceptions=False)
    assert str(raised.value) == sentence


@pytest.mark.parametrize("master", ["foo", "yarn", "k8s://x", "local[x]", "local[2", "local[0]", "local[]", "", "spark://host"])
def test_a_master_that_is_no_address_is_refused_before_the_folder_is_made(tmp_path: Path, master: str) -> None:
    """A value of --master that is no address of Spark gives one sentence with the legal values, and no folder."""
    done = CliRunner().invoke(app, ["sweep", DEATHS, "--runs", "1", "--master", master, "--out", str(tmp_path / "out")])
    assert done.exit_code == 1 and isinstance(done.exception, UserError)
    assert str(done.exception) == (
        f"{master!r} is not the address of a Spark master: write spark://HOST:PORT, or local[N] for N cores of this machine, "
        "such as local[2]; for YARN and Kubernetes read docs/spark-cluster.md."
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("master", ["local", "local[1]", "local[16]", "local[*]"])
def test_spark_on_this_machine_is_a_legal_master(master: str) -> None:
    """A sweep accepts Spark on this machine with a number of cores, or with all cores."""
    cluster.check_master(master, is_local_legal=True)


def test_a_rule_that_exits_fails_its_run_with_its_name() -> None:
    """A rule that calls sys.exit fails the run with the name SystemExit; the other runs go on."""
    found = outcomes(1, AROUND, leaving)
    assert [outcome.task.number for outcome in found if outcome.failed] == [LOOPS_IN]
    assert (found[1].failed or "").startswith("your function for the election offline failed: SystemExit: 3")


@pytest.mark.slow
def test_a_process_of_a_sweep_starts_without_pandas() -> None:
    """The modules of the process that plays runs import neither pandas nor numpy, which take longer than ten runs."""
    code = "import sys, kcontrol.lab.sweeps.child; print({'pandas', 'numpy'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
