"""`--redact` replaces names in every output: no original name is left anywhere in the bytes of the folder of tables."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from kcontrol.pipeline.logs import log_tables, redaction
from kcontrol.pipeline.logs.files import LONG, Damaged, LogFile, NoLog, examine, log_files
from kcontrol.pipeline.logs.log_tables import ALL_TABLES
from kcontrol.pipeline.redaction.stable_names import OWN, Redaction
from tests.pipeline.log_rows import rows_of

AT = "2019-05-06 07:08:09,123"
TOPICS, HOSTS = ("payroll", "payroll-eu", "salaries"), ("vault.corp.example", "10.20.30.40", "prod-rack7")
CLIENTS = ("accountant", "ledger-reader")
ALL = ("topic", "host", "client")
KEY = bytes(32)
STATE, KC = "(state.change.logger)", "(kafka.controller.KafkaController)"
CHANGED = (
    f"TRACE Controller 3 epoch 8 changed partition [payroll,1] from OfflinePartition to OnlinePartition with leader 2 {STATE}"
)
ASSIGNED = "new partition replica assignment [Map(payroll-eu-0 -> Vector(1, 2))]"
TOPICS_LINE = f"INFO [Controller id=3] New topics: [Set(payroll-eu, salaries)], deleted topics: [Set()], {ASSIGNED} {KC}"
MEMBER = "ledger-reader-1f6b2d7c-0001-4000-8000-0123456789ab"
FAILED = f"Member {MEMBER} in group accountant has failed, removing it from the group (kafka.coordinator.group.GroupCoordinator)"
BROKER, THREAD = "id:2,host:vault.corp.example,port:9092", "[Controller-3-to-broker-2-send-thread]"
LINES = [
    f"[{AT}] {CHANGED}",
    f"[{AT}] {TOPICS_LINE}",
    f"[{AT}] INFO [GroupCoordinator 2]: {FAILED}",
    f"[{AT}] WARN {THREAD}, Controller 3's connection to broker {BROKER} was unsuccessful (kafka.controller.RequestSendThread)",
    "java.io.IOException: Connection to vault.corp.example:9092 (id: 2 rack: null) for payroll-1 failed",
    "\tat kafka.Some.thing(Some.scala:7)",
    f"[{AT}] INFO Opening socket connection to server vault.corp.example/10.20.30.40:2181 (org.apache.zookeeper.ClientCnxn)",
]
REJECTED = "a line before any record, about payroll and vault.corp.example\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of logs with names in texts, stack traces, a rejected line, a wrapper, and in the names of folders and files."""
    place = tmp_path / "logs"
    (place / "prod-rack7").mkdir(parents=True)
    (place / "prod-rack7" / "server.log").write_text(REJECTED + "\n".join(LINES) + "\n")
    (place / "vault.corp.example.log.gz").write_bytes(
        gzip.compress("\n".join(f"prod-rack7  | {line}" for line in LINES).encode())
    )
    return place


def names_of(*kinds: str) -> redaction.Names:
    """Return names of these kinds, with none found."""
    return redaction.Names(Redaction(kinds, KEY))


def stable(kind: str, name: str) -> str:
    return Redaction(ALL, KEY).stable(kind, name)


def read(files: Any) -> str:
    return "".join(f"{file.path}\n" + "".join(redaction.lines_of(file.read)) for file in files)


def test_each_kind_of_name_is_replaced_alone(logs: Path, tmp_path: Path) -> None:
    """With one kind its names are gone, from file names too, and every other name stays."""
    files = [examine(path, tmp_path / "copies") for path in log_files([logs])]
    for kind, gone in (("topic", TOPICS), ("host", HOSTS), ("client", CLIENTS)):
        text = read(redaction.redacted(files, [logs], names_of(kind), tmp_path / f"copies-{kind}"))
        assert [name for name in gone if name in text] == []
        stay = {*TOPICS, *HOSTS, *CLIENTS} - {*gone}
        assert [name for name in stay if name not in text] == []


