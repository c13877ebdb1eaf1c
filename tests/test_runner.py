"""`./run test` refuses what it does not know, and its report has the processor time of each test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests import __main__ as runner
from tests import durations
from tests.conftest import CHAINS, ChainsTogether
from tests.durations import Case, cases, proposals
from tests.parts import ROOT

WORK = """
import subprocess, sys, pytest

def burn():
    return sum(number * number for number in range(3_000_000))

def test_here(): burn()

@pytest.mark.slow
def test_below(): subprocess.run([sys.executable, "-c", "sum(number * number for number in range(3_000_000))"], check=True)

def test_idle(): pass

def test_failed(): raise AssertionError

@pytest.mark.skip
def test_skipped(): pass
"""


@pytest.mark.parametrize("wrong", ["nonsense", "--alll", "--require=nonsense"])
def test_an_unknown_argument_is_refused_in_a_sentence(wrong: str) -> None:
    """The answer is one sentence that names the argument, and status 2; no test runs."""
    done = CliRunner().invoke(runner.app, [wrong])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("kcontrol: ") and wrong.rpartition("=")[2] in done.stderr and done.stderr.count("\n") == 1


def test_a_machine_with_one_core_has_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a worker for each core that the process may use, and never none."""
    for cores, workers in (({0}, 1), ({0, 3}, 2), (set(range(64)), runner.MOST_WORKERS)):
        monkeypatch.setattr(runner.os, "sched_getaffinity", lambda _, cores=cores: cores, raising=False)
        assert runner.workers() == workers


def test_the_report_has_the_processor_time_of_each_test(tmp_path: Path) -> None:
    """The time of a process that a test starts is the test's; a mark and an outcome are read, too."""
    (tmp_path / "test_work.py").write_text(WORK)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow")
    command = [sys.executable, "-m", "pytest", "-p", "tests.processor_time", "--rootdir", tmp_path, tmp_path]
    env = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([*command, f"--junit-xml={tmp_path / 'tests.xml'}"], env=env, capture_output=True, check=False)
    found = {case.test.partition("::")[2]: case for case in cases(tmp_path / "tests.xml")}
    assert {name: case.outcome for name, case in found.items()} == {
        "test_here": "passed", "test_below": "passed", "test_idle": "passed", "test_failed": "failed", "test_skipped": "skipped",
    }  # fmt: skip
    assert [name for name, case in found.items() if case.is_slow] == ["test_below"]
    assert all(found[name].processor_s > found["test_idle"].processor_s for name in ("test_here", "test_below"))


def case(name: str, processor_s: float, is_slow: bool, outcome: str = "passed") -> Case:
    return Case(f"tests/room/test_a.py::{name}", outcome, processor_s, is_slow)


def test_a_mark_that_does_not_follow_from_the_time_is_proposed() -> None:
    """A fast function with a long case should be slow, a slow one with short cases alone fast; a skipped one has no time."""
    tests = [
        case("test_a[1]", 0.1, False), case("test_a[2]", 1.5, False), case("test_b", 0.2, False), case("test_c", 3.0, True),
        case("test_d", 0.3, True), case("test_e", 0.0, True, "skipped"), case("test_f[1]", 0.1, False),
        case("test_f[2]", 2.0, True),
    ]  # fmt: skip
    assert [line.partition("::")[2] for line in proposals(tests)] == [
        "test_a: mark it slow, or the cases that take long", "test_d: is fast: drop its mark slow",
    ]  # fmt: skip
    assert tests[0].part == "room" and Case("tests/test_a.py::test_b", "passed", 1, False).part == "tests"


def test_without_a_report_the_command_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the first `./run test` there is nothing to read: one sentence, and status 1."""
    monkeypatch.setattr(durations, "RESULTS", tmp_path)
    assert durations.main() == 1
    assert capsys.readouterr().err == "There is no report of the tests yet: run ./run test first.\n"


def test_a_worker_runs_tests_that_start_something_together() -> None:
    """The tests of a browser, of Spark, and of commands with a Java of their own are a unit each, as any other file is."""
    split = ChainsTogether._split_scope
    units = [split(ChainsTogether.__new__(ChainsTogether), f"tests/{name}.py::test_x[a/b]") for name in (
        "pipeline/test_tables", "pipeline/test_follow_redaction", "browser/test_lab", "browser/test_page",
        "pipeline/test_cluster", "pipeline/test_follow", "pipeline/test_killed_commands", "core/test_a", "core/test_b",
    )]  # fmt: skip
    assert units == [*(line for line in CHAINS for _ in range(2)), CHAINS[2], "tests/core/test_a.py", "tests/core/test_b.py"]
