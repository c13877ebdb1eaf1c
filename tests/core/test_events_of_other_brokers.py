"""Which events a broker handles that is not controller."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest

from kcontrol.controller.context import ControllerContext
from kcontrol.controller.handlers import design_of, handle
from kcontrol.core.controller_rules import rules
from kcontrol.core.effects import Handler, Respond

# The events whose code does not look whether the broker is controller.
# Source: the process methods of KafkaController (2.8) and of its ControllerEvents (1.0) without `if (!isActive) return`;
# the listeners that extend neither ControllerZkChildListener nor ControllerZkDataListener (0.10.2).
WITHOUT_OFFICE = {
    "2.8": {"Startup", "ControllerChange", "Reelect", "RegisterBrokerAndReelect", "Expire"},
    "1.0": {
        "PathChanged", "NewSession", "RegisterBroker", "Startup", "ControllerChange", "Reelect",
        "LeaderAndIsrResponseReceived", "LogDirEventNotification",
    },
    "0.10.2": {
        "BrokerStartup", "LeaderChange", "ControllerEpochChange", "NewSession", "RegisterBroker", "DeletionsResumed",
        "TopicDeletionStopReplicaResponseReceived", "ControlledShutdown", "AutoPreferredReplicaLeaderElection",
    },
}  # fmt: skip
EVENTS = [(release, event) for release in WITHOUT_OFFICE for event in design_of(rules(release)).handlers]


def of(event: type) -> Any:
    """An event of this kind, with None in every field that has no default."""
    required = [f for f in fields(event) if f.default is MISSING and f.default_factory is MISSING]
    return event(**{f.name: None for f in required})


def handled(monkeypatch: pytest.MonkeyPatch, release: str, event: type) -> tuple[bool, list[Any]]:
    """Whether broker 1, which is not controller, calls the handler of the event, and the effects besides."""
    called: list[Any] = []

    def handler(ctx: ControllerContext, event: Any) -> Handler:
        called.append(event)
        yield from ()

    context = ControllerContext(1, rules(release), design_of(rules(release)))
    table: Any = context.design.handlers
    monkeypatch.setitem(table, event, table[event]._replace(handler=handler))
    effects = list(handle(context, of(event)))
    return bool(called), effects


@pytest.mark.parametrize(("release", "event"), EVENTS, ids=lambda value: getattr(value, "__name__", value))
def test_only_some_events_are_handled_by_a_broker_without_office(
    monkeypatch: pytest.MonkeyPatch, release: str, event: type
) -> None:
    """A broker that is not controller calls the handlers of the events that Kafka handles everywhere, and no other."""
    called, effects = handled(monkeypatch, release, event)
    assert called is (event.__name__ in WITHOUT_OFFICE[release])
    assert all(isinstance(effect, Respond) for effect in effects)


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.1"])
def test_old_listeners_do_not_check_that_their_broker_is_controller(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    """Before 0.10.2 every listener that is called goes on, whether its broker is controller or not (KAFKA-4360)."""
    for event in design_of(rules(release)).handlers:
        assert handled(monkeypatch, release, event) == (True, [])
