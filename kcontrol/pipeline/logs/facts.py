"""Functions that return the kind and the facts of a message in a broker's log as Spark columns, by `log_lines.tsv`.

A fact is a value in a message, with a name: from "Broker 1 ..." the fact `broker`, which is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from kcontrol.kafka_logs.log_lines import STATE
from kcontrol.kafka_logs.templates import IDS
from kcontrol.pipeline.logs.patterns import FACT, NAME, OPENINGS, TYPE, Form, forms

if TYPE_CHECKING:
    from pyspark.sql import Column

# The forms of a partition or replica in a list, each with its replacement: `topic-partition`, `topic-partition@broker`.
PLACES = (
    (r"\[Topic=([^,\]]+),Partition=(\d+),Replica=(\d+)\]", "$1-$2@$3"),
    (r"(?:PartitionAndReplica)?\(([A-Za-z0-9._-]+),(\d+),(\d+)\)", "$1-$2@$3"),
    (r"\[([^\[\],\s]+),\s?(\d+)\]", "$1-$2"),
)
PLACE = r"[A-Za-z0-9._-]+-\d+(?:@\d+)?"
LAST = rf"(?={FACT}|\z)"
CONVERTED_TOGETHER = (
    (rf"{FACT}\w+{NAME}(?:{STATE}{TYPE}[^{FACT}]*|(?:\w+{TYPE})?){LAST}", ""),
    (rf"{NAME}text{TYPE}([ !#-\[\]-~]*+){LAST}", f'{NAME}"$1"'),
    (rf"{NAME}ints{TYPE}[:\[( ]?(\d++(?:,\d++)*+)\]?{LAST}", f"{NAME}[$1]"),
)
"""Replacements in the text of all facts: of facts without a value, of texts without a character that JSON escapes, and of lists
of numbers. One replacement costs less than a conversion of each value."""


def encoded_facts(message: Column) -> Column:
    """Return the kind of a log message and its facts (named values, such as the partition), separated by control characters.

    The text is NULL for a message that matches no row of `log_lines.tsv`.
    """
    # The form of the text: the kind; for each fact U+0001, the name, U+0002, and the value, which is a JSON number, or the
    # type, U+0003 and the text in the message.
    rows = [form for form in forms() if form.kind != STATE]
    by_opening = sql.when(sql.lit(False), sql.lit(None).cast("string"))
    for parts in (("{CTRL}", "{KC}"), ("{BRK}",), ("{GC}", "{GMM}")):
        beginnings = [beginning for part in parts for beginning in OPENINGS[part]]
        test = reduce(or_, (message.startswith(beginning) for beginning in beginnings))
        by_opening = by_opening.when(test, _encoded([form for form in rows if form.opening in parts], message))
    return sql.coalesce(by_opening, _encoded([form for form in rows if not form.opening], message))


def encoded_state(encoded: Column) -> Column:
    """Return the facts of the partition state in a log message, such as "(Leader:1,ISR:1,2,...)"; NULL without such a state.

    `encoded` has the kind and the facts of the message, as `encoded_facts` returns them; the result has this form too.
    """
    mark = f"{FACT}{STATE}{NAME}{STATE}{TYPE}"
    text = sql.substring_index(sql.substring_index(encoded, mark, -1), FACT, 1)
    return _encoded([form for form in forms() if form.kind == STATE], sql.when(encoded.contains(mark), text))


def kind_of(encoded: Column) -> Column:
    """Return the kind of a log message, such as "partition_transition", from the result of `encoded_facts`."""
    return sql.substring_index(encoded, FACT, 1)


def converted(encoded: Column) -> Column:
    """Return `encoded`, which `encoded_facts` has returned, without facts that have no value, and with simple values as JSON.

    A fact is a named value in a log message. Simple values are lists of integers, and texts that JSON does not escape.
    """
    # All other values keep their type, and `json_facts` converts them one by one.
    for pattern, replacement in CONVERTED_TOGETHER:
        encoded = sql.regexp_replace(encoded, pattern, replacement)
    return encoded


def json_facts(encoded: Column) -> Column:
    """Return the facts of a log message (its values, with names) as a map from name to JSON text, such as "isr" to "[1,2]".

    `encoded` has these facts as one text, as `converted` returns it; NULL gives NULL.
    """
    start = sql.instr(encoded, FACT)
    entries = sql.substring(encoded, start + 1, sql.length(encoded))
    named = sql.str_to_map(entries, sql.lit(FACT), sql.lit(NAME))
    each = sql.transform_values(named, lambda _, value: sql.when(value.contains(TYPE), _json(value)).otherwise(value))
    found = sql.when(encoded.contains(TYPE), each).otherwise(named)
    return sql.when(start == 0, sql.create_map().cast("map<string,string>")).otherwise(found)


def all_facts(own: Column, state: Column) -> Column:
    """Merge two maps from a fact's name to its value as JSON, such as "isr" to "[1,2]".

    `own` has the facts of a log message, `state` those of the partition state in it (NULL: none).
    """
    # A fact that both maps have keeps the value of `own`.
    inner = sql.map_filter(state, lambda name, _: ~sql.map_contains_key(own, name))
    return sql.when(state.isNull(), own).otherwise(sql.map_concat(own, inner))


def _encoded(rows: Sequence[Form], message: Column) -> Column:
    """Return the kind and the facts (named values) of a log message as one text, as the first matching row of `rows` reads it.

    `rows` are rows of `log_lines.tsv`. The text is NULL if no row's pattern matches the message.
    """
    found: Column | None = None
    for form in rows:
        hit = message.rlike(form.pattern)
        test = message.contains(form.words) & hit if form.words else hit
        value = sql.regexp_replace(message, sql.lit(form.pattern), sql.lit(form.replacement))
        found = sql.when(test, value) if found is None else found.when(test, value)
    assert found is not None
    return found


def _json(value: Column) -> Column:
    type_, text = sql.substring_index(value, TYPE, 1), sql.substring_index(value, TYPE, -1)
    converted = sql.when(type_ == "int", _int(text))
    for name, convert in CONVERSIONS.items():
        converted = converted.when(type_ == name, convert(text))
    return converted.otherwise(_text(text))


def _text(text: Column) -> Column:
    """Return a text as a JSON string, with quotes and escapes."""
    array = sql.to_json(sql.array(text))
    return sql.substring(array, sql.lit(2), sql.length(array) - 2)


def _int(text: Column) -> Column:
    bare = sql.regexp_replace(text, r"^\[(.*)\]$", "$1")
    return sql.when(bare.rlike(r"^-?\d+(?:\.\d+)?$"), bare).otherwise(_text(text))


def _option(text: Column) -> Column:
    inner = sql.regexp_replace(text, r"^Some\((.*)\)$", "$1")
    return sql.when(text.isin("None", "null"), sql.lit("null")).otherwise(_text(inner))


def _all(text: Column, pattern: str, group: int = 0) -> Column:
    return sql.regexp_extract_all(text, sql.lit(pattern), sql.lit(group))


def _places(text: Column) -> Column:
    for pattern, replacement in PLACES:
        text = sql.regexp_replace(text, pattern, replacement)
    return text


def _ints(text: Column) -> Column:
    return sql.concat(sql.lit("["), sql.array_join(_all(text, r"-?\d+"), ","), sql.lit("]"))


def _entries(text: Column, pattern: str, entry: str) -> Column:
    """Return a JSON object that has one entry for each match of `pattern` in the text.

    `entry` is the replacement that makes the entry from the match, such as '"$1":[$2]'.
    """
    entries = sql.transform(_all(text, pattern), lambda found: sql.regexp_replace(found, f"^{pattern}$", entry))
    return sql.concat(sql.lit("{"), sql.array_join(entries, ","), sql.lit("}"))


CONVERSIONS: dict[str, Callable[[Column], Column]] = {
    "bool": lambda text: sql.when(text.isin("true", "false"), text).otherwise(_text(text)),
    "option": _option,
    "ints": _ints,
    "ids": lambda text: sql.concat(sql.lit("["), sql.array_join(_all(text, r"brokerId=(\d+)", 1), ","), sql.lit("]")),
    "partitions": lambda text: sql.to_json(_all(_places(text), PLACE)),
    "names": lambda text: sql.to_json(_all(sql.regexp_replace(text, r"^\W?\s*\w*\((.*)\)$", "$1"), r"[A-Za-z0-9._-]+")),
    "words": lambda text: sql.to_json(_all(sql.regexp_replace(text, r"^\W?\s*\w*\((.*)\)$", "$1"), r"[^,\s][^,]*")),
    "assignment": lambda text: _entries(_places(text), rf"({PLACE}) -> \w+\((?:replicas=)?({IDS})", '"$1":[$2]'),
    "states": lambda text: _entries(_places(text), rf"({PLACE}) -> (\w+)", '"$1":"$2"'),
    "epochs": lambda text: _entries(text, r"(\d+) -> (-?\d+)", '"$1":$2'),
    "replicas": lambda text: _ints(sql.regexp_extract(text, rf"(?:replicas=|(?:\(|^)(?=\d))({IDS})", 1)),
}
"""The conversion of a fact's text to JSON, by the type of the fact; int and text are the others."""
