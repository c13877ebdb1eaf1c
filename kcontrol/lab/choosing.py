"""What a lab is made of, from what a person has said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from kcontrol.config import BrokerConfig
from kcontrol.errors import UserError
from kcontrol.lab import arguments
from kcontrol.sim import hands, player
from kcontrol.sim.settings import FAULTS, Settings
from kcontrol.views import text

EXAMPLE = '{"unclean.leader.election.enable": True}'


def _ids(brokers: Any) -> tuple[int, ...]:
    if isinstance(brokers, int) and not isinstance(brokers, bool) and brokers > 0:
        return tuple(range(1, brokers + 1))
    ids = tuple(brokers) if isinstance(brokers, Sequence) and not isinstance(brokers, str) else ()
    if not ids or len(set(ids)) != len(ids) or not all(isinstance(b, int) and not isinstance(b, bool) and b >= 0 for b in ids):
        raise UserError(f"{brokers!r} says nothing about brokers: say how many there are, or list their ids, as in [3, 2, 1].")
    return ids


def _named(config: Any) -> Mapping[str, Any]:
    if not isinstance(config, Mapping):
        raise UserError(f"{config!r} holds no settings: name each with its value, as in {EXAMPLE}.")
    return config


def _consumers(consumers: Any) -> Mapping[str, str]:
    named = arguments.mapping(consumers, "Consumers", '{"a": "g"}')
    for name, group in named.items():
        arguments.words(name, "A consumer's name", "a")
        arguments.words(group, f"The group of consumer {name}", "g")
    return named


def topic_settings(release: str, config: Any) -> dict[str, str]:
    """Return the settings of a topic as the topic tool stores them. Raises UserError, listing what is legal, for what is not."""
    try:
        return hands.topic_settings(release, _named(config or {}))
    except ValueError as problem:
        raise _refused(problem) from None


def _refused(problem: ValueError) -> UserError:
    return UserError(f"{text.clean(str(problem), 900)}.")


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
    arguments.words(release, "The release", "2.8")
    arguments.whole(seed, "The seed")
    consumers = _consumers(consumers)
    try:
        chosen = BrokerConfig.of(release)
        for key, value in _named(config).items():
            chosen = chosen.but(key, value, release)
        faults = (*FAULTS, "consumer") if consumers else FAULTS
        found = Settings(release, _ids(brokers), seed, chosen, faults=faults, replace=replace, data=data, consumers=consumers)
        found.rules()
    except ValueError as problem:
        raise _refused(problem) from None
    return found


def played(scenario: Mapping[str, Any], release: str | None, seed: int, replace: Mapping[str, Callable[..., Any]]) -> Settings:
    """The settings of a run that plays a scenario. Raises UserError, listing what is legal, for what is not."""
    line = player.line_of(release) if release else player.release_of(scenario)
    try:
        config = player.config_of(scenario, line)
    except ValueError as problem:
        raise _refused(problem) from None
    return settings(scenario.get("brokers"), line, seed, config, replace)


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
