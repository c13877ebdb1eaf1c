"""Damaged journals and recordings, and journals with other fields: what is read, and one sentence for what is refused."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.record_fields import FIELDS, Absent
from kcontrol.lab import text_report
from kcontrol.lab.history import history_tables
from kcontrol.lab.run import Run
from kcontrol.lab.tables import journal_tables
from kcontrol.views import still_picture, text
from tests.lab.support import refusal
from tests.recordings.support import in_project

TABLES = ("partitions", "replicas", "brokers", "znodes", "watches", "tenures", "requests", "metrics", "journal")
OTHERS: tuple[Any, ...] = (None, True, -1, 10**29, 1.5, "x", "", [], [1], {}, {"x": 1}, "\x00")
SEEDS = int(os.environ.get("KCONTROL_DAMAGED_FILES", "25"))  # of each kind of damage


@cache
def whole(name: str, folder: Path) -> list[bytes]:
    """Return the lines of a journal: of a run with broker 0 and logs, or with groups."""
    path = folder / f"{name}.jsonl"
    if name == "logs":
        lab = Lab(brokers=[0, 1, 2], runs=None, data=True, topics={"t": [[0, 1, 2]]})
        lab.produce("t-0", "a").run().kill(0).run().start(0).run().save(path)
    else:
        Lab(brokers=2, runs=None, consumers={"a": "g"}, topics={"t": [[1, 2]]}).run().save(path)
    return path.read_bytes().splitlines(keepends=True)


def cut(lines: list[bytes], rng: random.Random) -> bytes:
    content = b"".join(lines)
    return content[: rng.randrange(len(content))]


def cut_at_a_line(lines: list[bytes], rng: random.Random) -> bytes:
    return b"".join(lines[: rng.randrange(len(lines))])


def bytes_changed(lines: list[bytes], rng: random.Random) -> bytes:
    """A few bytes are others."""
    content = bytearray(b"".join(lines))
    for _ in range(rng.randrange(1, 4)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content)


def line_missing(lines: list[bytes], rng: random.Random) -> bytes:
    at = rng.randrange(len(lines))
    return b"".join(lines[:at] + lines[at + 1 :])


def line_doubled(lines: list[bytes], rng: random.Random) -> bytes:
    at = rng.randrange(len(lines))
    return b"".join(lines[: at + 1] + lines[at:])


def lines_swapped(lines: list[bytes], rng: random.Random) -> bytes:
    mixed = list(lines)
    a, b = rng.sample(range(len(lines)), 2)
    mixed[a], mixed[b] = mixed[b], mixed[a]
    return b"".join(mixed)


def field_of_another_kind(lines: list[bytes], rng: random.Random) -> bytes:
    """A value anywhere in one line is of another kind."""
    at = rng.randrange(len(lines))
    changed = json.dumps(elsewhere(json.loads(lines[at]), rng)).encode() + b"\n"
    return b"".join([*lines[:at], changed, *lines[at + 1 :]])


def another_version(lines: list[bytes], rng: random.Random) -> bytes:
    """The version of the schema is another one, or none."""
    first = json.loads(lines[0])
    first["fields"]["journal_version"] = rng.choice([*OTHERS, 0, 1, 2, 3])
    return b"".join([json.dumps(first).encode() + b"\n", *lines[1:]])


DAMAGES = (
    cut, cut_at_a_line, bytes_changed, line_missing, line_doubled, lines_swapped, field_of_another_kind, another_version,
)  # fmt: skip


def elsewhere(value: Any, rng: random.Random) -> Any:
    """Return a JSON value in which one value, at any depth, is of another kind or missing."""
    places = list(within(value))
    if not places:
        return rng.choice(OTHERS)
    holder, key = rng.choice(places)
    if isinstance(holder, dict) and rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = rng.choice(OTHERS)
    return value


def within(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the places inside a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from within(value[key])


def opened(path: Path) -> Run | str:
    """Return the run in a file, or the sentence with which the file is refused."""
    try:
        return Lab.open(path)
    except UserError as problem:
        return str(problem)


def look(path: Path) -> bool:
    """Open a file and look at it in every way; return whether it was opened, and check that a refusal is one sentence."""
    found = opened(path)
    if isinstance(found, str):
        assert (str(path) in found or "The recording leader-killed " in found) and "\n" not in found
        return False
    is_recorded = found.records[0].fields["world"] == "recorded"  # its metrics are refused
    for name in TABLES:
        if name != "metrics" or not is_recorded:
            getattr(found if hasattr(found, name) else found.tables, name)()
    text_report.report(found)
    still_picture.svg(found.state, found.records[0].fields["brokers"])
    return True


few_then_many = pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, SEEDS), marks=pytest.mark.slow)], ids=["few", "many"]
)


@few_then_many
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", ["logs", "groups"])
def test_a_damaged_journal_is_read_or_refused_in_a_sentence(
    name: str,
    damage: Callable[[list[bytes], random.Random], bytes],
    seeds: range,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Of damaged files each is read whole, in every table and picture, or refused with a UserError that names the file."""
    lines = whole(name, tmp_path_factory.getbasetemp())
    path = tmp_path / "run.jsonl"
    for seed in seeds:
        path.write_bytes(damage(lines, random.Random(f"{name} {seed}")))
        try:
            look(path)
        except Exception as problem:
            problem.add_note(f"seed {seed}")
            raise


