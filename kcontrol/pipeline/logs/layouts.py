"""Functions that return the parts of a log record (time, level, logger and message) as Spark columns, by its layout.

A layout is a log4j pattern such as `[%d] %p %m (%c)`. A record starts at a line with the time and level of one of the layouts;
the lines up to the next such line belong to it. Where the logger stands at the end, the message runs to the first line that ends
with the logger, as Kafka's own messages may have line breaks; the rest is the stack trace. A terminal that breaks long lines
leaves lines of equal length: such lines are joined without a line break. In a copied log a text may stand before the time of each
line (a wrap), such as the container's name that docker compose prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column

SECOND, LEVEL = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", r"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
LOGGER, DOTTED = r"[A-Za-z_$][\w$]*(?:\.[\w$]+)*", r"[A-Za-z_$][\w$]*(?:\.[\w$]+)+"
TIME, ZONED, SLASHED = rf"{SECOND},\d{{3}}", rf"{SECOND}(?:,\d{{3}})?(?:[+-]\d{{4}}|Z)?", r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}"
THREAD, ALL = r"\[[^\]]*\]", r"(?s:(.*))"
WRAPS = {  # What stands before the time of a line, by the name of the wrapper.
    "numbered": r"\s*\d+[.)]\s+",
    "compose": r"[\w.-]+\s*\|\s?",
    "comment": r"\s*(?:#+|\*+|//+|>+)\s*",
    # A path with spaces has the name of a log, so that a sentence before a time is no wrapper.
    "grep": r"(?:[^\s:|\[]+|[^\s:|\[][^:|\[]*\.(?:log|out|txt|gz)[^\s:|\[]*):(?:\d+:)?\s?",
    "quoted": r"\s*\"",
    "indented": r"\s+",
}
# A name without a letter is the number of a line.
CONTAINER = r"^([\w.-]*[A-Za-z][\w.-]*)\s*\|"
DOCKER = '{"log":"'
BEFORE_EACH = r"^[\w.-]+\s*\|\s?|^# "
DATED = r"\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d"
# The beginning of a line of another log: a time that no layout has.
DAY, MONTH = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*", r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
FOREIGN = (
    rf"^(?:{DATED}|\W?(?:{DAY},? )?{MONTH} +\d{{1,2}},? (?:\d{{4}}|\d\d:\d\d)"
    r"|\W?\d{1,2}[./ -](?:\d\d|[A-Z][a-z]{2})[./ -]\d{2,4}[ :]\d\d:\d\d|\W?\d\d:\d\d:\d\d[.,]\d{3} )"
)
KAFKA = r"^(?:kafka\.|org\.apache\.kafka\.|state\.change\.logger)"
# A logger without its package, or with a package whose parts may be one letter: `o.a.k.c.utils.AppInfoParser`.
SHORT_KAFKA = r"^(?:[^.]*$|k(?:afka)?\.|o(?:rg)?\.a(?:pache)?\.k(?:afka)?\.|s(?:tate)?\.c(?:hange)?\.logger$)"
CUT_LOGGER = r"^(?s:(.*)) \((?:kafka\.|state\.c|org\.apache\.)[\w$.]*$"
BROKEN_COLUMNS = 60
BETWEEN = "\u0001"
# A NUL character, which a crash leaves, or U+0001 to U+0003.
UNCLEAN = "[\\x00-\\x03]"


class Layout(NamedTuple):
    """A layout of log records, such as `[%d] %p %m (%c)` of log4j: its name and two regular expressions."""

    name: str
    # Matches the beginning of a record's first line.
    start: str
    # Matches the whole record without its stack trace.
    whole: str
    # The numbers of the groups of `whole` for time, level, logger and message.
    order: tuple[int, int, int, int]
    # The logger stands in parentheses after the message.
    logger_at_end: bool = False
    # The names of loggers are printed without their package.
    short_logger: bool = False


LAYOUTS = (
    Layout(
        "apache", rf"\[{TIME}\] {LEVEL} ", rf"^\[({TIME})\] ({LEVEL}) +{ALL} \(({LOGGER})\)\s*(?:\"?,.*)?$", (1, 2, 4, 3), True
    ),
    Layout("cloudera", rf"{TIME} {LEVEL} +{DOTTED}: ", rf"^({TIME}) ({LEVEL}) +({DOTTED}): {ALL}$", (1, 2, 3, 4)),
    Layout(
        "log4j2_strimzi", rf"{ZONED} {LEVEL} +{THREAD} [\w.$]+:\d+ - ",
        rf"^({ZONED}) ({LEVEL}) +{THREAD} ([\w.$]+):\d+ - {ALL}$", (1, 2, 3, 4), short_logger=True,
    ),
    Layout("strimzi", rf"{TIME} {LEVEL} ", rf"^({TIME}) ({LEVEL}) +{ALL} \(({LOGGER})\)(?: {THREAD})?\s*$", (1, 2, 4, 3), True),
    Layout(
        "bracketed", rf"\[{TIME}\] \[{LEVEL} *\] ",
        rf"^\[({TIME})\] \[({LEVEL}) *\] {THREAD} \[({LOGGER})\] - {ALL}$", (1, 2, 3, 4)
    ),
    Layout(
        "logger_first", rf"\[{TIME}\] \({LOGGER}\) ", rf"^\[({TIME})\] \(({LOGGER})\) {THREAD} ({LEVEL}) +- {ALL}$", (1, 3, 2, 4)
    ),
    Layout(
        "spring", rf"{SECOND}\.\d{{3}} +{LEVEL} +\d+ --- \[",
        rf"^({SECOND}\.\d{{3}}) +({LEVEL}) +\d+ --- {THREAD} (\S+) *: {ALL}$", (1, 2, 3, 4), short_logger=True,
    ),
    Layout(
        "linkedin", rf"{SLASHED} (?:{LEVEL} )?\[",
        rf"^({SLASHED}) (?:([A-Z]+) )?\[([^\]]*)\] {ALL}$", (1, 2, 3, 4), short_logger=True,
    ),
)  # fmt: skip
TAILED = tuple(layout.name for layout in LAYOUTS if layout.logger_at_end)
SHORT = tuple(layout.name for layout in LAYOUTS if layout.short_logger)
TAIL = rf" \({LOGGER}\)(?: \[[^\]]*\])?\s*$"


def clean(raw: Column) -> Column:
    """Return a log line without NUL characters, and without U+0001 to U+0003, which separate the facts of a message later."""
    return sql.regexp_replace(raw, UNCLEAN, "")


def from_docker(raw: Column) -> Column:
    """Return the text of a log line that Docker has written as JSON, `{"log":"...","stream":"stdout",...}`.

    Any other line is unchanged.
    """
    text = sql.rtrim(sql.get_json_object(raw, "$.log"), sql.lit("\n"))
    return sql.when(raw.startswith(DOCKER) & (sql.instr(text, "\n") == 0), text).otherwise(raw)


def wrap_of(text: Column) -> Column:
    """Return the kind of text before the time of a log line, a key of WRAPS; NULL if the time comes first.

    For example, "grep" is a file name that grep prints before each line.
    """
    every = "|".join(f"(?:{pattern})" for pattern in WRAPS.values())
    found = sql.when(text.rlike(f"^{DATED}") | ~text.rlike(f"^(?:{every}){DATED}"), None)
    for name, pattern in WRAPS.items():
        found = found.when(text.rlike(f"^(?:{pattern}){DATED}"), name)
    return found


def unwrapped(text: Column, wrap: Column) -> Column:
    """Return a log line without the text before its time; `wrap` is the kind of this text, as `wrap_of` returns it.

    If `wrap` is NULL, the line is unchanged.
    """
    found = sql.when(wrap.isNull(), text)
    for name, pattern in WRAPS.items():
        found = found.when(wrap == name, sql.regexp_replace(text, f"^(?:{pattern})(?={DATED})", ""))
    return found


def container_of(raw: Column, wrap: Column) -> Column:
    """Return the container that docker compose names before a log record, such as "broker-1", else "".

    `wrap` is the result of `wrap_of` for the record's first line.
    """
    return sql.coalesce(sql.when(wrap == "compose", sql.regexp_extract(raw, CONTAINER, 1)), sql.lit(""))


def unwrapped_record(raw: Column, wrap: Column) -> Column:
    """Return all lines of a log record without the text before each line, such as that of docker compose.

    `wrap` is the result of `wrap_of` for the first line; NULL leaves the record unchanged.
    """
    bare = sql.regexp_replace(unwrapped(raw, wrap), f"(?m){BEFORE_EACH}", "")
    return sql.when(wrap.isNull(), raw).otherwise(bare)


def layout_of(text: Column) -> Column:
    """Return the layout (a name in LAYOUTS) of a line that starts a log record, "foreign" for a line of another log.

    Return NULL for a line without a time, which continues a record.
    """
    # The most common layout is tested first.
    found = sql.when(text.rlike("^" + LAYOUTS[0].start), LAYOUTS[0].name).when(~text.rlike(FOREIGN), None)
    for layout in LAYOUTS[1:]:
        found = found.when(text.rlike("^" + layout.start), layout.name)
    return found.otherwise("foreign")


def message_lines(lines: Column, wrap: Column, layout: Column) -> Column:
    """Return the lines of a log record up to the end of its message, without stack trace, as one text.

    `wrap` is the kind of text that a tool such as grep has put before the first line (`wrap_of`); `layout` is this line's layout
    (`layout_of`).
    """
    bare = sql.when(wrap.isNull(), lines).otherwise(sql.transform(lines, lambda line: sql.regexp_replace(line, BEFORE_EACH, "")))
    head = unwrapped(lines[0], wrap)
    rest = sql.slice(bare, sql.lit(2), sql.greatest(sql.size(bare) - 1, sql.lit(0)))
    # In a layout with the logger at the end, the text has all lines up to the logger.
    is_open = layout.isin(*TAILED) & (sql.size(lines) > 1) & ~head.rlike(TAIL)
    return sql.when(is_open, _to_tail(sql.concat(sql.array(head), rest))).otherwise(head)


def _to_tail(lines: Column) -> Column:
    """Return as one text the lines of a log record up to the first line that ends with the logger in parentheses.

    If no line ends with the logger, return the first line.
    """
    first = sql.length(lines[0])
    ends = sql.array_position(sql.transform(lines, lambda line: line.rlike(r"\)(?: \[[^\]]*\])?\s*$")), True).cast("int")
    joined = sql.array_join(sql.slice(lines, sql.lit(1), sql.greatest(ends, sql.lit(1))), "")
    before = sql.slice(lines, sql.lit(1), sql.greatest(ends - 1, sql.lit(1)))
    # A terminal has broken one long line: all lines but the last have one length.
    is_broken = (
        (first >= BROKEN_COLUMNS) & (ends > 1) & joined.rlike(TAIL)
        & sql.forall(before, lambda line: sql.length(line) == first) & (sql.length(sql.get(lines, ends - 1)) <= first)
    )  # fmt: skip
    tail = sql.array_position(sql.transform(lines, lambda line: line.rlike(TAIL)), True).cast("int")
    whole = sql.array_join(sql.slice(lines, sql.lit(1), sql.greatest(tail, sql.lit(1))), "\n")
    return sql.when(is_broken, joined).otherwise(whole)


def fields_of(text: Column, layout: Column) -> Column:
    """Return the array [time, level, logger, message] of a log record from its text without stack trace and its layout's name."""
    found: Column | None = None
    for item in LAYOUTS:
        order = BETWEEN.join(f"${group}" for group in item.order)
        fields = sql.regexp_replace(text, sql.lit(item.whole), sql.lit(order))
        found = sql.when(layout == item.name, fields) if found is None else found.when(layout == item.name, fields)
    assert found is not None
    # A record that was cut off does not match its layout: the array has its text alone.
    return sql.split(found, BETWEEN)


