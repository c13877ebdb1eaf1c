"""Starting processes that tests end, and waiting until processes are gone."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import psutil

GONE_WITHIN_S = 10.0
POLL_S = 0.05


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def still_running(pids: Iterable[int], within_s: float = GONE_WITHIN_S) -> list[int]:
    """Waits until the processes are gone and returns those that are not in time."""
    left, deadline = list(pids), time.monotonic() + within_s
    while (left := [pid for pid in left if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return left


def wait_until_absent(path: Path, within_s: float = GONE_WITHIN_S) -> bool:
    deadline = time.monotonic() + within_s
    while path.exists() and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return not path.exists()


@contextlib.contextmanager
def python(
    code: str, *arguments: str, env: Mapping[str, str] | None = None, stderr: int | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """Starts a Python that runs this code with pipes for stdin and stdout, and kills it at the end."""
    command = [sys.executable, "-c", code, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=env)
    with process:
        try:
            yield process
        finally:
            process.kill()


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
