"""Declares rules (differences between Kafka's releases) as fields of a dataclass.

`since(("0.8.0", False), ("2.1.0", True), doc="...")` declares a rule that is False from 0.8.0 and
True from 2.1.0 on; `column` returns the values of one release. Read next: controller_rules.py and
group_rules.py.
"""

# The type of a field names the rule's legal values, so that mypy refuses a misspelt value in a row
# and in a comparison.
from dataclasses import field, fields
from functools import cache
from typing import Any, NamedTuple, TypeVar

from kcontrol.core.releases import value_in_force

T = TypeVar("T")

FIRST_RELEASE, LAST_RELEASE = "0.8.0", "3.9"

RULE_KEY = "rule"  # the key of a rule's declaration in the metadata of its field


class Rule(NamedTuple):
    """The declaration of one rule: a difference between releases, and its value in each release."""

    # Pairs of (release from which the value holds, value).
    rows: tuple[tuple[str, Any], ...]
    # What the rule decides.
    doc: str
    # True: the value of `inter.broker.protocol.version` is used as the release.
    depends_on_protocol: bool

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the rule's values, each once, in the order in which releases introduced them."""
        return tuple(dict.fromkeys(value for _, value in self.rows))


def since(*rows: tuple[str, T], doc: str) -> T:
    """Declare a rule; a row is (release from which the value holds, value)."""
    found: T = field(metadata={RULE_KEY: Rule(rows, doc, depends_on_protocol=False)})
    return found


def since_protocol(*rows: tuple[str, T], doc: str) -> T:
    """As `since`, with values of `inter.broker.protocol.version` in place of releases."""
    found: T = field(metadata={RULE_KEY: Rule(rows, doc, depends_on_protocol=True)})
    return found


@cache
def declared(rules: type) -> dict[str, Rule]:
    """The rules of a class, in the order of its fields."""
    return {f.name: f.metadata[RULE_KEY] for f in fields(rules) if RULE_KEY in f.metadata}


def column(rules: type, release: str, inter_broker_protocol: str) -> dict[str, Any]:
    """Return the values that all rules of the dataclass `rules` have in `release`, by name.

    A rule with `depends_on_protocol` has the value in `inter_broker_protocol`. Raises IndexError
    for a release in which a rule has no value yet.
    """
    at, rows = {False: release, True: inter_broker_protocol}, declared(rules).items()
    return {name: value_in_force(rule.rows, at[rule.depends_on_protocol]) for name, rule in rows}