def parts(text: Column, fields: Column) -> dict[str, Column]:
    """Return the columns `time`, `level`, `logger` and `message` of a log record by name.

    `text` is the record without its stack trace. `fields` is the array [time, level, logger, message], or [text] for a record
    whose end was cut off.
    """
    start = rf"^\[?(\d{{4}}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d(?:[.,]\d{{3}})?)\]? (?:\(\S+\) )?(?:\[[^\]]*\] )?({LEVEL})?\s*"
    is_whole = sql.size(fields) == len(LAYOUTS[0].order)
    # The end of the record was cut off: the logger is NULL, and mostly the message too.
    cut = {
        "time": sql.regexp_extract(text, start, 1),
        "level": sql.regexp_extract(text, start, 2),
        "message": sql.regexp_extract(sql.regexp_replace(text, start, ""), CUT_LOGGER, 1),
    }
    whole = {name: sql.get(fields, place) for place, name in enumerate(("time", "level", "logger", "message"))}
    return {
        name: sql.when(is_whole, sql.nullif(value, sql.lit(""))).otherwise(sql.nullif(cut.get(name, sql.lit("")), sql.lit("")))
        for name, value in whole.items()
    }


def is_kafka(logger: Column, layout: Column) -> Column:
    """Return whether `logger`, the logger's name in a log record, is one of Kafka's, or may be.

    It may be if the name was cut off (NULL), or if the line format `layout` prints names without their package.
    """
    return logger.isNull() | logger.rlike(KAFKA) | (layout.isin(*SHORT) & logger.rlike(SHORT_KAFKA))
