"""The journal is the one output: ids, causes, what was seen and written, and how much of it there is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.core.model import PartitionReplica, PartitionState, TopicPartition
from kcontrol.core.znodes import CONTROLLER, parse_state_path, state_path
from kcontrol.journal import journal, journal_file
from kcontrol.journal.journal import JOURNAL_VERSION, Record, RecordId, to_json
from tests.core.support import ALL_FAULTS, T0, TOPICS, cluster, journal_bytes, of_kind, settle, stored, walk


def a_long_run(seed: int) -> World:
    """A hundred random steps of a cluster with every fault on offer."""
    world = cluster(faults=ALL_FAULTS, seed=seed)
    for _ in walk(world, seed, 100):
        pass
    return world


# ---------------------------------------------------------------- ids and causes


@pytest.mark.parametrize("seed", range(5))
def test_ids_are_counted_per_process(seed: int) -> None:
    """A record's id is its process, which of its lives, and a number that grows by one; no two records have the same."""
    seen: dict[tuple[int, int], int] = {}
    for record in a_long_run(seed).journal.records:
        node, incarnation, number = record.id
        assert number == seen.get((node, incarnation), 0) + 1
        assert incarnation == max((life for n, life in seen if n == node), default=incarnation) or (node, incarnation) not in seen
        seen[node, incarnation] = number


@pytest.mark.parametrize("seed", range(5))
def test_every_cause_is_an_earlier_record(seed: int) -> None:
    """Whatever a record names as its cause stands in the journal before it."""
    earlier: set[RecordId] = set()
    for record in a_long_run(seed).journal.records:
        assert record.cause is None or record.cause in earlier, record
        earlier.add(record.id)


WITHOUT_CAUSE = {"run", "start", "stop", "freeze", "thaw", "act", "session_lost", "enqueue"}


@pytest.mark.parametrize("seed", range(5))
def test_only_what_comes_from_outside_has_no_cause(seed: int) -> None:
    """Faults, acts, fetches and lags begin a chain of causes; everything else continues one."""
    for record in a_long_run(seed).journal.records:
        if record.cause is None:
            assert record.kind in WITHOUT_CAUSE, record
        if record.cause is None and record.kind == "enqueue":
            assert type(record.fields["event"]).__name__ in ("ReplicaCaughtUp", "ReplicaLags"), record
        assert record.kind != "stop" or (record.cause is None) == (record.fields["exit_code"] is None), record


def kinds_of_why(world: World, record: Record) -> list[str]:
    """The kinds of records on the way back from one."""
    return [reason.kind for reason in world.journal.why(record.id)]


def after_death() -> World:
    """Broker 2 led t-1 and has been killed; broker 1 rules."""
    world = cluster()
    settle(world, ("kill", 2))
    return world


def test_why_a_leader_changed_leads_back_to_the_fault() -> None:
    """From the new leader over the partition's own moves, the event, the watch and the end of the session to the kill."""
    world = after_death()
    changed = [
        r
        for r in of_kind(world, "change")
        if r.fields["leadership"] and str(r.fields["subject"]) == "t-1" and r.fields["rule"] == "offline"
    ]
    chain = world.journal.why(changed[-1].id)
    assert [r.kind for r in chain] == ["change", "change", "begin", "enqueue", "notify", "close", "stop"]
    assert [str(r.fields["target"]) for r in chain[:2]] == ["OnlinePartition", "OfflinePartition"]
    assert (chain[4].fields["path"], chain[6].fields["broker"]) == ("/brokers/ids", 2)


def test_why_a_request_was_sent_leads_back_to_the_fault() -> None:
    """What a broker took over from a request goes back over its sending and the move before it to the kill."""
    world = after_death()
    adopted = [r for r in of_kind(world, "apply_request") if r.id.node == 3 and r.fields["field"] == "hosted"][-1]
    kinds = kinds_of_why(world, adopted)
    assert kinds[:5] == ["apply_request", "begin", "enqueue", "receive", "send"]
    assert kinds[5] == "change"
    assert kinds[-5:] == ["begin", "enqueue", "notify", "close", "stop"]


def test_why_an_isr_grew_leads_back_to_the_fetch() -> None:
    """A larger ISR goes back over the controller's event and the leader's question to the follower that has caught up."""
    world = after_death()
    settle(world, ("start", 2))
    written = [r for r in of_kind(world, "write") if r.id.node == 1 and any(parse_state_path(op[1]) for op in r.fields["ops"])][
        -1
    ]
    chain = world.journal.why(written.id)
    assert [r.kind for r in chain] == ["write", "begin", "enqueue", "submit", "begin", "enqueue"]
    assert type(chain[-1].fields["event"]).__name__ == "ReplicaCaughtUp"


def test_a_move_that_changes_nothing_causes_no_other_move() -> None:
    """A new controller's Online transitions of replicas are not the cause of a partition's new leader."""
    world = cluster()
    settle(world, ("kill", 1))
    moves = of_kind(world, "change")
    idle = {r.id for r in moves if r.fields["source"] == r.fields["target"] and not r.fields["write"]}
    assert {str(r.fields["target"]) for r in moves if r.id in idle} >= {"OnlineReplica"}
    assert not [r for r in moves if r.cause in idle]


