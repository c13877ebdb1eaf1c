"""Checks and tabulates Kafka's settings of the group coordinator, all of which have an effect in a lab.

Source: KafkaConfig.scala (0.9, 2.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kcontrol.broker import broker_configs, config_values
from kcontrol.cluster import consumer_clients
from kcontrol.cluster.run_settings import Settings
from kcontrol.core.errors import UserError
from kcontrol.core.releases import is_since, value_in_force
from kcontrol.group.context import CONFIGS, MINUTE_MS, GroupConfig
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.lab.support import arguments

if TYPE_CHECKING:
    import pandas as pd

FIRST = "0.9.0"


class Used(NamedTuple):
    """A setting of the coordinator that has an effect in a lab: its meaning, its use in a lab, and its first release."""

    meaning: str
    # "yes" if a lab uses the setting as Kafka does, else words about its use, such as "as the timer of each coordinator".
    use_in_lab: str = "yes"
    # The first release with the setting.
    since: str = FIRST
    # The least and the greatest legal value in a lab.
    least: int = 0
    most: int = broker_configs.LARGEST_INT
    # The end of the error message about an illegal value: the values that Kafka takes and a lab refuses. "" if there are none.
    refused: str = ""
    # The number by which the setting's value is multiplied for the field in GroupConfig: 60,000 for a setting in minutes, whose
    # field is in ms.
    factor: int = 1


# fmt: off
USED = {
    "metadata_max": Used("how long the metadata text of a committed offset may be, in characters"),
    "retention_ms": Used("how long a committed offset is kept", least=1, factor=MINUTE_MS),
    "check_interval_ms": Used("how often the coordinator looks for expired offsets", "as the timer of each coordinator", least=1),
    "partitions": Used("how many partitions the offsets topic has", "yes; in a lab with consumers as in topics, else 1",
                       least=1),
    "replication_factor": Used("how many replicas the offsets topic gets", "where FindCoordinator creates the topic", least=1,
                               most=arguments.LARGEST_SHORT),
    "commit_timeout_ms": Used("how long a write of the coordinator waits for its replicas", least=1),
    "required_acks": Used("which acks a write of the coordinator asks for; -1 is the whole ISR", least=-1,
                          most=arguments.LARGEST_SHORT),
    "load_buffer_size": Used("how many bytes a load reads at once", "yes; a batch is read whole", least=1),
    "segment_bytes": Used("how large a segment of the offsets topic becomes", "as the topic's segment.bytes, if set", least=14,
                          refused="; a broker of Kafka also takes 1 to 13, but then it cannot create the topic"),
    "min_session_timeout_ms": Used("the least session timeout that a member may ask for"),
    "max_session_timeout_ms": Used("the greatest session timeout that a member may ask for"),
    "initial_delay_ms": Used("how long the first rebalance of an Empty group waits for more members", since="0.11.0"),
    "max_size": Used("how many members a group may have", since="2.2.0", least=1),
    "compression_codec": Used("how a batch of the offsets topic is compressed: 0 is not at all, 1 is gzip",
                              "yes; releases before 0.10.0.1 never compress the offsets topic",
                              most=1, refused="; Kafka also takes 2 (snappy), 3 (lz4) and, since 2.1, 4 (zstd), but a lab does "
                              "not compress with these codecs"),
}
# fmt: on
FIELDS = {CONFIGS[field][0]: field for field in USED}


def known(release: str) -> list[str]:
    """Return Kafka's names, with dots, of the group coordinator's settings that have an effect in a lab of the release."""
    return [name for name, field in FIELDS.items() if is_since(USED[field].since, release)]


def is_setting(name: object) -> bool:
    """Return whether a name, with dots or underscores, is a setting of the group coordinator of any release."""
    return _dotted(name) in FIELDS


def check_spelling(name: object, release: str) -> None:
    """Raise UserError, which has the right name, if `name` is a misspelt setting of the group coordinator in this release."""
    own, others = known(release), config_values.names("broker", release)
    closest = config_values.closest_to(_dotted(name), [*own, *others])
    if closest in own and _dotted(name) not in broker_configs.CONFIGS:
        raise UserError(f"{_dotted(name)!r} is no setting of a broker here; did you mean {closest}?")


def _dotted(name: object) -> str:
    return str(name).replace("_", ".")


def group_config(release: str, config: Mapping[str, Any]) -> dict[str, int]:
    """Return the settings in `config` by field of GroupConfig: {"offsets.retention.minutes": 1} gives {"retention_ms": 60000}.

    Raises UserError for an illegal value, and for a setting that the lab's release lacks.
    """
    # The keys of `config` are Kafka's names, with dots or underscores. Defaults are not added.
    found = {}
    for name, value in ((_dotted(name), value) for name, value in config.items()):
        if name not in known(release):
            taken = ", ".join(known(release)) or "none"
            raise UserError(f"A lab of Kafka {release} does not take {name}; of the coordinator's settings it takes {taken}.")
        use = USED[FIELDS[name]]
        if not isinstance(value, int) or isinstance(value, bool) or not use.least <= value <= use.most:
            legal = f"whole numbers from {use.least} to {use.most} are legal{use.refused}"
            raise UserError(f"{arguments.shown(value)} is no value of {name}: {legal}.")
        found[FIELDS[name]] = value * use.factor
    if found:
        _check_acks(GroupConfig.of(release, **found))
    return found


def with_topics(config: dict[str, int], topics: Mapping[str, Any]) -> dict[str, int]:
    """Return `config` with `partitions` set to the number of partitions of the offsets topic in `topics`.

    If `topics` does not have the offsets topic, return `config` unchanged. Raises UserError if `config` has another number.
    """
    replicas = topics.get(OFFSETS_TOPIC)
    many = len(replicas) if isinstance(replicas, list | tuple | Mapping) else 0
    chosen, name = config.get("partitions", many or 1), CONFIGS["partitions"][0]
    if many and chosen != many:
        raise UserError(
            f"{name} is {chosen}, but topics has {many} for {OFFSETS_TOPIC}: leave out {name}, or list {chosen} partitions."
        )
    # The lab's default, 1, is in no dict.
    return config if many <= 1 else config | {"partitions": many}


def _check_acks(config: GroupConfig) -> None:
    """Source: validateValues of KafkaConfig.scala (0.9, 2.8)."""
    if config.required_acks > config.replication_factor:
        raise UserError(
            f"A broker does not start with offsets.commit.required.acks {config.required_acks}, because this is more than its "
            f"offsets.topic.replication.factor {config.replication_factor}: choose acks from -1 to {config.replication_factor}."
        )


def table(settings: Settings) -> pd.DataFrame:
    """No row before 0.9, the first release with a coordinator."""
    # The processes of a sweep import this module, and pandas would take longer than ten of their runs.
    from kcontrol.lab.tables import config, journal_tables

    rows = _rows(settings) if is_since(FIRST, settings.release) else ()
    return journal_tables.table(rows, config.CONFIG, "name")


def _rows(settings: Settings) -> Iterator[dict[str, Any]]:
    from kcontrol.lab.tables.config import config_row

    release, chosen = settings.release, settings.group_config
    values = consumer_clients.config(settings) if settings.consumers else GroupConfig.of(release, **chosen)
    for field, use in USED.items():
        value = getattr(values, field) // use.factor if is_since(use.since, release) else None
        defaults = tuple((since, default if default is None else default // use.factor) for since, default in _defaults(field))
        yield config_row(broker_configs.Config(CONFIGS[field][0], defaults, use.meaning, True, use.use_in_lab), release, value)


def _defaults(field: str) -> list[tuple[str, int | None]]:
    """(release, default from this release on), None in releases without the setting."""
    defaults, since = CONFIGS[field][1], USED[field].since
    if since == FIRST:
        return list(defaults)
    later = [(release, default) for release, default in defaults if is_since(since, release) and release != since]
    return [(FIRST, None), (since, value_in_force(defaults, since)), *later]
