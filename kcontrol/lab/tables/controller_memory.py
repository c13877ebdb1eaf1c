"""Tables of a controller's memory under Kafka's names, of unfinished topic deletions, and of a machine's legal transitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.core.model import PartitionReplica, TopicPartition
from kcontrol.core.znodes import delete_topic_path
from kcontrol.lab.run import Run
from kcontrol.lab.support import arguments, replacements
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables.journal_tables import table
from kcontrol.views import folded_state, text

# `entries` is missing for a value that is no set, list or map.
MEMORY = {"kafka": "string", "entries": "Int64", "holds": "string"}

# The fields for which Kafka 2.8 uses other words than kcontrol; every other name differs in its spelling only.
KAFKA_NAMES: Mapping[str, str] = {"assignments": "partitionAssignments", "controller_epoch": "epoch",
                                  "controller_epoch_zk_version": "epochZkVersion", "leadership": "partitionLeadershipInfo",
                                  "live_broker_epochs": "liveBrokerEpochs", "offline_dirs": "replicasOnOfflineDirs"}  # fmt: skip


def kafka_name(field: str) -> str:
    """Return the name of a context field in ControllerContext.scala (2.8), such as "liveBrokers" for "live_brokers".

    A name that KAFKA_NAMES does not have is put into camel case.
    """
    head, *rest = field.split("_")
    return KAFKA_NAMES.get(field, head + "".join(word.capitalize() for word in rest))


def controller_memory(run: Run, broker: int | None = None) -> pd.DataFrame:
    """The fields of a controller context, with Kafka's name, value as text, and number of entries.

    `broker` is by default the active controller. Raises UserError if this broker does not run.
    """
    state = run.state
    ruler = folded_state.controller(state)
    chosen = broker if broker is not None else ruler[0] if ruler else None
    node = state["nodes"].get(str(chosen))
    if node is None:
        running = text.listed(sorted(map(int, state["nodes"])), 30) or "none"
        raise UserError(f"Broker {chosen} does not run, so it has no memory to show; the running brokers: {running}.")
    return table((_row(field, value) for field, value in sorted(node["controller"].items())), MEMORY, "field")


def _row(field: str, value: Any) -> dict[str, Any]:
    many = isinstance(value, dict | list)
    shown = ", ".join(f"{key}: {_brief(item)}" for key, item in value.items()) if isinstance(value, dict) else _brief(value)
    return {"field": field, "kafka": kafka_name(field), "entries": len(value) if many else None, "holds": text.clean(shown)}


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def legal_transitions(run: Run, machine: str = "partition") -> pd.DataFrame:
    """The legal target states of each state of the machine "partition", "replica" or "group".

    A row per source state, a column per target state; a cell has the transition's function, `memory_only` if it only changes
    memory, and "" if the transition is illegal. Raises UserError for an unknown `machine`.
    """
    table = run._table(arguments.one_of(machine, replacements.MACHINES, "transition table of"))
    names = [text.short(state) for state in table.states]
    found = {(row.source, row.target): getattr(row.action, "__name__", "") for row in table}
    rows = [[found.get((source, target), "") for target in table.states] for source in table.states]
    return frames.Frame(rows, index=pd.Index(names, name="from"), columns=pd.Index(names, name="to"))


# ---------------------------------------------------------------- topic deletions that are not complete


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
    return table(_deletions(run.state), DELETIONS, "replica")


def _deletions(state: folded_state.State) -> Iterator[dict[str, Any]]:
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
