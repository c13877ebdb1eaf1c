"""Random scenarios: what they hold, and what becomes of one that differs. No broker runs here: recordings are made up."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.golden.__main__ import Result
from tests.golden.test_golden import recorded
from tests.kafka_jars import SCALA
from tests.oracle import __main__ as command
from tests.oracle import judging
from tests.oracle.judging import Verdict, shrunk
from tests.oracle.model import MOST_REPLICAS, WORDS, Model
from tests.oracle.quiet import OutOfTime
from tests.oracle.scenarios import FEWEST, MOST, is_possible, numbers, scenario, words_of

MANY = 60


def scenarios(release: str) -> list[dict[str, Any]]:
    return [scenario(release, 3, number) for number in range(MANY)]


@pytest.mark.parametrize("release", SCALA)
def test_each_word_is_in_a_tenth_of_the_scenarios(release: str) -> None:
    """Of sixty scenarios each step word that the release knows is in six or more."""
    counted = Counter(word for one in scenarios(release) for word in {next(iter(step)) for step in one["steps"][1:]})
    assert {word: counted[word] for word in words_of(release) if counted[word] < MANY / 10} == {}


@pytest.mark.parametrize("release", SCALA)
def test_half_of_the_scenarios_lose_their_first_controller(release: str) -> None:
    """In more than half of the scenarios the broker that starts first, and so is controller, is killed, stopped or paused."""
    lost = sum(any(step.get(word) == one["steps"][0]["start"][0] for step in one["steps"] for word in ("kill", "term", "pause"))
               for one in scenarios(release))  # fmt: skip
    assert lost > MANY / 2


@pytest.mark.parametrize("release", SCALA)
def test_every_scenario_is_one_that_the_model_allows(release: str) -> None:
    """A scenario has 6 to 12 steps, one more where it ends with a thaw, and each of them can be done after those before it."""
    for one in scenarios(release):
        assert FEWEST <= len(one["steps"]) <= MOST + 2
        assert is_possible(release, one, one["steps"])


def test_a_seed_has_one_scenario_for_each_number() -> None:
    """Drawn again a scenario is equal; another number or another seed has another one."""
    assert scenario("2.8.2", 1, 4) == scenario("2.8.2", 1, 4)
    assert len({json.dumps(scenario("2.8.2", seed, number)["steps"]) for seed in (1, 2) for number in (0, 1, 2)}) == 6


def test_a_move_has_four_replicas_at_most() -> None:
    """Old and new replicas of a reassignment are four brokers at most: Scala keeps the order of such sets."""
    one, chance = Model((0, 10, 2), [1, 2, 3, 4, 5, 6], unclean=True, cold=6), Random(1)
    one.do({"start": [1, 2, 3, 4, 5, 6]})
    one.do({"create": {"orders": {0: [1, 2, 3]}}})
    moves = [step["reassign"]["orders-0"] for _ in range(200) if (step := WORDS["reassign"](one, chance))]
    assert len(moves) > 20
    assert max(len({1, 2, 3, *target}) for target in moves) == MOST_REPLICAS


def test_a_broker_that_may_be_the_controller_is_not_frozen() -> None:
    """The one broker with a long session is frozen only while another one surely is the controller."""
    one, chance = Model((2, 8, 2), [1, 2, 3], unclean=True, cold=3), Random(1)
    one.do({"start": [1, 2, 3]})
    assert WORDS["freeze"](one, chance) == {"freeze": 3}
    one.do({"znode-delete": "/controller"})
    assert WORDS["freeze"](one, chance) is None


@pytest.mark.parametrize("steps", [
    [{"start": [1, 2]}, {"expand": {"orders": {1: [1]}}}],
    [{"start": [1, 2]}, {"create": {"orders": {0: [1]}}}, {"delete-topic": "orders"}, {"delete-topic": "orders"}],
    [{"start": [1, 2]}, {"resume": 1}],
    [{"start": [1, 2]}, {"kill": 1}, {"kill": 1}],
    [{"start": [1, 2]}, {"create": {"orders": {0: [1]}}}, {"kill": 1}, {"reassign": {"orders-0": [2]}}],
    [{"create": {"orders": {0: [1]}}}],
])  # fmt: skip
def test_steps_that_would_fail_at_the_tool_are_not_possible(steps: list[dict[str, Any]]) -> None:
    """What is left of a scenario is recorded only if each step can still be done."""
    assert not is_possible("2.8.2", {"brokers": [1, 2], "unclean": False}, steps)


# ---------------------------------------------------------------- what differs


def differs_if(word: str) -> Any:
    """Return a recorder and a judge for which a scenario differs in the step with this word, if it has one."""

    def record(one: dict[str, Any], release: str) -> dict[str, Any]:
        return {"release": release, "steps": [{"do": step, "znodes": {}} for step in one["steps"]]}

    def judge(recording: dict[str, Any]) -> Result:
        at = next((i for i, step in enumerate(recording["steps"]) if word in step["do"]), None)
        return Result(None) if at is None else Result(f"{word} differs", place=Place(at))  # type: ignore[arg-type]

    return record, judge


class Place:
    """Where a difference is."""

    def __init__(self, step: int) -> None:
        self.step = step


def test_a_scenario_that_differs_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight steps those remain that the difference needs: the step that differs, and those that make it possible."""
    record, judge = differs_if("delete-topic")
    monkeypatch.setattr(judging, "judged", judge)
    steps: list[dict[str, Any]] = [
        {"start": [1, 2, 3]}, {"create": {"orders": {0: [1]}}}, {"create": {"clicks": {0: [1]}}}, {"kill": 2},
        {"start": 2}, {"delete-topic": "clicks"}, {"kill": 3}, {"start": 3},
    ]  # fmt: skip
    one = {"name": "random", "brokers": [1, 2, 3], "unclean": False, "steps": steps}
    found = Verdict(one, record(one, "2.8.2"), judge(record(one, "2.8.2")))
    smaller = shrunk(found, "2.8.2", 20, record)
    assert smaller.scenario["steps"] == [steps[0], steps[2], steps[5]]


