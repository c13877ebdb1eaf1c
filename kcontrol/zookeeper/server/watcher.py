"""Child processes that end with their parent, however the parent ends, SIGKILL included.

A small process (this file, run on its own) holds the reading end of a pipe; only the parent has the writing end. It starts the
child in a new session, and ends the child's whole process group when the pipe is closed. The kernel closes the pipe of a dead
parent, so the clean-up does not depend on the parent. This works on Linux and macOS.
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


class GuardedProcess:
    """A running child process. It is ended, with its process group, when this process ends or `stop` is called.

    Args:
        command: the program and its arguments.
        log: the file for the child's output.
        env: its environment; by default this process's own.
        grace_s: seconds between SIGTERM and SIGKILL; 0 sends SIGKILL at once.
        remove: a folder that is deleted once the child has ended.

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
            "command": [str(part) for part in command], "parent": os.getpid(), "log": str(log), "grace_s": grace_s,
            "remove": str(remove) if remove else None,
        }  # fmt: skip
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
        """Return the child's exit status, 128 + n if signal n has ended the child, or None while it runs."""
        return self._watcher.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """128 + n if signal n has ended the child. Raises subprocess.TimeoutExpired."""
        return self._watcher.wait(timeout_s)

    def stop(self) -> None:
        """End the child and its process group and wait for their end; a second call does nothing."""
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        try:
            self._watcher.wait(self._grace_s + STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._watcher.kill()
            self._watcher.wait()

    def __enter__(self) -> "GuardedProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def end_group(child: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """End the process group of the child: send SIGTERM, then SIGKILL, and wait for the end of the child.

    SIGKILL ends all processes of the group that still run when the child has ended, or after `grace_s` seconds; with 0 no SIGTERM
    is sent.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if grace_s > 0:
            os.killpg(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(grace_s)
        # Other processes of the group may still run.
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def await_end(child: "subprocess.Popen[bytes]", wakeup_fd: int, parent: int) -> None:
    """`wakeup_fd` is a pipe that becomes readable when the child ends."""
    # Standard input is a pipe from the parent, which ends with the parent. A fork of the parent may keep the pipe open, so the
    # id of the present parent is compared too.
    while child.poll() is None and os.getppid() == parent:
        readable, _, _ = select.select([0, wakeup_fd], [], [], PARENT_POLL_S)
        if 0 in readable and not os.read(0, 1):
            return
        if wakeup_fd in readable:
            os.read(wakeup_fd, 512)


def die_with_watcher() -> None:
    """Let Linux kill this child process when its parent process, the watcher, ends."""
    # This runs in the child before the child's program starts. Linux sends the signal when the thread that started the child
    # ends; the watcher has only one thread.
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def watch(order: dict[str, object]) -> int:
    """Run `order["command"]`, print {"pid": its pid} as JSON, end the command if the parent ends; return the exit status.

    Other keys: `parent` (the parent's pid), `log` (the output file), `grace_s` (seconds from SIGTERM to SIGKILL), `remove`
    (None, or a folder that is deleted last).
    """
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
        # The command cannot start: the status is 127, as in a shell.
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
    """With retries for one second: a dying member of the process group may still write. No error after that."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(watch(json.loads(sys.argv[1])))
