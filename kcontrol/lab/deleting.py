"""Deletions of topics as they stand: what the controller keeps of each topic, beside the states of its replicas."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pandas as pd

from kcontrol.lab import tables
from kcontrol.model import PartitionReplica, TopicPartition
from kcontrol.views import scene
from kcontrol.znodes import delete_topic_path

DELETIONS = {"requested": "bool", "queued": "bool", "started": "bool", "ineligible": "bool", "state": "string", "alive": "bool"}
SETS = {
    "queued": "topics_to_be_deleted",
    "started": "topics_with_deletion_started",
    "ineligible": "topics_ineligible_for_deletion",
}


def deletions(state: scene.State) -> pd.DataFrame:
    """One row per replica of each topic whose deletion is asked for in ZooKeeper, or queued at the active controller, by name.

    `requested`: its znode below `/admin/delete_topics` is there. `queued`, `started`, `ineligible`: the topic is in that set of
    the deletion manager; before 2.1 there is no set of those started, and `started` is False. `state`: the replica's, in the
    controller's memory. `alive`: its broker is running, which the controller need not know. A recording says nothing of sets.
    Source: ControllerContext.topicsToBeDeleted, topicsWithDeletionStarted, topicsIneligibleForDeletion (2.8).
    """
    return tables.table(_rows(state), DELETIONS, "replica")


def _rows(state: scene.State) -> Iterator[dict[str, Any]]:
    states, sets = tables.states_at_the_controller(state, "replica"), {name: _topics(state, name) for name in SETS}
    for p in scene.partitions(state):
        of_topic = {"requested": delete_topic_path(p.topic) in state["znodes"]}
        of_topic |= {name: p.topic in topics for name, topics in sets.items()}
        if not (of_topic["requested"] or of_topic["queued"]):
            continue
        for broker in p.replicas:
            replica = str(PartitionReplica(TopicPartition(p.topic, p.number), broker))
            yield {"replica": replica, **of_topic, "state": states.get(replica), "alive": str(broker) in state["nodes"]}


def _topics(state: scene.State, name: str) -> Collection[str]:
    """The topics in a set of the broker that `/controller` names."""
    ruler = scene.controller(state)
    node = state["nodes"].get(str(ruler[0]), {}) if ruler else {}
    return node.get("controller", {}).get(SETS[name]) or ()
