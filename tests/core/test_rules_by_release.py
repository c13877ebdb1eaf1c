"""Every rule in every release, against a table of its own: `rules.txt`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kcontrol.core.controller_rules import Rules, rules
from kcontrol.core.rule_fields import declared
from kcontrol.group.group_rules import GroupRules, group_rules

LINES = "0.8.0 0.8.1 0.8.2 0.9.0 0.10.0 0.10.1 0.10.2 0.11.0 1.0 1.1"
RELEASES = (*LINES.split(), *(f"2.{minor}" for minor in range(9)), *(f"3.{minor}" for minor in range(10)))
SINCE_0_9 = RELEASES[3:]
PATCHES = ("1.1.0", "1.1.1", "1.1.2", "2.0.1", "2.8.2", "3.9.1")


def written() -> dict[str, list[tuple[tuple[int, ...], Any]]]:
    """The rows of `rules.txt`: of each rule the releases, as numbers, and its values from them on."""
    found: dict[str, list[tuple[tuple[int, ...], Any]]] = {}
    for line in (Path(__file__).parent / "rules.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            rule, since, value = line.split(maxsplit=2)
            found.setdefault(rule, []).append((numbers(since, 0), ast.literal_eval(value)))
    return found


def numbers(release: str, last: int = 99) -> tuple[int, ...]:
    """A release as three numbers; a line such as 2.8 is its latest release, or in a table its first."""
    parts = tuple(map(int, release.split(".")))
    return (*parts, last) if len(parts) == 2 else parts


WRITTEN = written()


@pytest.mark.parametrize("rule", sorted({*declared(Rules), *declared(GroupRules)}))
def test_a_rule_has_in_every_release_what_is_written(rule: str) -> None:
    """The column of each release from 0.8.0 to 3.9, and of some that mend others, has the value of `rules.txt`."""
    is_group = rule in declared(GroupRules)
    column: Callable[[str], Any] = group_rules if is_group else rules
    releases = (*(SINCE_0_9 if is_group else RELEASES), *PATCHES)
    expected = {release: [value for since, value in WRITTEN[rule] if since <= numbers(release)][-1] for release in releases}
    assert {release: getattr(column(release), rule) for release in releases} == expected
