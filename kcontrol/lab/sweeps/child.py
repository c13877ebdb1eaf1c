"""The child process of a sweep: plays runs one after another and writes the outcome of each as a line of JSON.

The child ends when the pipe of the parent (`processes.py`) closes. What a learner's function prints is discarded.
"""

import gc
import json
import os
import pickle
import threading
from typing import BinaryIO

from kcontrol.lab.sweeps import timed_run

LENGTH_BYTES = 8
YOUNG = 200_000
"""The number of new objects after which Python searches for cycles."""


def main() -> None:
    """Read a pickled (job, tasks) from standard input, play each task (one run of the job), and write its outcome.

    Each outcome is a line of JSON on standard output, after the line "ready".
    """
    with os.fdopen(os.dup(1), "w", encoding="ascii") as out:
        silent = os.open(os.devnull, os.O_RDWR)
        os.dup2(silent, 1)
        orders = os.fdopen(os.dup(0), "rb")
        os.dup2(silent, 0)
        length = int.from_bytes(orders.read(LENGTH_BYTES), "big")
        job, tasks = pickle.loads(orders.read(length))  # noqa: S301 # the parent's own data
        threading.Thread(target=_end_with_parent, args=(orders,), daemon=True).start()
        # The modules stay, and most values of a run end without a search for cycles, which takes a tenth of the time.
        gc.freeze()
        gc.set_threshold(YOUNG)
        print(json.dumps("ready"), file=out, flush=True)
        for task in tasks:
            print(json.dumps(timed_run.outcome(job, task)[1:]), file=out, flush=True)


def _end_with_parent(orders: BinaryIO) -> None:
    """Wait until the parent process closes the pipe `orders`, the standard input of this process, then end this process."""
    orders.read()
    os._exit(1)


if __name__ == "__main__":
    main()
