"""What runs in the process of its own: `python -m kcontrol.lab.judge REPORT`, a descriptor (see `judging` and `supervisor`)."""

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

from kcontrol.errors import UserError
from kcontrol.lab import answers, judging, printing, replacing
from kcontrol.lab.checks import MEMORY_MB, Broken, Entry, Mark, evaluate, short
from kcontrol.lab.judging import SECONDS
from kcontrol.lab.kinds import kind_of

MEGABYTE = 1024 * 1024
FILE_MB = 16


def limit(seconds: int) -> None:
    """Bound what this process may use from now on, `seconds` of computing; not every system knows every bound."""
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


def examine(entry: Entry, answer: object, mark: Mark | None = None) -> dict[str, Any]:
    """`problem`, a sentence; or `open`; or `cases`, of which `passed` says whether all are right, with a `remark`."""
    if answer is None or answer is ... or (isinstance(answer, list | tuple | dict | str) and not answer):
        return {"open": True}
    kind = kind_of(entry)
    if not kind.accepts(answer):
        return {"problem": f"An answer to {entry['id']!r} is {kind.wanted}; this is {short(answer)}.", "printed": ""}
    try:
        marked = (mark or kind.prepare(entry))(answer)
    except Broken as problem:
        return {"problem": str(problem), "printed": printing.taken()}
    except Exception as error:  # what an answer is made of can raise when it is looked at
        return {"problem": f"Your answer cannot be judged: {replacing.described(error)}.", "printed": printing.taken()}
    if all(case.yours is None for case in marked.cases):
        return {"open": True}
    cases = [asdict(case) | {"is_right": case.is_right} for case in marked.cases]
    return {"passed": all(case.is_right for case in marked.cases), "cases": cases, "remark": marked.remark}


def known(entry: Entry, answer: object, found: dict[str, Any], mark: Mark) -> int | None:
    """Which of the listed wrong answers this one is: the number of the first whose `when` is so, or whose cases are the same."""
    yours = [case["yours"] for case in found["cases"]]
    for number, listed in enumerate(entry["wrong"]):
        if "when" in listed:
            same = bool(evaluate(listed["when"], answer=answer, yours=yours))
        else:
            other = examine(entry, answers.wrong(entry, listed), mark).get("cases", ())
            same = [case["yours"] for case in other] == yours
        if same:
            return number
    return None


def reports(entry: Entry, text: Sequence[str] | None, packed: bytes) -> Iterator[dict[str, Any]]:
    """Yield what `examine` says; and, for a wrong answer, the same with `known`, its number among the listed ones or None."""
    mark: Mark = kind_of(entry).prepare(entry)
    limit(entry.get("seconds", SECONDS))
    sys.path.append(str(Path.cwd()))  # modules beside the notebook
    try:
        answer = _in_file(entry, *text) if text else pickle.loads(packed)  # noqa: S301 - the learner's, in a process of its own
    except UserError as problem:
        yield {"problem": str(problem), "printed": printing.taken()}
        return
    except Exception as error:
        yield {"problem": judging.UNPORTABLE.format(judging.first_line(error)), "printed": printing.taken()}
        return
    found = examine(entry, answer, mark)
    yield found
    if found.get("passed") is False:
        yield found | {"known": known(entry, answer, found, mark)}


def _in_file(entry: Entry, text: str, path: str) -> Any:
    """Return the answer in a learner's file. Raises UserError for a file that holds none, or that raises."""
    try:
        with printing.heard():
            return answers.answer_in(text, path, answers.stub_slot(entry).name)
    except UserError as problem:
        raise UserError(f"{path}: {problem}") from None
    except Exception as error:
        raise UserError(f"{path} raised {replacing.described(error)}{replacing.place(error)}.") from None


def main() -> None:
    """Judge the answer on standard input, and write each report as a line to the descriptor that the command line names."""
    with os.fdopen(0, "rb", closefd=False) as letter:
        sent, packed = json.loads(letter.readline()), letter.read()
    for name, lines in sent["sources"].items():
        linecache.cache[name] = (0, None, lines, name)
    printing.begin(os.dup(1))
    silent = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(silent, standard)
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as report:
        for found in reports(sent["entry"], sent["text"], packed):
            print(json.dumps(found), file=report, flush=True)


if __name__ == "__main__":
    main()
