"""What runs in the process of its own: `python -m kcontrol.lab.judge FOLDER` (see `judging`)."""

from __future__ import annotations

import contextlib
import json
import math
import pickle
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from kcontrol.errors import UserError
from kcontrol.lab import answers, judging, replacing
from kcontrol.lab.checks import MEMORY_MB, Broken, Entry, Mark, evaluate, short
from kcontrol.lab.judging import FILE_MB, SECONDS, SECONDS_BY_THE_CLOCK
from kcontrol.lab.kinds import kind_of

MEGABYTE = 1024 * 1024


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
        return {"problem": f"An answer to {entry['id']!r} is {kind.wanted}; this is {short(answer)}."}
    try:
        marked = (mark or kind.prepare(entry))(answer)
    except Broken as problem:
        return {"problem": str(problem)}
    except Exception as error:  # what an answer is made of can raise when it is looked at
        return {"problem": f"Your answer cannot be judged: {replacing.described(error)}."}
    if all(case.yours is None for case in marked.cases):
        return {"open": True}
    cases = [case._asdict() | {"is_right": case.is_right} for case in marked.cases]
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


def reports(folder: Path) -> Iterator[dict[str, Any]]:
    """What `examine` says; and, for a wrong answer, the same with `known`, its number among the listed ones or None."""
    entry = json.loads((folder / "exercise.json").read_text())
    mark: Mark = kind_of(entry).prepare(entry)
    limit(entry.get("seconds", SECONDS))
    sys.path.append(str(Path.cwd()))  # modules beside the notebook
    try:
        answer = _answer(folder, entry)
    except UserError as problem:
        yield {"problem": str(problem)}
        return
    except Exception as error:
        yield {"problem": judging.UNPORTABLE.format(judging.first_line(error))}
        return
    found = examine(entry, answer, mark)
    yield found
    if found.get("passed") is False:
        yield found | {"known": known(entry, answer, found, mark)}


def _answer(folder: Path, entry: Entry) -> Any:
    """The answer that has travelled. Raises UserError for a file that holds none, and whatever unpacking raises."""
    if not (folder / "answer.json").exists():
        return pickle.loads((folder / "answer").read_bytes())  # noqa: S301 - the learner's own, in a process of its own
    text, path = json.loads((folder / "answer.json").read_text())
    try:
        return answers.answer_in(text, path, answers.stub_slot(entry).name)
    except UserError as problem:
        raise UserError(f"{path}: {problem}") from None
    except Exception as error:
        raise UserError(f"{path} raised {replacing.described(error)}.") from None


def main() -> None:
    """Judge what lies in the folder that is named on the command line."""
    folder = Path(sys.argv[1])
    signal.alarm(SECONDS_BY_THE_CLOCK)  # if whoever has started this is gone by then, this ends all the same
    for found in reports(folder):
        unfinished = folder / "report.json.part"
        unfinished.write_text(json.dumps(found))
        unfinished.rename(folder / "report.json")


if __name__ == "__main__":
    main()
