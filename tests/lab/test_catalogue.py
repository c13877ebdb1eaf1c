"""What there is to open, to answer and to solve can be listed from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcontrol import Lab, exercises
from kcontrol.core.errors import UserError
from kcontrol.install import progress, workspace
from kcontrol.lab.catalogue import SHIPPED
from kcontrol.lab.exercises import predictions
from kcontrol.lab.exercises.exercises import registry
from tests.lab.support import is_one_sentence


def test_recordings_are_listed_by_the_name_that_opens_them() -> None:
    """Every recording in the folder has a row, releases in their order, and its name opens it."""
    listed = Lab.recordings()
    assert len(listed) == len(list(SHIPPED.rglob("*.json"))) > 0
    assert list(dict.fromkeys(listed.release)) == ["0.8.1.1", "0.9.0.1", "2.8.2"]
    opened = {name: Lab.open(name).name for name in listed.index}
    assert [name for name, run in opened.items() if listed.scenario[name] not in run or listed.release[name] not in run] == []


def test_an_unknown_recording_lists_those_that_there_are() -> None:
    """The name of a recording that is not there is answered with the recordings of that release, in one sentence."""
    with pytest.raises(UserError) as problem:
        Lab.open("2.8.2/foo")
    said = str(problem.value)
    assert "no recording '2.8.2/foo'" in said and "isr-order, " in said and is_one_sentence(said)
    with pytest.raises(UserError, match="There is no recording"):
        Lab.play("2.8.2/foo")


def test_a_file_comes_before_a_recording_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that exists is that file, though a recording has the name too."""
    with Lab(brokers=1, runs=None) as lab:
        lab.save(tmp_path / "run.jsonl")
    (tmp_path / "2.8.2").mkdir()
    (tmp_path / "run.jsonl").rename(tmp_path / "2.8.2" / "isr-order")
    monkeypatch.chdir(tmp_path)
    assert len(Lab.open("2.8.2/isr-order").records[0].fields["brokers"]) == 1


def test_questions_are_listed_without_their_answers() -> None:
    """Every question has a row with its chapter and its words, and no column says what is right."""
    listed = exercises.questions()
    assert list(listed.index) == list(predictions.predictions()) and list(listed.columns) == ["chapter", "question"]


def test_exercises_are_listed_with_their_standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exercise has a row; what was tried, solved and asked for in this folder is in it, and counted by chapter."""
    workspace.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    first, second = list(registry())[:2]
    progress.note(tmp_path, first, tries=2, solved=True)
    progress.note(tmp_path, second, tries=1, hints=2)
    listed, counted = exercises.list(), exercises.progress()
    assert list(listed.index) == list(registry())
    assert (listed.standing[first], listed.standing[second], listed.hints[second]) == ("solved", "tried once", 2)
    assert counted.loc["0"].to_dict() == {"exercises": 1, "tried": 1, "solved": 1}
    assert counted.loc["1"].to_dict() == {"exercises": 3, "tried": 1, "solved": 0}
