"""What a lab is made of, from what a person has said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from kcontrol.config import BrokerConfig
from kcontrol.errors import UserError
from kcontrol.sim import player
from kcontrol.sim.settings import FAULTS, Settings
from kcontrol.views import text


def _ids(brokers: Any) -> tuple[int, ...]:
    if isinstance(brokers, int) and not isinstance(brokers, bool) and brokers > 0:
        return tuple(range(1, brokers + 1))
    ids = tuple(brokers) if isinstance(brokers, Sequence) and not isinstance(brokers, str) else ()
    if not ids or len(set(ids)) != len(ids) or not all(isinstance(b, int) and not isinstance(b, bool) and b >= 0 for b in ids):
        raise UserError(f"{brokers!r} says nothing about brokers: say how many there are, or list their ids, as in [3, 2, 1].")
    return ids


def settings(
    brokers: Any,
    release: str,
    seed: int,
    config: Mapping[str, Any],
    replace: Mapping[str, Callable[..., Any]],
    data: bool = False,
    consumers: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of a run. Raises UserError, listing what is legal, for what is not."""
    try:
        chosen = BrokerConfig.of(release)
        for key, value in config.items():
            chosen = chosen.but(key, value)
        faults = (*FAULTS, "consumer") if consumers else FAULTS
        found = Settings(
            release, _ids(brokers), seed, chosen, faults=faults, replace=replace, data=data, consumers=consumers or {}
        )
        found.rules()
    except ValueError as problem:
        raise UserError(f"{text.clean(str(problem), 600)}.") from None
    return found


def played(scenario: Mapping[str, Any], release: str | None, seed: int, replace: Mapping[str, Callable[..., Any]]) -> Settings:
    """The settings of a run that plays a scenario. Raises UserError, listing what is legal, for what is not."""
    config = {"auto.leader.rebalance.enable": False, "delete.topic.enable": True}
    if scenario.get("unclean") is not None:
        config["unclean.leader.election.enable"] = scenario["unclean"]
    return settings(
        scenario.get("brokers"), player.line_of(release) if release else player.release_of(scenario), seed, config, replace
    )


def changed(settings: Settings) -> dict[str, str]:
    """Return the settings, rules and functions of a run that are not those of its release, in words, by name."""
    usual = BrokerConfig.of(settings.release)
    found = {
        f.name: f"{f.name.replace('_', '.')}={_spelt(getattr(settings.config, f.name))}"
        for f in fields(usual)
        if getattr(settings.config, f.name) != getattr(usual, f.name)
    }
    found |= {name: f"{name}={_spelt(value)}" for name, value in settings.rule_changes.items()}
    return found | {name: f"own {name}" for name in settings.replace}


def _spelt(value: Any) -> str:
    """Return a value as Kafka's property files spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
