"""Kafka's metrics of a run, those of the controller and those of the group coordinator, as a table and as text for Prometheus."""

from __future__ import annotations

from kcontrol.lab.groups import metrics as of_groups
from kcontrol.lab.run import Run
from kcontrol.lab.support.late import pd
from kcontrol.lab.support.output import Shown
from kcontrol.lab.tables import statistics


def metrics(run: Run) -> pd.DataFrame:
    """Kafka's own metrics of controller and coordinator, by broker.

    There is a row per metric and attribute, and a column per running broker. Timers are in ms, MeanRate is per second.
    Raises UserError for a recording of real brokers.
    """
    return statistics.table(_statistics(run))


def prometheus(run: Run) -> Shown:
    """Kafka's own metrics of controller and coordinator, as text that Prometheus reads.

    Raises UserError for a recording of real brokers.
    """
    return Shown(statistics.exposition(_statistics(run), run.name))


def _statistics(run: Run) -> list[statistics.Statistic]:
    return statistics.statistics(run.records) + of_groups.statistics(run.records, run.state)
