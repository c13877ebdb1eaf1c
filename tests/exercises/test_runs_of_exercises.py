"""The run that an exercise asks about can be looked into, and cannot be changed."""

from __future__ import annotations

import pytest

from kcontrol import exercises
from kcontrol.core.errors import UserError
from kcontrol.lab.exercises.exercises import registry


def test_the_run_is_the_one_that_is_judged() -> None:
    """Two controllers share epoch 2 in the run of that exercise, and the answer that is right can be read off its journal."""
    run = exercises.incident("shared-epoch")
    writes = run.journal("write")
    lost = writes[writes.error == "BadVersion"]
    assert lost.node.tolist() == [2] and lost.ops.iloc[0][0][1] == "/controller_epoch"
    assert run.brokers().controller_epoch.dropna().tolist() == [2, 2]
    assert not hasattr(run, "kill")


def test_every_run_comes_to_its_question() -> None:
    """Each exercise that has scenarios has a run, which ends without an event that has failed by itself."""
    for id, entry in registry().items():
        if entry["chapter"] in (2, 4, 10) and entry.get("scenario"):
            assert not [record for record in exercises.incident(id).records if record.kind == "handler_error"], id


@pytest.mark.parametrize(("id", "said"), [("was-it-us", "has no run"), ("no-such-thing", "shared-epoch")])
def test_exercises_without_a_run(id: str, said: str) -> None:
    """One that is a function alone, and one that does not exist, are refused in a sentence."""
    with pytest.raises(UserError, match=said):
        exercises.incident(id)
