"""Work that is done in forks of this process, each in a group of its own that ends with it."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

MEMORY_BYTES = 4 * 1024**3
NICE = 19
BROKEN = "broken: "  # what a fork says first whose work itself has failed
T = TypeVar("T")
Say = Callable[[str], None]
Work = Callable[[Say], None]


class Fork(NamedTuple):
    """A process that is at work: where its words come from, and when its time is over."""

    pid: int
    words: int
    deadline: float


def start(work: Work, cpu_seconds: float, wall_seconds: float) -> Fork:
    """Fork. The child works without output, with limits, and says what it has found; it never comes back from here."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Fork(pid, reading, time.monotonic() + wall_seconds)
    try:
        os.setsid()
        os.close(reading)
        os.nice(max(0, NICE - os.nice(0)))
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds) + 1, int(cpu_seconds) + 2))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        work(lambda words: _write(writing, words))
    except BaseException:
        _write(writing, BROKEN + traceback.format_exc()[-3000:])
    finally:
        os._exit(0)


def _write(descriptor: int, words: str) -> None:
    with contextlib.suppress(OSError):
        os.write(descriptor, words.encode("utf-8", "replace")[: select.PIPE_BUF])


def finish(fork: Fork) -> str:
    """Kill what is left of a fork and its group, and return what it has said."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(fork.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(fork.pid, signal.SIGKILL)
    os.waitpid(fork.pid, 0)
    with os.fdopen(fork.words, "rb") as words:
        os.set_blocking(words.fileno(), False)
        return (words.read() or b"").decode("utf-8", "replace")


def each(tasks: Iterable[tuple[T, Work]], jobs: int, cpu_seconds: float, wall_seconds: float) -> Iterator[tuple[T, str]]:
    """Yield each task with what its fork said, "" where it was ended without a word; at most `jobs` run at a time."""
    waiting, running = iter(tasks), dict[int, tuple[T, Fork]]()
    try:
        while True:
            while len(running) < jobs and (task := next(waiting, None)):
                fork = start(task[1], cpu_seconds, wall_seconds)
                running[fork.words] = task[0], fork
            if not running:
                return
            until = max(0.0, min(fork.deadline for _, fork in running.values()) - time.monotonic())
            ready, _, _ = select.select(list(running), [], [], until)
            over = [words for words, (_, fork) in running.items() if fork.deadline <= time.monotonic()]
            for words in {*ready, *over}:
                what, fork = running.pop(words)
                yield what, finish(fork)
    finally:
        for _, fork in running.values():
            finish(fork)
        sys.stdout.flush()
