"""Functions that return Spark columns with the kind and the facts of a message in a broker's log, by the table `patterns.tsv`.

A fact is a value in a message, with a name: from "Broker 1 ..." the fact `broker`, which is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from kcontrol.spark.logs.patterns import FACT, NAME, OPENINGS, STATE, TYPE, Form, forms

if TYPE_CHECKING:
    from pyspark.sql import Column

# The forms of a partition or replica in a list, each with its replacement: `topic-partition`, `topic-partition@broker`.
PLACES = (
    (r"\[Topic=([^,\]]+),Partition=(\d+),Replica=(\d+)\]", "$1-$2@$3"),
    (r"(?:PartitionAndReplica)?\(([A-Za-z0-9._-]+),(\d+),(\d+)\)", "$1-$2@$3"),
    (r"\[([^\[\],\s]+),\s?(\d+)\]", "$1-$2"),
)
PLACE = r"[A-Za-z0-9._-]+-\d+(?:@\d+)?"
IDS = r"(?:\d+(?:, ?\d+)*)?"


def named_facts(message: Column) -> Column:
    """Return a map from the name of each fact of a message to its type and value, as one text.

    A fact is a value in the message of a log line, such as `leader_epoch`; the text is its type, U+0003 and its value, such as
    "int", U+0003 and "5". The entry "kind" has the kind of the message, without a type. The map is NULL for a message that
    matches no row of `patterns.tsv`.
    """
    rows = [form for form in forms() if form.kind != STATE]
    by_opening = sql.when(sql.lit(False), sql.lit(None).cast("string"))
    for parts in (("{CTRL}", "{KC}"), ("{BRK}",), ("{GC}",)):
        beginnings = [beginning for part in parts for beginning in OPENINGS[part]]
        test = reduce(or_, (message.startswith(beginning) for beginning in beginnings))
        by_opening = by_opening.when(test, _encoded([form for form in rows if form.opening in parts], message))
    encoded = sql.coalesce(by_opening, _encoded([form for form in rows if not form.opening], message))
    return sql.str_to_map(encoded, sql.lit(FACT), sql.lit(NAME))


def own_facts(named: Column) -> Column:
    """Return the map `named`, which `named_facts` returns, without its entry "kind" and without the facts that have no value.

    The fact `state` is left out too if it has a text with the leader and ISR of a partition: `state_facts` divides this text.
    """
    return sql.map_filter(named, lambda name, value: (name != "kind") & ~value.startswith(f"state{TYPE}") & ~value.endswith(TYPE))


def state_facts(named: Column) -> Column:
    """Return the map of the facts in the fact `state` of a message, such as "(Leader:1,ISR:1,2,LeaderEpoch:5,...)".

    `named` is the map that `named_facts` returns; the returned map has values of the same form. Return NULL for a message
    without the fact `state`, and if no row `(state)` of `patterns.tsv` matches its text.
    """
    state = sql.when(named["state"].startswith(f"state{TYPE}"), sql.substring_index(named["state"], TYPE, -1))
    return sql.str_to_map(_encoded([form for form in forms() if form.kind == STATE], state), sql.lit(FACT), sql.lit(NAME))


def all_facts(own: Column, state: Column) -> Column:
    """Return the facts of a message (`own`) and those of the leader and ISR in it (`state`, which may be NULL) in one map.

    `own` is a map that `own_facts` returns, `state` one that `state_facts` returns; the result has values of the same form. If
    both maps have a fact of one name, its value is that of `own`.
    """
    inner = sql.map_filter(state, lambda name, value: (name != "kind") & ~value.endswith(TYPE) & ~sql.map_contains_key(own, name))
    return sql.when(state.isNull(), own).otherwise(sql.map_concat(own, inner))


def json_facts(named: Column) -> Column:
    """Return a map from the name of a fact to its value as JSON, such as "[1,2]".

    `named` maps the name to a text: the type, U+0003 and the value in the message, such as "ints", U+0003 and "1,2".
    """
    return sql.transform_values(named, lambda _, value: _json(value))


def _encoded(rows: Sequence[Form], message: Column) -> Column:
    """Return a message's kind and facts as one text, the replacement of the first of `rows` that matches; NULL if none matches.

    `rows` are rows of `patterns.tsv`, each with the pattern of a message. U+0001 separates the facts in the text, U+0002 stands
    after the name of a fact, and U+0003 after its type.
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
