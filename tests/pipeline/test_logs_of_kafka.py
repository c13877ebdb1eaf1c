"""Broker logs of Kafka against the shared reference: real lines with their meaning, invented lines.

And templates of all releases.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcontrol.pipeline.logs import log_tables
from kcontrol.pipeline.logs.patterns import forms
from tests.pipeline.log_rows import Row, by_place, rows_of
from tests.pipeline.log_templates import Filled, filled

Meaning = dict[str, Any]
HEAD = ("layout", "wrap", "level", "logger", "kind")


@pytest.fixture(scope="module")
def expected(shared: Path) -> dict[tuple[str, int], Meaning]:
    """What each line of the real logs means, by file and line number."""
    described = yaml.load((shared / "logs" / "kafka" / "expected.yaml").read_text(), yaml.CSafeLoader)
    return {(file["file"], line["n"]): line for file in described for line in file["lines"]}


@pytest.fixture(scope="module")
def messages(shared: Path) -> list[Filled]:
    return list(filled(shared / "reference" / "kafka-logs.md", seed=7))


@pytest.fixture(scope="module")
def out(shared: Path, messages: list[Filled], spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the real logs, of the invented lines, and of the filled templates in `templates.log`."""
    place = tmp_path_factory.mktemp("logs")
    lines = [
        f"[2020-02-03 04:05:06,{n:03}] INFO {item.message} (kafka.controller.KafkaController)\n"
        for n, item in enumerate(messages)
    ]
    (place / "templates.log").write_text("".join(lines))
    log_tables.write_logs(
        spark, [shared / "logs" / "kafka", shared / "logs" / "lookalikes", place / "templates.log"], place / "out"
    )
    return place / "out"


@pytest.fixture(scope="module")
def records(out: Path) -> dict[tuple[str, int], Row]:
    return by_place(rows_of(out, "records"))


@pytest.mark.spark
@pytest.mark.slow
def test_real_lines_give_their_kind_and_facts(
    expected: dict[tuple[str, int], Meaning], records: dict[tuple[str, int], Row]
) -> None:
    """At least 99 % of the real lines with facts give the reference's kind, facts, layout, wrapper, time, level and logger."""
    heads = {place: line for place, line in expected.items() if "layout" in line}
    wrong = [place for place, line in heads.items() if not _agrees(line, records.get(place))]
    assert len(heads) > 600 and len(wrong) <= len(heads) // 100, wrong


def _agrees(line: Meaning, row: Row | None) -> bool:
    if row is None:
        return False
    facts = {name: row["facts"].get(name, "absent") for name in line.get("facts", {})}
    time = str(row["time"]).replace(" ", "T").replace(",", ".")
    return facts == line.get("facts", {}) and time == line["time"] and all(row[name] == line.get(name) for name in HEAD)


@pytest.mark.spark
@pytest.mark.slow
def test_each_real_line_is_accounted_for(
    expected: dict[tuple[str, int], Meaning], records: dict[tuple[str, int], Row], out: Path
) -> None:
    """Each real line is a record, continues the record that the reference names, or is rejected if it is not Kafka's."""
    rejected = by_place(rows_of(out, "rejected"))
    for (file, n), line in expected.items():
        head = line.get("continuation_of", n)
        if line.get("kind") == "not_kafka":
            assert rejected[file, n]["reason"] == "The line is of another log."
        else:
            assert head <= n < head + records[file, head]["lines"]


@pytest.mark.spark
@pytest.mark.slow
def test_invented_lines_give_no_fact(records: dict[tuple[str, int], Row]) -> None:
    """The lines that no release prints are records without facts."""
    invented = [row for (file, _), row in records.items() if file == "invented.log"]
    assert len(invented) == 16 and {(row["kind"], str(row["facts"])) for row in invented} == {("other", "{}")}


@pytest.mark.spark
@pytest.mark.slow
def test_each_template_is_parsed_back(messages: list[Filled], records: dict[tuple[str, int], Row]) -> None:
    """A release's template filled with generated values gives the kind of the reference, and its topic and group."""
    rows = [records["templates.log", n] for n in range(1, len(messages) + 1)]
    assert [row["kind"] for row in rows] == [item.kind for item in messages]
    for item, row in zip(messages, rows, strict=True):
        for name in ("group", "generation", "correlation"):
            if name in item.values and name in row["facts"]:
                assert str(row["facts"][name]) == item.values[name]
        if "tp" in item.values and "topic" in row["facts"]:
            assert (row["facts"]["topic"], str(row["facts"]["partition"])) == (
                "orders.eu-west_1",
                item.values["tp"].strip("]").replace(",", "-").split("-")[-1],
            )


def test_the_table_of_messages_names_each_kind_of_the_reference(messages: list[Filled]) -> None:
    """Each kind of the reference has a pattern."""
    assert {item.kind for item in messages} <= {form.kind for form in forms()}


# Messages of brokers of 0.10.2.2, whose listeners name the broker as "Controller 3".
LISTENERS = {
    "deletion_requested": "[DeleteTopicsListener on Controller 3]: Starting topic deletion for topics orders,payments",
    "partitions_added": "[AddPartitionsListener on Controller 3]: New partitions to be added Map([solo,2] -> List(1))",
    "reassign_progress": "[ReassignedPartitionsIsrChangeListener on Controller 3]: 0/1 replicas have caught up with the leader "
    "for partition [solo,0] being reassigned.Replica(s) 1 still need to catch up",
}


@pytest.mark.parametrize("kind", LISTENERS)
def test_a_listener_may_name_its_broker_as_controller(kind: str) -> None:
    """In 0.10.2 a prefix is such as "[DeleteTopicsListener on Controller 3]", and up to 0.10.1 "[DeleteTopicsListener on 3]"."""
    message = LISTENERS[kind]
    found = [form for form in forms() if form.words in message and re.match(form.pattern, message)]
    assert [form.kind for form in found[:1]] == [kind]


@pytest.mark.shared
def test_the_table_of_messages_names_each_fact_of_the_reference(shared: Path) -> None:
    """Each fact that the reference lists for a kind is a fact of a pattern of this kind; `members` has its own name by type."""
    text = (shared / "reference" / "kafka-logs.md").read_text()
    ours: dict[str, set[str]] = {}
    for form in forms():
        ours.setdefault(form.kind, set()).update(form.facts)
    listed = {kind: set(re.findall(r"\w+", facts)) for kind, facts in re.findall(r"\*\*`(\w+)`\*\* — facts: ([\w, ]+)", text)}
    assert len(listed) > 100
    assert {kind: facts - ours[kind] for kind, facts in listed.items() if not facts <= ours[kind] | {"members"}} == {}
