"""Whatever an answer does to the processes that check it, `check` returns within its limit, and no process is left.

Each answer has a bound of its own: without any defence it ends within seconds, by `bound` or by a count.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest

from kcontrol.install import process_cleanup
from kcontrol.install.process_cleanup import kill_marked
from kcontrol.lab.exercises import answer_process, check_server, sandbox
from kcontrol.lab.exercises.answer_process import REPORT
from kcontrol.lab.exercises.check_server import SECONDS_BY_THE_CLOCK
from kcontrol.lab.exercises.exercises import FOLDER, check, exercise, judged
from kcontrol.lab.exercises.sandbox import (
    BAD_REPORT,
    ENDLESS,
    KILLED,
    MARK,
    NOT_BEGUN,
    TOO_MANY_PROCESSES,
    VANISHED,
    WAITED,
    ProcessEnd,
)
from tests.lab.support import is_one_sentence

WHO = "who-leads-next"
LONGEST_S = SECONDS_BY_THE_CLOCK + check_server.SLOWEST * answer_process.SECONDS + 3 * sandbox.SPARE_SECONDS
Answer = Callable[..., Any]

# The functions of this module travel as code: else the process of each answer would import pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

ALARM_S = 10
GENERATIONS = 1_500
MANY = 64


def bound() -> None:
    """End this process by the clock; every process that an answer starts calls this first, for a fork has no alarm."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ALARM_S)


class TooLong(Exception):
    """A check has not come to its end within its limit."""


@pytest.fixture(autouse=True)
def within_its_limit() -> Iterator[None]:
    """Raise TooLong where a check takes longer than its limit."""

    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def server() -> sandbox.Server:
    """The server that runs the checks of this test, until an answer kills it."""
    return sandbox.start()


def by_mark(server: sandbox.Server) -> list[int]:
    """Return the running processes of the server's checks, without the server."""
    marked = kill_marked(server.marks[MARK], kill=False, variable=MARK)
    return [process.pid for process in marked if process.pid != server.process.pid]


# ---------------------------------------------------------------- the report


def reporting(data: bytes) -> Answer:
    """An answer that writes this into the report of its check, and ends its process."""

    def answer(assignment: Any, isr: Any, live: Any) -> Any:
        left = data
        while left:
            left = left[os.write(REPORT, left) :]
        os._exit(0)

    return answer


CASE = b'{"text": "", "answer": 1, "expected": 1, "drawn": [], "printed": ""}'


CLUSTER = b'[{"title": "", "brokers": [1], "state": []}]'


@pytest.mark.parametrize(
    "report",
    [
        b"[]\n",
        b"null\n",
        b'{"passed": false}\n',
        b'{"passed": true, "cases": [], "remark": ""}\n',
        b'{"passed": false, "remark": "", "cases": [' + CASE + b"]}\n",
        b'{"passed": true, "remark": "", "known": 77, "cases": [' + CASE + b"]}\n",
        b'{"passed": true, "remark": "", "cases": [3]}\n',
        b'{"passed": true, "remark": "", "cases": [' + CASE.replace(b"[]", b"[3]") + b"]}\n",
        b'{"passed": true, "remark": "", "cases": [' + CASE.replace(b"[]", b'[{"leader": 1}]') + b"]}\n",
        b'{"passed": true, "remark": "", "cases": ['
        + CASE.replace(b"[]", b'[{"title": "", "brokers": [1], "state": []}]')
        + b"]}\n",
        b"no JSON\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b"9" * 10_000 + b"\n",
    ],
    ids=[
        "list",
        "null",
        "keys-missing",
        "no-cases",
        "contradiction",
        "unknown-mistake",
        "no-case",
        "no-picture",
        "half-an-election",
        "no-cluster",
        "text",
        "bytes",
        "deep",
        "number",
    ],
)
def test_a_report_that_is_none_is_a_sentence(report: bytes) -> None:
    """A report that an answer has written, and that no check writes, is refused in one sentence."""
    found = sandbox.validated_report(report.decode(errors="replace").rstrip(), exercise(WHO))
    assert found == {"problem": BAD_REPORT} and is_one_sentence(BAD_REPORT)


def test_a_forged_report_is_a_sentence_at_the_front_door() -> None:
    """A report that is none ends a check in one sentence, and leaves the sign of an answer that has not passed."""
    said = check(WHO, reporting(b"[]\n"))
    assert (said.passed, said.text, said.signed) == (False, BAD_REPORT, True)


