"""What we write in the words of Kafka's logs is what Kafka writes.

The other parties: `kafka/patterns.tsv`, made from Kafka's sources and held against real logs; beside the project, the templates
of all releases, and lines of real brokers' logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.model import ReplicaAssignment
from kcontrol.core.znodes import DELETE_TOPICS, TOPICS
from kcontrol.journal.journal import Record, RecordId
from kcontrol.kafka_logs.log_lines import rows
from kcontrol.kafka_logs.templates import TYPES, Choice, Fact, Template, filled, numbers
from kcontrol.recordings import recording, to_journal
from kcontrol.views.kafka_words import KafkaWords, LogLine, in_kafkas_words
from tests.recordings.support import EACH
from tests.views.support import NASTY, cluster, story

HERE = Path(__file__).resolve().parent
KINDS = {row.kind for row in rows() if row.logger}
"""The kinds of lines that are written."""
RELEASES = (
    "0.8.0",
    "0.8.1.1",
    "0.8.2.2",
    "0.9.0.1",
    "0.10.2.2",
    "0.11.0.3",
    "1.0.2",
    "1.1.1",
    "2.1.0",
    "2.4.1",
    "2.6.0",
    "2.8.2",
    "3.5.0",
    "3.9.0",
)


@cache
def patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Each kind with its pattern, in the order of the file."""
    lines = (HERE / "kafka" / "patterns.tsv").read_text().splitlines()[1:]
    return [(kind, re.compile(pattern)) for kind, pattern in (line.split("\t") for line in lines)]


def understood(message: str) -> tuple[str, dict[str, str]]:
    """The kind of a message and its facts, by the first pattern that fits; a fact's second and third spelling count as one."""
    for kind, pattern in patterns():
        if found := pattern.match(message):
            return kind, {re.sub(r"\d$", "", name): value for name, value in found.groupdict().items() if value is not None}
    return "nothing", {}


def said(records: list[Record]) -> Iterator[tuple[Record, LogLine]]:
    """Each line with the record that it was written at."""
    for record, lines in zip(records, in_kafkas_words(records), strict=True):
        yield from ((record.to_json(), line) for line in lines)


def facts_of(record: Record) -> dict[str, str]:
    """What a line about a move has to say, in the words of patterns.tsv."""
    f = record.fields
    tp, _, replica = f["subject"].rpartition("@") if f["machine"] == "replica" else (f["subject"], "", "")
    topic, _, number = tp.rpartition("-")
    found = {"controller": str(record.id.node), "topic": topic, "partition": number, "to_state": f["target"]}
    return found | ({"from_state": f["source"]} if f["source"] else {}) | ({"replica": replica} if replica else {})


def check(records: list[Record], release: str) -> int:
    """Every line is understood as what it is about; return how many there were."""
    count = 0
    for record, line in said(records):
        kind, facts = understood(line.message)
        assert kind in KINDS, line
        assert facts.get("controller", str(record.id.node)) == str(record.id.node), line
        if kind.endswith(("_transition", "_transition_failed")):
            wanted = facts_of(record)
            if numbers(release) == (0, 8, 0):  # which names no source of a replica and has other names for two states
                wanted = {key: value for key, value in wanted.items() if not key.endswith("_state")}
            assert {key: facts.get(key) for key in wanted} == wanted, line
        count += 1
    return count


@pytest.mark.parametrize("path", EACH)
def test_every_line_about_a_recording_is_one_of_kafkas(path: Path) -> None:
    """Each line matches the pattern of its kind, with the controller, partition, replica and states of its record."""
    golden = recording.load(path)
    records = to_journal.to_journal(golden)
    moves = sum(len(step["transitions"]) for step in golden["steps"])
    assert moves <= check(records, golden["release"]) + sum(r.kind == "change" and not r.fields["leadership"] for r in records)


def test_every_line_about_our_own_runs_is_one_of_kafkas() -> None:
    """The same for a run of ours; each move of a machine has a line of its own."""
    records = list(story())
    check(records, "2.8")
    lines = [record for record, line in said(records) if understood(line.message)[0].endswith("_transition")]
    assert [r.id for r in lines] == [r.id for r in records if r.kind == "change"]


