"""`kcontrol pipeline offsets --redact`: no name is left in any byte of the tables, and groups and partitions still fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcontrol.group.offsets_topic_records import encode
from kcontrol.pipeline.offsets import offset_tables
from kcontrol.pipeline.offsets.offset_tables import member_id, redacted, shown_path, write_offsets
from kcontrol.pipeline.offsets.segments import Segment, rows
from kcontrol.pipeline.pipeline import Chosen
from kcontrol.pipeline.redaction.stable_names import Redaction
from tests.pipeline.log_rows import rows_of
from tests.pipeline.segment_files import AT_MS, Record, batch

REDACTION = Redaction(("topic", "host", "client"), b"a key")
UUID = "1f6b2d7c-0001-4000-8000-0123456789ab"
MEMBER = f"ledger-{UUID}"
NAMES = {"topic": ("payroll", "salaries"), "client": ("accountants", "ledger", "desk-7"), "host": ("10.20.30.40", "vault")}
ALL = {name for names in NAMES.values() for name in names}


def commit(topic: str) -> Record:
    """Return an offset that the group accountants commits for a partition of the topic, with a text that names all."""
    key = encode("offset_key", 1, {"group": "accountants", "topic": topic, "partition": 7})
    fields = {"offset": 3, "leader_epoch": 7, "metadata": " ".join(sorted(ALL)), "commit_timestamp": AT_MS}
    return key, encode("offset_value", 3, fields)


def group() -> Record:
    """Return the group accountants with one member, whose subscription and assignment name topics and, as bytes, a host."""
    member = {
        "member_id": MEMBER, "group_instance_id": "desk-7", "client_id": "ledger", "client_host": "/10.20.30.40",
        "rebalance_timeout": 60000, "session_timeout": 10000,
        "subscription": encode("subscription", 0, {"topics": ["payroll", "salaries"], "user_data": b"vault"}),
        "assignment": encode("assignment", 0, {"partitions": [{"topic": "payroll", "partitions": [7]}], "user_data": b"vault"}),
    }  # fmt: skip
    head = {"protocol_type": "consumer", "generation": 4, "protocol": "range", "leader": MEMBER}
    fields = {**head, "current_state_timestamp": AT_MS, "members": [member]}
    return encode("group_key", 2, {"group": "accountants"}), encode("group_value", 3, fields)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two segments in a folder of a host, one with a name of its own, and a file that is no segment."""
    folder = tmp_path / "logs" / "vault" / "__consumer_offsets-7"
    folder.mkdir(parents=True)
    tombstone = commit("payroll")[0], None
    (folder / f"{0:020}.log").write_bytes(batch(0, [commit("payroll"), commit("salaries"), group(), tombstone], producer=4))
    (folder.parent / "__consumer_offsets-7.of-vault.log").write_bytes(batch(0, [commit("payroll")]))
    (folder / f"{9:020}.log").write_text("payroll of vault is no segment\n")
    return tmp_path / "logs"


def found(logs: Path) -> list[Any]:
    (path,) = logs.rglob(f"{0:020}.log")
    return list(rows(Segment(path, path.stat().st_size, 7)))


def test_each_kind_is_replaced_alone_in_the_fields_of_a_row(logs: Path) -> None:
    """With one kind of names, its names are gone from every field, and the names of the other kinds stay in fields for names."""
    for kind, names in NAMES.items():
        text = str([redacted(row, Redaction((kind,), b"a key")) for row in found(logs)])
        assert [name for name in names if name in text] == []
        assert [name for name in ALL - {*names, "vault"} if name not in text] == []


def test_a_row_keeps_what_is_no_name(logs: Path) -> None:
    """Positions, offsets, generations, the protocol and texts that are missing stay as they are."""
    for row in found(logs):
        copy = redacted(row, REDACTION)
        assert copy._replace(fields=None) == row._replace(fields=None)
        for name in ("key_version", "offset", "leader_epoch", "generation", "protocol", "protocol_type", "commit_timestamp"):
            assert copy.fields.get(name) == row.fields.get(name)


def test_a_member_id_keeps_its_uuid() -> None:
    """The client id before the UUID has its stable name, so that the member is found in logs too; a whole name else."""
    assert member_id(MEMBER, REDACTION) == f"{REDACTION.stable('client', 'ledger')}-{UUID}"
    assert member_id("ledger", REDACTION) == REDACTION.stable("client", "ledger")


def test_paths_keep_the_names_that_kafka_gives() -> None:
    """A folder of a partition and a segment keep their names; other folders and files get stable names if hosts do."""
    root, letters = Path("/logs"), REDACTION.letters
    path = root / "vault" / "__consumer_offsets-7" / f"{0:020}.log"
    assert shown_path(path, root, REDACTION) == f"segments/folder-{letters('vault')}/__consumer_offsets-7/{0:020}.log"
    assert shown_path(root / "vault.log", root, REDACTION) == f"segments/file-{letters('vault.log')}.log"
    assert shown_path(root / "vault.log", root, Redaction(("topic",), b"k")) == "segments/vault.log"


@pytest.mark.spark
@pytest.mark.slow
def test_no_name_is_left_in_the_bytes_of_the_tables(logs: Path, tmp_path: Path, spark: Any) -> None:
    """No file has a name in its bytes or its own name; group ids, partitions and members fit in all tables."""
    out = tmp_path / "out"
    written = write_offsets(spark, [logs], out, redact=REDACTION)
    plain = write_offsets(spark, [logs], tmp_path / "plain")
    assert written.rows == plain.rows and written.records == plain.records
    assert written.refused == plain.refused and len(plain.refused) == 1
    for path in (path for path in out.rglob("*") if path.is_file()):
        assert [name for name in ALL if name.encode() in path.read_bytes() or name in str(path.relative_to(out))] == [], path
    tables = {name: rows_of(out, name) for name in offset_tables.TABLES}
    assert [name for name in ALL if name in str(tables)] == []
    (metadata,) = tables["group_metadata"]
    (member,) = metadata["members"]
    assert {row["group_id"] for name in tables for row in tables[name] if "group_id" in row} == {metadata["group_id"]}
    assert member["member_id"] == metadata["leader"] and member["member_id"].startswith(member["client_id"])
    assert {*member["partitions"]} <= {row["partition"] for row in tables["commits"]}
    assert {row["partition"] for row in tables["tombstones"]} == {*member["partitions"]}
    assert (member["subscription"], member["assignment"]) == (None, None)
    chosen = write_offsets(spark, [logs], out, chosen=Chosen(topic="salaries"), redact=REDACTION)
    assert (plain.rows["commits"], chosen.rows["commits"]) == (3, 1)
