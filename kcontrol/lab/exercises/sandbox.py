"""The sandbox of a check: a learner's answer runs in another process, so its errors and loops do not harm the notebook.

The process sets its own limits of memory, file size and time (`answer_process.py`). A server, which this process starts once,
forks it and supervises it (`check_server.py`). Its report comes back through a pipe and is validated.
"""

import atexit
import contextlib
import json
import linecache
import os
import secrets
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple

import cloudpickle

from kcontrol.install import process_cleanup
from kcontrol.lab.exercises.check_server import MOST_PROCESSES, SECONDS_BY_THE_CLOCK, SECONDS_TO_BEGIN
from kcontrol.lab.exercises.checks import same
from kcontrol.lab.exercises.verdicts import pictures

FORKS = sys.platform == "linux"  # on macOS, libraries of the system may fail in a fork
SPARE_SECONDS = 10  # for the server to start, and to end the processes that an answer has left; a busy machine needs more
MARK = "KCONTROL_CHECK"
WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}

ENDLESS = "Your answer did not end in time and was stopped: look for a loop without an end."
WAITED = (
    "Your answer did not end in time and was stopped: look for a wait without an end or, if other programs use this machine, "
    "check again when they have ended."
)
NOT_BEGUN = (
    "The check ended before it called your answer, because this machine has too little time or memory for it: end other "
    "programs, and check again."
)
KILLED = (
    "The process of your answer was killed by SIGKILL, and not because of its time: a system does this when memory runs out, so "
    "use less memory, or check again."
)
TOO_MANY_PROCESSES = (
    f"Your answer has started more than {MOST_PROCESSES} processes, and all of them were killed: return an answer without "
    "starting a process."
)
UNPORTABLE = "Your answer cannot be sent to another process ({}): do not use objects in it that were made outside of it."
VANISHED = "Your function ended its process and returned no answer: let it return a value."
BAD_REPORT = (
    "Your answer has written into the report of its own check, which cannot be read now: return an answer, and write nothing to "
    "the descriptors of the process."
)


class AnswerText(NamedTuple):
    """An answer as the text of a learner's file, which only the sandbox process executes."""

    text: str
    # The name of the file, as tracebacks and errors show it.
    path: str


class ProcessEnd(NamedTuple):
    """The end of an answer's process: its exit status, CPU time in seconds, report and output."""

    # None if the server ended the process.
    status: int | None
    # Whether the server ended the answer because it had more than 32 processes (MOST_PROCESSES).
    too_many_processes: bool
    # The CPU time of all processes of the check.
    cpu_s: float
    # The CPU time, in seconds, at which the process is killed; None if the process ended before it called the answer.
    until_cpu_s: int | None
    # Lines with the outcomes of the check, "" if the process ended before the first.
    report: str
    # The last part of the text that the answer has printed.
    printed: str


def judge(answer: object, entry: dict[str, Any]) -> dict[str, Any]:
    """Check an answer in a separate process, and return the last report of this process, such as {"problem": "..."}."""
    text = answer if isinstance(answer, AnswerText) else None
    try:
        packed = b"" if text else cloudpickle.dumps(answer)
    except Exception as error:  # an answer may refer to any object, and any object may raise when it is pickled
        return {"problem": UNPORTABLE.format(first_line(error))}
    here = {"folder": str(Path.cwd()), "path": list(map(str, sys.path)), "sources": _sources(text)}
    ended = _run({"entry": entry, "text": text, **here}, packed)
    # An answer runs with the learner's rights, so it can write the report of its own check: a verdict informs the learner, and
    # proves nothing to others.
    if isinstance(ended, str):
        return {"problem": ended}
    if ended.too_many_processes:
        return {"problem": TOO_MANY_PROCESSES, "printed": ended.printed}
    return validated_report(ended.report, entry) if ended.report else {"problem": _end(ended), "printed": ended.printed}


def _sources(text: AnswerText | None) -> dict[str, list[str]]:
    """By the file name that a traceback shows, the lines of the file `text` or, if it is None, of the notebook's cells."""
    if text:
        return {text.path: text.text.splitlines(keepends=True)}
    cells = {name: entry for name, entry in linecache.cache.items() if len(entry) == 4 and entry[1] is None}
    return {name: list(entry[2]) for name, entry in cells.items()}


