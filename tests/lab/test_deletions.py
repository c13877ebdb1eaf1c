"""The table of deletions: what is asked for, what the controller keeps of it, and the states of the replicas."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from kcontrol import Lab

Opened = Callable[..., Lab]
TOPICS = {"t": [[2, 3]], "u": [[3, 2]]}
TYPES = {"requested": "bool", "queued": "bool", "started": "bool", "ineligible": "bool", "state": "string", "alive": "bool"}


def rows(found: pd.DataFrame) -> dict[str, list[object]]:
    return {name: list(row) for name, row in zip(found.index, found.itertuples(index=False), strict=True)}


def test_nothing_is_to_be_deleted(opened: Opened) -> None:
    """Without a request there is no row, and every column has its type all the same."""
    found = opened(3, topics=TOPICS).tables.ongoing_deletions()
    assert len(found) == 0 and found.dtypes.astype(str).to_dict() == TYPES


def test_a_request_that_no_controller_has_read_yet(opened: Opened) -> None:
    """The topic is requested and not queued, and its replicas are Online; other topics are not in the table."""
    found = opened(3, topics=TOPICS).delete_topic("t").tables.ongoing_deletions()
    assert rows(found) == {name: [True, False, False, False, "OnlineReplica", True] for name in ("t-0@2", "t-0@3")}


@pytest.mark.parametrize(("release", "started"), [("2.8", True), ("0.8.1", False)])
def test_a_dead_broker_halts_its_topic(opened: Opened, release: str, started: bool) -> None:
    """The topic is queued and ineligible, and the dead broker's replica alone is left; 0.8.1 keeps no set of those started."""
    lab = opened(3, topics=TOPICS, release=release, config={"delete.topic.enable": True})
    lab.kill(3).run().delete_topic("t").run()
    assert rows(lab.tables.ongoing_deletions()) == {
        "t-0@2": [True, True, started, True, "ReplicaDeletionSuccessful", True],
        "t-0@3": [True, True, started, True, "OfflineReplica", False],
    }
    lab.start(3).run()
    assert len(lab.tables.ongoing_deletions()) == 0 and "/brokers/topics/t" not in lab.tables.znodes().index


def test_silence_makes_nothing_ineligible(opened: Opened) -> None:
    """A fork of a run shows what the run shows: a topic under way, queued and started, and not ineligible."""
    lab = opened(3, topics=TOPICS).freeze(3)
    lab.delete_topic("t").run()
    assert lab.tables.ongoing_deletions().equals(lab.branch().tables.ongoing_deletions())
    assert list(lab.tables.ongoing_deletions()[["queued", "started", "ineligible"]].all()) == [True, True, False]
    assert list(lab.tables.ongoing_deletions().state) == ["ReplicaDeletionSuccessful", "ReplicaDeletionStarted"]


def test_topics_of_a_recording_may_be_deleted() -> None:
    """Real brokers of 0.8.1.1 were recorded with deletion allowed, so a played recording allows it too."""
    real, ours = Lab.open("0.8.1.1/topic-deleted"), Lab.play("0.8.1.1/topic-deleted")
    assert "/brokers/topics/t" not in ours.tables.znodes().index
    assert str(real.compare(ours)).startswith("No difference")