def test_a_report_that_is_too_long_is_a_sentence() -> None:
    """A report of 100 MB is cut off at a bound."""

    def lengthy(assignment: Any, isr: Any, live: Any) -> Any:
        bound()
        for _ in range(100):
            os.write(REPORT, bytes(1_000_000))

    assert check(WHO, lengthy).text == BAD_REPORT


def test_a_report_that_is_not_ended_is_none() -> None:
    """A report without the end of its line counts as none: its writer was killed on the way."""
    assert check(WHO, reporting(b'{"open": true}')).text == VANISHED


@pytest.mark.parametrize("kind", ["fifo", "directory", "link"])
def test_the_report_in_the_place_of_something_else(kind: str, tmp_path: Path) -> None:
    """An answer that replaces the file behind the descriptor of the report gets the verdict that its process ended."""
    place = tmp_path / "report"

    def answer(assignment: Any, isr: Any, live: Any) -> Any:
        if kind == "fifo":
            os.mkfifo(place)
        elif kind == "directory":
            place.mkdir()
        else:
            place.symlink_to("/dev/zero")
        os.dup2(os.open(place, os.O_RDONLY | os.O_NONBLOCK), REPORT)
        os._exit(0)

    assert check(WHO, answer).text == VANISHED


def test_what_solved_says_is_no_more_than_what_is_known() -> None:
    """A check cannot detect a forged report, so the verdict speaks of what the check reports and of nothing else."""
    forged = b'{"passed": true, "remark": "", "cases": [' + CASE + b"]}\n"
    said = check(WHO, reporting(forged))
    assert said.passed and said.text.startswith("Solved: the check reports that your answer is right in all 6 scenarios.")


# ---------------------------------------------------------------- processes


