"""Makes tables of a controller's memory, under Kafka's names, and of the transitions that a state machine allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.core.transitions import TransitionTable
from kcontrol.lab.support.late import frames, pd
from kcontrol.lab.tables.journal_tables import table
from kcontrol.views import folded_state, text

# `entries` is missing for a value that is no set, list or map.
MEMORY = {"kafka": "string", "entries": "Int64", "holds": "string"}

# The fields for which Kafka 2.8 uses other words than kcontrol; every other name differs in its spelling only.
KAFKA_NAMES: Mapping[str, str] = {
    "assignments": "partitionAssignments",
    "controller_epoch": "epoch",
    "controller_epoch_zk_version": "epochZkVersion",
    "leadership": "partitionLeadershipInfo",
    "live_broker_epochs": "liveBrokerEpochs",
    "offline_dirs": "replicasOnOfflineDirs",
}


def kafka_name(field: str) -> str:
    """Return the name of a context field in ControllerContext.scala (2.8), such as "liveBrokers" for "live_brokers".

    A name that KAFKA_NAMES does not have is put into camel case.
    """
    head, *rest = field.split("_")
    return KAFKA_NAMES.get(field, head + "".join(word.capitalize() for word in rest))


def memory(state: folded_state.State, broker: int | None = None) -> pd.DataFrame:
    """Return one row per field of a controller context: Kafka's name of the field, its value as text, its number of entries.

    `broker` is by default the active controller. Raises UserError if this broker does not run.
    """
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


def moves(machine: TransitionTable) -> pd.DataFrame:
    """Return the transitions of a state machine as a table: one row per source state, one column per target state.

    A cell has the name of the transition's function, "" for an illegal transition.
    """
    names = [text.short(state) for state in machine.states]
    # A transition that only changes memory has the function `memory_only`.
    found = {(row.source, row.target): getattr(row.action, "__name__", "") for row in machine}
    rows = [[found.get((source, target), "") for target in machine.states] for source in machine.states]
    return frames.Frame(rows, index=pd.Index(names, name="from"), columns=pd.Index(names, name="to"))
