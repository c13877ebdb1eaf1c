"""The supervisor process of a check of an exercise: it starts `sandbox_main`, which runs the learner's answer.

It limits the time of `sandbox_main`, kills all processes of the check, and prints a report. SIGTERM ends the supervisor with all
its descendants.
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

SECONDS_TO_BEGIN = 300  # for the process of a check to start, and to play the exercise's scenarios
SECONDS_BY_THE_CLOCK = 30  # for an answer, in addition to its seconds of CPU time
SECONDS_TO_END = 5.0  # to end the processes of an answer after its check
MOST_PROCESSES = 32  # an answer with more descendants at a time is ended
SECONDS_BETWEEN_COUNTS = 0.1
REPORT_BYTES = 4_000_000
PRINTED_BYTES = 4_000  # the last bytes of the answer's output are kept
# The supervisor is a process between the notebook's kernel and the answer. On Linux a process that loses its parent becomes a
# child of the supervisor, so a new session or a double fork does not hide a process. macOS has no such call: there `sandbox.py`
# finds the remaining processes by a mark, a random text in their environment. If an answer kills the supervisor, its processes
# are found by the mark too; only processes that were started without the mark remain.
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Make every descendant that loses its parent a child of this process; do nothing on other systems than Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[psutil.Process]:
    """Return every descendant of this process, the newest first."""
    return sorted(psutil.Process().children(recursive=True), key=lambda process: process.pid, reverse=True)


def end_descendants(seconds: float = SECONDS_TO_END) -> None:
    """Send SIGSTOP to every descendant of this process, then SIGKILL; return when no child is left, or after `seconds`."""
    until, stopped = time.monotonic() + seconds, set[psutil.Process]()
    while reap() is not None and time.monotonic() < until:
        found = descendants()
        # A stopped process cannot start another process, so a chain of processes that start each other ends too.
        if new := [process for process in found if process not in stopped]:
            _send(signal.SIGSTOP, new)
            stopped.update(new)
        else:
            _send(signal.SIGKILL, found)


def end_with_descendants(*_: object) -> None:
    """Kill every descendant of this process, and end this process: the handler of SIGTERM, which ignores its arguments."""
    end_descendants()
    os._exit(0)


def reap() -> dict[int, int] | None:
    """Return the exit status of every child that has ended since the last call, by process id; None if there is no child."""
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


class OutputPipes:
    """Two pipes from the process that checks an answer: for its report, and for the text that the answer prints.

    The report's first line becomes `limits`, the time limits; of the text the last 4,000 bytes are kept. The caller stops
    reading when `is_too_long`.
    """

    def __init__(self) -> None:
        self.limits, self.report, self.printed = b"", b"", b""
        self._readers: dict[int, str] = {}
        self.writers = [self._pipe("report"), self._pipe("printed")]

    def _pipe(self, name: str) -> int:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self._readers[reader] = name
        return writer

    @property
    def readers(self) -> list[int]:
        """The file descriptors, still open, from which this process reads the output of an answer's process."""
        return list(self._readers)

    def take(self, reader: int) -> bool:
        """Read the data that wait in one of the two pipes, and append them to `report` or `printed`.

        `reader` is the pipe's file descriptor. Return whether there were data. A pipe that has ended is removed.
        """
        try:
            data = os.read(reader, 65_536)
        except BlockingIOError:
            return False
        if not data:
            del self._readers[reader]
        elif self._readers[reader] == "report":
            self.report += data
            if not self.limits and b"\n" in self.report:  # the first line, which the process writes before it calls the answer
                self.limits, _, self.report = self.report.partition(b"\n")
                print(self.limits.decode(), flush=True)
        else:
            self.printed = (self.printed + data)[-PRINTED_BYTES:]
        return bool(data)

    @property
    def is_too_long(self) -> bool:
        """Whether the report that the command has written so far is longer than 4,000,000 bytes (REPORT_BYTES)."""
        return len(self.report) > REPORT_BYTES


def supervise(command: list[str]) -> dict[str, Any]:
    """Run `command` for a limited time, then kill all its processes; return the fields of `sandbox.ProcessEnd` by name.

    An argument is added: the file descriptor to which the command writes its reports for this function.
    """
    outlets = OutputPipes()
    report, printed = outlets.writers
    silent = subprocess.DEVNULL
    with subprocess.Popen([*command, str(report)], stdout=printed, stderr=silent, pass_fds=(report,)) as child:
        for writer in outlets.writers:
            os.close(writer)
        status, crowded = _until_it_ends(child, outlets)
        end_descendants()
    for reader in outlets.readers:
        while not outlets.is_too_long and outlets.take(reader):
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = b"too long" if outlets.is_too_long else outlets.report.rpartition(b"\n")[0].rpartition(b"\n")[2]
    # The last complete line of the report, and the end of the output.
    words = {"report": whole.decode(errors="replace"), "printed": outlets.printed.decode(errors="replace")}
    # `status` is None if the supervisor ended the command. `cpu_s` is the CPU time of all processes, `until_cpu_s` its limit for
    # the command, None if the command has ended before it called the answer.
    until_cpu_s = json.loads(outlets.limits)["until"] if outlets.limits else None
    used_s = used.ru_utime + used.ru_stime
    return words | {"status": status, "too_many_processes": crowded, "cpu_s": used_s, "until_cpu_s": until_cpu_s}


def _until_it_ends(child: subprocess.Popen[bytes], outlets: OutputPipes) -> tuple[int | None, bool]:
    """Read the child's pipes, `outlets`, until the child ends or exceeds a limit.

    Return (exit status, False); (None, True) after too many processes; (None, False) after too much output or time.
    """
    until, has_begun = time.monotonic() + SECONDS_TO_BEGIN, False
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
            if outlets.limits and not has_begun:
                until, has_begun = time.monotonic() + SECONDS_BY_THE_CLOCK + json.loads(outlets.limits)["seconds"], True
    return child.returncode, False


if __name__ == "__main__":
    become_subreaper()
    signal.signal(signal.SIGTERM, end_with_descendants)
    print(json.dumps(supervise([sys.executable, "-P", "-m", "kcontrol.lab.exercises.sandbox_main"])))
