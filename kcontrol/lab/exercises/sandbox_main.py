"""Checks a learner's answer in a process with limits, and writes reports for the notebook's process (see sandbox.py).

The command `python -m kcontrol.lab.exercises.sandbox_main DESCRIPTOR` reads the answer from standard input, and writes the
reports to the open file descriptor with the number DESCRIPTOR.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import math
import os
import pickle
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from kcontrol.core.errors import UserError
from kcontrol.lab.exercises import answers, printed_output, sandbox
from kcontrol.lab.exercises.check_kinds import kind_of
from kcontrol.lab.exercises.checks import MEMORY_MB, Checker, Entry, UnusableAnswer, evaluate, short
from kcontrol.lab.exercises.sandbox import SECONDS
from kcontrol.lab.support import learner_errors

MEGABYTE = 1024 * 1024
FILE_MB = 16
SECONDS_OF_IMPORTS = 1.5  # of CPU time, on the machine for which the limits in exercises.toml were chosen
SLOWEST = 10  # a machine that is slower or busier by more than this factor gives no more time


def limit(seconds: int) -> int:
    """Limit the memory, the file size and the CPU time of this process; return the limit of the CPU time.

    The limit is the CPU time so far plus `seconds`. A limit that the system does not have is skipped.
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


def _times(slowness: float) -> float:
    """Return a factor for time limits: `slowness` (2 on a machine at half speed), at least 1 and at most 10 (SLOWEST)."""
    return min(max(1, slowness), SLOWEST)


def examine(entry: Entry, answer: object, mark: Checker | None = None) -> dict[str, Any]:
    """Check an answer by the function `mark`, and return the report on it as a mapping, such as {"problem": "..."}.

    If `mark` is None, the function is made from `entry`, the exercise's table in exercises.toml.
    """
    # The report has `problem` and `printed` if the answer cannot be checked, `open` if it is empty, else `cases`, `passed` and
    # `remark`.
    if answer is None or answer is ... or (isinstance(answer, list | tuple | dict | str) and not answer):
        return {"open": True}
    kind = kind_of(entry)
    if not kind.accepts(answer):
        return {"problem": f"The answer to {entry['id']!r} must be {kind.wanted}; yours is {short(answer)}.", "printed": ""}
    try:
        marked = (mark or kind.prepare(entry))(answer)
    except UnusableAnswer as problem:
        return {"problem": str(problem), "printed": printed_output.take_output()}
    except Exception as error:  # the objects in an answer may raise when they are read
        return {
            "problem": f"Your answer cannot be checked: {learner_errors.described(error)}.",
            "printed": printed_output.take_output(),
        }
    if all(case.answer is None for case in marked.cases):
        return {"open": True}
    cases = [asdict(case) | {"is_right": case.is_right} for case in marked.cases]
    return {"passed": all(case.is_right for case in marked.cases), "cases": cases, "remark": marked.remark}


def known(entry: Entry, answer: object, found: dict[str, Any], mark: Checker) -> int | None:
    """Return the index in `entry["wrong"]`, the known wrong answers, of the first that equals `answer`; None if none does.

    Equal answers have equal values in all cases of the check `mark`; `found` is the result of that check of `answer`.
    """
    yours = [case["answer"] for case in found["cases"]]
    for number, listed in enumerate(entry["wrong"]):
        # A known wrong answer equals this answer if its expression `when` is true or, without `when`, if its `code` has the
        # value of this answer in each case.
        if "when" in listed:
            equal = bool(evaluate(listed["when"], answer=answer, yours=yours))
        else:
            other = examine(entry, answers.wrong(entry, listed), mark).get("cases", ())
            equal = [case["answer"] for case in other] == yours
        if equal:
            return number
    return None


def reports(entry: Entry, text: Sequence[str] | None, packed: bytes, slowness: float) -> Iterator[dict[str, Any]]:
    """Yield the time limits of a check, multiplied by `slowness` (2: half speed), then the report on the answer.

    The answer is `text` (content, path), or the pickled `packed` if `text` is None. For a wrong answer, a second report with
    `known` follows.
    """
    # `known`, the result of the function `known`, is the index of a listed wrong answer with equal results, or None. The limits
    # are written before the answer runs, so the supervisor can trust them. A machine that is twice as slow (`slowness` 2) gives
    # twice the CPU time, and a machine that has given this process half of a CPU so far gives twice the time by the clock.
    mark: Checker = kind_of(entry).prepare(entry)
    seconds = math.ceil(entry.get("seconds", SECONDS) * slowness)
    elapsed_s = time.time() - psutil.Process().create_time()
    yield {"seconds": math.ceil(seconds * _times(elapsed_s / time.process_time())), "until": limit(seconds)}
    sys.path.append(str(Path.cwd()))  # modules beside the notebook
    try:
        answer = _in_file(entry, *text) if text else pickle.loads(packed)  # noqa: S301 - the learner's, in a process of its own
    except UserError as problem:
        yield {"problem": str(problem), "printed": printed_output.take_output()}
        return
    except Exception as error:
        yield {"problem": sandbox.UNPORTABLE.format(sandbox.first_line(error)), "printed": printed_output.take_output()}
        return
    found = examine(entry, answer, mark)
    yield found
    if found.get("passed") is False:
        yield found | {"known": known(entry, answer, found, mark)}


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


def main() -> None:
    """Check the answer on standard input, and write each report as a line of JSON to the descriptor in the command line."""
    slowness = _times(time.process_time() / SECONDS_OF_IMPORTS)
    with os.fdopen(0, "rb", closefd=False) as letter:
        # The input has a line of JSON with `entry` (the exercise's table in exercises.toml), `text` (the answer as the learner
        # wrote it) and `sources` (the learner's code by file name), then the pickled answer.
        sent, packed = json.loads(letter.readline()), letter.read()
    for name, lines in sent["sources"].items():
        linecache.cache[name] = (0, None, lines, name)
    printed_output.begin(os.dup(1))
    silent = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(silent, standard)
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as report:
        for found in reports(sent["entry"], sent["text"], packed, slowness):
            print(json.dumps(found), file=report, flush=True)


if __name__ == "__main__":
    main()