def test_a_whole_line() -> None:
    """A line is as in the log's file: time, which is virtual here, level, message, logger."""
    lines = [
        str(line) for _, line in said(list(cluster(topic="t").journal.records)) if "Changed partition t-0 from" in line.message
    ]
    head = r"\[\d+ ms\] INFO \[Controller id=1 epoch=1\] "
    message = r"Changed partition t-0 from NewPartition to OnlinePartition with state "
    value = r"LeaderAndIsr\(leader=\d, leaderEpoch=0, isr=List\([\d, ]+\), zkVersion=0\) \(state\.change\.logger\)"
    assert re.fullmatch(head + message + value, lines[0])


MOVE = ("create", "/admin/reassign_partitions", '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3]}]}')


@pytest.mark.parametrize(
    ("release", "lines"),
    [
        ("2.8", [f"Successfully updated assignment of partition t-0 to ReplicaAssignment({said})" for said in (
            "replicas=3,1,2, addingReplicas=3, removingReplicas=1,2", "replicas=3, addingReplicas=, removingReplicas=")]),
        ("0.8.1", [f"Updated assigned replicas for partition [t,0] being reassigned to {ids} " for ids in ("3,1,2", "3")]),
    ],
)  # fmt: skip
def test_a_reassignment_says_what_is_assigned(release: str, lines: list[str]) -> None:
    """Kafka logs each rewriting of a topic znode by a reassignment; the topic's creation by a tool is none."""
    # Source: updateReplicaAssignmentForPartition (2.8), updateAssignedReplicasForPartition (0.8.1).
    world = World(Settings(release))
    for action in [("start", 1), ("start", 2), ("start", 3), ("create_topic", "t", ((1, 2),)), MOVE]:
        world.step(action)
        world.run()
    messages = [line.message.partition("] " if release == "2.8" else "]: ")[2] for _, line in said(world.journal.records)]
    assert [message for message in messages if "assignment of" in message or "being reassigned" in message] == lines


@pytest.mark.parametrize(
    ("release", "who", "bounced"),
    [("0.8.1", "[BrokerChangeListener on Controller 1]: ", ""), ("2.8", "[Controller id=1] ", "bounced brokers: {}, ")],
)
def test_registrations_and_processes_have_their_lines(release: str, who: str, bounced: str) -> None:
    """A controller logs the brokers that come, end and, since 2.2, restart unseen; a broker logs its start and its shutdown."""
    # Source: KafkaServer; BrokerChangeListener (0.8.1), processBrokerChange (2.8).
    world = World(Settings(release))
    for action in [("start", 1), ("start", 2), ("kill", 2), ("expire_session", 2), ("start", 2), ("terminate", 2)]:
        world.step(action)
        if action[0] in ("start", "terminate"):
            world.run()
    messages = [line.message for _, line in said(world.journal.records)]
    changed = [message for message in messages if "Newly added" in message and "all live brokers: 1" in message]
    second = ("", "", "2", "1,2") if bounced else ("", "", "", "1,2")
    lists = [("2", "", "", "1,2"), second, ("", "2", "", "1")]
    line = "Newly added brokers: {}, deleted brokers: {}, {}all live brokers: {}"
    assert changed[-3:] == [who + line.format(a, d, bounced.format(b), live) for a, d, b, live in lists]
    server = "[KafkaServer id=2] " if bounced else "[Kafka Server 2], "
    assert [message for message in messages if message.startswith(server)] == [
        f"{server}{said}" for said in ("started", "started", "shut down completed")
    ]


def test_kinds_that_kafka_does_not_log_have_no_line() -> None:
    """Reads, deliveries, threads and everything else of a run that Kafka's logs do not speak of stay empty."""
    spoken = {record.kind for record, _ in said(list(story()))}
    assert spoken <= {"change", "failed_change", "send", "write", "update", "stop", "read"}
    assert {"change", "send", "write"} <= spoken


def test_names_stay_text() -> None:
    """A topic's name is put into a line as it is, braces and percent signs included, and without line breaks."""
    for odd in (NASTY, "{controller}", "%s"):
        lines = [line.message for _, line in said(list(cluster(topic=odd).journal.records))]
        assert any(f"Changed partition {odd}-0 state from" in line for line in lines)


# ---------------------------------------------------------------- beside the project


