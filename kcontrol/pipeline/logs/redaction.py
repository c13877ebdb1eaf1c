"""Replaces the names of topics, hosts and clients in log files by stable names, before Spark reads the files.

The files are copied with other names in them, so no table can have a former name: neither in a text, a stack trace or a rejected
line, nor in the name of a file. A name is found where Kafka writes names, such as `[name,0]`, `host:9092` or "group name"; it is
then replaced at every place of every file. A topic can have a name that is also a word of Kafka's messages, such as "state". Such
a name is replaced only at the places where Kafka writes names; elsewhere the word stays. `log_lines.tsv` has these places of most
messages. Brokers keep their ids, and the topics of Kafka itself keep their names.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from kcontrol.pipeline.logs import names_in_messages
from kcontrol.pipeline.logs.files import LogFile, NoLog, chunks
from kcontrol.pipeline.logs.layouts import DOCKER
from kcontrol.pipeline.logs.patterns import forms
from kcontrol.pipeline.redaction.stable_names import KINDS, OWN, Redaction

NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
UUID = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
WORD = r"[^\s,()\[\]='\"|]+"
LIST = rf"(?P<list>{NAME}(?:,\s?{NAME})*)"
# A topic and the number of its partition, also at the end of a sentence.
PARTITION = r"(?P<name>[A-Za-z0-9_][\w.-]*?)-\d+(?![\w-]|\.\w)"
# By kind, the places of a name in a line; a word of Kafka's messages is a name in the first places, and none in the others.
WHERE = {
    "topic": (
        (rf"\[(?P<name>{NAME}),\s?\d+\]", rf"[Tt]opic(?:Name)?[=:]\s?['\"]?(?P<name>{NAME})", rf"/topics/(?P<name>{NAME})",
         rf"/delete_topics/(?P<name>{NAME})", rf"(?:PartitionAndReplica|TopicIdReplicaAssignment)\((?P<name>{NAME}),",
         rf"[(\[ ]\((?P<name>{NAME}),\d+,\d+\)",
         rf"\bpartitions? {PARTITION}", r"(?P<name>[A-Za-z0-9_][\w.-]*?)-\d+\.[0-9a-f]+-(?:delete|future|stray)(?!\w)"),
        (rf"\b[Tt]opic (?P<name>{NAME})", rf"\b[Tt]opics? (?:for |of )?{LIST}", rf"[Tt]opics[\w ]*: ?\[?+(?:\w*\()?+{LIST}",
         PARTITION),
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
NO_TOPIC = re.compile(
    r"\d[\d.:T-]*|.*\.(?:log|out|index|timeindex|snapshot)\b.*|(?:ReplicaFetcher(?:Thread)?|Controller|broker|Broker)(?:-\d+)*(?:-to-broker)?"
    r"|kafka-(?:request-handler|network-thread|scheduler|producer-network-thread|coordinator-heartbeat-thread|log-cleaner-thread)(?:-\d+)*"
    r"|(?:data|control)-plane-.*|ExpirationReaper(?:-\d+)*|group-metadata-manager|executor|main|pool|[Tt]hread|.*-thread|.*@.*"
)
NUMBERED = re.compile(rf"(?<![\w.-]){PARTITION}")
"""The place of a topic before the number of a partition; messages have no word of their own there."""
STANDARD = re.compile(
    r"(?:server|controller|state-change|kafkaServer|kafka-request|log-cleaner|kafka-authorizer)[\d-]*"
    r"\.(?:log|out)(?:[.-][\d-]+)*(?:\.gz)?"
)
ROOT = "logs"
SUFFIX = re.compile(r"(?:\.(?:log|out|txt))(?:[.-][\d-]+)*(?:\.gz)?$|\.gz$")


@cache
def words() -> frozenset[str]:
    """Return the words that Kafka's log lines contain; a topic or client can have such a word as its name."""
    found = {word for form in forms() for word in re.findall(r"[A-Za-z]+", f"{form.pattern} {form.kind} {form.words}")}
    more = (
        "kafka server log state change logger controller coordinator group replica broker java scala apache org common zookeeper"
    )
    collections = "Set HashSet List Vector ArrayBuffer Buffer Map HashMap Some ReplicaAssignment TopicIdReplicaAssignment"
    return frozenset(found.union(more.split(), collections.split(), ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")))


def redacted(found: Sequence[LogFile | NoLog], paths: Sequence[Path], names: Names, copies: Path) -> list[LogFile | NoLog]:
    """Copy the log files in `found` to the folder `copies`, with stable names, such as "topic-bdfghjkmnp", for true names.

    Return `found` with the copies. The paths get stable names too. `found` was searched in `paths`, which are files and folders.
    """
    for file in found:
        if isinstance(file, LogFile):
            names.learn_file(file)
    root = root_of(paths)
    return [
        file_without_names(file, root, names) if isinstance(file, NoLog)
        else copied(file, shown(file.path, root, names), names, copies / f"redacted-{number}.log")
        for number, file in enumerate(found)
    ]  # fmt: skip


def root_of(paths: Sequence[Path]) -> Path:
    """Return the innermost folder that contains all of `paths`; a file's path in the tables is relative to this folder."""
    return Path(os.path.commonpath([path if path.is_dir() else path.parent for path in (path.resolve() for path in paths)]))


def shown(path: Path, root: Path, names: Names) -> Path:
    """Return the path that the tables have for the log file `path`, such as "logs/server.log".

    `names` puts a stable name, such as "topic-bdfghjkmnp", in place of each name that is hidden. `root` is the folder that
    contains all log files.
    """
    return Path(ROOT, names.replaced(names.of_file(os.path.relpath(path, root))))


def file_without_names(file: NoLog, root: Path, names: Names) -> NoLog:
    """Return `file` with stable names, such as "topic-bdfghjkmnp", in its path and in its reason.

    `file` is a file that is no log. The path in the result is relative to `root`.
    """
    path = shown(file.path, root, names)
    return NoLog(path, names.replaced(file.reason.replace(str(file.path), str(path))))


def copied(file: LogFile, path: Path, names: Names, copy: Path) -> LogFile:
    """Write the lines of a log file to the file `copy`, with stable names; return this copy as a LogFile with the path `path`."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    with copy.open("w", encoding="utf-8", errors="surrogateescape", newline="") as out:
        out.writelines(names.replaced(line) for line in lines_of(file.read))
    damaged = [line._replace(start=names.replaced(line.start)) for line in file.damaged]
    return file._replace(path=path, read=copy, damaged=damaged)


def from_docker(line: str) -> str:
    """Return the text of a log line that Docker has written as JSON, with its line break; return any other line unchanged."""
    if not line.startswith(DOCKER):
        return line
    try:
        text = str(json.loads(line)["log"]).rstrip("\n")
    except ValueError:
        return line
    return line if "\n" in text else f"{text}\n"


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file, unpacked if its name ends in .gz, each with its line break.

    Bytes that are no UTF-8 become surrogate escapes, so a copy has the same bytes.
    """
    rest = b""
    for chunk in chunks(path):
        *whole, rest = (rest + (chunk or b"")).split(b"\n")
        yield from (from_docker(line.decode("utf-8", "surrogateescape") + "\n") for line in whole)
    if rest:
        yield from_docker(rest.decode("utf-8", "surrogateescape"))


def any_of(names: Collection[str]) -> str:
    """Return a regular expression, for Python and Java, that finds each of these names where no letter or digit is beside it."""
    joined = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    return rf"(?<![A-Za-z0-9])(?:{joined})(?![A-Za-z0-9])" if names else r"(?!)"


class Names:
    """The names of topics, hosts and clients that were found, and their replacements (stable names), such as "topic-bcdfghjkmn".

    Args:
        redaction: the kinds of names, and the key; a stable name depends on the name and this key alone.
        kept: names that were found before, with their kinds; these kinds stay.
        known_words: words of Kafka's messages, such as "state". They are replaced only where a message has a name.
    """

    def __init__(
        self, redaction: Redaction, kept: Mapping[str, str] | None = None, known_words: Collection[str] | None = None
    ) -> None:
        self.redaction = redaction
        # A name that is also a word of Kafka's messages, such as a topic "partition", is replaced only at places for names.
        self._where = [
            (kind, is_sure, re.compile(pattern))
            for kind in redaction.kinds for is_sure, found in zip((True, False), WHERE[kind], strict=True) for pattern in found
        ]  # fmt: skip
        self._words = words() if known_words is None else frozenset(known_words)
        self._kept = dict(kept or {})
        # Of each name the best evidence: a place that always has a name before others, then the order of KINDS.
        self._found: dict[str, tuple[bool, int]] = {}
        self._pattern: re.Pattern[str] | None = None

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each name that was found, by the name; names with bytes that are no UTF-8 are left out."""
        return {name: KINDS[rank] for name, (_, rank) in self._found.items() if name.isprintable()} | self._kept

    @property
    def fresh(self) -> list[str]:
        """The found names without those of `kept`, which were found before, and without words of Kafka's messages."""
        # Earlier rounds did not replace these names in their rows.
        return [name for name in self.kinds if name not in self._kept and name not in self._words and name not in KINDS]

    def learn_file(self, file: LogFile) -> None:
        """Find and store the names in the lines of a log file, damaged lines included."""
        for line in (*lines_of(file.read), *(damaged.start for damaged in file.damaged)):
            self.learn(line)

    def learn(self, line: str) -> None:
        """Find and store the names of topics, hosts and clients in a log line.

        Only names of the kinds in `redaction` are stored.
        """
        in_doubt = "[Group" in line
        for kind, is_sure, pattern in self._where:
            for match in pattern.finditer(line):
                listed = match.groupdict().get("list")
                for name in re.split(r",\s?", listed) if listed else [match["name"]]:
                    in_doubt |= not self._add(kind, name.strip(".:;"), is_sure=is_sure)
        if in_doubt:
            for place in names_in_messages.places(line) or ():
                if place.kind in self.redaction.kinds:
                    for name in place.names(line):
                        self._add(place.kind, name, is_sure=True)

    def add(self, kind: str, name: str) -> None:
        """Store a name to be replaced; do nothing if the redaction does not replace names of this kind, such as "topic".

        The name was found where only such names can stand, so it is stored even if it is also a word of Kafka's messages.
        """
        if kind in self.redaction.kinds:
            self._add(kind, name, is_sure=True)

    def _add(self, kind: str, name: str, *, is_sure: bool) -> bool:
        """Add a new name of this kind; return False, and add nothing, if the name is in doubt.

        A word of Kafka's messages (`words`) is in doubt, unless `is_sure`: the place always has a name.
        """
        evidence = (not is_sure, KINDS.index(kind))
        # Never a name, or a name that is known.
        if not name or name in OWN or name in self._kept or name.isdecimal() or self._found.get(name, (True, 9)) <= evidence:
            return True
        if kind == "topic" and NO_TOPIC.fullmatch(name):
            return True
        if name in self._words and not is_sure:
            return False
        if name not in self._found:
            self._pattern = None
        self._found[name] = evidence
        return True

    def of_file(self, path: str) -> str:
        """Return a log file's relative path with stable names of its folders, such as "folder-bcdfghjkmn".

        A file name that Kafka does not write is replaced too. If `redaction` does not replace hosts, return `path`.
        """
        if "host" not in self.redaction.kinds:
            return path
        *folders, name = Path(path).parts
        letters = self.redaction.letters
        last = name if STANDARD.fullmatch(name) else f"file-{letters(name)}" + "".join(SUFFIX.findall(name)[:1])
        return str(Path(*(f"folder-{letters(folder)}" for folder in folders), last))

    def kind_of(self, name: str) -> str | None:
        """Return the kind of a name, None if the name was not found."""
        if name in self._kept:
            return self._kept[name]
        return KINDS[self._found[name][1]] if name in self._found else None

    def of(self, name: str) -> str:
        """Return the stable name in place of a name that `learn` has found; return any other name unchanged."""
        kind = self.kind_of(name)
        return name if kind is None else self.redaction.stable(kind, name)

    def replaced(self, text: str) -> str:
        """Return the text with a stable name in place of each name that `learn` has found."""
        if self._pattern is None:
            self._pattern = self._compiled()
        spans: list[tuple[str, int, int]] | None = None

        def stable(match: re.Match[str]) -> str:
            nonlocal spans
            name = match[0]
            if name in self._words:
                spans = self._spans(text) if spans is None else spans
                kind = self.kind_of(name)
                if not any(kind == of and start <= match.start() and match.end() <= end for of, start, end in spans):
                    return name
            return self.of(name)

        return self._pattern.sub(stable, text)

    def _spans(self, line: str) -> list[tuple[str, int, int]]:
        """Return (kind, start, end) for each text `line[start:end]` that stands where Kafka writes a name.

        The kind is "topic", "host" or "client". The text may also be a word of Kafka's messages.
        """
        message = names_in_messages.places(line)
        found = [(place.kind, *span) for place in message or () for span in place.spans(line)]
        for kind, is_sure, pattern in self._where:
            if is_sure or message is None:
                found += [(kind, *match.span(match.lastgroup or 0)) for match in pattern.finditer(line)]
        return found + [("topic", *match.span("name")) for match in NUMBERED.finditer(line)]

    def _compiled(self) -> re.Pattern[str]:
        return re.compile(any_of({*self._found, *self._kept}))
