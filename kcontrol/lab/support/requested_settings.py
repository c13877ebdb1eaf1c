"""Checks the arguments of `Lab` and `Lab.play`, and makes the settings of a run from them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import admin_actions, consumer_configs
from kcontrol.cluster.consumer_clients import REQUESTED
from kcontrol.cluster.consumer_configs import GROUP_ID, INSTANCE_ID
from kcontrol.cluster.run_settings import FAULTS, Settings
from kcontrol.core import controller_rules
from kcontrol.core.errors import UserError
from kcontrol.core.releases import is_since
from kcontrol.lab.groups import settings as group_settings
from kcontrol.lab.support import arguments, replacements
from kcontrol.recordings.door import group_player, player
from kcontrol.views import text

# A member id is the consumer's name with 37 characters more, a dash and a UUID, and has at most LARGEST_SHORT bytes.
LONGEST_NAME = arguments.LARGEST_SHORT - 37
EXAMPLE = '{"unclean.leader.election.enable": True}'


class Changed(NamedTuple):
    """The arguments of `Lab` by which a learner changes Kafka's behaviour; None means no change."""

    # Transitions of the state machines, mapped to the learner's functions.
    rows: Any = None
    # Leader elections and rules of the group coordinator, mapped to the learner's functions.
    strategies: Any = None
    # Rules, which are differences between releases such as "fenced_writes", mapped to values.
    rules: Any = None


NOTHING_CHANGED = Changed()


def _ids(brokers: Any) -> tuple[int, ...]:
    if isinstance(brokers, int) and not isinstance(brokers, bool) and brokers > 0:
        return tuple(range(1, brokers + 1))
    ids = tuple(brokers) if isinstance(brokers, Sequence) and not isinstance(brokers, str) else ()
    if not ids or len(set(ids)) != len(ids) or not all(isinstance(b, int) and not isinstance(b, bool) and b >= 0 for b in ids):
        raise UserError(f"brokers cannot be {brokers!r}: give their number, such as 3, or a list of their ids, as in [3, 2, 1].")
    return ids


def _named(config: Any) -> Mapping[str, Any]:
    if not isinstance(config, Mapping):
        raise UserError(f"config cannot be {config!r}: give each setting with its value, as in {EXAMPLE}.")
    return config


def _consumers(release: str, consumers: Any) -> dict[str, dict[str, Any]]:
    """Return the given settings of each consumer: `{"anna": {"group.id": "billing"}}`.

    `consumers` maps names to group ids or settings. Raises UserError for an illegal name or setting.
    """
    found = {}
    given = arguments.mapping(consumers, "Consumers", '{"a": "g"}')
    if given and not is_since(group_settings.FIRST, release):
        raise UserError(f"Brokers of Kafka {release} coordinate no groups: choose a release from 0.9 on, such as '2.8'.")
    for name, said in given.items():
        if not arguments.string(name, "A consumer's name", "a", LONGEST_NAME):
            raise UserError("A consumer's name cannot be empty: choose a text such as 'a'.")
        settings = said if isinstance(said, Mapping) else {GROUP_ID: said}
        arguments.string(settings.get(GROUP_ID), f"The {GROUP_ID} of consumer {arguments.shown(name)[1:-1]}", "g")
        arguments.storable(settings)
        if INSTANCE_ID in settings and not is_since("2.3", release):
            raise UserError(f"Kafka {release} has no static members: {INSTANCE_ID} came in 2.3 (KIP-345).")
        found[name] = consumer_configs.checked(release, name, settings)
    return found


def topic_settings(release: str, config: Any) -> dict[str, str]:
    """Return the settings of a topic by Kafka's names, as Kafka's tool stores them; `{}` if `config` is None.

    Raises UserError for a setting that is illegal in this release.
    """
    try:
        return admin_actions.topic_settings(release, _named(config or {}))
    except ValueError as problem:
        raise _refused(problem) from None


def _refused(problem: ValueError) -> UserError:
    return UserError(f"{text.clean(str(problem), 900)}.")


def settings(
    brokers: Any,
    release: str,
    seed: int,
    config: Mapping[str, Any],
    changed: Changed = NOTHING_CHANGED,
    data: bool = False,
    consumers: Mapping[str, Any] | None = None,
    purgatory: bool = False,
    topics: Mapping[str, Any] = {},
) -> Settings:
    """Return the settings of a run from the arguments of Lab with these names.

    `changed` has the arguments `rows`, `strategies` and `rules`. Raises UserError, which lists the legal values, for an illegal
    argument.
    """
    arguments.words(release, "The release", "2.8")
    arguments.whole(seed, "The seed")
    try:
        controller_rules.rules(release)  # raises ValueError for a release that is not known
        named = _consumers(release, consumers)
        groups = {name: said[GROUP_ID] for name, said in named.items()}
        chosen = BrokerConfig.of(release)
        of_groups = {key: value for key, value in _named(config).items() if group_settings.is_setting(key)}
        for key, value in ((key, config[key]) for key in config if key not in of_groups):
            group_settings.check_spelling(key, release)
            chosen = chosen.with_setting(key, value, release)
        faults = (*FAULTS, *REQUESTED) if groups else FAULTS
        ids, coordinators = _ids(brokers), group_settings.group_config(release, of_groups)
        if groups:
            coordinators = group_settings.with_topics(coordinators, topics)
        found = Settings(release, ids, seed, chosen, faults=faults, data=data, purgatory=purgatory)
        found = replace(found, consumers=groups, consumer_configs=named, group_config=coordinators)
        found.rules()
        rule_changes = replacements.rule_changes(changed.rules, release)
        own = replacements.changes(release, changed.rows, changed.strategies)
    except ValueError as problem:
        raise _refused(problem) from None
    return replace(found, rule_changes=rule_changes, changes=own)


def played(scenario: Mapping[str, Any], release: str | None, seed: int, changed: Changed) -> Settings:
    """Return the settings of a run that plays a scenario; `release` None means the release of the scenario.

    `changed` has the learner's transition rows, strategies and rules. Raises UserError for an illegal value.
    """
    line = player.line_of(release) if release else player.release_of(scenario)
    if "exchange" in scenario:
        return settings(release=line, seed=seed, changed=changed, **group_player.scenario_settings(scenario))
    try:
        config = player.config_of(scenario, line)
    except ValueError as problem:
        raise _refused(problem) from None
    return settings(scenario.get("brokers"), line, seed, config, changed)


def changed(settings: Settings) -> dict[str, str]:
    """Return the settings, rules and functions of a run that differ from those of its release, by name, in words.

    Examples of the words are "min.insync.replicas=2", "fenced_writes=false" and "own election offline".
    """
    usual = BrokerConfig.of(settings.release)
    found = {
        f.name: f"{f.name.replace('_', '.')}={_property_text(getattr(settings.config, f.name))}"
        for f in fields(usual)
        if getattr(settings.config, f.name) != getattr(usual, f.name)
    }
    found |= {name: f"{name}={_property_text(value)}" for name, value in settings.rule_changes.items()}
    found |= {name: replacements.own_name(name) for name in settings.changes.strategies}
    return found | {f"{source} {target}": f"own row ({source}, {target})" for source, target in settings.changes.rows}


def _property_text(value: Any) -> str:
    """Return a value as it is written in Kafka's property files, such as "true" for True."""
    return str(value).lower() if isinstance(value, bool) else str(value)