STATES = ("NewReplica", "OnlineReplica", "OfflineReplica", "NonExistentReplica", "OnlinePartition")
NOT_JOURNALED = {"correlation", "delete", "coordinator_partition", "hw"}
NO_TEMPLATE = ("broker_started", "broker_stopped")
"""The kinds of lines that the list of templates does not have; real lines of them are in the logs."""
PREFIX = re.compile(
    r"^(?:\[(?:Controller|Group|Topic Deletion Manager|delete-topics|\w+Listener on|OfflinePartitionLeader)[^]]*\][:,]? "
    r"|Partition \[<>,<>\] on broker <>: |\[Partition <>-<> broker=<>\] )"
)
"""What the logger of a class puts before its messages."""
VALUES = re.compile(r"Some\(<>\)|Set\(<>\)|<>-<>|\[<>,<>\]|\(Leader:.*?ControllerEpoch:<>\)|\{\"leader\".*?\}")


def form(message: str) -> str:
    """A message or a template without what differs from line to line."""
    return VALUES.sub("<>", re.sub(r"<[^<>]*>", "<>", message)).removesuffix(".")


def placeholders(template: Template) -> dict[str, Any]:
    """A placeholder for each fact of a template that a journal has."""
    found: dict[str, Any] = {}
    for part in template:
        if isinstance(part, Choice):
            found = {name: value for _, option in part.options for name, value in placeholders(option).items()} | found
        elif isinstance(part, Fact) and part.name and part.name not in NOT_JOURNALED:
            found[part.name] = ["<>"] if TYPES[part.type].json in ("ints", "ids", "names") else "<>"
    return found


def spelt(message: str) -> Iterator[str]:
    """The message as a template has it that is for one state alone, or leaves to a placeholder what is always the same."""
    yield message
    for state in STATES:
        yield message.replace("to <> with leader", f"to {state} with leader")
        yield re.sub(r"to <>( failed)?$", rf"to {state}\1", message)
        yield message.replace(state, "<>")
    yield message.replace("  and version", " <> and version")
    yield message.replace("from OnlinePartition to <>", "from <> to OnlinePartition")
    yield from (message.replace("<> with unknown", f"{kind} Member with unknown") for kind in ("<>", "Dynamic"))


@pytest.mark.shared
@pytest.mark.parametrize("release", RELEASES)
def test_every_message_is_a_template_of_its_release(shared: Path, release: str) -> None:
    """Each message of our table is, in this release, a template of Kafka's source with the same logger and level."""
    at, templates = numbers(release)[:3], set()
    for line in (shared / "reference" / "templates.tsv").read_text().splitlines()[1:]:
        _, logger, level, releases, template, _ = line.split("\t")
        first, _, last = releases.partition("..")
        if numbers(first)[:3] <= at <= numbers(last or first)[:3]:
            templates |= {(logger.replace("[group.]", part), level, form(template)) for part in ("", "group.")}
    checked = 0
    for row in rows():
        level = filled(row.level, at, {}) if row.prints(at) and row.kind not in NO_TEMPLATE else None
        message = filled(row.template, at, placeholders(row.template)) if level else None
        if level and message is not None:
            # A listener's class stands in the file of the outer class.
            logger = (filled(row.logger, at, {}) or "").partition("$")[0].replace("OfflinePartitionLeader", "*Leader")
            message = PREFIX.sub("", message)
            assert (at == (0, 8, 0) and " state from " in message) or any(
                (logger, level, form(one)) in templates for one in spelt(message)
            ), message
            checked += 1
    assert checked >= 5


APACHE = re.compile(r"^\[[\d :,-]+\] (?P<level>[A-Z]+) (?P<message>.*) \((?P<logger>[\w.$]+)\)\s*$")