def left_behind(how: str) -> Answer:
    """An answer that starts a process which is to outlive its check, and returns the right leader."""
    word = f"left-by-{os.getpid()}"

    def answer(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
        if how == "no mark":
            command = [sys.executable, "-c", "import signal, time; signal.alarm(10); time.sleep(900)", word]
            subprocess.Popen(command, env={}, start_new_session=True)
        elif os.fork() == 0:
            bound()
            os.setsid()
            if how == "setsid" or os.fork() == 0:
                bound()
                os.closerange(0, 256)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(900)
            os._exit(0)
        return next((broker for broker in assignment if broker in isr and broker in live), None)

    return answer


def left(server: sandbox.Server) -> list[int]:
    """What answers of `left_behind` have left: processes with the mark, or with the word of theirs that bear no mark."""
    words = [p.pid for p in psutil.process_iter(["cmdline"]) if f"left-by-{os.getpid()}" in (p.info["cmdline"] or ())]
    return [*by_mark(server), *words]


@pytest.mark.parametrize("how", ["setsid", "double fork", pytest.param("no mark", marks=pytest.mark.skipif(
    sys.platform != "linux", reason="Only Linux gives a process the orphans of its descendants."))])  # fmt: skip
def test_no_process_outlives_its_check(how: str, server: sandbox.Server) -> None:
    """A child in a session of its own, with closed descriptors, an orphan, and one without the mark are gone with the check."""
    assert check(WHO, left_behind(how)).passed
    assert left(server) == []


def test_processes_are_found_by_their_mark_alone(server: sandbox.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server gets no orphans, as on macOS or once it is dead, a double fork is found by its mark."""
    killed: list[list[psutil.Process]] = []

    def noting(mark: str, *, kill: bool, variable: str, unread: set[int]) -> list[psutil.Process]:
        killed.append(kill_marked(mark, kill=kill, variable=variable, unread=unread))
        return killed[-1]

    monkeypatch.setattr(process_cleanup, "kill_marked", noting)
    leave = left_behind("double fork")

    def answer(assignment: Any, isr: Any, live: Any) -> Any:
        bound()
        os.kill(os.getppid(), signal.SIGKILL)  # the server: its orphans are given to another process
        return leave(assignment, isr, live)

    check(WHO, answer)
    assert left(server) == [] and killed[0]


def test_the_end_of_a_killed_process_is_an_event() -> None:
    """Waiting for a process that is no child of the waiting one returns when that process ends, and names no interval."""
    with subprocess.Popen(["sh", "-c", "exec sleep 60 & echo $!"], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        orphan = psutil.Process(int(shell.stdout.readline()))
    sleep, me, slept = time.sleep, threading.get_ident(), list[float]()

    def noting(seconds: float) -> None:
        if threading.get_ident() == me:
            slept.append(seconds)
        sleep(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", noting)
        orphan.kill()
        process_cleanup.await_end([orphan], 60)
    assert not orphan.is_running() and slept == []


def is_first_question() -> bool:
    """Whether an answer is asked for the first time: it is asked often, and is to start its processes once."""
    asked_before = "ANSWER_ASKED" in os.environ
    os.environ["ANSWER_ASKED"] = "yes"
    return not asked_before


def chain(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
    """Start a row of processes, each in a session of its own, each started by the one before, which ends; the last one sleeps."""
    if is_first_question() and os.fork() == 0:
        for _ in range(GENERATIONS):  # a fixed number, and then the alarm
            bound()
            os.setsid()
            if os.fork() > 0:
                os._exit(0)
        bound()
        time.sleep(ALARM_S)
        os._exit(0)
    return next((broker for broker in assignment if broker in isr and broker in live), None)


def test_a_chain_of_processes_is_stopped(server: sandbox.Server) -> None:
    """Processes that start each other in a row are gone with the check, though each of them lives for a moment only."""
    assert check(WHO, chain).passed
    assert left(server) == []


def test_a_chain_without_a_server_is_stopped(server: sandbox.Server) -> None:
    """An answer that has killed its server, and then starts processes in a row, leaves none."""

    def answer(assignment: Any, isr: Any, live: Any) -> Any:
        bound()
        os.kill(os.getppid(), signal.SIGKILL)
        return chain(assignment, isr, live)

    assert check(WHO, answer).text == VANISHED
    assert left(server) == []


@pytest.mark.parametrize(("count", "words"), [(3, "Solved"), (MANY, TOO_MANY_PROCESSES)])
def test_a_crowd_of_processes_is_the_end_of_an_answer(count: int, words: str, server: sandbox.Server) -> None:
    """An answer may start a few processes; with many at a time it is over, and all of them are ended."""

    def answer(assignment: list[int], isr: list[int], live: list[int]) -> int | None:
        bound()
        for _ in range(count if is_first_question() else 0):
            if os.fork() == 0:
                bound()
                time.sleep(ALARM_S)
                os._exit(0)
        if count == MANY:
            time.sleep(ALARM_S)
        return next((broker for broker in assignment if broker in isr and broker in live), None)

    assert words in check(WHO, answer).text
    assert left(server) == []


def test_a_process_that_is_not_of_the_check_lives_on() -> None:
    """A process that a notebook has started before, in a session of its own, outlives a check."""
    sleeper = subprocess.Popen(
        [sys.executable, "-c", "import signal, time; signal.alarm(60); time.sleep(60)"], start_new_session=True
    )
    try:
        assert check(WHO, left_behind("double fork")).passed
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_an_interrupted_check_leaves_no_process(server: sandbox.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt of the kernel during a check also ends the answer's processes."""
    # The server ends them, and waits for their end. The mark alone misses a process that begins a program just then: for that
    # moment it has no environment, so here the mark finds none.
    begun = sandbox.Server._receive

    def impatient(self: sandbox.Server, seconds: float) -> Any:
        if psutil.Process(server.process.pid).children():
            raise KeyboardInterrupt
        return begun(self, seconds)

    monkeypatch.setattr(sandbox.Server, "_receive", impatient)
    monkeypatch.setattr(process_cleanup, "kill_marked", lambda mark, **_: [])
    with pytest.raises(KeyboardInterrupt):
        check(WHO, lambda assignment, isr, live: time.sleep(10))
    assert left(server) == [] and server.process.returncode == 0


def test_a_search_that_a_process_escaped_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no server is left, a process that ends while it is looked for may have started another: the search goes on."""
    monkeypatch.setattr(sandbox, "SPARE_SECONDS", 60)
    searches: list[bool] = []

    def escaping(mark: str, *, kill: bool, variable: str, unread: set[int]) -> list[psutil.Process]:
        searches.append(kill)
        unread.update([7, 8] if len(searches) < 3 else [8])
        unread.update([9] if len(searches) == 2 else [])
        return []

    monkeypatch.setattr(process_cleanup, "kill_marked", escaping)
    check(WHO, lambda assignment, isr, live: os.kill(os.getppid(), signal.SIGKILL))
    assert len(searches) == 3


def test_a_process_without_an_environment_is_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search names each process whose environment it could not read: a zombie, one that has gone, and one whose is empty."""
    with subprocess.Popen(["true"]) as zombie, subprocess.Popen(["/bin/sleep", "60"], env={}) as empty:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        pids = [*psutil.pids(), gone := max(psutil.pids()) + 1_000_000]
        monkeypatch.setattr(psutil, "pids", lambda: pids)
        unread = set[int]()
        process_cleanup.kill_marked("no mark", kill=False, unread=unread)
        empty.kill()
    assert {gone, zombie.pid, empty.pid} <= unread and os.getpid() not in unread


# ---------------------------------------------------------------- how a process ended


@pytest.mark.parametrize(
    ("status", "until", "cpu_s", "words"),
    [
        (None, None, 1.5, NOT_BEGUN),  # the exercise's scenarios took too long
        (1, None, 1.5, NOT_BEGUN),
        (-signal.SIGKILL, None, 1.5, NOT_BEGUN),  # out of memory
        (None, 7, 1.5, WAITED),
        (-signal.SIGXCPU, 7, 7.1, ENDLESS),
        (-signal.SIGKILL, 7, 8.1, ENDLESS),
        (-signal.SIGKILL, 65, 16.0, KILLED),  # the imports of a slow machine take longer than 5 s
        (0, 7, 1.5, VANISHED),
    ],
)
def test_each_end_of_a_process_has_its_sentence(status: int | None, until: int | None, cpu_s: float, words: str) -> None:
    """A process that ends before it has called the answer is not the fault of the answer; other ends name what to change."""
    assert sandbox._end(ProcessEnd(status, False, cpu_s, until, "", "")) == words and is_one_sentence(words)


def test_a_check_that_cannot_start_is_not_the_fault_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ends at once, as on a machine without memory, gets a sentence about the machine."""
    sandbox.end()
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert check(WHO, lambda assignment, isr, live: None).text == NOT_BEGUN


def test_a_kill_from_outside_is_no_loop() -> None:
    """An answer killed by SIGKILL, as by a system without memory, is not said to be a loop."""
    said = check(WHO, lambda assignment, isr, live: os.kill(os.getpid(), signal.SIGKILL))
    assert said.text == KILLED and is_one_sentence(said.text)


@pytest.mark.slow
def test_a_loop_that_ignores_its_limit_is_a_loop() -> None:
    """An answer that ignores SIGXCPU gets SIGKILL at the hard limit, and the verdict on a loop."""

    def stubborn(assignment: Any, isr: Any, live: Any) -> Any:
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        while time.process_time() < 60:
            pass

    assert judged(exercise(WHO) | {"seconds": 1}, stubborn).text == ENDLESS


@pytest.mark.parametrize("number", [signal.SIGSEGV, 63])
def test_any_signal_is_a_sentence(number: int) -> None:
    """The verdict on an answer whose process a signal has ended is one sentence, whether the signal has a name or not."""
    said = check(WHO, lambda assignment, isr, live: os.kill(os.getpid(), number))
    assert "died (" in said.text and is_one_sentence(said.text)


def test_the_answer_has_no_input() -> None:
    """An answer that reads from the keyboard is not waited for: there is nothing to read."""
    assert "EOFError" in check(WHO, lambda assignment, isr, live: input()).text


def test_nothing_of_an_exercise_is_lost_on_its_way() -> None:
    """An answer of several megabytes arrives."""
    big = bytes(8_000_000)
    assert check(WHO, lambda assignment, isr, live: len(big)).text.startswith("Not yet.")


def test_limits_of_this_process_stay() -> None:
    """A check bounds its own process, and neither the caller's nor the server's."""
    limits = (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE)
    before = [resource.getrlimit(what) for what in limits]
    check(WHO, sandbox.AnswerText((FOLDER / exercise(WHO)["solution"]).read_text(), "mine.py"))
    assert before == [resource.getrlimit(what) for what in limits]
    assert before == [psutil.Process(sandbox.start().process.pid).rlimit(what) for what in limits]
