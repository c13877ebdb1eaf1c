"""Replaces the names of topics, hosts and clients in journals of runs by stable names, before Spark reads the journals.

Each journal is copied with other names in its records, so no table can have a former name. A name is found in three places: in
fields for names, such as `topic` and `group_id`, in paths of znodes, and in names of partitions. It is then replaced in each text
and each key of a record. A name that is also a word of a journal, such as a topic "leader", is replaced in the three places
alone, or the tables could not be made. Bytes that clients send have names at places that only the client knows: each such text
becomes "".
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from kcontrol.journal.journal_file import END
from kcontrol.journal.record_fields import FIELDS
from kcontrol.pipeline.logs.redaction import NAME, Names, words
from kcontrol.pipeline.redaction.stable_names import MEMBER_ID, Redaction
from kcontrol.pipeline.run_files import DATED, JournalOfRun
from kcontrol.pipeline.sources import LONGEST_LINE_BYTES

NAMED = {
    "topic": "topic", "topics": "topic", "subscribed_topics": "topic", "host": "host", "client_host": "host", "group": "client",
    "groups": "client", "group_id": "client", "client_id": "client", "instance_id": "client", "group_instance_id": "client",
    "consumer": "client",
}  # fmt: skip
"""The fields of records whose texts are names, each with the kind of the names."""
ACTIONS = {
    **dict.fromkeys(("create_topic", "alter_topic", "delete_topic"), "topic"),
    **dict.fromkeys(("join", "sync", "heartbeat", "leave", "commit", "find_coordinator", "restart", "expire_poll_interval",
                     "freeze_consumer", "thaw_consumer", "stop_polling", "start_polling"), "client"),
}  # fmt: skip
"""The actions whose first argument is a name, with its kind."""
COMMITTED = 3
"""The place of the offset in the action `commit`; the text that is committed with the offset comes next."""
PLACES = (
    ("topic", re.compile(rf"/(?:topics|delete_topics)/({NAME})")), ("client", re.compile(r"/consumers/([^/]+)")),
    ("client", re.compile(r"/config/clients/([^/]+)")), ("host", re.compile(r"://([\w.-]+)")),
)  # fmt: skip
"""Places of names in texts such as paths of znodes and addresses."""
PARTITION = re.compile(rf"({NAME}?)-\d{{1,10}}(?:@\d{{1,10}})?")
VALUES = {
    "kind", "rule", "state", "source", "target", "api", "event", "type", "machine", "context", "field", "container", "how",
    "world", "release", "operation", "purgatory", "from", "to", "condition", "protocol_type", "uuid",
}  # fmt: skip
"""The fields whose texts are values of kcontrol or Kafka, never names."""
BYTES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\\x[0-9a-f]{2}|^(?:[0-9a-f]{2}){6,}$")
"""A text that stands for bytes."""
SQL_FIELD = re.compile(r"(\w+):? (?:INT|BIGINT|STRING|BOOLEAN|ARRAY|MAP|STRUCT)\b")
CACHED_TEXTS = 100_000
USER_TEXT = "metadata"
"""The field with the text that a consumer commits with an offset."""


@cache
def journal_words() -> frozenset[str]:
    """Words such as "leader": a topic of this name is replaced only at places for names."""
    queries = [query.read_text() for query in (files("kcontrol.pipeline") / "sql").iterdir() if query.name.endswith(".sql")]
    fields = {name for names in FIELDS.values() for name in names} | set(FIELDS)
    short = {word for query in queries for name in SQL_FIELD.findall(query) for word in name.split("_")}
    short |= {word for name in fields for word in name.split("_")}
    found = {word for query in queries for word in re.findall(r"[A-Za-z]+", query)} | words()
    return frozenset(short | {word for word in found if len(word) > 2})


def names_of(redaction: Redaction) -> Names:
    """Return an empty `Names`, which will collect the names in journals: topics, hosts or clients, as `redaction` says."""
    return Names(redaction, known_words=journal_words())


def run_name(run: str, redaction: Redaction) -> str:
    """With hosts, each folder, and a file name without a leading date, gets a stable name."""
    if "host" not in redaction.kinds:
        return run
    *folders, name = run.split("/")
    last = name if DATED.match(name) else f"run-{redaction.letters(name)}"
    return "/".join([*(f"folder-{redaction.letters(folder)}" for folder in folders), last])


def redacted(journals: Sequence[JournalOfRun], redaction: Redaction, folder: Path) -> list[JournalOfRun]:
    """Copy the journals into `folder`, with stable names such as "topic-bdfghjkmnp" for the kinds of names in `redaction`.

    Return the copies. A damaged line of a journal becomes an empty line of the copy.
    """
    names = names_of(redaction)
    for journal in journals:
        for line in _lines(journal.path):
            if record := _record(line):
                learn(names, record)
    folder.mkdir(parents=True, exist_ok=True)
    copies = [journal._replace(path=folder / f"{number}.jsonl") for number, journal in enumerate(journals)]
    replaced = lru_cache(CACHED_TEXTS)(names.replaced)
    for journal, copy in zip(journals, copies, strict=True):
        with copy.path.open("wb") as out:
            out.writelines(_copied(line, names, replaced) for line in _lines(journal.path))
    return copies


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a journal as bytes; an empty line replaces a line that is too long for Spark."""
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE_BYTES):
            is_long = len(line) == LONGEST_LINE_BYTES and not line.endswith(b"\n")
            while is_long and line and not line.endswith(b"\n"):
                line = file.readline(LONGEST_LINE_BYTES)
            yield b"\n" if is_long else line


