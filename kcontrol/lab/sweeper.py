"""Ends whatever a JupyterLab of ours leaves behind, however it ended, SIGKILL included.

Kernels and terminals run in sessions of their own, so no process group holds them together. What does is a random mark in
their environment, which everything they start inherits. A small process (this file, run on its own) waits at the end of a pipe
that only the server holds open, lets what can end by itself do so, and kills the rest.
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
    """Starts the sweeper of the processes that bear this mark; `remove` is a folder that goes with them."""
    env = {key: value for key, value in os.environ.items() if key != MARK}
    command = [sys.executable, "-I", "-B", __file__, mark, str(remove)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, start_new_session=True
    )


def kill_marked(mark: str, *, kill: bool, variable: str = MARK) -> "list[psutil.Process]":
    """Return the processes that bear the mark in this variable of their environment, killed if `kill` is set.

    The newest process comes first: where each process starts the next one and ends, only the newest one is still there.
    """
    import psutil  # Not before it is needed: until then this process is to be small.

    found = []
    for pid in sorted(psutil.pids(), reverse=True):
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if process.environ().get(variable) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
                if kill:
                    process.kill()
    return found


def await_end(processes: "list[psutil.Process]", seconds: float) -> None:
    """Wait until all of these processes have ended, at most this long; the system reports each end, children or not."""
    import psutil

    psutil.wait_procs(processes, timeout=max(0.0, seconds))


def sweep(mark: str, remove: Path) -> None:
    """Waits for the server's end, then ends what it left behind: it kills what has not ended by itself after PATIENCE_S."""
    while os.read(0, 512):
        pass
    began = time.monotonic()
    while (waited := time.monotonic() - began) < LIMIT_S and (left := kill_marked(mark, kill=waited > PATIENCE_S)):
        await_end(left, (LIMIT_S if waited > PATIENCE_S else PATIENCE_S) - waited)
    shutil.rmtree(remove, ignore_errors=True)


if __name__ == "__main__":
    sweep(sys.argv[1], Path(sys.argv[2]))
