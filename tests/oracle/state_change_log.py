"""Read transitions out of the lines of state-change.log, in the wording of each release."""

from __future__ import annotations

import re
from typing import Any

SUBJECT = r"(?:\[(?P<t1>[^\[\],\s]+),\s?(?P<p1>\d+)\]|(?P<t2>[A-Za-z0-9._-]+)-(?P<p2>\d+))"
HEAD = r"(?:Controller (?P<c1>\d+) epoch (?P<e1>\d+) |\[Controller id=(?P<c2>\d+)(?: epoch=(?P<e2>\d+))?\] )"
PARTITION = re.compile(HEAD + r"[cC]hanged partition " + SUBJECT + r"(?: state)? from (?P<from>\w+) to (?P<to>\w+)")
REPLICA = re.compile(
    HEAD + r"[cC]hanged state of replica (?P<r>\d+) for partition " + SUBJECT + r"(?: from (?P<from>\w+))? to (?P<to>\w+)"
)
PARTITION_FAILED = re.compile(
    HEAD
    + r".*(?:[iI]nitiated state change for partition|[fF]ailed to change state for partition) "
    + SUBJECT
    + r" from (?P<from>\w+) to (?P<to>\w+)"
)
REPLICA_FAILED = re.compile(
    HEAD
    + r".*[iI]nitiated state change of replica (?P<r>\d+) for partition "
    + SUBJECT
    + r"(?: from (?P<from>\w+))? to (?P<to>\w+) failed"
)
STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (\w+) (.*) \(([\w.$]+)\)$")


def transition(message: str) -> dict[str, Any] | None:
    for machine, pattern, failed in (
        ("partition", PARTITION, False),
        ("replica", REPLICA, False),
        ("partition", PARTITION_FAILED, True),
        ("replica", REPLICA_FAILED, True),
    ):
        m = pattern.search(message)
        if m:
            g = m.groupdict()
            subject = f"{g['t1'] or g['t2']}-{g['p1'] or g['p2']}"
            if machine == "replica":
                subject += f"@{g['r']}"
            out: dict[str, Any] = {
                "by": int(g["c1"] or g["c2"]), "epoch": int(g["e1"] or g["e2"] or -1), "machine": machine, "subject": subject,
                "from": _short(g["from"]), "to": _short(g["to"]),
            }  # fmt: skip
            if failed:
                out["failed"] = True
            return out
    return None


def _short(state: str | None) -> str | None:
    return state and re.sub(r"(Partition|Replica)$", "", state)