def _record(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line, None for a damaged line and for the last line, which has the number of records."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_record = isinstance(found, dict) and isinstance(found.get("kind"), str) and isinstance(found.get("fields"), dict)
    return found if is_record else None


def _copied(line: bytes, names: Names, replaced: Callable[[str], str]) -> bytes:
    if line.startswith(END):
        return line
    end = b"\n" if line.endswith(b"\n") else b""
    record = _record(line)
    if record is None:
        return end
    return msgspec.json.encode(record | {"fields": _Copy(names, replaced).fields(record["kind"], record["fields"])}) + end


# ---------------------------------------------------------------- names that a record has


def learn(names: Names, record: Mapping[str, Any]) -> None:
    """Add the names of topics, hosts and clients in a journal record to `names`."""
    fields = record["fields"]
    if record["kind"] == "consumer":
        names.add("client", str(fields.get("name")))
    match fields.get("action"):
        case [str(action), str(name), *_] if action in ACTIONS:
            names.add(ACTIONS[action], name)
    _learn(names, fields, "")


def _learn(names: Names, value: object, key: str) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            if key == "consumers":
                names.add("client", name)
            else:
                _learn_partition(names, name)
            _learn(names, item, name)
    elif isinstance(value, list):
        for item in value:
            _learn(names, item, key)
    elif isinstance(value, str):
        if (inner := _json(value)) is not None:
            _learn(names, inner, "")
        elif key in ("partition", "partitions", "subject"):
            _learn_partition(names, value)
        elif key in NAMED:
            names.add(NAMED[key], value.removeprefix("/") if NAMED[key] == "host" else value)
        elif found := MEMBER_ID.fullmatch(value):
            names.add("client", found[1])
        for kind, place in PLACES:
            for name in place.findall(value):
                names.add(kind, name)


def _learn_partition(names: Names, text: str) -> None:
    if found := PARTITION.fullmatch(text):
        names.add("topic", found[1])


def _json(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or array that a text has as JSON, such as the content of a znode; None for another text."""
    if text[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


# ---------------------------------------------------------------- the copy of a record


class _Copy:
    """Makes copies of journal records, with a stable name such as "topic-bdfghjkmnp" in place of each name in `names`.

    `names` has the topics, hosts and clients of all journals.
    """

    def __init__(self, names: Names, replaced: Callable[[str], str]) -> None:
        self._names, self._replaced = names, replaced

    def fields(self, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the `fields` of a record; each topic, host or client that is to be replaced has its stable name."""
        copy: dict[str, Any] = self._value(fields, "")
        if kind == "consumer" and isinstance(fields.get("name"), str):
            return copy | {"name": self._names.of(fields["name"])}
        action = fields.get("action")
        if kind == "act" and isinstance(action, list) and action:
            texts = USER_TEXT if action[0] == "commit" else ""
            rest = [self._argument(word, texts if place > COMMITTED else "") for place, word in enumerate(action[1:], 1)]
            return copy | {"action": [action[0], *rest]}
        return copy

    def _argument(self, value: Any, key: str) -> Any:
        is_name = isinstance(value, str) and self._names.kind_of(value) is not None and not key
        return self._names.of(value) if is_name else self._value(value, key)

    def _value(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            replaced = self._names.of if key == "consumers" else self._key
            return {replaced(name): self._value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, key) for item in value]
        return self._text(value, key) if isinstance(value, str) else value

    def _key(self, name: str) -> str:
        if found := MEMBER_ID.fullmatch(name):
            return f"{self._names.of(found[1])}-{found[2]}"
        if BYTES.search(name) and self._names.kind_of(name) is None:
            return f"bytes-{self._names.redaction.letters(name)}"
        return self._replaced(name)

    def _text(self, text: str, key: str) -> str:
        if key in VALUES:
            return text
        if key in NAMED:
            name = text.removeprefix("/") if NAMED[key] == "host" else text
            return self._key(text) if self._names.kind_of(name) is None else text[: -len(name)] + self._names.of(name)
        if BYTES.search(text) and self._names.kind_of(text) is None:
            return ""
        if key == USER_TEXT and text:
            return f"text-{self._names.redaction.letters(text)}"
        if (inner := _json(text)) is not None:
            return json.dumps(self._value(inner, ""), separators=(",", ":"))
        return self._key(text)
