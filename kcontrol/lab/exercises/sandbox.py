"""The sandbox of a check: a learner's answer runs in another process, so its errors and loops do not harm the notebook.

The process has limits on memory, file size and time. Its report comes back through a pipe and is validated.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, NamedTuple

import cloudpickle
import psutil

from kcontrol.install import process_cleanup
from kcontrol.lab.exercises.checks import same
from kcontrol.lab.exercises.supervisor import MOST_PROCESSES, SECONDS_BY_THE_CLOCK, SECONDS_TO_BEGIN
from kcontrol.lab.exercises.verdicts import pictures

SECONDS = 5  # of CPU time
SPARE_SECONDS = 10  # for the supervisor to start, and to end the processes that an answer has left; a busy machine needs more
MARK = "KCONTROL_CHECK"

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

    # None if the supervisor ended the process.
    status: int | None
    # Whether the supervisor ended the answer because it had more than 32 processes (MOST_PROCESSES).
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
    """Check an answer in a separate process, and return the last report of this process, such as {"problem": "..."}.

    `entry` is the exercise's table in exercises.toml.
    """
    text = answer if isinstance(answer, AnswerText) else None
    try:
        packed = b"" if text else cloudpickle.dumps(answer)
    except Exception as error:  # an answer may refer to any object, and any object may raise when it is pickled
        return {"problem": UNPORTABLE.format(first_line(error))}
    with tempfile.TemporaryFile() as letter:
        letter.write(json.dumps({"entry": entry, "text": text, "sources": _sources(text)}).encode() + b"\n" + packed)
        letter.seek(0)
        ended = _run(letter)
    # An answer runs with the learner's rights, so it can write the report of its own check: a verdict informs the learner, and
    # proves nothing to others.
    if isinstance(ended, str):
        return {"problem": ended}
    if ended.too_many_processes:
        return {"problem": TOO_MANY_PROCESSES, "printed": ended.printed}
    return validated_report(ended.report, entry) if ended.report else {"problem": _end(ended), "printed": ended.printed}


def _sources(text: AnswerText | None) -> dict[str, list[str]]:
    """Return the lines of a learner's source code by the file name that a traceback shows.

    The source code is the learner's file `text` or, if `text` is None, the cells of the notebook.
    """
    if text:
        return {text.path: text.text.splitlines(keepends=True)}
    cells = {name: entry for name, entry in linecache.cache.items() if len(entry) == 4 and entry[1] is None}
    return {name: list(entry[2]) for name, entry in cells.items()}


def _run(letter: IO[bytes]) -> ProcessEnd | str:
    """Run the supervisor process of a check on the file `letter`; return the ProcessEnd, or a sentence on why there is none.

    `letter` has a line of JSON about the exercise, and the pickled answer.
    """
    mark = secrets.token_hex(16)
    command = [sys.executable, "-P", "-m", "kcontrol.lab.exercises.supervisor"]
    env = os.environ | {MARK: mark, "OPENBLAS_NUM_THREADS": "1"}  # threads of numpy use address space, which is limited
    pipe, silent = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=letter, stdout=pipe, stderr=silent, bufsize=0, start_new_session=True, env=env
    ) as supervisor:
        try:
            # The first line has the limits of the answer. It is the only line if the check ended before it called the answer.
            begun = _first_line(supervisor, SECONDS_TO_BEGIN + 3 * SPARE_SECONDS)
            seconds = SECONDS_BY_THE_CLOCK + json.loads(begun or "{}").get("seconds", 0) + 3 * SPARE_SECONDS
            ended = ProcessEnd(**json.loads(supervisor.communicate(timeout=seconds)[0] or begun))
            return ended if all(isinstance(text, str) for text in (ended.report, ended.printed)) else VANISHED
        except subprocess.TimeoutExpired:
            return WAITED if begun else NOT_BEGUN
        except (ValueError, TypeError):
            return VANISHED if begun else NOT_BEGUN
        finally:
            _end_all(supervisor, mark)


def _first_line(supervisor: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Return the first line that the supervisor prints within `seconds`, b"" if it ends before that or prints none."""
    assert supervisor.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(supervisor.stdout, selectors.EVENT_READ)
        return supervisor.stdout.readline() if selector.select(seconds) else b""


def _end_all(supervisor: subprocess.Popen[bytes], mark: str) -> None:
    """End the supervisor and its descendants, and each process whose environment variable KCONTROL_CHECK is `mark`."""
    for number in (signal.SIGTERM, signal.SIGCONT):
        supervisor.send_signal(number)
    with contextlib.suppress(subprocess.TimeoutExpired):
        supervisor.wait(SPARE_SECONDS)
    left = [psutil.Process(supervisor.pid)] if supervisor.poll() is None else []
    with contextlib.suppress(psutil.Error):
        left += [child for process in left for child in process.children(recursive=True)]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    # If the answer has killed the supervisor, its processes are still running. A process can escape from a search: it starts
    # another process and ends before the search reads it. So the search is repeated until no process has ended during it.
    until, unread = time.monotonic() + SPARE_SECONDS, set[int]()
    while time.monotonic() < until:
        before, unread = unread, set()
        marked = process_cleanup.kill_marked(mark, kill=True, variable=MARK, unread=unread)
        if not marked and (supervisor.returncode == 0 or unread <= before):
            break
        process_cleanup.await_end(marked, until - time.monotonic())


def validated_report(report: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the report, JSON text from the process of an answer, as a mapping; an invalid report gives {"problem": "..."}.

    `entry` is the exercise's table in exercises.toml.
    """
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
