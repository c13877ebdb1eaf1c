"""Every trace happens as it is written down, and every one names what it agrees with."""

from __future__ import annotations

import difflib
import re

import pytest

from tests.traces.__main__ import main
from tests.traces.player import names, parse, play, read

OTHER_PARTY = re.compile(r"^# With: .*(golden \d[\d.]+ [\w-]+|conformance [\w-]+|[A-Z]\w+\.\w+)", re.MULTILINE)


@pytest.mark.parametrize("name", names())
def test_it_happens_as_it_is_written_down(name: str) -> None:
    """What the journal says of each command is what the trace expects, line by line."""
    expected, (played, _) = read(name), play(read(name))
    differing = difflib.unified_diff(expected.splitlines(), played.splitlines(), "expected", "played", lineterm="")
    assert played == expected, "\n".join(differing)


@pytest.mark.parametrize("name", names())
def test_it_names_its_other_party(name: str) -> None:
    """A head comment says what the trace is about and with which recording, case or class of Kafka's it agrees."""
    text = read(name)
    assert text.startswith("# ") and OTHER_PARTY.search(text), name


@pytest.mark.parametrize("name", names())
def test_it_expects_something(name: str) -> None:
    """At least two lines are expected somewhere in it: a trace that shows nothing claims nothing."""
    assert sum(len(block.expected) for block in parse(read(name))) >= 2


def test_a_trace_of_two_releases_needs_lines_that_both_have() -> None:
    """A trace of 0.9 and 2.8 is not played if a line differs, as the first state of a group does."""
    text = read("group-session-bounds-0.9").replace("release=0.9 ", "release=0.9,2.8 ")
    with pytest.raises(AssertionError, match="Empty -> PreparingRebalance"):
        play(text)


def test_there_are_enough() -> None:
    """Thirty and the worked examples."""
    assert len(names()) >= 40


def test_a_difference_is_shown_line_by_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints a diff and fails for a trace that no longer happens, and with `--rewrite` it writes the trace again."""
    name = "leader-killed-2.8"
    spoilt = read(name).replace(" epoch 0", " epoch 7")
    written: list[str] = []
    monkeypatch.setattr("tests.traces.__main__.read", lambda _: spoilt)
    monkeypatch.setattr("pathlib.Path.write_text", lambda path, text: written.append(text))
    assert main([name]) == 1
    assert f"--- {name}" in capsys.readouterr().out and not written
    assert main(["--rewrite", name]) == 0
    assert written == [read(name)]


def test_an_unknown_trace_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is none of theirs ends the command with the names that there are."""
    assert main(["nothing-like-it"]) == 2
    assert names()[0] in capsys.readouterr().err
