"""Cancels Spark's jobs when a learner interrupts a cell of a notebook; without it the jobs go on, and the cell waits for them.

PySpark's own handler of SIGINT does not help: ipykernel replaces this handler before each cell, and the handler would send its
request to Java on the connection that already waits for a result.
"""

import signal
import sys
import threading
import warnings
from types import FrameType
from typing import Any

CANCEL_TIMEOUT_S = 5.0
REPEAT_S, REPEATS = 0.05, 40
CANCELLED = "KeyboardInterrupt: Spark has cancelled the jobs of this cell, and the session is still open."
# With this warning PySpark repeats the stack trace of Java's error, which the cell shows too.
ARROW_WARNING = r"(?s).*toPandas attempted Arrow optimization.*can not continue"


class CancelJobs:
    """The handler of SIGINT in a cell of a notebook; `former` is the handler that it replaces.

    The first SIGINT while the cell waits for Spark cancels Spark's jobs; any other SIGINT is passed to `former`.
    """

    def __init__(self, former: Any) -> None:
        self.former, self.has_cancelled, self._repeats = former, False, REPEATS

    def __call__(self, number: int, frame: FrameType | None) -> None:
        # KeyboardInterrupt inside py4j would close all connections to Java, also the next one. The cancelled call itself raises
        # an error, which ends the cell. Before a job begins, or between two jobs, the signal is sent again a little later.
        if not self.has_cancelled and _waits_for_spark(frame):
            self.has_cancelled = _cancel_jobs()
            if self.has_cancelled:
                return
            if self._repeats:
                self._repeats -= 1
                threading.Timer(REPEAT_S, self._repeat).start()
                return
        if callable(self.former):
            self.former(number, frame)

    def _repeat(self) -> None:
        """For a SIGINT at which Spark had no job to cancel yet."""
        if signal.getsignal(signal.SIGINT) is self:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def cancel_jobs_on_interrupt(former: Any) -> None:
    """Let SIGINT cancel Spark's jobs in the notebook cell that runs and in later cells; `former` is the handler before.

    Do nothing outside of IPython.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    from py4j.protocol import Py4JJavaError

    _install(former)
    # IPython ignores a second registration of a function, and calls the method below to show an error.
    shell.events.register("pre_run_cell", _before_cell)
    Py4JJavaError._render_traceback_ = lambda self: _lines(self, shell)
    warnings.filterwarnings("ignore", message=ARROW_WARNING)


def _before_cell(_: Any) -> None:
    _install(signal.getsignal(signal.SIGINT))


def _install(former: Any) -> None:
    # Only the main thread has handlers. In a terminal the handler of the former cell is still installed.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, CancelJobs(former.former if isinstance(former, CancelJobs) else former))


def _waits_for_spark(frame: FrameType | None) -> bool:
    """Return whether `frame` or one of its direct or indirect callers runs code of PySpark or py4j."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(("pyspark.", "py4j.")):
            return True
        frame = frame.f_back
    return False


def _cancel_jobs() -> bool:
    """Cancel all jobs of the open Spark session; return whether there was a job.

    Return False without a session, and if Java does not respond within 5 s.
    """
    from pyspark import SparkContext

    context, jobs = SparkContext._active_spark_context, list[int]()

    def cancel() -> None:
        found = context.statusTracker().getActiveJobsIds()
        context.cancelAllJobs()
        jobs.extend(found)

    if context is None:
        return False
    # Another thread has its own connection to Java; the connection of this thread waits for a result.
    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    thread.join(CANCEL_TIMEOUT_S)
    return bool(jobs)


def _lines(problem: BaseException, shell: Any) -> list[str]:
    """Return the lines that a cell of IPython's `shell` shows for an error of Java.

    If an interrupt caused the error, return one sentence, else the traceback.
    """
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, CancelJobs) and handler.has_cancelled:
        return [CANCELLED]
    return list(shell.InteractiveTB.structured_traceback(type(problem), problem, problem.__traceback__, tb_offset=1))
