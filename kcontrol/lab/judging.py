"""A learner's function is tried in a process of its own, which may do what it likes: nothing of it reaches this one.

The function travels by cloudpickle. The process is a fresh Python with bounds on memory, computing time and time by the clock;
what it finds out comes back in a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle

SECONDS = 5  # of computing
SECONDS_BY_THE_CLOCK = 20
MEMORY_MB = 1024

ENDLESS = "Your function does not come to an end, and was stopped: look for a loop that never ends."
UNPORTABLE = "Your function cannot be taken into another process ({}): use its arguments and nothing from outside."
VANISHED = "Your function ended its process instead of returning an answer: return a broker's id or None."


def judge(function: Callable[..., Any], exercise: dict[str, Any]) -> dict[str, Any]:
    """Either `problem`, a sentence, or `asked`: each question in turn, with the function's answer and Kafka's."""
    try:
        packed = cloudpickle.dumps(function)
    except Exception as error:  # a function can refer to anything, and anything can refuse to be pickled
        return {"problem": UNPORTABLE.format(first_line(error))}
    with tempfile.TemporaryDirectory(prefix="kcontrol-check-") as name:
        folder = Path(name)
        (folder / "function").write_bytes(packed)
        (folder / "exercise.json").write_text(json.dumps(exercise))
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
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True) as child:
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
        return f"The process of your function died ({name}): look for a recursion that never ends, or for too much memory."
    return VANISHED


def first_line(error: BaseException) -> str:
    """The beginning of what an error says, or its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
