"""A rule that no code of a lab's release reads is refused, so that no change of a rule is without effect."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kcontrol.core.controller_rules import Rules
from kcontrol.core.errors import UserError
from kcontrol.core.rule_fields import declared
from kcontrol.lab.lab import Lab
from kcontrol.lab.support.replacements import OF_LISTENERS
from tests.lab.support import refusal
from tests.parts import ROOT

EARLIER = "kcontrol/controller/earlier"


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path) -> Iterator[Path]:
    """Yield a module of `earlier/` and the modules of `earlier/` that it imports, directly or not."""
    yield path
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(EARLIER.replace("/", ".")):
            names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            paths = [ROOT / f"{name.replace('.', '/')}.py" for name in names]
            yield from (found for other in paths if other.is_file() for found in imported(other))


def readers() -> dict[str, set[Path]]:
    """Return the modules that read each rule of the controller."""
    found = defaultdict(set)
    for path in (ROOT / "kcontrol").rglob("*.py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute):
                found[node.attr].add(path)
    return {rule: found[rule] for rule in declared(Rules)}


@pytest.mark.slow
def test_every_rule_is_read() -> None:
    """No rule of the controller is declared without a module that reads the rule."""
    assert [rule for rule, paths in readers().items() if not paths] == []


def test_the_rules_without_effect_are_those_of_listeners() -> None:
    """OF_LISTENERS has the rules that only modules of `earlier/` read which the event thread does not use."""
    later = set(imported(ROOT / EARLIER / "event_thread_to_2_5.py"))
    of_listeners = {path for path in (ROOT / EARLIER).glob("*.py") if path not in later}
    assert {rule for rule, paths in readers().items() if paths <= of_listeners} == OF_LISTENERS


@pytest.mark.parametrize("release", ["1.1", "2.8"])
def test_a_rule_without_effect_is_refused(opened: Callable[..., Lab], release: str) -> None:
    """A lab with an event thread refuses a rule of listeners in one sentence; a lab of 1.0 takes the rule."""
    with pytest.raises(UserError) as problem:
        opened(1, release=release, rules={"last_isr_member": "leaves"})
    assert f"has no effect in Kafka {release}" in refusal(problem)
    assert opened(1, release="1.0", rules={"last_isr_member": "leaves"})
