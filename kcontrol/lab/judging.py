"""A learner's answer is tried in a process of its own, which may do what it likes: nothing of it reaches this one.

The answer travels by cloudpickle, or as the text of a file. The process is a fresh Python with bounds on memory, files, computing
time and time by the clock (`supervisor`, `judge`); what it finds out comes back through a pipe, and is data of which nothing is
believed before it has been looked at. An answer has the rights of whoever runs it, so it can write the report of its own check: a
verdict is for the learner, and no proof for anybody else.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, NamedTuple

import cloudpickle
import psutil

from kcontrol.lab import sweeper
from kcontrol.lab.checks import same
from kcontrol.lab.supervisor import MOST_PROCESSES, SECONDS_BY_THE_CLOCK
from kcontrol.lab.verdicts import pictures

SECONDS = 5  # of computing
SPARE_SECONDS = 10  # for the supervisor to begin, and to end what an answer has left
MARK = "KCONTROL_CHECK"

ENDLESS = "Your answer does not come to an end, and was stopped: look for a loop that never ends."
KILLED = (
    "The process of your answer was killed by SIGKILL, and not for its time: a system ends a process so when memory runs out, "
    "so use less memory, or check again."
)
CROWDED = (
    f"Your answer has started more than {MOST_PROCESSES} processes, and all of them were ended: let it return an "
    "answer, and start no process."
)
UNPORTABLE = "Your answer cannot be taken into another process ({}): use nothing in it that comes from outside."
VANISHED = "Your function ended its process instead of returning an answer."
SPOILT = (
    "Your answer has written into the report of its own check, which cannot be read now: let it return an answer, and write "
    "nothing to that process's descriptors."
)


class Text(NamedTuple):
    """An answer as the text of a learner's file, which is run in the other process only."""

    text: str
    path: str


class Ended(NamedTuple):
    """How the process of an answer ended; see `supervisor.supervise`."""

    status: int | None
    crowded: bool
    cpu_s: float
    report: str
    printed: str


def judge(answer: object, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the last of `judge.reports`, or `problem`, why an answer cannot be judged, and what it `printed`."""
    text = answer if isinstance(answer, Text) else None
    try:
        packed = b"" if text else cloudpickle.dumps(answer)
    except Exception as error:  # an answer can refer to anything, and anything can refuse to be pickled
        return {"problem": UNPORTABLE.format(first_line(error))}
    with tempfile.TemporaryFile() as letter:
        letter.write(json.dumps({"entry": entry, "text": text, "sources": _sources(text)}).encode() + b"\n" + packed)
        letter.seek(0)
        ended = _run(letter)
    if ended is None:
        return {"problem": VANISHED}
    if ended.crowded:
        return {"problem": CROWDED, "printed": ended.printed}
    return believed(ended.report, entry) if ended.report else {"problem": _end(ended, entry), "printed": ended.printed}


def _sources(text: Text | None) -> dict[str, list[str]]:
    """Return the lines of the cells of a notebook, or of a learner's file, by the names that the compiler has given them."""
    if text:
        return {text.path: text.text.splitlines(keepends=True)}
    cells = {name: entry for name, entry in linecache.cache.items() if len(entry) == 4 and entry[1] is None}
    return {name: list(entry[2]) for name, entry in cells.items()}


def _run(letter: IO[bytes]) -> Ended | None:
    """Return what the supervisor reports, None if it reports nothing. No process that the answer has started is left."""
    mark = secrets.token_hex(16)
    command = [sys.executable, "-P", "-m", "kcontrol.lab.supervisor"]
    env = os.environ | {MARK: mark, "OPENBLAS_NUM_THREADS": "1"}  # threads of numpy take address space, which is bounded
    pipe, silent = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=letter, stdout=pipe, stderr=silent, start_new_session=True, env=env) as supervisor:
        try:
            said, _ = supervisor.communicate(timeout=SECONDS_BY_THE_CLOCK + SPARE_SECONDS)
            ended = Ended(**json.loads(said))
            return ended if all(isinstance(text, str) for text in (ended.report, ended.printed)) else None
        except (subprocess.TimeoutExpired, ValueError, TypeError):
            return None
        finally:
            _end_all(supervisor, mark)


def _end_all(supervisor: subprocess.Popen[bytes], mark: str) -> None:
    """Kill what the supervisor could not: its descendants, and every process that bears the mark of this check."""
    left = [psutil.Process(supervisor.pid)] if supervisor.poll() is None else []
    with contextlib.suppress(psutil.Error):
        left += [child for process in left for child in process.children(recursive=True)]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    until = time.monotonic() + SPARE_SECONDS
    while (marked := sweeper.kill_marked(mark, kill=True, variable=MARK)) and time.monotonic() < until:
        sweeper.await_end(marked, until - time.monotonic())


def believed(report: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return a report that has all that a report needs and does not contradict itself; for any other one a problem."""
    try:
        found = json.loads(report)
        if found.get("open") is True:
            return {"open": True}
        if problem := found.get("problem"):
            return {"problem": str(problem), "printed": str(found["printed"])}
        cases = [case | {"is_right": same(case["yours"], case["right"])} for case in found["cases"]]
        whole = all(isinstance(case["text"], str) and isinstance(case["printed"], str) for case in cases)
        for case in cases:
            pictures(case["drawn"])
        agrees = found["passed"] is all(case["is_right"] for case in cases)
        if cases and whole and agrees and found.get("known") in (None, *range(len(entry["wrong"]))):
            return dict(found) | {"cases": cases, "remark": str(found["remark"])}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        pass  # the report is not ours
    return {"problem": SPOILT}


def _end(ended: Ended, entry: dict[str, Any]) -> str:
    """Return what it means that a process has ended without a report."""
    status, seconds = ended.status, entry.get("seconds", SECONDS)
    if status in (None, -signal.SIGXCPU) or (status == -signal.SIGKILL and ended.cpu_s > seconds):
        return ENDLESS
    if status == -signal.SIGKILL:
        return KILLED
    if status < 0:
        name = next((known.name for known in signal.Signals if known == -status), f"signal {-status}")
        return f"The process of your answer died ({name}): look for a recursion that never ends, or for too much memory."
    return VANISHED


def first_line(error: BaseException) -> str:
    """Return the beginning of what an error says, or its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
