"""The states that a world and the fold of its journal are compared by."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from kcontrol.broker.context import BrokerContext
from kcontrol.controller.context import ControllerContext
from kcontrol.group.context import GroupContext


def without_defaults(state: dict[str, Any]) -> dict[str, Any]:
    """Return `state`, a result of `snapshot`, without empty queues and without context fields that are empty or have defaults."""
    # The state that `journal.fold` computes lacks fields that have never changed.
    nodes = {}
    for n, node in state["nodes"].items():
        contexts = {
            context_name: _without_default_fields(node[context_name], cls)
            for context_name, cls in (("controller", ControllerContext), ("broker", BrokerContext))
        }
        contexts |= {"group": _without_default_fields(node["group"], GroupContext)} if "group" in node else {}
        nodes[n] = node | contexts | {"queues": {name: waiting for name, waiting in node["queues"].items() if waiting}}
    return state | {"nodes": nodes}


def _without_default_fields(context_fields: dict[str, Any], cls: Any) -> dict[str, Any]:
    first = {f.name: f.default for f in fields(cls)}
    return {name: value for name, value in context_fields.items() if value not in ({}, [], first[name])}