def rewritten(kind: str, facts: dict[str, str], message: str, words: KafkaWords) -> str | None:
    """The line that we write of what a real line says; None where it lacks something that ours is made from."""
    n = int(facts.get("controller", 0))
    words.epochs[n] = int(facts.get("epoch", 0))
    tp = f"{facts.get('topic')}-{facts.get('partition')}"
    record = RecordId(n, 1, 1)
    fields: dict[str, Any] | None = None
    if "transition" in kind:
        machine = "replica" if "replica" in facts else "partition"
        subject = f"{tp}@{facts['replica']}" if machine == "replica" else tp
        if "replicas" in facts:
            words.assigned[tp] = ReplicaAssignment(tuple(map(int, facts["replicas"].split(","))))
        value = leadership(facts, message)
        fields = {"machine": machine, "subject": subject, "source": facts.get("from_state", ""), "target": facts["to_state"]}
        fields |= {"leadership": value, "write": None}
        made = Record(record, "failed_change" if kind.endswith("failed") else "change", None, 0, fields)
    elif kind == "controller_elected":
        ops = [
            ["create", "/controller", "", 0, True],
            ["set", "/controller_epoch", facts.get("epoch", "1"), facts.get("zk_version"), False],
        ]
        made = Record(record, "write", None, 0, {"ops": ops, "error": None})
    elif kind == "controller_epoch":
        ops = [["set", "/controller_epoch", facts["epoch"], 1, False]]
        made = Record(record, "write", None, 0, {"ops": ops, "error": None})
    elif kind == "deletion_completed":
        ops = [["delete", f"{above}/{facts['topics']}", "", None, False] for above in (TOPICS, DELETE_TOPICS)]
        made = Record(record, "write", None, 0, {"ops": ops, "error": None})
    elif kind == "stop_replica_sent_batch":
        stopped = {f"t-{i}": {} for i in range(int(facts["n"]))}
        made = Record(record, "send", None, 0, {"requests": {"stop_replica": {"to": {facts["to_broker"]: stopped}}}})
    elif kind == "leader_and_isr_sent_batch":
        to, leads, all_of = facts["to_broker"], int(facts["n_leaders"]), int(facts["n_leaders"]) + int(facts["n_followers"])
        entry = {"isr": [], "leader_epoch": 0, "controller_epoch": 0}
        values = [{"partition": f"t-{i}", "leader": int(to) if i < leads else -1, **entry} for i in range(all_of)]
        made = Record(
            record, "send", None, 0, {"requests": {"leader_and_isr": {"values": values, "to": {to: list(range(all_of))}}}}
        )
    elif kind in ("broker_started", "broker_stopped"):
        n = int(facts["broker"])
        ops = [["create", f"/brokers/ids/{n}", "", 0, True]]
        made = Record(record._replace(node=n), "write", None, 0, {"ops": ops, "error": None, "zxid": 7})
        if kind == "broker_stopped":
            made = Record(RecordId(-1, 0, 1), "stop", None, 0, {"broker": n, "exit_code": 0})
    elif kind == "controller_resigning":
        words.controllers.add(n)
        made = Record(record, "update", None, 0, {"context": "controller", "field": "active_controller_id", "put": -1})
    else:
        return None
    lines = words.lines(made)
    return lines[0].message if lines else "no line"


def leadership(facts: dict[str, str], message: str) -> dict[str, Any] | None:
    """The leadership that a real line shows, or as much of it as it shows."""
    isr = re.search(r"isr=List\(([\d, ]*)\)", message)
    members = isr[1].split(", ") if isr else re.findall(r"BrokerState\(brokerId=(\d+)", message)
    shown = re.search(r"leader=(-?\d+), leaderEpoch=(\d+),.*(?:zkVersion|partitionEpoch)=(\d+)", message)
    if shown:
        leader, leader_epoch, zk_version = map(int, shown.groups())
        return {"leader": leader, "leader_epoch": leader_epoch, "zk_version": zk_version, "isr": [int(b) for b in members if b]}
    return {"leader": facts["leader"], "leader_epoch": 0, "zk_version": 0, "isr": []} if "leader" in facts else None


@pytest.mark.shared
def test_what_real_lines_say_we_say_in_the_same_words(shared: Path) -> None:
    """From the facts of a real line our table makes that very line, in every release of which there are real lines."""
    same: dict[str, int] = {}
    for path in sorted((shared / "logs" / "kafka").glob("p*-[0-9]*.[0-9]*.[0-9]*-*.log")):
        release = path.name.split("-")[1].removesuffix("dev")
        if release != path.name.split("-")[1]:
            continue  # a development build: some of its lines are of the release before
        for line in path.read_text(errors="replace").splitlines():
            found = APACHE.match(line)
            kind, facts = understood(found["message"]) if found else ("nothing", {})
            if found is None or kind not in KINDS:
                continue
            mine = rewritten(kind, facts, found["message"], KafkaWords(release))
            if mine is not None:
                assert mine == found["message"], path.name
                same[kind] = same.get(kind, 0) + 1
    assert same.keys() >= {
        "partition_transition",
        "replica_transition",
        "controller_elected",
        "controller_epoch",
        "controller_resigning",
        "deletion_completed",
        "broker_started",
        "broker_stopped",
    }
    assert sum(same.values()) > 40