@few_then_many
@pytest.mark.parametrize("release", ["0.8.1.1", "2.8.2"])
def test_a_damaged_recording_is_read_or_refused_in_a_sentence(release: str, seeds: range, tmp_path: Path) -> None:
    """A recording with a value of another kind is read whole or refused with a UserError that names the file."""
    content = in_project(release, "leader-killed").read_bytes()
    path = tmp_path / "recording.json"
    for seed in range(2 * seeds.start, 2 * seeds.stop):
        rng = random.Random(f"{release} {seed}")
        path.write_bytes(json.dumps(elsewhere(json.loads(content), rng)).encode())
        try:
            look(path)
        except Exception as problem:
            problem.add_note(f"seed {seed}")
            raise


def test_a_missing_a_doubled_and_a_swapped_line_are_named(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The sentence names the line at which the journal is no longer what a run writes."""
    lines = whole("logs", tmp_path_factory.getbasetemp())
    at = next(n for n, line in enumerate(lines) if n > 40 and json.loads(line)["id"][:2] == json.loads(lines[n + 1])["id"][:2])
    changed = {
        "missing": lines[:at] + lines[at + 1 :],
        "doubled": lines[: at + 1] + lines[at:],
        "swapped": [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]],
    }
    for name, damaged in changed.items():
        (tmp_path / "run.jsonl").write_bytes(b"".join(damaged))
        with pytest.raises(UserError) as problem:
            Lab.open(tmp_path / "run.jsonl")
        assert f"damaged in line {at + 1 + (name == 'doubled')}: " in refusal(problem)


def test_a_journal_that_ends_early_says_so(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cut off after any of its records a journal is opened as the shorter run, and stderr says that it ends early."""
    lines = whole("logs", tmp_path_factory.getbasetemp())
    path = tmp_path / "run.jsonl"
    for count in (1, 2, len(lines) // 2, len(lines) - 1):
        path.write_bytes(b"".join(lines[:count]))
        found = Lab.open(path)
        said = capsys.readouterr().err
        assert len(found.records) == count
        assert f"{path} ends early, after record {found.records[-1].id}" in said and said.count("\n") == 1
    path.write_bytes(b"".join(lines))
    assert Lab.open(path) and capsys.readouterr().err == ""


def test_the_journal_of_a_lab_is_whole_after_every_act(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file that a run leaves ends with its last line after each act, and has each record once."""
    lab = Lab(runs=tmp_path)
    for act in (lambda: lab, lambda: lab.kill(1), lambda: lab.run()):
        act()
        assert lab._file.path is not None
        assert len(Lab.open(lab._file.path).records) == len(lab.records)
    assert capsys.readouterr().err == ""


def test_a_file_without_an_end_is_not_read(tmp_path: Path) -> None:
    """A device, a pipe and a line of more than 64 MB are refused without being read to their end."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "long").open("wb") as file:
        file.truncate(2**40)
    for path, words in (("/dev/zero", "is not a file"), (tmp_path / "pipe", "is not a file"), (tmp_path / "long", "67,108,864")):
        with pytest.raises(UserError) as problem:
            Lab.open(path)
        assert words in refusal(problem)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda step: step["writes"][0].update(data=True), "data"),
        (lambda step: step["writes"][0].update(by=10**29), "by"),
        (lambda step: step["do"].update(start=10**29), "contradicts itself"),
    ],
)
def test_a_recording_with_a_wrong_value(change: Callable[[Any], None], words: str, tmp_path: Path) -> None:
    """Data that no znode holds and an id that no broker has are refused in a sentence that says where."""
    damaged = json.loads(in_project("2.8.2", "leader-killed").read_bytes())
    change(damaged["steps"][0])
    (tmp_path / "recording.json").write_text(json.dumps(damaged))
    with pytest.raises(UserError) as problem:
        Lab.open(tmp_path / "recording.json")
    assert words in refusal(problem)