def test_one_name_is_the_same_in_every_file(logs: Path, tmp_path: Path) -> None:
    """A name has one stable name in all files, and the text around it stays."""
    files = [examine(path, tmp_path / "copies") for path in log_files([logs])]
    first, second = redaction.redacted(files, [logs], names_of(*ALL), tmp_path / "redacted")
    ours = ["".join(redaction.lines_of(file.read)).splitlines() for file in (first, second) if isinstance(file, LogFile)]
    assert ours[0][1:] == [line.partition("| ")[2] or line for line in ours[1]]
    assert ours[0][1].startswith(f"[{AT}] TRACE Controller 3 epoch 8 changed partition [topic-")
    assert ours[0][6] == "\tat kafka.Some.thing(Some.scala:7)"


def test_a_topic_with_a_word_of_kafkas_is_replaced_beside_its_number(tmp_path: Path) -> None:
    """A topic "state" is replaced in `[state,0]`, and the word "state" of the message stays, so that the line is understood."""
    line = "[Controller id=3 epoch=8] Changed partition state-1 state from OnlinePartition to OfflinePartition"
    (tmp_path / "state-change.log").write_text(f"[{AT}] TRACE {line} (state.change.logger)\n")
    (file,) = redaction.redacted(
        [examine(tmp_path / "state-change.log", tmp_path / "c")], [tmp_path], names_of("topic"), tmp_path / "d"
    )
    assert line.replace("state-1", f"{stable('topic', 'state')}-1") in read([file])


def test_names_of_folders_and_files_that_no_line_has_are_replaced(tmp_path: Path) -> None:
    """A folder, and a file whose name is not Kafka's, get stable names; so does the path in the reason why a file is no log."""
    root, names, letters = tmp_path / "logs", names_of(*ALL), Redaction(ALL, KEY).letters
    folder, file = f"folder-{letters('cellar')}", f"file-{letters('strongroom.log')}.log"
    assert redaction.shown(root / "cellar" / "server.log.1", root, names) == Path("logs", folder, "server.log.1")
    path = root / "cellar" / "strongroom.log"
    assert redaction.shown(path, root, names) == Path("logs", folder, file)
    shown = redaction.file_without_names(NoLog(path, f"{path} is a ZIP file."), root, names)
    assert shown == NoLog(Path("logs", folder, file), f"logs/{folder}/{file} is a ZIP file.")


def test_a_name_that_only_a_damaged_line_has_is_replaced(tmp_path: Path) -> None:
    """The beginning of a line that Spark does not read has stable names too."""
    path = tmp_path / "server.log"
    path.write_text("no names\n\n")
    damaged = Damaged(2, 40, "Changed partition payroll-1 to", LONG)
    (file,) = redaction.redacted([LogFile(path, path, 2, [damaged])], [tmp_path], names_of("topic"), tmp_path / "d")
    assert isinstance(file, LogFile)
    assert file.damaged == [damaged._replace(start=f"Changed partition {stable('topic', 'payroll')}-1 to")]


GROUP_LINES = {
    "Preparing to rebalance group {} in state Stable with old generation 4 (__consumer_offsets-3) (reason: removing member)":
        "{}",
    "Group {} with generation 5 is now empty (__consumer_offsets-3)": "{}",
    "Finished loading offsets and group {} from __consumer_offsets-3 in 7 milliseconds.": "metadata",
    "Failed to write empty metadata for group {}: the metadata was not written": "{}",
}  # fmt: skip
"""Messages of a coordinator, each with the word that stays at the place {} if a group is called "metadata"."""


def test_a_group_with_a_word_of_kafkas_is_replaced_where_a_message_names_it(tmp_path: Path) -> None:
    """A group "metadata" is replaced in each message that names it and beside "group id", and no other word "metadata" is."""
    logger = "(kafka.coordinator.group.GroupCoordinator)"
    lines = [f"[{AT}] INFO [GroupCoordinator 2]: {message.format('metadata')} {logger}" for message in GROUP_LINES]
    lines.append("java.lang.IllegalStateException: no member in groupId=metadata, and no metadata")
    (tmp_path / "server.log").write_text("\n".join(lines) + "\n")
    (file,) = redaction.redacted(
        [examine(tmp_path / "server.log", tmp_path / "c")], [tmp_path], names_of("client"), tmp_path / "d"
    )
    *messages, trace = read([file]).splitlines()[1:]
    shown = [message.format(name.format(stable("client", "metadata"))) for message, name in GROUP_LINES.items()]
    assert messages == [f"[{AT}] INFO [GroupCoordinator 2]: {message} {logger}" for message in shown]
    assert trace == f"java.lang.IllegalStateException: no member in groupId={stable('client', 'metadata')}, and no metadata"


