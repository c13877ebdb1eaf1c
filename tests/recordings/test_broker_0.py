"""Recordings and scenarios with a broker 0: the id of every quickstart is an id as any other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.recordings import recording
from kcontrol.recordings.compare import first_difference
from tests.recordings.support import in_project

LISTS = {"isr", "replicas", "adding_replicas", "removing_replicas", "live_brokers", "live_leaders", "offline_replicas", "brokers"}
ONE = {"by", "to", "leader", "brokerid", "broker", "ephemeral_owner"}
DONE = {"start", "kill", "term", "terminate"}


def from_zero(value: Any, key: str = "") -> Any:
    """Return a part of a recording with every broker's id one less, so that broker 1 is broker 0."""
    match value:
        case dict():
            return {re.sub(r"(?<=/brokers/ids/)\d+$", _less, name): from_zero(item, name) for name, item in value.items()}
        case list():
            return [from_zero(item, key) for item in value]
        case str():
            return re.sub(r"(?<=/brokers/ids/)\d+$|(?<=@)\d+$", _less, value)
        case int() if not isinstance(value, bool) and value > 0 and (key in LISTS | ONE | DONE or key.isdecimal()):
            return value - 1
    return value


def _less(found: re.Match[str]) -> str:
    return str(int(found[0]) - 1)


@pytest.fixture(params=[("0.8.1.1", "leader-killed"), ("2.8.2", "controller-killed"), ("2.8.2", "leader-killed")])
def with_broker_0(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording of real brokers whose ids begin with 0."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "from-zero.json"
    path.write_text(json.dumps(from_zero(recording.load(in_project(*request.param)))), encoding="utf-8")
    return path


def test_it_is_read_whole(with_broker_0: Path) -> None:
    """The journal of such a recording has every write, move and request of the recording under the same ids."""
    theirs = recording.load(with_broker_0)
    assert theirs["brokers"] == [0, 1, 2]
    assert first_difference(theirs, recording.of_journal(Lab.open(with_broker_0).records)) is None


def test_our_play_is_equal_to_it(with_broker_0: Path) -> None:
    """Our brokers 0, 1 and 2 do by the rule of the recordings what the recorded ones have done."""
    mine = Lab.play(with_broker_0, runs=None)
    assert first_difference(recording.load(with_broker_0), recording.of_journal(mine.records)) is None


def test_its_words_name_broker_0(with_broker_0: Path) -> None:
    """Broker 0 registers and moves partitions under its own name, and a client creates the topic."""
    said = Lab.open(with_broker_0).journal()["what"].tolist()
    assert any(sentence.startswith("Broker 0 creates /brokers/ids/0") for sentence in said)
    assert any(sentence.startswith("Broker 0 moves t-0 from New to Online") for sentence in said)
    assert "A client creates /brokers/topics/t." in said