def test_the_command_keeps_what_differs_and_counts_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scenario that differs twice is kept as two files and makes the exit code 1; the table counts scenarios by word."""
    record, judge = differs_if("create")
    monkeypatch.setattr(judging, "judged", judge)
    monkeypatch.setattr(command, "verdict", lambda one, release: judging.verdict(one, release, record))
    monkeypatch.setattr(command, "shrunk", lambda found, release, limit: judging.shrunk(found, release, limit, record))
    assert command.main(["--release", "2.8.2", "--seed", "1", "--count", "2", "--keep", str(tmp_path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "  create           2 of 2" in said
    assert said[-1] == "0 passed, 2 failed"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"2.8.2-random-1-{number}.{kind}" for number in (0, 1) for kind in ("json", "yaml")
    ]


def test_a_difference_that_does_not_repeat_is_said_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the second recording shows no difference the first one is kept, and the scenario has not failed."""
    record, _ = differs_if("create")
    answers = iter([Result("once"), Result(None)])
    monkeypatch.setattr(judging, "judged", lambda recording: next(answers))
    monkeypatch.setattr(command, "verdict", lambda one, release: judging.verdict(one, release, record))
    assert command.main(["--release", "2.8.2", "--seed", "1", "--count", "1", "--keep", str(tmp_path)]) == 0
    assert "the second recording shows no difference; the first one is kept" in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 2


def test_a_scenario_that_cannot_be_recorded_does_not_end_a_night(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scenario that takes too long is printed and counted, the next one is recorded, and the exit code is 1."""
    record, judge = differs_if("nothing")
    monkeypatch.setattr(judging, "judged", judge)

    def verdict(one: dict[str, Any], release: str) -> Verdict:
        if one["name"] == "random-1-0":
            raise OutOfTime("the scenario took too long")
        return judging.verdict(one, release, record)

    monkeypatch.setattr(command, "verdict", verdict)
    assert command.main(["--release", "2.8.2", "--seed", "1", "--count", "2"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "2.8.2 seed 1 scenario 0: could not be recorded: OutOfTime the scenario took too long"
    assert said[-1] == "1 passed, 0 failed, 1 not recorded"


def test_controllers_are_counted_from_the_recording() -> None:
    """The recording in which the controller is killed has two controllers, one for each broker that owned the znode (2.8.2)."""
    golden = recorded("controller-killed")
    assert len(Verdict({}, golden, Result(None)).controllers) == 2
    assert numbers(golden["release"]) == (2, 8, 2)
