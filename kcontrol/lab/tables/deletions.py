"""The table of topic deletions that are not complete: the controller's sets for each topic, with the states of its replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kcontrol.core.model import PartitionReplica, TopicPartition
from kcontrol.core.znodes import delete_topic_path
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables
from kcontrol.views import folded_state

# Columns of the table. `requested`: the topic's znode below `/admin/delete_topics` exists. `queued`, `started`, `ineligible`:
# the topic is in this set of the deletion manager. Before 2.1 there is no set for `started`, and in recordings of real brokers
# there is none of the sets: the columns are then False. `state`: the replica's state in the controller's memory. `alive`: the
# replica's broker runs, even if the controller does not know this yet.
DELETIONS = {"requested": "bool", "queued": "bool", "started": "bool", "ineligible": "bool", "state": "string", "alive": "bool"}
SETS = {"queued": "topics_to_be_deleted", "started": "topics_with_deletion_started",
        "ineligible": "topics_ineligible_for_deletion"}  # fmt: skip


def ongoing_deletions(run: Run) -> pd.DataFrame:
    """Each replica of each topic to be deleted: its state, and the sets that the topic is in.

    The rows are sorted by partition, and within a partition in the order of its assignment.

    Source: ControllerContext.topicsToBeDeleted, topicsWithDeletionStarted, topicsIneligibleForDeletion (2.8).
    """
    return journal_tables.table(_rows(run.state), DELETIONS, "replica")


def _rows(state: folded_state.State) -> Iterator[dict[str, Any]]:
    memory = folded_state.controller_memory(state)
    states, sets = memory.get("replica_states", {}), {name: memory.get(field) or () for name, field in SETS.items()}
    for p in folded_state.partitions(state):
        of_topic = {"requested": delete_topic_path(p.topic) in state["znodes"]}
        of_topic |= {name: p.topic in topics for name, topics in sets.items()}
        if not (of_topic["requested"] or of_topic["queued"]):
            continue
        for broker in p.replicas:
            replica = str(PartitionReplica(TopicPartition(p.topic, p.number), broker))
            yield {"replica": replica, **of_topic, "state": states.get(replica), "alive": str(broker) in state["nodes"]}
