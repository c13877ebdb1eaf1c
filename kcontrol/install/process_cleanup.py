"""Finds and kills the processes that kcontrol's JupyterLab has started, however JupyterLab ended, SIGKILL included.

Kernels and terminals run in sessions of their own, so they share no process group. They share a random mark in their
environment, which every child process inherits. A small process (this file, run on its own) waits at the end of a pipe that
only the server holds open, so the pipe ends with the server. Then the small process waits two seconds for the end of the marked
processes, and kills those that still run.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

MARK = "KCONTROL_LAB_RUN"
PATIENCE_S = 2.0
LIMIT_S = 8.0


def start(mark: str, remove: Path) -> "subprocess.Popen[bytes]":
    """The guard ends all processes with this mark in KCONTROL_LAB_RUN after this process has ended."""
    # The caller sets the variable for itself; its child processes inherit the value.
    env = {key: value for key, value in os.environ.items() if key != MARK}
    command = [sys.executable, "-I", "-B", __file__, mark, str(remove)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, start_new_session=True
    )


def kill_marked(mark: str, *, kill: bool, variable: str = MARK, unread: set[int] | None = None) -> "list[psutil.Process]":
    """Return the running processes whose environment variable `variable` has the value `mark`; kill them if `kill`.

    If the set `unread` is given, the ids of processes whose environment cannot be read are added to it.
    """
    import psutil  # Imported late, so that this process stays small while it waits.

    # From the newest to the oldest: in a chain in which each process starts the next one and ends, only the newest still runs.
    found, read = [], set[int]()
    pids = sorted(psutil.pids(), reverse=True)
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            environment = process.environ()
            if environment.get(variable) != mark:
                read.update([pid] if environment else [])
            elif process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
                if kill:
                    process.kill()
    # Processes whose environment could not be read: they have ended, are executing a new program, or belong to another user.
    if unread is not None:
        unread.update(set(pids) - read)
    return found


def await_end(processes: "list[psutil.Process]", seconds: float) -> None:
    """Wait until all these processes have ended, at most `seconds`; they need not be children of this process."""
    import psutil

    psutil.wait_procs(processes, timeout=max(0.0, seconds))


def sweep(mark: str, remove: Path) -> None:
    """Wait until JupyterLab's server and all processes with KCONTROL_LAB_RUN=`mark` have ended, then delete the folder `remove`.

    The server has ended when the standard input ends. Processes that still run two seconds later are killed.
    """
    # The server holds the other end of the pipe that is the standard input.
    while os.read(0, 512):
        pass
    began = time.monotonic()
    while (waited := time.monotonic() - began) < LIMIT_S and (running := kill_marked(mark, kill=waited > PATIENCE_S)):
        await_end(running, (LIMIT_S if waited > PATIENCE_S else PATIENCE_S) - waited)
    shutil.rmtree(remove, ignore_errors=True)


if __name__ == "__main__":
    sweep(sys.argv[1], Path(sys.argv[2]))
