"""Our coordinator against Kafka's own classes: kept cases, a few random sequences, and the comparison itself."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import parse_required
from tests.group.differential import cases
from tests.group.differential.__main__ import compare, main
from tests.group.differential.compare import Difference, Found, first_difference
from tests.group.differential.generate import Generator
from tests.group.differential.ours import play
from tests.group.differential.shrink import shrink
from tests.kafka_jars import JarsMissing

KEPT = sorted((Path(__file__).parent / "cases").glob("*.json"))
VOTES = {"range": 0, "roundrobin": 1, "sticky": 2, "cooperative-sticky": 3}
SEED, COUNT = 20_260, 3


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_a_kept_case_is_played_as_kafka_did(file: Path) -> None:
    """After each step of a kept case our coordinator has what the classes of its release had; `cause` names their method."""
    found = cases.replay(cases.read(file))
    assert found is None, "\n".join(cases.in_words(found))


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("release", ["2.8.2", "0.9.0.1"])
def test_random_sequences_are_played_as_kafka_does(
    release: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three random sequences on the release's own classes and on ours differ in nothing."""
    try:
        failed = compare(release, range(SEED, SEED + COUNT))
    except JarsMissing as problem:
        is_required = "kafka" in parse_required(request.config.getoption("--require"))
        (pytest.fail if is_required else pytest.skip)(str(problem))
    said = capsys.readouterr().out
    assert failed == 0, said
    assert said.endswith(f"{COUNT} passed, 0 failed\n")


# ---------------------------------------------------------------- the comparison itself

SEEN: dict[str, Any] = {
    "ans": {"j0": {"error": 0, "at": 5}},
    "app": [[0, "00", None, -1]],
    "st": {
        "g": {"state": "Stable", "since": 3, "type": "consumer", "newcomer": False, "members": [["m", None, 1, 1, "", "", ""]]}
    },
    "tm": ["session g m @7"],
    "own": [0],
    "load": [],
}


@pytest.mark.parametrize(("path", "value", "what"), [
    (("ans", "j0", "error"), 25, "answer j0"),
    (("ans", "j0", "at"), 6, "answer j0"),
    (("ans",), {}, "answer j0"),
    (("app",), [], "records"),
    (("exc",), ["step: IllegalStateException: no"], "exception"),
    (("st", "g", "state"), "Empty", "g.state"),
    (("st", "g", "since"), 4, "g.since"),
    (("st",), {}, "group g"),
    (("tm",), ["session g m @8"], "timers"),
    (("own",), [], "own"),
    (("load",), [0], "load"),
])  # fmt: skip
def test_a_difference_is_seen_wherever_it_is(path: tuple[str, ...], value: object, what: str) -> None:
    """One thing that Kafka's side has otherwise, in the second step, is found there under its name."""
    kafka = deepcopy(SEEN)
    place = kafka
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    found = first_difference([SEEN, SEEN], [SEEN, kafka])
    assert found is not None and (found.step, found.differences[0].what) == (1, what)


def test_after_the_declared_exception_nothing_is_compared() -> None:
    """A request of 0.9 that takes an unloaded group from Dead to Dead ends the comparison; another exception is a difference."""
    dead = "step: IllegalStateException: Group g should be in the Stable states before moving to Dead state. Instead it is in {}."
    later = SEEN | {"own": []}
    for state, is_same in (("Dead state", True), ("Stable state", False)):
        kafka = [SEEN, SEEN | {"ans": {}, "exc": [dead.format(state)]}, later]
        assert (first_difference([SEEN, SEEN, SEEN], kafka) is None) == is_same


def test_a_step_that_the_declared_exception_ended_halfway_is_no_difference() -> None:
    """A timer of 0.9 with the declared exception, or a Dead group in its cache, explains a difference in this step alone."""
    dead = (
        "timer: IllegalStateException: Group g should be in the Stable states before moving to Dead state. Instead it is in {}."
    )
    gone = SEEN | {"st": {}}
    stays = SEEN | {"st": {"g": SEEN["st"]["g"] | {"state": "Dead"}}}
    cases = [
        (SEEN, SEEN | {"ans": {}, "exc": [dead.format("Dead state")]}, True),
        (SEEN, SEEN | {"ans": {}, "exc": [dead.format("Stable state")]}, False), (gone, stays, True), (gone, SEEN, False),
        (SEEN, stays, False),
    ]  # fmt: skip
    for ours, kafka, is_same in cases:
        assert (first_difference([SEEN, ours], [SEEN, kafka]) is None) == is_same
    is_later = first_difference([SEEN, SEEN, SEEN], [SEEN, SEEN | {"exc": [dead.format("Dead state")]}, SEEN | {"own": []}])
    assert is_later is not None and is_later.step == 2


def test_a_sequence_is_shrunk_to_what_makes_it_differ() -> None:
    """Of thirty steps, of which the third and the twentieth matter together, these two are left, without their optional field."""
    steps = [{"do": "tick", "at": number, "epoch": 1} for number in range(30)]

    def differs(sequence: dict[str, Any]) -> Found | None:
        times = [step["at"] for step in sequence["steps"]]
        return Found(times.index(19), [Difference("own", [], [0])]) if {2, 19} <= set(times) else None

    found = differs({"steps": steps})
    assert found is not None
    assert shrink({"steps": steps}, found, differs)["steps"] == [{"do": "tick", "at": 2}, {"do": "tick", "at": 19}]


@pytest.mark.parametrize("release", ["2.8.2", "0.9.0.1"])
def test_a_seed_makes_one_sequence(release: str) -> None:
    """A seed makes the sequence again, step by step, and playing it anew shows what was seen while it was made."""
    first, second = Generator(7, release, VOTES), Generator(7, release, VOTES)
    sequence = first.run()
    assert sequence == second.run()
    assert first_difference(first.seen, play(sequence, release, VOTES)) is None


def test_replaying_counts_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that differs and a file that is no case are said, each in its own words, and do not end the run."""
    case = json.loads(KEPT[0].read_text())
    answers = next(seen["ans"] for seen in case["kafka"] if seen["ans"])
    next(iter(answers.values()))["at"] += 1
    (tmp_path / "changed.json").write_text(json.dumps(case))
    (tmp_path / "empty.json").write_text("[]")
    assert main(["--replay", str(tmp_path), str(KEPT[0])]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "changed differs"
    assert said[-2].endswith("is no case, it lacks its fields: name a file that the comparison has kept.")
    assert said[-1] == "1 passed, 2 failed"


def test_a_case_is_kept_as_it_is_read(tmp_path: Path) -> None:
    """A case that is written has the member ids that its steps use, and is played without a difference."""
    generator = Generator(11, "2.8.2", VOTES)
    sequence = generator.run()
    path = tmp_path / "kept" / "one.json"
    cases.save(path, "2.8.2", VOTES, sequence, generator.seen, "none")
    assert cases.replay(cases.read(path)) is None


def test_without_a_compiler_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no JDK is there, the command ends with status 2 and says what is missing."""
    monkeypatch.setenv("PATH", "")
    assert main(["--count", "1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