def test_a_topic_with_a_word_of_kafkas_is_replaced_in_a_list(tmp_path: Path) -> None:
    """A topic "deletion" is replaced in the list of topics, and the word "deletion" of the message stays."""
    line = "[Topic Deletion Manager 3] Handling deletion for topics deletion,payroll"
    (tmp_path / "controller.log").write_text(f"[{AT}] INFO {line} (kafka.controller.TopicDeletionManager)\n")
    (file,) = redaction.redacted(
        [examine(tmp_path / "controller.log", tmp_path / "c")], [tmp_path], names_of("topic"), tmp_path / "d"
    )
    shown = f"{stable('topic', 'deletion')},{stable('topic', 'payroll')}"
    assert f"Handling deletion for topics {shown} (" in read([file])


NEW_TOPICS = "[Controller id=3] New topics: [Set({0})], deleted topics: [Set()], new partition replica assignment [{1}]"
REPLICAS = "ReplicaAssignment(replicas=0, addingReplicas=, removingReplicas=)"


def test_the_words_of_a_list_are_no_topics() -> None:
    """In "topics: [Set()]" no topic is found; of a topic with the name "Set" only the name is replaced, not the word."""
    names = names_of("topic")
    line = f"[{AT}] INFO {NEW_TOPICS.format('', 'Map()')} {KC}"
    names.learn(line)
    assert (names.kinds, names.replaced(line)) == ({}, line)
    line = f"[{AT}] INFO {NEW_TOPICS} {KC}"
    assigned = f"Set(TopicIdReplicaAssignment({{0}},Some(1IAzqmJlQTO446x8lL33TQ),Map({{0}}-2 -> {REPLICAS})))"
    names.learn(line.format("Set", assigned.format("Set")))
    redacted = stable("topic", "Set")
    shown = line.format(redacted, assigned.format(redacted))
    assert names.replaced(line.format("Set", assigned.format("Set"))) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Renamed /data/kafka/{}-3.0a1b2c-delete/00000000000000000000.log", "directory {}-3.0a1b2c-future (x)", "{}-3.0a1b-stray",
        "the log of {}-3. Previous",
    ],
)  # fmt: skip
@pytest.mark.parametrize("topic", ["fourth.topic", "eu-west-7"])
def test_a_topic_in_the_name_of_a_folder_is_replaced(text: str, topic: str) -> None:
    """A topic is found in the name of a partition's folder that is to be deleted or moved, and before the end of a sentence."""
    names = names_of("topic")
    names.learn(text.format(topic))
    assert names.replaced(text.format(topic)) == text.format(stable("topic", topic))


