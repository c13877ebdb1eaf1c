"""Child processes that die with their parent however it dies, SIGKILL included.

A small process (this file, run on its own) holds the reading end of a pipe whose writing end only the parent has. It starts the
child in a session of its own, and ends the child's whole group when the pipe is at its end. The kernel closes the pipe for a dead
parent, so nobody has to live long enough to clean up. This works on Linux and macOS alike.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

PARENT_POLL_S = 1.0
STOP_TIMEOUT_S = 20.0
PR_SET_PDEATHSIG = 1


class Guarded:
    """A running child process that is ended, with everything in its group, when this process ends or `stop` is called.

    Args:
        command: the program and its arguments.
        log: the file that takes what the child prints.
        env: its environment; this process's own where none is given.
        grace_s: seconds between SIGTERM and SIGKILL; 0 kills at once.
        remove: a folder that is deleted once the child has ended, in whatever way.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        grace_s: float = 0.0,
        remove: Path | None = None,
    ) -> None:
        order = {
            "command": [str(part) for part in command],
            "parent": os.getpid(),
            "log": str(log),
            "grace_s": grace_s,
            "remove": str(remove) if remove else None,
        }
        self._grace_s = grace_s
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", __file__, json.dumps(order)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=env, start_new_session=True,
        )  # fmt: skip
        assert self._watcher.stdout is not None
        with self._watcher.stdout as answers:
            answer = json.loads(answers.readline() or '{"error": "the watcher did not start"}')
        if "error" in answer:
            self.stop()
            raise OSError(answer["error"])
        self.pid: int = answer["pid"]

    def poll(self) -> int | None:
        """Returns the child's exit status, or None while it runs."""
        return self._watcher.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Waits for the child's own end and returns its exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout_s` seconds.
        """
        return self._watcher.wait(timeout_s)

    def stop(self) -> None:
        """Ends the child and its group, and returns once they are gone; a second call does nothing."""
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        try:
            self._watcher.wait(self._grace_s + STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._watcher.kill()
            self._watcher.wait()

    def __enter__(self) -> "Guarded":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def end_group(child: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """Ends the group that the child leads: SIGTERM, `grace_s` seconds, SIGKILL."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if grace_s > 0:
            os.killpg(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(grace_s)
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def await_end(child: "subprocess.Popen[bytes]", wake: int, parent: int) -> None:
    """Returns when the child has ended or the parent is gone.

    The pipe tells of the parent's death at once. A fork of the parent may hold the pipe open, so the parent's id counts too; it
    comes from the parent itself, which may be dead before this process has looked.
    """
    while child.poll() is None and os.getppid() == parent:
        readable, _, _ = select.select([0, wake], [], [], PARENT_POLL_S)
        if 0 in readable and not os.read(0, 1):
            return
        if wake in readable:
            os.read(wake, 512)


def die_with_watcher() -> None:
    """Asks Linux to kill this process when the watcher dies, which nobody but a stray SIGKILL should bring about.

    It runs in the child before its program starts. Linux minds which thread was the parent; the watcher has only one.
    """
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def watch(order: dict[str, object]) -> int:
    """Starts the child that the order names, says its pid on stdout, ends it with the parent, returns its exit status."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    command = order["command"]
    assert isinstance(command, list)
    try:
        with Path(str(order["log"])).open("ab") as log:
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=die_with_watcher if sys.platform == "linux" else None,
            )  # fmt: skip
    except OSError as problem:
        print(json.dumps({"error": str(problem)}), flush=True)
        return 127
    try:
        print(json.dumps({"pid": child.pid}), flush=True)
        await_end(child, wake, int(str(order["parent"])))
    finally:
        end_group(child, float(str(order["grace_s"])))
        if order["remove"]:
            remove_tree(Path(str(order["remove"])))
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def remove_tree(folder: Path) -> None:
    """Deletes a folder; a member of the group that is still dying may write once more, so it tries for a second."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(watch(json.loads(sys.argv[1])))
