"""The assignors against Kafka's own: `assigned_2_8_2.txt` is what the classes of Kafka 2.8.2 made of random questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kcontrol.core.model import TopicPartition
from kcontrol.group.assignors import Subscription
from kcontrol.group.sticky import ASSIGNORS

QUESTIONS = [json.loads(line) for line in (Path(__file__).parent / "assignors" / "assigned_2_8_2.txt").read_text().splitlines()]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_an_assignor_assigns_as_kafka_does(assignor: str) -> None:
    """Each member gets the partitions, in the order, that Kafka's assignor (2.8.2) gives it, run by `assignors/Assign.java`."""
    asked = [question for question in QUESTIONS if question["assignor"] == assignor]
    assert len(asked) >= 25
    differing = {number: question for number, question in enumerate(asked) if assigned(question) != question["assigned"]}
    assert differing == {}


def assigned(question: dict[str, Any]) -> dict[str, list[str]]:
    """Return what our assignor makes of a question."""
    members = {
        name: Subscription(tuple(member["topics"]), tuple(map(TopicPartition.parse, member["owned"])), member["generation"])
        for name, member in question["members"].items()
    }
    found = ASSIGNORS[question["assignor"]](question["partitions"], members)
    return {name: list(map(str, partitions)) for name, partitions in found.items()}
