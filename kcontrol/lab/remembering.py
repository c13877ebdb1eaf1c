"""What a controller has in memory, under Kafka's names, and which moves a state machine allows: as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from kcontrol.errors import UserError
from kcontrol.lab.frames import Frame
from kcontrol.lab.tables import table
from kcontrol.transitions import TransitionTable
from kcontrol.views import scene, text

MEMORY = {"kafka": "string", "entries": "Int64", "holds": "string"}

# Where Kafka 2.8 says it in other words than ours; every other name differs in its spelling alone.
KAFKA_NAMES: Mapping[str, str] = {
    "assignments": "partitionAssignments",
    "controller_epoch": "epoch",
    "controller_epoch_zk_version": "epochZkVersion",
    "leadership": "partitionLeadershipInfo",
    "live_broker_epochs": "liveBrokerEpochs",
    "offline_dirs": "replicasOnOfflineDirs",
}


def kafka_name(field: str) -> str:
    """A field of our context under the name that it has in ControllerContext.scala (2.8)."""
    head, *rest = field.split("_")
    return KAFKA_NAMES.get(field, head + "".join(word.capitalize() for word in rest))


def memory(state: scene.State, broker: int | None = None) -> pd.DataFrame:
    """One row per field of a broker's controller context, the active controller's where none is named, by our name of it.

    `entries` counts what a set or a map holds. Raises UserError for a broker that does not run.
    """
    ruler = scene.controller(state)
    chosen = broker if broker is not None else ruler[0] if ruler else None
    node = state["nodes"].get(str(chosen))
    if node is None:
        running = text.listed(sorted(map(int, state["nodes"])), 30) or "none"
        raise UserError(f"Broker {chosen} has no memory to look into, for it does not run; those that run: {running}.")
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
    """The pairs of states as a square: one row per state that is left, one column per state that is reached.

    Each field holds what decides the move: `mark` where nothing is decided, and nothing where the move is illegal.
    """
    names = [text.short(state) for state in machine.states]
    found = {(row.source, row.target): getattr(row.action, "__name__", "") for row in machine}
    rows = [[found.get((source, target), "") for target in machine.states] for source in machine.states]
    return Frame(rows, index=pd.Index(names, name="from"), columns=pd.Index(names, name="to"))
