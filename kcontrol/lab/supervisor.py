"""Starts the process of `judge`, bounds its time, kills every process that the answer has started, and prints how it ended.

This process stands between a notebook's kernel and the answer. On Linux a process that loses its parent becomes a child of this
process (PR_SET_CHILD_SUBREAPER), so a new session or a double fork hides nothing from it. macOS has no such call: there `judging`
finds what is left by the mark in its environment. Where an answer has killed this process, its processes are found by the
mark too, except those that it has started without the mark: these alone would stay.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

import psutil

SECONDS_BY_THE_CLOCK = 30
SECONDS_TO_END = 5.0  # for the processes of an answer, once it is over
MOST_PROCESSES = 32  # an answer with more descendants at a time is over
SECONDS_BETWEEN_COUNTS = 0.1
REPORT_BYTES = 4_000_000
PRINTED_BYTES = 4_000  # the last ones that an answer has printed are kept
PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make every descendant that loses its parent a child of this process, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[psutil.Process]:
    """Return every process below this one, the newest first."""
    return sorted(psutil.Process().children(recursive=True), key=lambda process: process.pid, reverse=True)


def end_descendants(seconds: float = SECONDS_TO_END) -> None:
    """Stop every descendant of this process, then kill all of them; return when none is left, at the latest after `seconds`.

    A stopped process starts no other one: where each process starts the next one, that row ends at the process that is stopped.
    """
    until, stopped = time.monotonic() + seconds, set[psutil.Process]()
    while reap() is not None and time.monotonic() < until:
        found = descendants()
        if new := [process for process in found if process not in stopped]:
            _send(signal.SIGSTOP, new)
            stopped.update(new)
        else:
            _send(signal.SIGKILL, found)


def reap() -> dict[int, int] | None:
    """Return the status of every child that has ended since the last call, by process id; None if no child is left."""
    ended = {}
    try:
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            ended[child[0]] = os.waitstatus_to_exitcode(child[1])
    except ChildProcessError:
        return ended or None
    return ended


def _send(number: int, processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


class Outlets:
    """Two pipes from the judge's process: its report, kept whole up to a bound, and what the answer prints, whose end is kept."""

    def __init__(self) -> None:
        self.report, self.printed = b"", b""
        self._readers: dict[int, str] = {}
        self.writers = [self._pipe("report"), self._pipe("printed")]

    def _pipe(self, name: str) -> int:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self._readers[reader] = name
        return writer

    @property
    def readers(self) -> list[int]:
        """The ends from which something may still come."""
        return list(self._readers)

    def take(self, reader: int) -> bool:
        """Take what has come; False if nothing has, or nothing more can come."""
        try:
            data = os.read(reader, 65_536)
        except BlockingIOError:
            return False
        if not data:
            del self._readers[reader]
        elif self._readers[reader] == "report":
            self.report += data
        else:
            self.printed = (self.printed + data)[-PRINTED_BYTES:]
        return bool(data)

    @property
    def is_too_long(self) -> bool:
        """Whether the report is longer than any honest one."""
        return len(self.report) > REPORT_BYTES


def supervise(command: list[str], seconds: float) -> dict[str, Any]:
    """Run a command, to which the descriptor of its report is added, and kill every process that it has started.

    Return its `status`, None if it was ended here; whether it was ended because it was `crowded`; `cpu_s`, what all of them have
    computed; the last whole line of its `report`; and the end of what it has `printed`.
    """
    outlets = Outlets()
    report, printed = outlets.writers
    silent = subprocess.DEVNULL
    with subprocess.Popen([*command, str(report)], stdout=printed, stderr=silent, pass_fds=(report,)) as child:
        for writer in outlets.writers:
            os.close(writer)
        status, crowded = _until_it_ends(child, outlets, time.monotonic() + seconds)
        end_descendants()
    for reader in outlets.readers:
        while not outlets.is_too_long and outlets.take(reader):
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = b"too long" if outlets.is_too_long else outlets.report.rpartition(b"\n")[0].rpartition(b"\n")[2]
    words = {"report": whole.decode(errors="replace"), "printed": outlets.printed.decode(errors="replace")}
    return words | {"status": status, "crowded": crowded, "cpu_s": used.ru_utime + used.ru_stime}


def _until_it_ends(child: subprocess.Popen[bytes], outlets: Outlets, until: float) -> tuple[int | None, bool]:
    """The status of the child, None if its time or its report is too long, or it is crowded; and whether it is that."""
    with selectors.DefaultSelector() as selector:
        for reader in outlets.readers:
            selector.register(reader, selectors.EVENT_READ)
        while time.monotonic() < until and not outlets.is_too_long:
            child.returncode = (reap() or {}).get(child.pid)
            if child.returncode is not None:
                break
            if len(descendants()) > MOST_PROCESSES:
                return None, True
            for key, _ in selector.select(SECONDS_BETWEEN_COUNTS):
                if not outlets.take(key.fd) and key.fd not in outlets.readers:
                    selector.unregister(key.fd)
    return child.returncode, False


if __name__ == "__main__":
    adopt_orphans()
    print(json.dumps(supervise([sys.executable, "-P", "-m", "kcontrol.lab.judge"], SECONDS_BY_THE_CLOCK)))
