"""Writes the journals of twelve example runs, which `Lab.runs` shows if the folder of kept runs has fewer than twelve runs.

EXAMPLES has, for each run, the arguments of `Lab` and its actions, or a chapter's run.
"""

from pathlib import Path
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.lab.exercises import checks

FOLDER = "examples"
"""The folder below the folder of runs, so that no call takes an example for a run of the reader."""

THREE = {"topics": {"t": [[1, 2, 3], [2, 3, 1]]}}
RUN = ["run"]
# fmt: off
EXAMPLES: dict[str, dict[str, Any]] = {
    "controller-killed": THREE | {"acts": [["kill", 1], RUN]},
    "controller-returns": THREE | {"acts": [["kill", 1], RUN, ["start", 1], RUN]},
    "two-failovers": THREE | {"acts": [["kill", 1], RUN, ["kill", 2], RUN, ["start", 1], RUN, ["start", 2], RUN]},
    "rolling-restart": THREE | {"acts": [a for b in (1, 2, 3) for a in (["terminate", b], RUN, ["start", b], RUN)]},
    "znode-deleted": THREE | {"acts": [["delete", "/controller"], RUN, ["delete", "/controller"], RUN]},
    "leader-frozen": THREE | {"acts": [["freeze", 2], RUN, ["expire_session", 2], RUN, ["thaw", 2], RUN]},
    "only-replica": {"topics": {"t": [[3], [1, 2]]}, "acts": [["kill", 3], RUN, ["start", 3], RUN]},
    "unclean-refused": {"topics": {"t": [[2, 3], [3, 1]]}, "acts": [["kill", 3], RUN, ["kill", 2], RUN, ["start", 3], RUN]},
    "topic-deleted": THREE | {"release": "1.1", "acts": [["delete_topic", "t"], RUN]},
    "group-billing": {"play": "billing"},
    "group-nightly": {"play": "nightly"},
    "group-generations": {"play": "running generation"},
}
# fmt: on


def write(folder: Path) -> Path:
    """Write the journal of each of the twelve example runs that `folder` does not have yet, and return the folder.

    Raises UserError if the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, scenario in EXAMPLES.items():
            if not (path := folder / f"{name}.jsonl").exists():
                lab = checks.play(scenario | {"title": name})
                lab.save(unfinished := folder / f".{name}")
                unfinished.replace(path)  # a process that ends before leaves no journal that is cut off
                lab.close()
    except OSError as problem:
        raise UserError(f"The runs of kcontrol cannot be written to {folder}: {problem.strerror}; make room there.") from None
    return folder
