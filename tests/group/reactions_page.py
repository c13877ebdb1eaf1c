"""Writes docs/group-reactions.md, the table GROUP_REACTIONS as a page: `./run python -m tests.group.reactions_page`."""

from collections.abc import Iterator

from kcontrol.group.request_reactions import ABSENT, GROUP_REACTIONS, Reaction, Request
from tests.parts import ROOT

PAGE = ROOT / "docs" / "group-reactions.md"

HEAD = """\
# Reactions of a group coordinator

The reaction of a coordinator to each request depends on the state of the group. This page is printed from `GROUP_REACTIONS` in
`kcontrol/group/request_reactions.py` by `./run python -m tests.group.reactions_page`; a test compares both.

How to read a table: take the rows of the release from the top. The first row that names the state of the group, and whose
condition holds, decides. A reaction in capitals is the error of the response; other reactions name a function of the handler.
"+ session" means that the request also restarts the session timeout of the member. "Absent" means that there is no group of
this name. The checks before the table (empty group id, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) do not depend on the group.

Source: GroupCoordinator.scala (0.9.0.1 to 3.9), by the methods that each request names.
"""


def releases(row: Reaction) -> str:
    since = "" if row.since == "0.9.0" else f"since {row.since}"
    return " ".join(filter(None, [since, f"before {row.until}" if row.until else ""])) or "all"


def table(request: Request) -> Iterator[str]:
    """Yield the lines of one request: its title, its methods, and a row for each row of GROUP_REACTIONS."""
    yield f"\n## {request.title}\n"
    yield f"Source: {request.methods}.\n"
    yield "| state | condition | reaction | releases | source |"
    yield "|---|---|---|---|---|"
    for row in GROUP_REACTIONS:
        if request in row.requests:
            states = ", ".join("Absent" if state is ABSENT else str(state) for state in row.states)
            reaction = f"{row.reaction}{' + session' if row.restarts_session else ''}{f' ({row.note})' if row.note else ''}"
            yield f"| {states} | {row.words} | {reaction} | {releases(row)} | {row.source} |"


def page() -> str:
    return HEAD + "\n".join(line for request in Request for line in table(request)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
