"""Plays runs in child processes: a learner's endless function fails one run, not the sweep.

A run fails if its child ends or exceeds a time limit. A new child plays the other runs.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import cloudpickle

from kcontrol.core.errors import UserError
from kcontrol.lab.sweeps.child import LENGTH_BYTES
from kcontrol.lab.sweeps.timed_run import Job, Outcome, Task

READY_SECONDS = 120.0
COMMAND = (sys.executable, "-m", "kcontrol.lab.sweeps.child")
LONGEST_WAIT_S = 3_600.0
"""The longest time of one `select`, which refuses infinite times."""
BLOCK = 1 << 16


def shards(tasks: Sequence[Task], number: int) -> list[list[Task]]:
    """Divide tasks into at most `number` lists of about equal length, such as [[a, c], [b]] for [a, b, c] and 2."""
    return [list(tasks[first::number]) for first in range(min(number, len(tasks)))]


def outcomes(job: Job, parts: Sequence[Sequence[Task]], seconds: float) -> Iterator[Outcome]:
    """Yield the outcome of every task (one run of a sweep) as its run ends, in any order.

    Each list of `parts` has a child process of its own; a run fails after `seconds`. Raises UserError if the job cannot be sent.
    """
    try:
        pickled = cloudpickle.dumps(job)
    except Exception as problem:  # the errors of pickling have many types
        raise UserError(
            f"The functions of this sweep cannot be sent to another process ({problem}): let them use no open files or objects "
            "of a lab."
        ) from None
    with contextlib.ExitStack() as ends:
        children = [ends.enter_context(contextlib.closing(Child(pickled, tasks, seconds))) for tasks in parts if tasks]
        while children:
            wait_s = min(LONGEST_WAIT_S, max(0.0, min(child.deadline_s for child in children) - time.monotonic()))
            # An alarm inside the child would not do: a function may catch the error of an alarm, or loop inside a C function,
            # which no signal interrupts. Callers use only the outcome of a run, never the order in which runs end, so a sweep
            # has equal tables on any number of processes.
            readable, _, _ = select.select(children, [], [], wait_s)
            for child in children:
                yield from child.read() if child in readable else child.late()
            children = [child for child in children if child.tasks]


class Child:
    """A child process that performs runs of a sweep; `tasks` are its runs that have no outcome yet."""

    # `job` is the pickled Job that all runs share; a run fails after `seconds`.
    def __init__(self, job: bytes, tasks: Sequence[Task], seconds: float) -> None:
        self._job, self.tasks, self._seconds = job, deque(tasks), seconds
        self._start()

    def _start(self) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
        self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, start_new_session=True,
        )  # fmt: skip
        self._text, self._is_ready, self.deadline_s = b"", False, time.monotonic() + READY_SECONDS
        content = cloudpickle.dumps((_Pickled(self._job), list(self.tasks)))
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the child has ended, which the next `read` finds
            self._process.stdin.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)
            self._process.stdin.flush()

    def fileno(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def read(self) -> Iterator[Outcome]:
        """Yield the outcomes of runs that the child process has written.

        If the process has ended with runs left, also yield the present run as failed. Raises UserError if no run had begun.
        """
        block = os.read(self.fileno(), BLOCK)
        *lines, self._text = (self._text + block).split(b"\n")
        for line in lines:
            self.deadline_s = time.monotonic() + self._seconds
            if self._is_ready:
                yield Outcome(self.tasks.popleft(), *json.loads(line))
            self._is_ready = True
        if not block and self.tasks:
            self.close()
            yield from self._failed(f"its process ended with {_status(self._process.returncode)}")

    def late(self) -> Iterator[Outcome]:
        """A run past its limit has failed. Raises UserError if none has begun after 120 seconds."""
        # A new child plays the runs that are left.
        if time.monotonic() >= self.deadline_s:
            yield from self._failed(f"it did not end within {self._seconds:g} s")

    def _failed(self, reason: str) -> Iterator[Outcome]:
        """Yield the present run as failed, with `reason` in words; start a new child for the runs that are left.

        Raises UserError if the child has not begun its first run.
        """
        self.close()
        if not self._is_ready:
            raise UserError(
                "A process for the runs of this sweep did not start: define the functions of the sweep in the notebook, or in a "
                "module that Python finds."
            )
        yield Outcome(self.tasks.popleft(), failed=reason)
        if self.tasks:
            self._start()

    def close(self) -> None:
        """End the child and the processes that it has started; a second call does nothing."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()


class _Pickled:
    """A value that is pickled already; if this object is pickled with others, unpickling gives the value in its place."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return cloudpickle.loads, (self._content,)


def _status(status: int) -> str:
    """Return an exit status in words; a negative status is the number of a signal."""
    return signal.Signals(-status).name if status < 0 else f"the exit status {status}"