def test_a_watch_event_names_the_write_that_caused_it() -> None:
    """The notice about a new topic is caused by the write that created its znode, and that by the tool's act."""
    world = cluster(topics={})
    world.step(("create_topic", "t", ((1, 2),)))
    [notice] = of_kind(world, "notify")[-1:]
    by_id = {record.id: record for record in world.journal.records}
    write = by_id[notice.cause]  # type: ignore[index]
    assert [op[:2] for op in write.fields["ops"]] == [["create", "/brokers/topics/t"]]
    assert by_id[write.cause].fields["action"][0] == "create_topic"  # type: ignore[index]


def test_why_of_an_unknown_record_is_an_error() -> None:
    """Asking for the causes of a record that is not in the journal raises KeyError."""
    with pytest.raises(KeyError):
        World().journal.why(RecordId(7, 1, 1))


# ---------------------------------------------------------------- what was seen and written


@pytest.mark.parametrize("seed", range(3))
def test_a_write_records_its_zxid_and_a_read_the_mzxid_it_saw(seed: int) -> None:
    """Each znode's last recorded write has its mzxid, and each read records for each path the last zxid written there by then."""
    world, written = a_long_run(seed), {}
    for record in world.journal.records:
        fields = record.fields
        if record.kind == "write" and fields["error"] is None:
            for kind, path, *_ in fields["ops"]:
                if kind == "delete":
                    written.pop(path)
                elif kind != "check":
                    written[path] = fields["zxid"]
        elif record.kind == "change" and fields["write"]:
            subject = fields["subject"]
            written[state_path(subject if isinstance(subject, TopicPartition) else subject.topic_partition)] = fields["zxid"]
        elif record.kind == "close":
            for path in fields["deleted"]:
                del written[path]
        elif record.kind == "read" and fields["how"] in ("read", "exists"):
            assert list(fields["seen"]) == [written.get(path) for path in fields["paths"]], record
    assert written == {path: node.stat.mzxid for path, node in world.zk.tree().items()}


def test_a_fenced_write_records_the_version_that_it_checked() -> None:
    """A write of a controller names the version of `/controller_epoch` that it was fenced with; a broker's own names none."""
    world = after_death()
    moved = [r for r in of_kind(world, "change") if r.fields["write"]]
    started = [r for r in of_kind(world, "write") if r.fields["ops"][0][1].startswith("/brokers/ids/")]
    assert {r.fields["epoch_zk_version"] for r in moved} == {1}
    assert {r.fields["epoch_zk_version"] for r in started} == {-1}


def test_a_delivery_points_to_the_sending_and_the_sending_to_no_delivery() -> None:
    """Receipts, losses, repetitions and answers of a request are caused by, or lead back to, the one record of its batch."""
    world = cluster(followers=False)
    world.step(("delete", CONTROLLER))
    while not world.network.deliverable():
        world.step(world.actions()[0])
    pair = world.network.deliverable()[0]
    settle(world, ("drop_request", *pair), ("duplicate_request", *pair))
    [sent] = [r for r in of_kind(world, "send") if r.id == of_kind(world, "drop_request")[0].cause]
    kinds = [r.kind for r in world.journal.records if r.cause == sent.id and (r.kind != "receive" or r.id.node == pair[1])]
    assert sorted(set(kinds)) == ["drop_request", "duplicate_request", "receive"]


# ---------------------------------------------------------------- the grain


def death_of_a_leader(partitions: int) -> World:
    """Broker 1 led all partitions of a topic and has died."""
    world = cluster({"t": ((1, 2, 3),) * partitions}, brokers=(2, 1, 3), followers=False)
    settle(world, ("kill", 1))
    return world


def test_a_batch_of_requests_is_one_record_with_each_value_once() -> None:
    """A new controller sends each partition to three brokers: the `send` record has every partition's values once."""
    world = cluster()
    before = len(world.journal.records)
    settle(world, ("delete", CONTROLLER))
    [entries] = [
        to_json(r.fields["requests"])["leader_and_isr"]
        for r in of_kind(world, "send", before)
        if r.fields["requests"].leader_and_isr
    ]
    named = [value["partition"] for value in entries["values"]]
    assert sorted(named) == ["t-0", "t-1", "u-0"]
    by_broker = {broker: sorted(named[i] for i in places) for broker, places in entries["to"].items()}
    assert by_broker == {"1": ["t-0", "t-1", "u-0"], "2": ["t-0", "t-1"], "3": ["t-0", "t-1", "u-0"]}


def test_a_partitions_death_costs_a_bounded_number_of_records() -> None:
    """When a leader dies each further partition adds exactly three records, its three moves: no more for more brokers."""
    counts = [len(death_of_a_leader(partitions).journal.records) for partitions in (10, 20, 30)]
    creation = [len(cluster({"t": ((1, 2, 3),) * n}, brokers=(2, 1, 3), followers=False).journal.records) for n in (10, 20, 30)]
    deaths = [count - made for count, made in zip(counts, creation, strict=True)]
    assert [(later - earlier) / 10 for earlier, later in pairwise(deaths)] == [3, 3]


