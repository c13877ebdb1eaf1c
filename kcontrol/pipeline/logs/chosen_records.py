"""The condition for the log records that a user has chosen by time (--from, --to) and topic (--topic)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from kcontrol.pipeline.logs.names_in_messages import PLACES
from kcontrol.pipeline.logs.patterns import forms
from kcontrol.pipeline.pipeline import Chosen

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOPIC_FACTS = ("topic", "topics", "added_topics", "deleted_topics")
TOPIC, TOPIC_OF_PLACE = r'"([^"]+)"', r'"([A-Za-z0-9._-]+)-\d+(?:@\d+)?"'


def is_chosen(chosen: Chosen) -> Column:
    """Return the condition that a log record is in the chosen time, and about the chosen topic or about no topic.

    The time of a record is that written in the log. With a limit of time, a record without a time is not chosen.
    """
    found, local = sql.lit(True), sql.col("local_time")
    if chosen.since is not None:
        found &= sql.coalesce(local >= _time(chosen.since), sql.lit(False))
    if chosen.until is not None:
        found &= sql.coalesce(local < _time(chosen.until), sql.lit(False))
    if chosen.topic is not None:
        topics = topics_of_record()
        found &= (sql.size(topics) == 0) | sql.array_contains(topics, chosen.topic)
    return found


def _time(time: datetime) -> Column:
    return sql.lit(time.isoformat()).cast("timestamp_ntz")


def topics_of_record() -> Column:
    """Return a column with the array of the topics that the facts, the values in the message, of a log record name."""
    return sql.concat(*_topics())


def topics_in(rows: DataFrame) -> list[str]:
    """Return the topics that the facts of the log records `rows` name, sorted, each once."""
    return sorted(row["topic"] for row in rows.select(sql.explode(topics_of_record()).alias("topic")).distinct().collect())


def _topics() -> Iterator[Column]:
    """Yield columns of arrays with the topics in the facts (values) of a log message.

    There is one column for each fact that may name topics, such as `partitions`.
    """
    yield from (_matches(sql.col("facts")[name], TOPIC) for name in TOPIC_FACTS)
    kinds: dict[str, set[str]] = {}
    for form in forms():
        for name in (name for name, type_ in form.facts.items() if type_ in PLACES):
            kinds.setdefault(name, set()).add(form.kind)
    for name, found in kinds.items():
        yield _matches(sql.when(sql.col("kind").isin(*sorted(found)), sql.col("facts")[name]), TOPIC_OF_PLACE)


def _matches(text: Column, pattern: str) -> Column:
    return sql.coalesce(sql.regexp_extract_all(text, sql.lit(pattern), sql.lit(1)), sql.array().cast("array<string>"))
