"""The server of a kernel runs each check in a process of its own, which sees the learner's process, and leaves nothing."""

from __future__ import annotations

import json
import linecache
import mmap
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest

from kcontrol.install import workspace
from kcontrol.lab.exercises import answer_process, answers, check_server, sandbox
from kcontrol.lab.exercises.exercises import check, exercise, judged
from kcontrol.lab.exercises.sandbox import ENDLESS, KILLED, VANISHED
from tests.lab.support import is_one_sentence

WHO = "who-leads-next"
linux = pytest.mark.skipif(sys.platform != "linux", reason="Only Linux forks the server.")
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def server() -> psutil.Process:
    """The process of the server, before the checks of a test."""
    return psutil.Process(sandbox.start().process.pid)


def printed_by(expression: Callable[[], object]) -> str:
    """Return what an answer prints that evaluates the expression."""

    def answer(assignment: Any, isr: Any, live: Any) -> int:
        print(expression())
        return 99

    return check(WHO, answer).printed.rstrip()


def solution() -> Any:
    return answers.shipped(exercise(WHO), "solution")


# ---------------------------------------------------------------- one process per check


@linux
def test_each_check_has_a_child_of_the_server_in_its_own_session(server: psutil.Process) -> None:
    """Two checks have two processes; both are children of the server, which has no child afterwards."""
    one, other = (printed_by(lambda: (os.getpid(), os.getppid(), os.getsid(0) == os.getpid())) for _ in range(2))
    assert one != other
    for printed in (one, other):
        assert printed.endswith(f", {server.pid}, True)")
    assert server.children(recursive=True) == []


@linux
def test_a_server_that_has_imported_all_that_checks_need_has_one_thread(server: psutil.Process) -> None:
    """It can be forked: a check whose right values are read from tables imports pandas and Arrow into the server."""
    assert check("longest-wait", answers.shipped(exercise("longest-wait"), "solution")).passed
    assert any("libarrow" in mapped.path for mapped in server.memory_maps()) and server.num_threads() == 1


@linux
def test_a_child_has_the_descriptors_of_its_report_and_its_output_alone() -> None:
    """Besides the standard ones there are these two, and the one with which the answer reads the list."""
    assert printed_by(lambda: sorted(path.name for path in Path("/proc/self/fd").iterdir())) == str(list("012345"))


def test_the_server_does_not_unpickle_an_answer(server: psutil.Process) -> None:
    """An answer that ends the process that unpickles it ends its own process, and not the server."""

    class Bomb:
        def __reduce__(self) -> Any:
            return os._exit, (3,)

    assert check(WHO, Bomb()).text == VANISHED
    assert check(WHO, solution()).passed and sandbox.start().process.pid == server.pid


def test_the_learners_process_travels_with_each_check(
    server: psutil.Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working folder, the environment, the modules and the cells are those at the time of the check; the server's stay."""
    before = server.cwd()
    (tmp_path / "beside_the_notebook.py").write_text("def answer(assignment, isr, live):\n    return 99\n")
    for word in ("one", "other"):
        place = tmp_path / word
        place.mkdir()
        monkeypatch.chdir(place)
        monkeypatch.setenv("KCONTROL_TEST_WORD", word)
        assert printed_by(lambda: (os.environ["KCONTROL_TEST_WORD"], str(Path.cwd()))) == str((word, str(place)))
    monkeypatch.syspath_prepend(tmp_path)
    import beside_the_notebook  # type: ignore[import-not-found]

    assert "Your leader: broker 99" in check(WHO, beside_the_notebook.answer).text
    cell = "def answer(assignment, isr, live):\n    return isr[99]\n"
    monkeypatch.setitem(linecache.cache, "<cell 7>", (len(cell), None, cell.splitlines(keepends=True), "<cell 7>"))
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, "<cell 7>", "exec"), scope)
    assert "(line 2: return isr[99])" in check(WHO, scope["answer"]).text
    assert server.cwd() == before


def test_the_memory_of_an_answer_is_counted_from_its_begin() -> None:
    """However large the server is, an answer may use 1 GB more."""
    # A sentence about an error quotes the line of the answer, so these lines have no word of the expected sentences.
    less = check(WHO, lambda *_: len(mmap.mmap(-1, 1000 << 20)) >> 20).text
    more = check(WHO, lambda *_: len(bytearray(1100 << 20)) >> 20).text
    assert "Your leader: broker 1000" in less and "needs more than 1024 MB" in more


