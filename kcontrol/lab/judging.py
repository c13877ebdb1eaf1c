"""A learner's answer is tried in a process of its own, which may do what it likes: nothing of it reaches this one.

The answer travels by cloudpickle, or as the text of a file. The process is a fresh Python with bounds on memory, files, computing
time and time by the clock; what it finds out comes back in a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle

SECONDS = 5  # of computing
SECONDS_BY_THE_CLOCK = 30
FILE_MB = 16

ENDLESS = "Your answer does not come to an end, and was stopped: look for a loop that never ends."
UNPORTABLE = "Your answer cannot be taken into another process ({}): use nothing in it that comes from outside."
VANISHED = "Your function ended its process instead of returning an answer."


class Text(NamedTuple):
    """An answer as the text of a learner's file, which is run in the other process only."""

    text: str
    path: str


def judge(answer: object, entry: dict[str, Any]) -> dict[str, Any]:
    """The last of `judge.reports`, or `problem`, a sentence about an answer that cannot be judged."""
    with tempfile.TemporaryDirectory(prefix="kcontrol-check-") as name:
        folder = Path(name)
        if isinstance(answer, Text):
            (folder / "answer.json").write_text(json.dumps(answer))
        else:
            try:
                (folder / "answer").write_bytes(cloudpickle.dumps(answer))
            except Exception as error:  # an answer can refer to anything, and anything can refuse to be pickled
                return {"problem": UNPORTABLE.format(first_line(error))}
        (folder / "exercise.json").write_text(json.dumps(entry))
        status = _run(folder)
        try:
            report: dict[str, Any] = json.loads((folder / "report.json").read_text())
        except (OSError, ValueError):
            report = {"problem": _end(status)}
        return report


def _run(folder: Path) -> int | None:
    """The exit status of the child; None where it had to be ended."""
    command = [sys.executable, "-P", "-m", "kcontrol.lab.judge", str(folder)]
    quiet = subprocess.DEVNULL
    single = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # threads of numpy take address space, which is bounded
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, env=single) as child:
        try:
            return child.wait(timeout=SECONDS_BY_THE_CLOCK)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def _end(status: int | None) -> str:
    """What it means that a child has left no report."""
    if status is None or status in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        return ENDLESS
    if status < 0:
        name = signal.Signals(-status).name
        return f"The process of your answer died ({name}): look for a recursion that never ends, or for too much memory."
    return VANISHED


def first_line(error: BaseException) -> str:
    """The beginning of what an error says, or its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
