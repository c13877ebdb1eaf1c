"""The process that a kernel keeps for its checks: it plays the scenarios of exercises, and forks a process for each answer.

It ends that process after too long a time by the clock, kills all processes of the check, and sends a report. It runs one check
at a time, has one thread, and never runs an answer itself. It ends with the kernel's end of the pipe, its standard input;
SIGTERM ends it too, with all its descendants.
"""

import contextlib
import ctypes
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any

import psutil

SECONDS_TO_BEGIN = 300  # for the process of a check to start, and to play the exercise's scenarios
SECONDS_BY_THE_CLOCK = 30  # for an answer, in addition to its seconds of CPU time
SECONDS_TO_END = 5.0  # to end the processes of an answer after its check
MOST_PROCESSES = 32  # an answer with more descendants at a time is ended
SECONDS_BETWEEN_COUNTS = 0.1
SECONDS_OF_QUIET = 0.2  # without a check, before the server does what makes later checks faster: cells often run in a row
REPORT_BYTES = 4_000_000
PRINTED_BYTES = 4_000  # the last bytes of the answer's output are kept
SECONDS_OF_LOOP = 0.025  # of CPU time, on the machine for which the limits in exercises.toml were chosen
SLOWEST = 10  # a machine that is slower or busier by more than this factor gives no more time
# On Linux a process that loses its parent becomes a child of the server, so a new session or a double fork does not hide a
# process. macOS has no such call: there `sandbox.py` finds the remaining processes by a mark, a random text in their
# environment. If an answer kills the server, its processes are found by the mark too; only processes that were started without
# the mark remain.
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Make every descendant that loses its parent a child of this process; do nothing on other systems than Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[psutil.Process]:
    """Return every descendant of this process, the newest first."""
    return sorted(psutil.Process().children(recursive=True), key=lambda process: process.pid, reverse=True)


def reap() -> tuple[dict[int, int], float] | None:
    """Return the exit status of every child that has ended since the last call, by process id, and their CPU time in seconds.

    Return None if there is no child.
    """
    ended, cpu_s = dict[int, int](), 0.0
    try:
        while (child := os.wait4(-1, os.WNOHANG))[0]:
            ended[child[0]] = os.waitstatus_to_exitcode(child[1])
            cpu_s += child[2].ru_utime + child[2].ru_stime
    except ChildProcessError:
        return (ended, cpu_s) if ended else None
    return ended, cpu_s


def end_descendants(seconds: float = SECONDS_TO_END) -> float:
    """Send SIGSTOP to every descendant of this process, then SIGKILL; return when no child is left, or after `seconds`.

    The result is the CPU time of the ended children, in seconds.
    """
    until, stopped, cpu_s = time.monotonic() + seconds, set[psutil.Process](), 0.0
    while (ended := reap()) is not None and time.monotonic() < until:
        cpu_s += ended[1]
        found = descendants()
        # A stopped process cannot start another process, so a chain of processes that start each other ends too.
        if new := [process for process in found if process not in stopped]:
            _send(signal.SIGSTOP, new)
            stopped.update(new)
        else:
            _send(signal.SIGKILL, found)
    return cpu_s


def end_with_descendants(*_: object) -> None:
    """Kill every descendant of this process, and end this process: the handler of SIGTERM, which ignores its arguments."""
    end_descendants()
    os._exit(0)