@pytest.mark.slow
def test_the_time_of_an_answer_is_its_own() -> None:
    """An answer that is killed after another that has used up its time is not said to have used up its own."""
    brief = exercise(WHO) | {"seconds": 1}

    def endless(*_: Any) -> Any:
        while time.process_time() < 30:
            pass

    assert judged(brief, endless).text == ENDLESS
    assert judged(brief, lambda *_: os.kill(os.getpid(), signal.SIGKILL)).text == KILLED


# ---------------------------------------------------------------- what is done once

KIND = """
import os
from kcontrol.lab.exercises.checks import Case, CheckedAnswer, CheckKind

def prepare(entry):
    note("prepare")
    return mark

def mark(answer):
    note(f"mark {answer}")
    return CheckedAnswer([Case("", answer, 1)])

def note(word):
    with open(os.path.join(os.path.dirname(__file__), "notes"), "a") as file:
        print(os.getpid(), word, file=file)

KIND = CheckKind(prepare, "a number", lambda answer: True)
"""


@linux
def test_the_scenarios_are_played_and_the_wrong_answers_are_checked_once(server: psutil.Process, tmp_path: Path) -> None:
    """The server prepares an exercise for all its checks, and judges each listed wrong answer once for all of them."""
    (tmp_path / "kind.py").write_text(KIND)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "stub.py").write_text("answer = None\n")
    wrong = [{"misconception": f"is {number}", "message": "No.", "code": str(number)} for number in (2, 3)]
    # The server opens the last listed answer when it has judged those before.
    wrong.append({"misconception": "last", "message": "No.", "code": f"len(open({str(tmp_path / 'fifo')!r}).read())"})
    entry = exercise(WHO) | {"id": "kept", "folder": str(tmp_path), "check": "kind.py", "stub": "stub.py", "wrong": wrong}
    assert judged(entry, 1).text.startswith("Solved")
    (tmp_path / "fifo").write_text("four")
    assert [judged(entry, number).misconception for number in (2, 3, 3, 4)] == ["is 2", "is 3", "is 3", "last"]
    notes = [line.split(" ", 1) for line in (tmp_path / "notes").read_text().splitlines()]
    assert [word for pid, word in notes if int(pid) == server.pid] == ["prepare", "mark 2", "mark 3", "mark 4"]
    assert [word for pid, word in notes if int(pid) != server.pid] == [f"mark {number}" for number in (1, 2, 3, 3, 4)]


# ---------------------------------------------------------------- the life of the server


def test_a_killed_server_is_replaced(server: psutil.Process) -> None:
    """The check after it is answered as any other."""
    assert check(WHO, solution()).passed
    server.kill()
    assert check(WHO, solution()).passed and sandbox.start().process.pid != server.pid


KERNEL = """
import os, sys
from kcontrol.lab.exercises import exercises, sandbox

place = sys.argv[1]

def answer(assignment, isr, live):
    with open(place, "w") as fifo:
        print(os.getppid(), os.getpid(), file=fifo)
    os.read(os.pipe()[0], 1)

if sys.argv[2] == "in a check":
    exercises.check("who-leads-next", answer)
with open(place, "w") as fifo:
    print(sandbox.start().process.pid, file=fifo)
os.read(os.pipe()[0], 1)
"""


@pytest.mark.parametrize("when", ["in a check", "between checks"])
def test_the_server_ends_with_its_kernel(when: str, tmp_path: Path) -> None:
    """A kernel that is killed leaves neither its server nor the process of an answer."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([sys.executable, "-c", KERNEL, str(fifo), when]) as kernel:
        left = [psutil.Process(int(pid)) for pid in fifo.read_text().split()]
        kernel.kill()
    assert psutil.wait_procs(left, timeout=60)[1] == []


def test_a_fork_of_the_kernel_has_a_server_of_its_own(server: psutil.Process) -> None:
    """It does not write into the pipe of the kernel's server, nor end it."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        with os.fdopen(writer, "w") as file:
            print(sandbox._server is None, file=file)
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as file:
        assert file.read() == "True\n"
    assert check(WHO, solution()).passed and sandbox.start().process.pid == server.pid


