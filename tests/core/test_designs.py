"""What 2.8's controller says of releases before 1.1: no more than `controller/design.py` lists.

The other party is the table of rules in `controller_rules.py`.
"""

from __future__ import annotations

import re

from kcontrol.core.controller_rules import Rules
from kcontrol.core.releases import sort_key
from kcontrol.core.rule_fields import declared
from tests.parts import ROOT
from tests.test_tidy import measured

ROOM = ROOT / "kcontrol" / "controller"
MODULES = sorted(ROOM.glob("*.py"))
# Each has its reason at the head of `controller/design.py`.
LISTED = {
    "design", "pipelined", "offline_order", "shutdown_order", "unclean_default", "deletes_topics",
}  # fmt: skip


def before_1_1() -> set[str]:
    return {name for name, rule in declared(Rules).items() if all(sort_key(since)[:2] <= (1, 1) for since, _ in rule.rows)}


def test_2_8s_controller_asks_few_rules_of_earlier_releases() -> None:
    """Outside `earlier/` a rule that separates only releases before 1.1 is asked where `design.py` says why, and nowhere else."""
    asked = {name for path in MODULES for name in re.findall(r"\brules\.(\w+)", path.read_text())}
    assert asked & before_1_1() <= LISTED


def test_no_module_asks_which_design_it_is() -> None:
    """In `kcontrol/` a field of the design is asked, never its name; only `handlers.py` picks by name."""
    asking = [path for path in (ROOT / "kcontrol").rglob("*.py") if re.search(r"\bdesign(\.name)? (==|!=) ", path.read_text())]
    assert asking == []


def test_2_8s_controller_is_small() -> None:
    """The controller without `earlier/` has at most 24 modules and 2,700 lines of code."""
    assert len(MODULES) <= 24
    assert sum(measured(path).code for path in MODULES) <= 2_700
