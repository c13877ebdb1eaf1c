"""Broker logs as tables: layouts, wrappers, records of several lines, damaged and foreign files, and the count of all lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as sql

from kcontrol.core.errors import UserError
from kcontrol.pipeline import pipeline, pipeline_report
from kcontrol.pipeline.logs import files, log_tables
from kcontrol.pipeline.logs.facts import converted, json_facts
from kcontrol.pipeline.logs.files import LogFile, NoLog, examine
from kcontrol.pipeline.logs.patterns import FACT, NAME, TYPE
from kcontrol.pipeline.logs.zones import ALWAYS_MS, NEVER_MS, Start, zones
from tests.pipeline.log_rows import Row, by_place, rows_of

AT = "2019-05-06 07:08:09,123"
READY = "[Controller id=3] Ready to serve as the new controller with epoch 8"
KC = "kafka.controller.KafkaController"
LINE = f"[{AT}] INFO {READY} ({KC})"
# Of another time, because equal lines of two files of a broker are copies.
LATER, LAST = (LINE.replace(AT, f"2019-05-06 07:08:{second},123") for second in ("11", "12"))
LAYOUTS = {
    "apache": LINE,
    "strimzi": f"{AT} INFO {READY} ({KC}) [controller-event-thread]",
    "log4j2_strimzi": f"{AT}+0530 INFO  [controller-event-thread] KafkaController:66 - {READY}",
    "bracketed": f"[{AT}] [INFO ] [controller-event-thread] [{KC}] - {READY}",
    "logger_first": f"[{AT}] ({KC}) [controller-event-thread] INFO - {READY}",
    "cloudera": f"{AT} INFO {KC}: {READY}",
    "spring": f"{AT.replace(',', '.')}  INFO 4711 --- [event-thread] k.c.KafkaController  : {READY}",
    "linkedin": f"{AT.replace(',', '.').replace('-', '/')} [KafkaController] {READY}",
}
WRAPS = {
    "compose": f"broker-1  | {LATER}", "grep": f"logs/controller.log.2019-05-06-07:{LATER}", "numbered": f" 12. {LATER}",
    "comment": f"// {LATER}", "indented": f"\t{LATER}", None: f"{LATER},eu-west,7",
}  # fmt: skip
ACME = "com.acme.KafkaController"
ELECTED = "1 successfully elected as the controller"
OF_OTHERS = [
    f"{AT.replace(',', '.')}  INFO 4711 --- [main] o.s.b.SpringApp  : {ELECTED}",
    f"{AT.replace(',', '.')}  INFO 4711 --- [main] {ACME} : {READY}",
    f"{AT} INFO  [main] {ACME}:66 - {READY}",
    f"{AT.replace(',', '.').replace('-', '/')} [{ACME}] {READY}",
]  # fmt: skip
SHORTENED = ["kafka.controller.KafkaController", "k.c.KafkaController", "o.a.kafka.controller.Some", "o.a.k.c.Some", "Some"]
COPIED = [
    f"my logs/server.log.2019-05-06-07:12:{LAST}",
    json.dumps({"log": f"{LAST}\n", "stream": "stdout", "time": "2019-05-06T07:08:09.123456789Z"}, separators=(",", ":")),
    '{"log":"\\tat kafka.Some.thing(Some.scala:7)\\n","stream":"stdout"}',
    '{"log":"cut off',
    LAST,
    "Next check, see the log: 2019-05-06 07:08:10",
]
TRACE = ["java.io.IOException: Connection to 2 was disconnected", "\tat kafka.Some.thing(Some.scala:7)", "\t... 3 more"]
STATE = "[Controller id=3 epoch=8] Changed partition orders-1 state from OnlinePartition to OfflinePartition"


def moved(partition: int) -> str:
    return f"[{AT}] TRACE {STATE.replace('orders-1', f'orders-{partition}')} (state.change.logger)"


BROKEN = moved(7)
SEVERAL = [
    f"[{AT}] INFO KafkaConfig values: ", "\tbroker.id = 3", "\tzookeeper.connect =", " (kafka.server.KafkaConfig)",
    LINE, *TRACE, "",
    BROKEN[:100], BROKEN[100:],
    f"[{AT}] TRACE {STATE} (state.chan",
    f"[{AT}] TRACE {STATE[:-9]}",
    f"[{AT}] INFO New leader is 4 (org.other.Thing)",
]  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> tuple[Path, log_tables.Written]:
    """The tables of a folder of logs in all forms, and of a file that was named by itself."""
    place = tmp_path_factory.mktemp("a learner's [logs]")
    logs = place / "logs"
    (logs / "two brokers").mkdir(parents=True)
    (logs / "layouts.log").write_text("\n".join(LAYOUTS.values()))
    (logs / "wraps.log").write_text("\n".join(WRAPS.values()) + "\n")
    (logs / "others.log").write_text("\n".join(OF_OTHERS) + "\n")
    spring = LAYOUTS["spring"].replace("07:08:09", "07:08:10")
    (logs / "shortened.log").write_text("\n".join(spring.replace("k.c.KafkaController", name) for name in SHORTENED) + "\n")
    (logs / "copied.log").write_text("\n".join(COPIED) + "\n")
    (logs / "several.log.2019-05-06-07").write_text("\n".join(SEVERAL) + "\n")
    (logs / "windows.log").write_bytes(b"\r\n".join(line.encode() for line in (LINE, *TRACE, moved(2))) + b"\r\n")
    (logs / "nul.log").write_bytes(b"\0" * 1015 + LINE.encode() + b"\nnot \xff UTF-8\n")
    (logs / "state-change.log.1.gz").write_bytes(gzip.compress((moved(3) + "\n").encode()))
    (logs / "cut.log.gz").write_bytes(gzip.compress("".join(moved(n) + f"{n}\n" for n in range(4000)).encode())[:9000])
    (logs / "long.log").write_bytes(moved(4).encode() + b"\n" + b"x" * (8 * 2**20 + 5) + b"\n" + moved(5).encode() + b"\n")
    (logs / "most.log").write_bytes(moved(6).encode() + b" " * (8 * 2**20 - len(moved(6))) + b"\n")
    (logs / "other.log").write_text(
        f"no record\nJan 17, 2020 @ 15:54:24.877\n{LINE}\nMay  6 07:08:09 host cron[1]: run\n  of cron\n"
    )
    (logs / "endless.log").write_text(f"{LINE}\n" + "\tat thing\n" * 150_000)
    (logs / "00000000000000000000.log").write_bytes(bytes(range(256)) * 40)
    (logs / "notes.md").write_text("no log")
    _brokers(logs / "two brokers")
    return place / "out", log_tables.write_logs(spark, [logs], place / "out")


def _brokers(logs: Path) -> None:
    """Write the logs of the brokers 1 and 2, in the zone +02:00, two copies of the first, and two logs without a broker."""
    elected = f"[{AT}] INFO New leader is 2 (kafka.server.ZookeeperLeaderElector$LeaderChangeListener)"
    one = [f"[{AT}] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)", elected, elected]
    start = f"[{AT}] INFO Kafka startTimeMs: {1557119289123 - 125} (org.apache.kafka.common.utils.AppInfoParser)"
    (logs / "kafkaServer.out").write_text("\n".join(one) + "\n")
    (logs / "server.log").write_text("\n".join([*one, start]) + "\n")
    (logs / "older").mkdir()
    (logs / "older" / "server.log.gz").write_bytes(gzip.compress("".join(f"broker-1  | {line}\n" for line in one).encode()))
    for folder in ("p", "q"):
        (logs / folder).mkdir()
        (logs / folder / f"unknown-{folder}.log").write_text(f"{elected}\n")
    (logs / "server-2.log").write_text(f"[{AT}] INFO [KafkaServer id=2] started (kafka.server.KafkaServer)\n{elected}\n")


@pytest.fixture(scope="module")
def records(written: tuple[Path, log_tables.Written]) -> dict[tuple[str, int], Row]:
    return by_place(rows_of(written[0], "records"))


@pytest.fixture(scope="module")
def rejected(written: tuple[Path, log_tables.Written]) -> list[Row]:
    return rows_of(written[0], "rejected")


@pytest.mark.spark
@pytest.mark.slow
def test_a_record_is_found_in_each_layout(records: dict[tuple[str, int], Row]) -> None:
    """The line of a new controller gives the same kind and facts in each of the eight layouts, and its time as it is written."""
    for n, (layout, line) in enumerate(LAYOUTS.items(), 1):
        row = records["layouts.log", n]
        assert (row["layout"], row["kind"], row["facts"]) == (layout, "controller_ready", {"controller": 3, "epoch": 8})
        assert row["raw"] == line and row["time"] in line and row["level"] in ("INFO", None)
        assert str(row["local_time"]) == "2019-05-06 07:08:09.123000"


@pytest.mark.spark
@pytest.mark.slow
def test_what_stands_around_a_line_is_left_out(records: dict[tuple[str, int], Row]) -> None:
    """A line in a wrapper, or with columns after its logger, gives the facts of the bare line, and the wrapper has a name."""
    for n, wrap in enumerate(WRAPS, 1):
        row = records["wraps.log", n]
        assert (row["wrap"], row["kind"], row["logger"]) == (wrap, "controller_ready", KC)


@pytest.mark.spark
@pytest.mark.slow
def test_a_record_has_all_of_its_lines(records: dict[tuple[str, int], Row]) -> None:
    """A message of several lines, or one that a terminal broke, has its logger; a stack trace stays with its record."""
    config, failed, broken = (records["several.log.2019-05-06-07", n] for n in (1, 5, 10))
    assert (config["logger"], config["kind"], config["lines"]) == ("kafka.server.KafkaConfig", "other", 4)
    assert failed["raw"].split("\n") == [LINE, *TRACE, ""] and failed["kind"] == "controller_ready"
    assert (broken["lines"], broken["facts"]["partition"], broken["logger"]) == (2, 7, "state.change.logger")


@pytest.mark.spark
@pytest.mark.slow
def test_a_line_that_is_cut_off_gives_no_wrong_fact(records: dict[tuple[str, int], Row]) -> None:
    """A line cut inside its logger has its facts; a line cut inside its message, and a line of another program, have none."""
    inside_logger, inside_message, other = (records["several.log.2019-05-06-07", n] for n in (12, 13, 14))
    assert inside_logger["kind"] == "partition_transition" and inside_logger["facts"]["to_state"] == "OfflinePartition"
    assert (inside_message["kind"], inside_message["facts"], inside_message["logger"]) == ("other", {}, None)
    assert (other["kind"], other["facts"]) == ("other", {})


@pytest.mark.spark
@pytest.mark.slow
def test_bytes_that_are_no_text_do_not_hide_a_record(records: dict[tuple[str, int], Row]) -> None:
    """Windows line ends, NULs of a crash and bytes that are not UTF-8 leave the facts and the other lines as they are."""
    assert records["windows.log", 1]["raw"].split("\n") == [LINE, *TRACE] and records["windows.log", 5]["facts"]["partition"] == 2
    assert records["nul.log", 1]["kind"] == "controller_ready" and records["nul.log", 1]["raw"].endswith("not \ufffd UTF-8")


@pytest.mark.spark
@pytest.mark.slow
def test_compressed_files_are_read_as_far_as_they_go(records: dict[tuple[str, int], Row], rejected: list[Row]) -> None:
    """A whole .gz gives its records; of a .gz that ends too early each whole line is read, and the last line is rejected."""
    assert records["state-change.log.1.gz", 1]["facts"]["partition"] == 3
    (row,) = (row for row in rejected if Path(row["file"]).name == "cut.log.gz")
    assert row["reason"] == "The compressed file is damaged in this line; the lines after it are lost."
    assert {n for name, n in records if name == "cut.log.gz"} == set(range(1, row["n"])) and row["n"] > 100


@pytest.mark.spark
@pytest.mark.slow
def test_a_line_above_8_mb_is_rejected(records: dict[tuple[str, int], Row], rejected: list[Row]) -> None:
    """Such a line is rejected with its length and first kilobyte, the lines keep their numbers, and a line of 8 MB is read."""
    (row,) = (row for row in rejected if Path(row["file"]).name == "long.log")
    assert (row["n"], row["length"], row["raw"], row["reason"]) == (2, 8 * 2**20 + 5, "x" * 1024, "The line is longer than 8 MB.")
    assert [records["long.log", n]["facts"]["partition"] for n in (1, 3)] == [4, 5]
    assert records["most.log", 1]["facts"]["partition"] == 6


@pytest.mark.spark
@pytest.mark.slow
def test_lines_of_other_logs_are_rejected(records: dict[tuple[str, int], Row], rejected: list[Row]) -> None:
    """A line before the first record, and one of another log with what continues it, are rejected one by one with the reason."""
    found = sorted((row["n"], row["reason"]) for row in rejected if Path(row["file"]).name == "other.log")
    before, other = "No record comes before the line.", "The line is of another log."
    assert found == [(1, before), (2, other), (4, other), (5, other)]
    assert records["other.log", 3]["lines"] == 1


@pytest.mark.spark
@pytest.mark.slow
def test_a_record_without_end_is_bounded(records: dict[tuple[str, int], Row], rejected: list[Row]) -> None:
    """A record keeps at most 1 MB after its first line; each further line is rejected."""
    row = records["endless.log", 1]
    beyond = [row for row in rejected if Path(row["file"]).name == "endless.log"]
    assert 2**20 - 9 <= len("".join(row["raw"].split("\n")[1:])) <= 2**20 and row["kind"] == "controller_ready"
    assert row["lines"] + len(beyond) == 150_001 and {row["reason"] for row in beyond} == {
        "The record has more than 1 MB after its first line."
    }


@pytest.mark.spark
@pytest.mark.slow
def test_facts_in_two_files_of_a_broker_are_counted_once(records: dict[tuple[str, int], Row]) -> None:
    """A record in a second file of a broker names the first; repetitions in one file, and lines of two brokers, are facts."""
    assert [records["kafkaServer.out", n]["kind"] for n in (1, 2, 3)] == ["broker_started"] + ["controller_new_leader_seen"] * 2
    for n in (1, 2, 3):
        row = records["server.log", n]
        assert (row["kind"], row["facts"]) == ("other", {})
        assert (Path(row["copy_of"]["file"]).name, row["copy_of"]["n"]) == ("kafkaServer.out", n)
    other = records["server-2.log", 2]
    assert (other["kind"], other["copy_of"], other["broker"]) == ("controller_new_leader_seen", None, 2)


@pytest.mark.spark
@pytest.mark.slow
def test_a_copy_in_a_folder_below_is_no_second_fact(records: dict[tuple[str, int], Row]) -> None:
    """A record of a compressed copy with a wrapper in another folder names the first; two logs without a broker are no copies."""
    for n in (1, 2, 3):
        row = records["server.log.gz", n]
        assert (row["wrap"], row["kind"], row["facts"]) == ("compose", "other", {})
        assert (Path(row["copy_of"]["file"]).name, row["copy_of"]["n"]) == ("kafkaServer.out", n)
    for folder in ("p", "q"):
        row = records[f"unknown-{folder}.log", 1]
        assert (row["kind"], row["copy_of"], row["broker"]) == ("controller_new_leader_seen", None, None)


@pytest.mark.spark
def test_a_record_in_a_stream_of_containers_is_no_second_fact(spark: Any, tmp_path: Path) -> None:
    """A stream of two containers beside the log of one of them has this broker's records once, also those without an id."""
    elected = f"[{AT}] INFO New leader is 2 (kafka.server.ZookeeperLeaderElector$LeaderChangeListener)"
    own = {n: [f"[{AT}] INFO [KafkaServer id={n}] started (kafka.server.KafkaServer)", elected] for n in (1, 2)}
    stream = [f"broker-{n}  | {lines[place]}\n" for place in (0, 1) for n, lines in own.items()]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "all.log").write_text("".join(stream))
    (tmp_path / "logs" / "server.log").write_text("\n".join(own[1]) + "\n")
    log_tables.write_logs(spark, [tmp_path / "logs"], tmp_path / "out")
    found = by_place(rows_of(tmp_path / "out", "records"))
    assert [found["all.log", n]["broker"] for n in (1, 2, 3, 4)] == [1, 2, 1, 2]
    assert [found["server.log", n]["copy_of"]["n"] for n in (1, 2)] == [1, 3]
    assert sum(row["kind"] != "other" for row in found.values()) == len(stream)


