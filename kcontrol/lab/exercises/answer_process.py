"""The process of one answer: it limits its memory, processor time and files, then checks the answer and writes reports.

It is a fork of the server or, where a fork is not safe, a new process: `python -m kcontrol.lab.exercises.answer_process REPORT
PRINTED`, which reads the request from standard input. REPORT and PRINTED are the numbers of two open descriptors.
"""

import contextlib
import json
import linecache
import math
import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import psutil

from kcontrol.core.errors import UserError
from kcontrol.lab.exercises import answers, printed_output, sandbox
from kcontrol.lab.exercises.checks import MEMORY_MB, Entry
from kcontrol.lab.exercises.examination import examine, known, prepared
from kcontrol.lab.support import learner_errors

MEGABYTE = 1024 * 1024
FILE_MB = 16
SECONDS = 5  # of CPU time
REPORT, PRINTED = 3, 4  # the only descriptors of the process of an answer beside the standard ones, which are silent


def limit(seconds: int) -> int:
    """Limit the memory, the file size and the CPU time of this process; return the limit of the CPU time.

    The limits are what the process has used so far, plus `seconds` and 1 GB. A limit that the system does not have is skipped.
    """
    memory = psutil.Process().memory_info().vms + MEMORY_MB * MEGABYTE
    until = math.ceil(time.process_time()) + seconds
    for what, bounds in (
        (resource.RLIMIT_AS, (memory, memory)),
        (resource.RLIMIT_CPU, (until, until + 1)),
        (resource.RLIMIT_FSIZE, (FILE_MB * MEGABYTE, FILE_MB * MEGABYTE)),
        (resource.RLIMIT_CORE, (0, 0)),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, bounds)
    return until


def reports(request: dict[str, Any], packed: bytes) -> Iterator[dict[str, Any]]:
    """Yield the time limits of a check, then the report on the answer; for a wrong answer, a second report with `known` follows.

    The answer is `request["text"]` (content, path) or, if it is None, the pickled `packed`.
    """
    # `known`, the result of the function `known`, is the index of a listed wrong answer with equal results, or None. The limits
    # are written before the answer runs, so the server can trust them. A machine that is twice as slow (`slowness` 2) gives
    # twice the CPU time, and a machine on which two processes wait for each CPU (`load` 2) gives twice the time by the clock.
    entry, text = request["entry"], request["text"]
    prepared(entry)
    seconds = math.ceil(entry.get("seconds", SECONDS) * request["slowness"])
    yield {"seconds": math.ceil(seconds * request["load"]), "until": limit(seconds)}
    if not os.read(REPORT, 1):
        return  # the server has ended
    try:
        answer = _in_file(entry, *text) if text else pickle.loads(packed)  # noqa: S301 - the learner's, in a process of its own
    except UserError as problem:
        yield {"problem": str(problem), "printed": printed_output.take_output()}
        return
    except Exception as error:
        yield {"problem": sandbox.UNPORTABLE.format(sandbox.first_line(error)), "printed": printed_output.take_output()}
        return
    found = examine(entry, answer)
    yield found
    if found.get("passed") is False:
        yield found | {"known": known(entry, answer, found)}


def _in_file(entry: Entry, text: str, path: str) -> Any:
    """Execute `text`, the content of the learner's file `path`; return the function or value with the name in `entry`'s stub.

    Raises UserError if the file does not define this name, or raises an error.
    """
    try:
        with printed_output.capturing():
            return answers.answer_in(text, path, answers.stub_slot(entry).name)
    except UserError as problem:
        raise UserError(f"{path}: {problem}") from None
    except Exception as error:
        raise UserError(f"{path} raised {learner_errors.with_line(error)}.") from None


def run(request: dict[str, Any], packed: bytes, report: int, printed: int) -> NoReturn:
    """Check the answer in `request` and `packed`, write each report as a line of JSON to the descriptor `report`, and exit.

    The answer sees the working folder, the environment, the path of modules and the source code of the learner's process.
    """
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _keep_open(report, printed)
        printed_output.begin(PRINTED)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.path[:] = request["path"]
        linecache.cache.update({name: (0, None, lines, name) for name, lines in request["sources"].items()})
        with os.fdopen(REPORT, "w", encoding="utf-8") as file:
            for found in reports(request, packed):
                print(json.dumps(found), file=file, flush=True)
        os._exit(0)
    finally:
        os._exit(1)  # in a fork no other code of the server may run


def _keep_open(report: int, printed: int) -> None:
    """Give the two descriptors the numbers REPORT and PRINTED, make the standard ones silent, and close all others."""
    silent = os.open(os.devnull, os.O_RDWR)
    for old, new in ((silent, 0), (silent, 1), (silent, 2), (report, REPORT), (printed, PRINTED)):
        os.dup2(old, new, inheritable=new < REPORT)
    os.closerange(PRINTED + 1, os.sysconf("SC_OPEN_MAX"))


if __name__ == "__main__":
    with os.fdopen(0, "rb", closefd=False) as letter:
        run(json.loads(letter.readline()), letter.read(), *map(int, sys.argv[1:3]))