def test_a_message_is_as_long_as_its_partitions_and_not_times_its_brokers() -> None:
    """The record of a batch to nine brokers is less than one and a half times as long as that to three."""

    def length(brokers: tuple[int, ...]) -> int:
        world = cluster({"t": (brokers,) * 40}, brokers=brokers, followers=False)
        before = len(world.journal.records)
        settle(world, ("delete", CONTROLLER))
        return max(len(journal_bytes([r])) for r in of_kind(world, "send", before)) - 40 * len(str(list(brokers))) * 3

    assert length(tuple(range(1, 10))) < 1.5 * length((1, 2, 3))


# ---------------------------------------------------------------- files


def test_a_journal_comes_back_from_its_file(tmp_path: Path) -> None:
    """What is written as JSON lines is read back as the same records, their fields in JSON's own types."""
    world = a_long_run(1)
    journal_file.write(world.journal.records, tmp_path / "run.jsonl")
    assert journal_file.read(tmp_path / "run.jsonl") == [msgspec_plain(record) for record in world.journal.records]


def msgspec_plain(record: Record) -> Record:
    """A record as JSON would give it back."""
    return record._replace(fields=msgspec.json.decode(msgspec.json.encode(to_json(record.fields))))


def test_the_first_line_says_what_the_file_is() -> None:
    """A journal begins with the record `run`: version of the schema, release, seed, brokers and world."""
    first = msgspec.json.decode(journal.to_line(World(Settings(seed=5)).journal.records[0]))
    assert (list(first), first["kind"], first["cause"]) == (["id", "kind", "cause", "at_ms", "fields"], "run", None)
    assert first["fields"] == {
        "journal_version": JOURNAL_VERSION, "release": "2.8", "seed": 5, "brokers": [1, 2, 3], "world": "simulated",
    }  # fmt: skip


@pytest.mark.parametrize(("value", "text"), [
    (TopicPartition("my-topic", 3), "my-topic-3"),
    (PartitionReplica(T0, 1), "t-0@1"),
    (PartitionState.ONLINE, "OnlinePartition"),
    (RecordId(1, 2, 3), [1, 2, 3]),
    (b"\xff<", "\\xff<"),
    ({T0: (1, 2)}, {"t-0": [1, 2]}),
    (frozenset({8, 1}), [1, 8]),
])  # fmt: skip
def test_values_are_written_under_kafkas_names(value: object, text: object) -> None:
    """Partitions, replicas, states, bytes that are no text, and sets each have one plain form."""
    assert to_json(value) == text


BAD = {
    "no JSON": (b"hello\n", "is not a journal of kcontrol"),
    "not JSON lines of ours": (b'{"a":1}\n', "is not a journal of kcontrol"),
    "empty": (b"", "first line should be a record of kind run"),
    "another first record": (b'{"id":[0,0,1],"kind":"start","cause":null,"at_ms":0,"fields":{}}\n', "first line should be"),
    "a later schema": (
        b'{"id":[0,0,1],"kind":"run","cause":null,"at_ms":0,"fields":{"journal_version":99}}\n',
        "was written by a later kcontrol; this one reads version 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_journal_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    """Reading anything else raises UserError with one sentence that names the file and what is wrong with it."""
    content, sentence = BAD[name]
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError) as problem:
        journal_file.read(path)
    assert str(path) in str(problem.value)
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_journal_that_cannot_be_written_or_found_says_so(tmp_path: Path) -> None:
    """A missing file, a missing folder and a full disk each raise UserError with the system's reason."""
    records = World().journal.records
    with pytest.raises(UserError, match="cannot be read: No such file"):
        journal_file.read(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match=r"cannot be written .* No such file"):
        journal_file.write(records, tmp_path / "none" / "run.jsonl")
    if Path("/dev/full").exists():
        with pytest.raises(UserError, match="cannot be written to /dev/full: No space left"):
            journal_file.write(records, "/dev/full")


def test_a_copy_of_a_journal_goes_on_counting_by_itself() -> None:
    """Records added to a copy are not in the original, and both count on from where they parted."""
    one = World().journal
    two = one.copy()
    assert one.add(0, 0, "thaw", None, 0, {}) == two.add(0, 0, "freeze", None, 0, {})
    assert ([r.kind for r in one.records], [r.kind for r in two.records]) == (["run", "thaw"], ["run", "freeze"])


def test_the_example_cluster_is_the_one_the_tests_speak_of() -> None:
    """The quiet cluster has its preferred leaders, all replicas in sync, and broker 1 as controller."""
    world = cluster()
    expected = {f"{t}-{p}": (replicas[0], replicas) for t, rows in TOPICS.items() for p, replicas in enumerate(rows)}
    assert stored(world) == expected
    assert [n for n, p in world.processes.items() if p.driver.controller.is_active] == [1]