@pytest.mark.slow
def test_many_checks_leave_nothing() -> None:
    """200 checks in a row leave no process and no descriptor, and neither process grows."""
    kernel, listed = psutil.Process(), exercise("lock-without-herd")
    right = answers.shipped(listed, "solution")
    server = psutil.Process(sandbox.start().process.pid)
    found = []
    for count in (20, 90, 90):
        for _ in range(count):
            assert judged(listed, right).passed
        found.append((server.num_fds(), kernel.num_fds(), server.memory_info().rss, kernel.memory_info().rss))
    _, (fds, ours, size, our_size), (fds_later, ours_later, size_later, our_size_later) = found
    assert (fds, ours, server.children()) == (fds_later, ours_later, [])
    assert size_later - size < 90 * 4096 and our_size_later - our_size < 90 * 4096, found


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check and the start of its server need no disk; that the result cannot be kept is said in one sentence."""
    workspace.prepare(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    sandbox.end()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # no file can grow
    try:
        *_, last = check(WHO, solution()).text.splitlines()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sandbox.end()
    assert last.startswith("This is not counted") and "progress.json" in last and is_one_sentence(last)
    assert list((tmp_path / "work").rglob(".progress.json.*")) == []


# ---------------------------------------------------------------- where a fork is not safe


@pytest.fixture
def without_forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on macOS: each check starts a process anew."""
    sandbox.end()
    monkeypatch.setattr(sandbox, "FORKS", False)
    yield
    sandbox.end()


@pytest.mark.usefixtures("without_forks")
@pytest.mark.slow
def test_without_forks_each_check_has_new_processes() -> None:
    """The verdicts are the same; the server ends with its check."""
    entry = exercise(WHO)
    assert check(WHO, solution()).passed and sandbox._server is None
    listed = entry["wrong"][0]
    assert check(WHO, answers.wrong(entry, listed)).misconception == listed["misconception"]
    assert printed_by(lambda: os.getsid(0) == os.getpid()) == "True"


# ---------------------------------------------------------------- limits of time

SUPERVISED = """
import json, os, subprocess, sys
from multiprocessing import Pipe
from kcontrol.lab.exercises import check_server
check_server.SECONDS_TO_BEGIN, check_server.SECONDS_BY_THE_CLOCK = map(int, sys.argv[1:3])

def anew(request, packed, report, printed):
    return subprocess.Popen([sys.executable, "-c", sys.argv[3], str(report)], pass_fds=(report,)).pid

check_server._anew = anew
ours, kernel = Pipe()
print(json.dumps(check_server.check(kernel, {}, b"", forks=False)))
"""
BEGINS = """import os, sys, time
report = int(sys.argv[1])
os.write(report, b'{"seconds": %d, "until": 7}\\n')
os.read(report, 1)
"""


@pytest.mark.parametrize(
    ("to_begin", "command", "ended"),
    [
        (0, "import time; time.sleep(60)", [None, None, ""]),
        (300, BEGINS % 0 + "time.sleep(60)", [None, 7, ""]),
        (300, BEGINS % 300 + "os.write(report, b'[1]\\n')", [0, 7, "[1]"]),
    ],
    ids=["before the answer", "in the answer", "in time"],
)
def test_the_time_of_an_answer_begins_with_the_answer(to_begin: int, command: str, ended: list[Any]) -> None:
    """The preparation of a check has a time of its own, and the time of an answer is the one in the first line of the report."""
    run = [sys.executable, "-c", SUPERVISED, str(to_begin), "0", command]
    last = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    assert [json.loads(last)[key] for key in ("status", "until_cpu_s", "report")] == ended


def test_a_slow_or_busy_machine_gives_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU time grows with the time of a loop, time by the clock also with the wait for a CPU, both ten times at most."""
    monkeypatch.setattr(answer_process, "limit", lambda seconds: 100 + seconds)
    entry, found = exercise(WHO), []
    for slowness in (1, 4):
        for load in (1, 10):
            request = {"entry": entry, "text": None, "slowness": slowness, "load": load}
            found.append(next(answer_process.reports(request, b"")))
    assert [(limits["seconds"], limits["until"]) for limits in found] == [(5, 105), (50, 105), (20, 120), (200, 120)]
    assert [check_server.times(slowness) for slowness in (0.1, 4, 40)] == [1, 4, check_server.SLOWEST]
    monkeypatch.setattr(os, "getloadavg", lambda: (12.0, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert check_server.machine_load() == 3
    monkeypatch.setattr(time, "process_time", iter((0.0, 5 * check_server.SECONDS_OF_LOOP)).__next__)
    assert check_server.machine_slowness() == 5
