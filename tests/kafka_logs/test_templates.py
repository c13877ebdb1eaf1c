"""Templates of log lines: options by release and by facts, and the regular expressions that follow from them."""

from __future__ import annotations

import re

import pytest

from kcontrol.kafka_logs.templates import filled, literals, numbers, parsed, pattern


def text(template: str, release: str, **facts: object) -> str | None:
    return filled(parsed(template), numbers(release), facts)


@pytest.mark.parametrize(
    ("release", "words"),
    [("0.9", "a"), ("0.10.2", "a"), ("0.11.0", "b"), ("0.11.0.0", "b"), ("1.0", "c"), ("1.0.2", "c"), ("3.9", "c"), ("", "c")],
)
def test_the_newest_option_of_a_release_is_written(release: str, words: str) -> None:
    """An option holds from its release on; a release of fewer numbers stands for all of its patches."""
    assert text("«a|0.11.0.0:b|1.0:c»", release) == words


def test_an_option_without_a_date_is_written_if_its_facts_are_known() -> None:
    """The last option whose facts are all known; a dated option that lacks a fact has no line."""
    assert text("x«| of {leader}»", "2.8") == "x" and text("x«| of {leader}»", "2.8", leader=1) == "x of 1"
    assert text("x«|2.1: of {leader}»", "2.8") is None and text("x«|2.1: of {leader}»", "2.0") == "x"
    assert text("«{:word}|Set»({live:seq})", "2.8", live=[1, 2]) == "Set(1, 2)"


def test_values_are_text() -> None:
    """A value with the marks of templates stays as it is."""
    assert text("topic {topic}", "2.8", topic="«a|b» {leader}") == "topic «a|b» {leader}"


def test_a_regular_expression_has_all_options() -> None:
    """It reads the line of each release, takes no other, and reads a fact that stands twice at the first place."""
    found = re.compile(pattern(parsed("«c|1.0:C»hanged [{topic:old_topic}] to «{leader}|1.1:state {state}»« by {leader}|».")))
    lines = ("changed [t] to 3.", "Changed [t] to state (x) by 4.", "changed t to 3.")
    assert [bool(found.fullmatch(line)) for line in lines] == [True, True, False]
    twice = re.fullmatch(pattern(parsed("{leader} of {leader}")), "1 of 2")
    assert twice is not None and twice.groupdict() == {"leader": "1"}
    assert literals(parsed("«c|C»hanged {leader} by")) == ["hanged ", " by"]


def test_an_empty_list_differs_from_a_list_that_is_absent() -> None:
    """The group of a list takes the character before it."""
    found = re.compile(pattern(parsed("ISR:{isr}«, added {added}|»")))
    assert [found.fullmatch(line) and found.fullmatch(line)["added"] for line in ("ISR:1", "ISR:1, added ")] == [None, " "]


@pytest.mark.parametrize("template", ["«a", "a|b", "a»", "«a|«b»"])
def test_a_template_that_is_not_closed_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"not closed|has no"):
        parsed(template)