@pytest.mark.spark
@pytest.mark.slow
def test_lines_of_other_products_give_no_fact(records: dict[tuple[str, int], Row]) -> None:
    """In a layout with short loggers a logger with a package is Kafka's only if the package, also shortened, is Kafka's."""
    for n in range(1, len(OF_OTHERS) + 1):
        row = records["others.log", n]
        assert (row["kind"], row["facts"], row["broker"]) == ("other", {}, None)
    assert {records["shortened.log", n]["kind"] for n in range(1, len(SHORTENED) + 1)} == {"controller_ready"}


@pytest.mark.spark
@pytest.mark.slow
def test_copied_lines_are_records(records: dict[tuple[str, int], Row]) -> None:
    """A path with spaces before a line, and the JSON of Docker around each line, are left out; a sentence is not."""
    found = {n: (row["kind"], row["wrap"], row["lines"]) for (file, n), row in records.items() if file == "copied.log"}
    ready = "controller_ready"
    assert found == {1: (ready, "grep", 1), 2: (ready, None, 3), 5: (ready, None, 2)}
    assert records["copied.log", 2]["raw"].split("\n") == [LAST, TRACE[1], '{"log":"cut off']
    assert records["copied.log", 5]["raw"].split("\n") == [LAST, COPIED[-1]]