# ---------------------------------------------------------------- fields of other releases

OPTIONAL = [(kind, name) for kind, fields in FIELDS.items() for name, type_ in fields.items() if Absent in get_args(type_)]


def shown(run: Run) -> dict[str, str]:
    """Return, each as text, the state, the sentences, Kafka's log lines, the tables and the picture of a run."""
    tables = {name: history_tables.table(run.records, "run", name) for name in history_tables.TABLES if name != "journal"}
    tables |= {name: getattr(run if hasattr(run, name) else run.tables, name)() for name in TABLES}
    return {name: repr(found.to_dict("split")) for name, found in tables.items()} | {
        "state": repr(run.state),
        "sentences": repr([text.sentence(record) for record in run.records]),
        "log lines": repr(journal_tables.logged(run.records, None).tolist()),
        "picture": still_picture.svg(run.state, run.records[0].fields["brokers"]),
        "viewer": run._repr_mimebundle_()[0]["text/plain"],
    }


def with_fields(lines: list[bytes], change: Callable[[str, dict[str, Any]], None]) -> bytes:
    """Return a journal after `change`, a function of the kind and the fields of each record."""
    records = [json.loads(line) for line in lines[:-1]]
    for record in records:
        change(record["kind"], record["fields"])
    return b"".join([*(json.dumps(record).encode() + b"\n" for record in records), lines[-1]])


@pytest.mark.parametrize("name", ["logs", "groups"])
def test_an_unknown_field_is_ignored(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A field that no kind has changes no state, sentence, log line, table or picture."""
    lines = whole(name, tmp_path_factory.getbasetemp())
    (tmp_path / "run.jsonl").write_bytes(b"".join(lines))
    expected = shown(Lab.open(tmp_path / "run.jsonl"))
    (tmp_path / "run.jsonl").write_bytes(with_fields(lines, lambda _, fields: fields.update(later={"a": [1, None]})))
    found = Lab.open(tmp_path / "run.jsonl")
    assert all(record.fields["later"] == {"a": [1, None]} for record in found.records)
    assert [what for what, said in shown(found).items() if said != expected[what]] == []


@pytest.mark.parametrize("name", ["logs", "groups"])
def test_a_missing_field_is_none(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without one of the fields that may be missing, a journal is read, and every state, sentence, table and picture is made."""
    lines = whole(name, tmp_path_factory.getbasetemp())
    held = {(record["kind"], field) for record in map(json.loads, lines[:-1]) for field in record["fields"]}
    assert len(held & {*OPTIONAL}) >= 4
    for kind, field in sorted(held & {*OPTIONAL}):
        without = with_fields(lines, lambda of, fields, kind=kind, field=field: of == kind and fields.pop(field, None))
        (tmp_path / "run.jsonl").write_bytes(without)
        shown(Lab.open(tmp_path / "run.jsonl"))


def test_a_field_that_a_kind_needs_is_named(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without a field that every record of its kind has, a journal is refused with the line and the field."""
    lines = whole("logs", tmp_path_factory.getbasetemp())
    at = next(n for n, line in enumerate(lines, 1) if json.loads(line)["kind"] == "write")
    (tmp_path / "run.jsonl").write_bytes(with_fields(lines, lambda kind, fields: kind == "write" and fields.pop("ops")))
    with pytest.raises(UserError) as problem:
        Lab.open(tmp_path / "run.jsonl")
    assert f"damaged in line {at}: " in refusal(problem) and "`ops`" in refusal(problem)
