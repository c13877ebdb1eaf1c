"""Keeps sequences with what Kafka's classes did in each step, and plays them again on our coordinator without Java."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kcontrol.core.errors import UserError
from tests.group.differential.compare import Found, first_difference
from tests.group.differential.ours import play

Json = dict[str, Any]
NEEDED = ("release", "votes", "config", "ranks", "steps", "kafka")


def save(path: Path, release: str, votes: dict[str, int], sequence: Json, kafka: list[Json], cause: str) -> None:
    """Write a case: the sequence, the member ids that it needs, and what Kafka's classes did in each step."""
    used = {member for member in sequence["ranks"] if any(_uses(step, member) for step in sequence["steps"])}
    ranks = {member: rank for member, rank in sequence["ranks"].items() if member in used}
    case = {"id": path.stem, "release": release, "cause": cause, "votes": votes, "config": sequence["config"], "ranks": ranks}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(case | {"steps": sequence["steps"], "kafka": kafka}, indent=1) + "\n")


def _uses(step: Json, member: str) -> bool:
    """Whether a step names a member id, makes it, or puts it into the log."""
    return json.dumps(member)[1:-1] in json.dumps(step) or member.endswith(f"-{step.get('uuid')}") or step["do"] == "extend"


def read(path: Path) -> Json:
    """Return a case. Raises UserError where the file is none."""
    try:
        case: Json = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise UserError(f"{path} cannot be read as a case ({problem}): name a file that the comparison has kept.") from problem
    if not isinstance(case, dict) or (missing := [name for name in NEEDED if name not in case]):
        lacking = ", ".join(missing) if isinstance(case, dict) else "its fields"
        raise UserError(f"{path} is no case, it lacks {lacking}: name a file that the comparison has kept.")
    return case


def files_of(names: Sequence[str]) -> list[Path]:
    """Return the files that are named, and of a folder all its cases by name. Raises UserError where there is none."""
    found = [file for name in map(Path, names) for file in (sorted(name.glob("*.json")) if name.is_dir() else [name])]
    if not found:
        raise UserError(f"There are no cases in {', '.join(names)}: name files or folders with files that end with .json.")
    return found


def replay(case: Json) -> Found | None:
    """Return where our coordinator first differs from what Kafka's classes did; None if it does not."""
    return first_difference(play(case, case["release"], case["votes"]), case["kafka"])


def in_words(found: Found) -> Iterator[str]:
    """Yield a line for each difference."""
    for difference in found.differences:
        yield f"  after step {found.step}: {difference.what}"
        yield f"    ours  {json.dumps(difference.ours, ensure_ascii=False)[:700]}"
        yield f"    Kafka {json.dumps(difference.kafka, ensure_ascii=False)[:700]}"