@pytest.mark.spark
@pytest.mark.slow
def test_a_time_zone_is_found_in_the_lines_or_left_open(records: dict[tuple[str, int], Row]) -> None:
    """A broker's start shows the zone of its folder, a written zone counts for its line; time_utc is NULL without either."""
    row, written, unknown = records["server-2.log", 1], records["layouts.log", 3], records["layouts.log", 1]
    assert (row["zone"], row["zone_from"], str(row["time_utc"])) == ("+02:00", "server.log:4", "2019-05-06 05:08:09.123000")
    assert (written["zone"], written["zone_from"], str(written["time_utc"])) == (
        "+05:30",
        "written",
        "2019-05-06 01:38:09.123000",
    )
    assert (unknown["zone"], unknown["zone_from"], unknown["time_utc"]) == (None, None, None)


@pytest.mark.spark
@pytest.mark.slow
def test_each_line_is_counted(written: tuple[Path, log_tables.Written], rejected: list[Row]) -> None:
    """Facts, other records, continuations and rejected lines are the lines of all files; binary files are refused."""
    out, count = written
    rows = rows_of(out, "records")
    logs = out.parent / "logs"
    plain = sum(
        len(path.read_bytes().splitlines()) for path in logs.rglob("*") if path.suffix in (".log", ".out", ".2019-05-06-07")
    )
    binary = logs / "00000000000000000000.log"
    plain -= len(binary.read_bytes().splitlines())
    packed = [row for row in rows if row["file"].endswith(".gz")]
    assert count.lines == plain + len(packed) + 1 == count.facts + count.other + count.continuations + count.rejected
    assert count.rejected == len([row for row in rejected if row["n"] is not None])
    assert [(file.path.name, file.reason) for file in count.refused] == [(binary.name, f"{binary} is a binary file, no log.")]
    assert [row["file"] for row in rejected if row["n"] is None] == [str(binary)]
    assert sorted(path.name for path in out.iterdir()) == [pipeline.MARK, "records", "rejected"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_lost_line_stops_the_call(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a line is in no table the call fails with the numbers, and writes no table."""
    log = tmp_path / "server.log"
    log.write_text(f"{LINE}\n{moved(1)}\n")
    parsed = log_tables.parsed
    monkeypatch.setattr(log_tables, "parsed", lambda spark, found: parsed(spark, found).where("n <> 2"))
    with pytest.raises(log_tables.LinesLost, match=r"The tables have 1 of the 2 lines of .*server\.log"):
        log_tables.write_logs(spark, [log], tmp_path / "out")
    assert not (tmp_path / "out" / "records").exists()


# ---------------------------------------------------------------- without Spark


def test_a_folder_without_logs_and_a_missing_path_are_refused(tmp_path: Path) -> None:
    """Each is refused in one sentence, before anything is written."""
    (tmp_path / "logs").mkdir()
    for path, sentence in ((tmp_path / "logs", "There is no log in"), (tmp_path / "missing", "There is no file or folder")):
        with pytest.raises(UserError, match=sentence):
            pipeline_report.logs([path], tmp_path / "out", print)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_kept(tmp_path: Path) -> None:
    """`--out` in a folder that holds other files is refused and changes nothing."""
    (tmp_path / "server.log").write_text(LINE)
    with pytest.raises(UserError, match=r"holds other files, such as server\.log"):
        pipeline_report.logs([tmp_path / "server.log"], tmp_path, print)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("server.log", LINE)]


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("a.log", b"PK\x03\x04rest", "is a ZIP file: unpack it first"),
    ("a.log", gzip.compress(b"text", mtime=0), "is a gzip file: give it a name that ends in .gz"),
    ("a.log.gz", b"text", "is no gzip file although its name ends in .gz"),
    ("a.log", "text".encode("utf-16"), "is UTF-16 text"),
    ("a.log.gz", gzip.compress(bytes(range(256)) * 9, mtime=0), "is a binary file, no log"),
], ids=["zip", "gzip named log", "text named gz", "utf-16", "binary"])  # fmt: skip
def test_a_file_that_is_no_log_is_refused(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    """The sentence names the file and what it is."""
    (tmp_path / name).write_bytes(content)
    found = examine(tmp_path / name, tmp_path / "copies")
    assert isinstance(found, NoLog) and f"{tmp_path / name} {sentence}" in found.reason


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the system does not open is refused with the system's reason."""
    (tmp_path / "server.log").write_text(LINE)

    def closed(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "no_text", closed)
    assert examine(tmp_path / "server.log", tmp_path) == NoLog(
        tmp_path / "server.log", f"{tmp_path / 'server.log'} cannot be read: Permission denied."
    )


@pytest.mark.parametrize("content", [b"", b"one", b"one\n", b"one\n\ntwo"])
def test_lines_are_counted(tmp_path: Path, content: bytes) -> None:
    """A last line without a line break counts; an empty file has no line."""
    (tmp_path / "a.log").write_bytes(content)
    assert examine(tmp_path / "a.log", tmp_path / "copies") == LogFile(
        tmp_path / "a.log", tmp_path / "a.log", len(content.split()) + content.count(b"\n\n"), []
    )


def test_a_zone_is_unknown_between_starts_that_differ() -> None:
    """Starts with one offset make one zone; between different offsets there is none, and a senseless offset is left out."""
    day = 86_400_000

    def start(day_of_month: int, hours: int) -> Start:
        return Start("/logs/server.log", day_of_month, day_of_month * day, day_of_month * day - hours * 3_600_000)

    found = zones([start(2, 1), start(1, 1), start(5, 2), start(7, 2), start(3, 1)._replace(epoch_ms=5)])
    assert [(zone.offset_minutes, zone.found, zone.begin_ms, zone.end_ms) for zone in found] == [
        (60, "server.log:1", ALWAYS_MS, 2 * day), (120, "server.log:5", 5 * day, NEVER_MS),
    ]  # fmt: skip
    assert {zone.folder for zone in found} == {"/logs"}


FACTS = {
    "leader": "-1", "epoch": "", "isr": f"ints{TYPE}:1,2", "live": f"ints{TYPE}:", "old": f"ints{TYPE}1, 2", "no": f"ints{TYPE}",
    "state": f"state{TYPE}(Leader:1)", "flag": f"bool{TYPE}true",
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.slow
def test_the_facts_of_a_message_are_json(spark: Any) -> None:
    """The JSON of a text, list or number is its value, with any character in the text; a fact without a value is left out."""
    texts = ["plain", 'a "quote" and \\', "ends with a line break\n", "\u00fc", "a=b, c"]
    encoded = [FACT.join(["kind", *(f"{name}{NAME}{value}" for name, value in FACTS.items())]) for _ in texts]
    rows = [(f"{start}{FACT}reason{NAME}text{TYPE}{text}",) for start, text in zip(encoded, texts, strict=True)]
    made = spark.createDataFrame([*rows, ("kind",)], "encoded STRING").select(json_facts(converted(sql.col("encoded"))))
    *found, empty = [{name: json.loads(value) for name, value in row[0].items()} for row in made.collect()]
    rest = {"leader": -1, "isr": [1, 2], "live": [], "old": [1, 2], "flag": True}
    assert found == [rest | {"reason": text} for text in texts]
    assert empty == {}


def test_a_small_log_has_no_rate() -> None:
    """Below 100,000 lines no rate is printed, because most of the seconds are those of Spark's start."""
    assert pipeline_report.per_second(99_999, 10.0, "lines") == ""
    assert pipeline_report.per_second(250_000, 10.0, "lines") == " (25,000 lines per second)"