def _send(number: int, processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


class Check:
    """The check of one answer by the process `child`, which writes a report and the answer's output into two pipes.

    The report's first line has the time limits. The answer begins when the `kernel` has the message about it:
    so no kernel runs an answer again that has ended the server.
    """

    def __init__(self, kernel: Connection, child: int, report: int, printed: int) -> None:
        self._kernel, self._child = kernel, child
        self._reader = report
        self._readers = {report, printed}
        self._limits: dict[str, int] = {}
        self._report, self._printed, self._cpu_s = b"", b"", 0.0

    def result(self) -> dict[str, Any]:
        """Wait for the end of the process, kill all processes of the check; return the fields of `sandbox.ProcessEnd` by name."""
        status, crowded = self._until_it_ends()
        self._cpu_s += end_descendants()
        for reader in tuple(self._readers):
            while len(self._report) <= REPORT_BYTES and self._take(reader):
                pass
        too_long = len(self._report) > REPORT_BYTES
        whole = b"too long" if too_long else self._report.rpartition(b"\n")[0].rpartition(b"\n")[2]
        # The last complete line of the report, and the end of the output.
        words = {"report": whole.decode(errors="replace"), "printed": self._printed.decode(errors="replace")}
        until = self._limits.get("until")
        return words | {"status": status, "too_many_processes": crowded, "cpu_s": self._cpu_s, "until_cpu_s": until}

    def _until_it_ends(self) -> tuple[int | None, bool]:
        """Read the pipes until the process ends or exceeds a limit.

        Return (exit status, False); (None, True) after too many processes; (None, False) after too much output or time.
        """
        until = time.monotonic() + SECONDS_TO_BEGIN
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
            for watched in (*self._readers, self._kernel.fileno()):
                selector.register(watched, selectors.EVENT_READ)
            if sys.platform == "linux":  # a descriptor that can be read as soon as the process has ended
                stack.callback(os.close, end := os.pidfd_open(self._child))
                selector.register(end, selectors.EVENT_READ)
            while time.monotonic() < until and len(self._report) <= REPORT_BYTES:
                statuses, cpu_s = reap() or ({}, 0.0)
                self._cpu_s += cpu_s
                if self._child in statuses:
                    return statuses[self._child], False
                if len(descendants()) > MOST_PROCESSES:
                    return None, True
                has_begun = bool(self._limits)
                for key, _ in selector.select(SECONDS_BETWEEN_COUNTS):
                    if key.fd == self._kernel.fileno():
                        end_with_descendants()  # the kernel has ended: it sends nothing during a check
                    if key.fd in self._readers and not self._take(key.fd):
                        selector.unregister(key.fd)
                if self._limits and not has_begun:
                    until = time.monotonic() + SECONDS_BY_THE_CLOCK + self._limits["seconds"]
        return None, False

    def _take(self, reader: int) -> bool:
        """Read the data that wait in one of the two pipes; return whether there were data."""
        try:
            data = os.read(reader, 65_536)
        except ConnectionResetError:  # the process ended before it received the permission to begin
            return False
        if reader != self._reader:
            self._printed = (self._printed + data)[-PRINTED_BYTES:]
            return bool(data)
        self._report += data
        if not self._limits and b"\n" in self._report:  # the first line, which the process writes before it calls the answer
            limits, _, self._report = self._report.partition(b"\n")
            self._limits = json.loads(limits)
            self._kernel.send_bytes(limits)
            os.write(self._reader, b"\n")  # the process may begin
        return bool(data)


def check(kernel: Connection, request: dict[str, Any], packed: bytes, *, forks: bool) -> dict[str, Any]:
    """Start the process of an answer, with a fork or anew, and return the fields of `sandbox.ProcessEnd` by name."""
    forks = forks and psutil.Process().num_threads() == 1
    (report, to_report), (printed, to_printed) = (end.detach() for end in socket.socketpair()), os.pipe()
    try:
        child = (_fork if forks else _anew)(request, packed, to_report, to_printed)
        for descriptor in (to_report, to_printed):
            os.close(descriptor)
        return Check(kernel, child, report, printed).result()
    finally:
        for descriptor in (report, printed):
            os.close(descriptor)


def _fork(request: dict[str, Any], packed: bytes, report: int, printed: int) -> int:
    from kcontrol.lab.exercises import answer_process, examination

    examination.prepared(request["entry"])
    child = os.fork()
    if child == 0:
        answer_process.run(request, packed, report, printed)
    return child


def _anew(request: dict[str, Any], packed: bytes, report: int, printed: int) -> int:
    command = [sys.executable, "-P", "-m", "kcontrol.lab.exercises.answer_process", str(report), str(printed)]
    silent = subprocess.DEVNULL
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=silent, stderr=silent, pass_fds=(report, printed))
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin as letter:
        letter.write(json.dumps(request).encode() + b"\n" + packed)
    return child.pid


def times(slowness: float) -> float:
    """Return a factor for time limits: `slowness` (2 on a machine at half speed), at least 1 and at most 10 (SLOWEST)."""
    return min(max(1, slowness), SLOWEST)


def machine_slowness() -> float:
    """Return the factor of CPU time that this machine needs for a loop, in comparison with the machine of SECONDS_OF_LOOP."""
    begun = time.process_time()
    sum(number * number for number in range(200_000))
    return times((time.process_time() - begun) / SECONDS_OF_LOOP)


def machine_load() -> float:
    """Return the factor of time by the clock that a process needs now, since several wait for each CPU."""
    return times(os.getloadavg()[0] / (os.cpu_count() or 1))


def imported() -> Iterator[None]:
    """Import what most checks need, so that no fork has to; yield after each import."""
    for module in ("kcontrol.lab.lab", "pandas"):
        importlib.import_module(module)
        yield


def judged_wrong(entry: dict[str, Any]) -> Iterator[None]:
    """Check the wrong answers that an exercise lists, so that no fork has to; yield after each of them."""
    from kcontrol.lab.exercises import examination

    for number, listed in enumerate(entry["wrong"]):
        if "when" not in listed:
            examination.report_of_wrong(entry, number)
            yield


def serve(*, forks: bool) -> None:
    """Run the checks that the kernel asks for, until its end of the pipe is closed; in between make the next ones faster."""
    become_subreaper()
    signal.signal(signal.SIGTERM, end_with_descendants)
    kernel, slowness = Connection(0), machine_slowness()
    first = imported() if forks else iter(())
    spare = first
    while True:
        while not kernel.poll(SECONDS_OF_QUIET) and next(spare, "nothing left") is None:
            pass
        try:
            request, packed = json.loads(kernel.recv_bytes()), kernel.recv_bytes()
        except (EOFError, OSError):
            return
        request |= {"slowness": slowness, "load": machine_load()}
        kernel.send_bytes(json.dumps(check(kernel, request, packed, forks=forks)).encode())
        spare = chain(first, judged_wrong(request["entry"]) if forks else ())


if __name__ == "__main__":
    serve(forks="fork" in sys.argv)