def test_the_json_of_docker_is_left_out_of_a_copy(tmp_path: Path) -> None:
    """A copy has the text of a line that Docker has written as JSON, so a topic after an escaped tab is found too."""
    text = ['{"log":"\\tpayroll-1 is offline\\n","stream":"stdout"}', '{"log":"payroll-1 cut']
    (tmp_path / "server.log").write_text("\n".join(text) + "\n")
    names = names_of("topic")
    (file,) = redaction.redacted([examine(tmp_path / "server.log", tmp_path / "c")], [tmp_path], names, tmp_path / "d")
    payroll = stable("topic", "payroll")
    assert isinstance(file, LogFile)
    assert list(redaction.lines_of(file.read)) == [f"\t{payroll}-1 is offline\n", f'{{"log":"{payroll}-1 cut\n']


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.shared
def test_real_lines_give_their_kinds_and_facts_with_stable_names(shared: Path, tmp_path: Path, spark: Any) -> None:
    """Each line of the published logs has one kind, the same facts, and lists of one length, with and without stable names."""
    source = shared / "logs" / "kafka"
    files = [examine(path, tmp_path / "copies") for path in log_files([source])]
    folders = [source, *(tmp_path / "-".join(kinds) for kinds in (("topic",), ("host",), ("client",), ALL))]
    for folder in folders[1:]:
        redaction.redacted(files, [source], names_of(*folder.name.split("-")), folder)
    log_tables.write_logs(spark, folders, tmp_path / "out")
    numbers = {str(file.path): str(number) for number, file in enumerate(files)}
    found: dict[str, dict[tuple[str, int], Any]] = {}
    for row in rows_of(tmp_path / "out", "records"):
        file = Path(row["file"])
        number = numbers.get(row["file"], file.stem.removeprefix("redacted-"))
        sizes = {name: len(value) if isinstance(value, (list, dict)) else 1 for name, value in row["facts"].items()}
        found.setdefault(file.parent.name, {})[number, row["n"]] = (row["kind"], sizes)
    assert len(found) == len(folders) and len(found[source.name]) > 600
    assert [folder for folder in found if found[folder] != found[source.name]] == []


@pytest.mark.spark
@pytest.mark.slow
def test_no_name_is_left_in_the_bytes_of_the_tables(logs: Path, tmp_path: Path, spark: Any) -> None:
    """No byte of the folder of tables, packed or not, has a name, and no file name; the facts have the stable names."""
    out, names = tmp_path / "tables", (*TOPICS, *HOSTS, *CLIENTS, str(tmp_path))
    (logs / "server.log").write_text(f"[{AT}] {CHANGED}\n")
    (logs / "controller.log").write_text(f"[{AT}] {CHANGED}\n")
    (logs / "payroll.log").write_bytes(b"PK\x03\x04 payroll")
    log_tables.write_logs(spark, [logs], out, redact=Redaction(ALL, KEY), of_runs=True)
    files = [path for path in out.rglob("*") if path.is_file()]
    for path in files:
        assert [name for name in names if name.encode() in path.read_bytes() or name in str(path.relative_to(out))] == [], path
    rows = {table: rows_of(out, table) for table in ALL_TABLES}
    assert [name for name in names if name in str(rows)] == []
    kinds = {row["kind"] for row in rows["records"]}
    assert kinds >= {"partition_transition", "topics_changed", "member_failed", "controller_connection_failed"}
    topics = {row["facts"]["topic"] for row in rows["records"] if "topic" in row["facts"]}
    assert topics and all(topic.startswith("topic-") for topic in topics)
    assert [row["leader"] for row in rows["leaderships"]] == [2]
    letters = Redaction(ALL, KEY).letters
    folder, packed = f"folder-{letters('prod-rack7')}/server.log", f"file-{letters('vault.corp.example.log.gz')}.log.gz"
    copies = sorted(row["file"] for row in rows["records"] if row["copy_of"])
    assert copies == [f"logs/{packed}", *[f"logs/{folder}"] * 4, "logs/server.log"]
    (zipped,) = (row for row in rows["rejected"] if row["n"] is None)
    assert zipped["reason"].endswith(" is a ZIP file: unpack it first.") and zipped["length"] == 12


@pytest.mark.shared
def test_no_topic_of_real_logs_is_left(shared: Path, tmp_path: Path) -> None:
    """Every topic that a pattern of Kafka's messages finds in the published logs is replaced."""
    from tests.views.test_kafka_words import APACHE, understood

    files = [examine(path, tmp_path / "copies") for path in log_files([shared / "logs" / "kafka"])]
    lines = [line for file in files for line in redaction.lines_of(file.read)]  # type: ignore[union-attr]
    known = [understood(found["message"])[1].get("topic") for line in lines if (found := APACHE.match(line))]
    names = {name for name in known if name and name not in OWN}
    text = read(redaction.redacted(files, [shared / "logs" / "kafka"], names_of("topic"), tmp_path / "redacted"))
    assert len(names) > 15
    assert [name for name in names if f"[{name}," in text or f" {name}-" in text or f" {name} " in text] == []
