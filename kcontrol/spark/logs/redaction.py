"""Replaces the names of topics, hosts and clients in log files by stable names, before Spark reads the files.

The files are copied with other names in them, so no table can have a former name: neither in a text, a stack trace or a rejected
line, nor in the name of a file. A name is found where Kafka writes names, such as `[name,0]`, `host:9092` or "group name"; it is
then replaced at every place of every file. A name that is also a word of Kafka's messages, such as "state", is replaced only
where a message of `patterns.tsv` has a name, and in other lines where Kafka writes names. Brokers keep their ids, and the topics
of Kafka itself their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from kcontrol.core.errors import UserError
from kcontrol.spark.logs import names_in_messages
from kcontrol.spark.logs.files import LogFile, NoLog, chunks
from kcontrol.spark.logs.patterns import forms

NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
UUID = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
WORD = r"[^\s,()\[\]='\"|]+"
LIST = rf"(?P<list>{NAME}(?:,\s?{NAME})*)"
# By kind, the places of a name in a line; a word of Kafka's messages is a name in the first places, and none in the others.
WHERE = {
    "topic": (
        (rf"\[(?P<name>{NAME}),\s?\d+\]", rf"[Tt]opic(?:Name)?[=:]\s?['\"]?(?P<name>{NAME})", rf"/topics/(?P<name>{NAME})",
         rf"/delete_topics/(?P<name>{NAME})", rf"PartitionAndReplica\((?P<name>{NAME}),", rf"[(\[ ]\((?P<name>{NAME}),\d+,\d+\)",
         r"\bpartitions? (?P<name>[A-Za-z0-9_][\w.-]*?)-\d+(?![\w.-])"),
        (rf"\b[Tt]opic (?P<name>{NAME})", rf"\b[Tt]opics? (?:for |of )?{LIST}", rf"[Tt]opics[\w ]*: ?\[?(?:\w*\()?{LIST}",
         r"(?P<name>[A-Za-z0-9_][\w.-]*?)-\d+(?![\w.-])"),
    ),
    "host": (
        (r"(?<![\w.])(?P<name>(?!0\.)\d{1,3}(?:\.\d{1,3}){3})(?![\w.])", r"//(?P<name>[A-Za-z0-9_][\w.-]*)",
         rf"clientHost=/?(?P<name>{NAME})", r"(?<![\w:])(?P<name>(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4})(?![\w:])",
         rf"UnknownHostException: (?P<name>{NAME})"),
        (r"(?<![\w.(])(?P<name>[a-z0-9_][\w.-]*):\d{4,5}\b", rf"(?<![\w.])(?P<name>{NAME})/\d{{1,3}}(?:\.\d{{1,3}}){{3}}",
         rf"\bhost(?:\.name|name)?\"?\s*[=:]\s*\"?(?P<name>{NAME})", rf"EndPoint\((?P<name>{NAME}),", rf"^(?P<name>{NAME})\s*\|",
         rf"\bhost (?P<name>{NAME})"),
    ),
    "client": (
        (rf"(?P<name>{WORD}?)-{UUID}",),
        (rf"\b[cC]lient[._]?[iI]d(?:\s|\s?[=:]\s?)'?(?P<name>{WORD})", rf"group\.instance\.id:? (?:Some\()?(?P<name>{WORD})",
         rf"[iI]nstanceId[=:] ?(?:Some\()?(?P<name>{WORD})", rf"instance ?id (?:Some\()?(?P<name>{WORD})",
         rf"\b[gG]roup(?:Id|\.id)?(?:\s|\s?[=:]\s?)'?(?P<name>{WORD})", rf"\[(?:GroupId|Group) (?P<name>{WORD})\]",
         rf"group metadata for (?P<name>{WORD})", rf"\b[tT]ransactional[._]?[iI]d(?:\s|\s?[=:]\s?)'?(?P<name>{WORD})"),
    ),
}  # fmt: skip
KINDS = tuple(f"{kind}s" for kind in WHERE)
OWN = {"__consumer_offsets", "__transaction_state", "__cluster_metadata", "None", "null", "true", "false"}
NO_TOPIC = re.compile(
    r"\d[\d.:T-]*|.*\.(?:log|out|index|timeindex|snapshot)\b.*|(?:ReplicaFetcher(?:Thread)?|Controller|broker|Broker)(?:-\d+)*(?:-to-broker)?"
    r"|kafka-(?:request-handler|network-thread|scheduler|producer-network-thread|coordinator-heartbeat-thread|log-cleaner-thread)(?:-\d+)*"
    r"|(?:data|control)-plane-.*|ExpirationReaper(?:-\d+)*|group-metadata-manager|executor|main|pool|[Tt]hread|.*-thread|.*@.*"
)
NUMBERED = re.compile(r"(?<![\w.-])(?P<name>[A-Za-z0-9_][\w.-]*?)-\d+(?![\w.-])")
"""The place of a topic before the number of a partition; messages have no word of their own there."""
STANDARD = re.compile(
    r"(?:server|controller|state-change|kafkaServer|kafka-request|log-cleaner|kafka-authorizer)[\d-]*"
    r"\.(?:log|out)(?:[.-][\d-]+)*(?:\.gz)?"
)
ROOT = "logs"
SUFFIX = re.compile(r"(?:\.(?:log|out|txt))(?:[.-][\d-]+)*(?:\.gz)?$|\.gz$")


def kinds_of(option: str | None) -> tuple[str, ...]:
    """Return the kinds of names in a text such as "topics,hosts", in the singular; () for None.

    Raises UserError, which lists the kinds, for an unknown kind.
    """
    asked = [] if option is None else [kind.strip() for kind in option.split(",")]
    if wrong := [kind for kind in asked if kind not in KINDS]:
        raise UserError(f"--redact cannot be {wrong[0]!r}: write a list of {', '.join(KINDS)}, such as topics,hosts.")
    return tuple(kind.removesuffix("s") for kind in asked)


@cache
def words() -> frozenset[str]:
    """Return the words that Kafka's log lines contain; a topic or client can have such a word as its name."""
    found = {word for form in forms() for word in re.findall(r"[A-Za-z]+", f"{form.pattern} {form.kind} {form.words}")}
    more = (
        "kafka server log state change logger controller coordinator group replica broker java scala apache org common zookeeper"
    )
    return frozenset(found | set(more.split()) | {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"})


def redacted(found: Sequence[LogFile | NoLog], names: Names, copies: Path) -> list[LogFile | NoLog]:
    """Return the files as copies in the folder `copies`, in which stable names such as topic-1 replace names.

    A file that is no log has no copy; its path gets stable names too.
    """
    root = os.path.commonpath([file.path.parent for file in found]) if found else "."
    shown = {file.path: names.of_file(os.path.relpath(file.path, root)) for file in found}
    for file in found:
        if isinstance(file, LogFile):
            for line in (*lines_of(file.read), *(damaged.start for damaged in file.damaged)):
                names.learn(line)
    return [_copied(file, shown[file.path], number, names, copies) for number, file in enumerate(found)]


def _copied(file: LogFile | NoLog, shown: str, number: int, names: Names, copies: Path) -> LogFile | NoLog:
    path = Path(ROOT, names.replaced(shown))
    if isinstance(file, NoLog):
        return NoLog(path, names.replaced(file.reason.replace(str(file.path), str(path))))
    copies.mkdir(parents=True, exist_ok=True)
    copy = copies / f"redacted-{number}.log"
    with copy.open("w", encoding="utf-8", errors="surrogateescape", newline="") as out:
        out.writelines(names.replaced(line) for line in lines_of(file.read))
    damaged = [line._replace(start=names.replaced(line.start)) for line in file.damaged]
    return LogFile(path, copy, file.lines, damaged)


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file, unpacked if its name ends in .gz, each with its line break.

    Bytes that are no UTF-8 become surrogate escapes, so a copy has the same bytes.
    """
    rest = b""
    for chunk in chunks(path):
        *whole, rest = (rest + (chunk or b"")).split(b"\n")
        yield from (line.decode("utf-8", "surrogateescape") + "\n" for line in whole)
    if rest:
        yield rest.decode("utf-8", "surrogateescape")


class Names:
    """The names of topics, hosts and clients that were found, each with the stable name in its place, such as "topic-1"."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._kinds = tuple(kinds)
        # A name that is also a word of Kafka's messages, such as a topic "partition", is replaced only at places for names.
        self._where = [
            (kind, is_sure, re.compile(pattern))
            for kind in self._kinds for is_sure, found in zip((True, False), WHERE[kind], strict=True) for pattern in found
        ]  # fmt: skip
        self._names: dict[str, str] = {}
        self._count = dict.fromkeys((*self._kinds, "folder", "file"), 0)
        self._pattern: re.Pattern[str] | None = None

    def learn(self, line: str) -> None:
        """Find the names of topics, hosts and clients in a log line, and give each new name a stable name.

        Only names of the chosen kinds are found; a stable name is such as "topic-1".
        """
        in_doubt = "[Group" in line
        for kind, is_sure, pattern in self._where:
            for match in pattern.finditer(line):
                listed = match.groupdict().get("list")
                for name in re.split(r",\s?", listed) if listed else [match["name"]]:
                    in_doubt |= not self._add(kind, name.strip(".:;"), is_sure=is_sure)
        if in_doubt:
            for place in names_in_messages.places(line) or ():
                if place.kind in self._kinds:
                    for name in place.names(line):
                        self._add(place.kind, name, is_sure=True)

    def _add(self, kind: str, name: str, *, is_sure: bool) -> bool:
        """Add a new name of this kind and return True; if the name is in doubt, only return False.

        A word of Kafka's messages is in doubt, unless its place always has a name (`is_sure`).
        """
        # Never a name, or a name that is known.
        if not name or name in OWN or name in self._names or name.isdecimal():
            return True
        if kind == "topic" and NO_TOPIC.fullmatch(name):
            return True
        if name in words() and not is_sure:
            return False
        self._count[kind] += 1
        self._names[name] = f"{kind}-{self._count[kind]}"
        self._pattern = None
        return True

    def of_file(self, path: str) -> str:
        """Return a relative path with stable names for its folders, and for a file name that is not Kafka's own.

        Return the path unchanged if the names of hosts are not replaced.
        """
        if "host" not in self._kinds:
            return path
        *folders, name = Path(path).parts
        shown = name if STANDARD.fullmatch(name) else self._place("file", name) + "".join(SUFFIX.findall(name)[:1])
        return str(Path(*(self._place("folder", folder) for folder in folders), shown))

    def _place(self, kind: str, name: str) -> str:
        key = f"{kind}/{name}"
        if key not in self._names:
            self._count[kind] += 1
            self._names[key] = f"{kind}-{self._count[kind]}"
        return self._names[key]

    def of(self, name: str) -> str:
        """Return the stable name in the place of this name, or the name itself if `learn` has not found it."""
        return self._names.get(name, name)

    def replaced(self, text: str) -> str:
        """Return the text with a stable name, such as "topic-1", in place of each name that `learn` has found."""
        if self._pattern is None:
            self._pattern = self._compiled()
        spans: list[tuple[str, int, int]] | None = None

        def stable(match: re.Match[str]) -> str:
            nonlocal spans
            name = match[0]
            if name in words():
                spans = self._spans(text) if spans is None else spans
                kind = self._names[name].partition("-")[0]
                if not any(kind == of and start <= match.start() and match.end() <= end for of, start, end in spans):
                    return name
            return self._names[name]

        return self._pattern.sub(stable, text)

    def _spans(self, line: str) -> list[tuple[str, int, int]]:
        """Return (kind, start, end) for each part of a log line that is a name by its place in the line.

        Such a part may be a word of Kafka's messages too. The kind is "topic", "host" or "client".
        """
        message = names_in_messages.places(line)
        found = [(place.kind, place.start, place.end) for place in message or ()]
        for kind, is_sure, pattern in self._where:
            if is_sure or message is None:
                found += [(kind, *match.span(match.lastgroup or 0)) for match in pattern.finditer(line)]
        return found + [("topic", *match.span("name")) for match in NUMBERED.finditer(line)]

    def _compiled(self) -> re.Pattern[str]:
        names = sorted((name for name in self._names if "/" not in name), key=len, reverse=True)
        joined = "|".join(map(re.escape, names))
        return re.compile(rf"(?<![A-Za-z0-9])(?:{joined})(?![A-Za-z0-9])" if names else r"(?!)")
