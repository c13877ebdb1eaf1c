"""Makes the table of Kafka's settings of a lab: those of its brokers, and those of their group coordinators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kcontrol.broker.broker_configs import CONFIGS, Config
from kcontrol.lab.groups import settings as group_settings
from kcontrol.lab.support.late import pd
from kcontrol.lab.tables import journal_tables

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab

CONFIG = {"value": "object", "default": "object", "defaults": "string", "meaning": "string", "is_used": "bool", "here": "string"}


def config(lab: Lab) -> pd.DataFrame:
    """Kafka's settings of these brokers: value, defaults, meaning, and the effect in kcontrol.

    The column `default` is the default of the lab's release; the column `defaults` has those of all releases.
    """
    settings = lab._world.settings
    return pd.concat([_of_brokers(settings.release, asdict(settings.config)), group_settings.table(settings)])


def _of_brokers(release: str, values: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per broker setting of the control plane: its value, its defaults, and whether kcontrol uses it.

    `values` maps names with underscores, such as `broker_id`, to values; a setting without a value has the default.
    """
    # The column `default` is that of `release`, the column `defaults` has those of all releases.
    rows = (config_row(row, release, values.get(row.name.replace(".", "_"))) for row in CONFIGS.values())
    return journal_tables.table(rows, CONFIG, "name")


def config_row(row: Config, release: str, value: Any) -> dict[str, Any]:
    defaults = "; ".join(f"{since}: {'none' if value is None else value}" for since, value in row.defaults)
    unsaid = row.default(release)
    return {
        "name": row.name, "value": unsaid if value is None and row.is_used else value, "default": unsaid, "defaults": defaults,
        "meaning": row.meaning, "is_used": row.is_used, "here": row.behavior_here,
    }  # fmt: skip