class Server:
    """The process that runs the checks of this process (`check_server.py`), with a pipe to it, which it does not outlive."""

    def __init__(self) -> None:
        # All processes of its checks have this mark in their environment. The threads of numpy use address space, which is
        # limited; and numpy and Arrow have no thread in the server, since only a process with one thread can be forked safely.
        self.marks = {MARK: secrets.token_hex(16)} | WITHOUT_THREADS
        self.pipe, its = Pipe()
        command = [sys.executable, "-P", "-m", "kcontrol.lab.exercises.check_server", *["fork"] * FORKS]
        silent, env = subprocess.DEVNULL, os.environ | self.marks
        with its:
            self.process = subprocess.Popen(
                command, stdin=its.fileno(), stdout=silent, stderr=silent, start_new_session=True, env=env
            )

    def check(self, request: dict[str, Any], packed: bytes) -> ProcessEnd | str:
        """Return the ProcessEnd of a check, or a sentence on why there is none."""
        letter = json.dumps(request | {"environment": os.environ | self.marks}).encode()
        # The server may have been stopped, and read nothing.
        Thread(target=self._send, args=(letter, packed), daemon=True).start()
        begun: dict[str, Any] = {}
        try:
            # The first message has the limits of the answer. It is the only one if the check ended before it called the answer.
            begun = self._receive(SECONDS_TO_BEGIN + 3 * SPARE_SECONDS)
            if "seconds" not in begun:
                return ProcessEnd(**begun)
            return ProcessEnd(**self._receive(SECONDS_BY_THE_CLOCK + begun["seconds"] + 3 * SPARE_SECONDS))
        except TimeoutError:
            return WAITED if begun else NOT_BEGUN
        except (EOFError, OSError):
            return VANISHED if begun else NOT_BEGUN

    def _send(self, *messages: bytes) -> None:
        with contextlib.suppress(OSError):  # the server has ended
            for message in messages:
                self.pipe.send_bytes(message)

    def _receive(self, seconds: float) -> Any:
        if not self.pipe.poll(seconds):
            raise TimeoutError
        return json.loads(self.pipe.recv_bytes())

    def end(self) -> None:
        """End the server and its descendants, and each process whose environment variable KCONTROL_CHECK is its mark."""
        _end_all(self.process, self.marks[MARK])
        self.pipe.close()


_server: Server | None = None
_lock = Lock()  # one check at a time


def start() -> Server:
    """Return the server of this process; the first call starts it, and does not wait for it."""
    global _server
    if _server is None:
        _server = Server()
    return _server


@atexit.register
def end() -> None:
    """End the server, if there is one, with all its processes; the next check starts another one."""
    global _server
    if _server is not None:
        ended, _server = _server, None
        ended.end()


def _forget() -> None:
    global _server, _lock
    if _server is not None:
        _server.pipe.close()
    _server, _lock = None, Lock()


os.register_at_fork(after_in_child=_forget)  # the server belongs to the process that has started it


def _run(request: dict[str, Any], packed: bytes) -> ProcessEnd | str:
    """Run a check on the server, and return its ProcessEnd, or a sentence on why there is none.

    A server that was killed since the last check is replaced.
    """
    with _lock:
        is_new, ended = _server is None, None
        try:
            ended = start().check(request, packed)
        finally:
            if not (FORKS and isinstance(ended, ProcessEnd)):
                end()
    return ended if is_new or ended is not NOT_BEGUN else _run(request, packed)


def _end_all(server: subprocess.Popen[bytes], mark: str) -> None:
    """End the server and its descendants, and each process whose environment variable KCONTROL_CHECK is `mark`."""
    for number in (signal.SIGTERM, signal.SIGCONT):
        server.send_signal(number)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(SPARE_SECONDS)
    # If the answer has killed the server, its processes are still running. A process can escape from a search: it starts
    # another process and ends before the search reads it. So the search is repeated until no process has ended during it.
    until, unread = time.monotonic() + SPARE_SECONDS, set[int]()
    while time.monotonic() < until:
        before, unread = unread, set()
        marked = process_cleanup.kill_marked(mark, kill=True, variable=MARK, unread=unread)
        if not marked and (server.returncode == 0 or unread <= before):
            break
        process_cleanup.await_end(marked, until - time.monotonic())


def validated_report(report: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the report, JSON text from the process of an answer, as a mapping; an invalid report gives {"problem": "..."}."""
    try:
        found = json.loads(report)
        if found.get("open") is True:
            return {"open": True}
        if problem := found.get("problem"):
            return {"problem": str(problem), "printed": str(found["printed"])}
        cases = [case | {"is_right": same(case["answer"], case["expected"])} for case in found["cases"]]
        whole = all(isinstance(case["text"], str) and isinstance(case["printed"], str) for case in cases)
        for case in cases:
            pictures(case["drawn"])
        agrees = found["passed"] is all(case["is_right"] for case in cases)
        if cases and whole and agrees and found.get("known") in (None, *range(len(entry["wrong"]))):
            return dict(found) | {"cases": cases, "remark": str(found["remark"])}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        pass  # the answer has written into the report
    return {"problem": BAD_REPORT}


def _end(ended: ProcessEnd) -> str:
    """Return the sentence that says why a process has ended without a report, such as its limit of CPU time."""
    if ended.until_cpu_s is None:
        return NOT_BEGUN
    if (status := ended.status) is None:
        return WAITED
    if status == -signal.SIGXCPU or (status == -signal.SIGKILL and ended.cpu_s > ended.until_cpu_s):
        return ENDLESS
    if status == -signal.SIGKILL:
        return KILLED
    if status < 0:
        name = next((known.name for known in signal.Signals if known == -status), f"signal {-status}")
        return f"The process of your answer died ({name}): look for a recursion without an end, or use less memory."
    return VANISHED


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 120 characters; for an error without a message, its type."""
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
