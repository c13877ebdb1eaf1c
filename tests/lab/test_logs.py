"""A lab whose brokers keep logs: what one sees of them, what a consumer sees, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from tests.lab.support import refusal


@pytest.fixture
def kept() -> Iterator[Lab]:
    with Lab(data=True, runs=None, topics={"t": [[1, 2, 3]]}, config={"unclean.leader.election.enable": True}) as lab:
        yield lab


def rows(frame: pd.DataFrame) -> dict[int, list[object]]:
    offsets = [name for name in frame.columns if isinstance(name, int)]
    return {int(n): list(frame.loc[n, offsets]) for n in frame.index}


def test_records_are_seen_where_they_are(kept: Lab) -> None:
    """A row for each replica, a column for each offset, None where a log ends before."""
    kept.produce("t-0", "a").run()
    kept.freeze(3).produce("t-0", "b", acks=1).run()
    found = kept.tables.replica_log("t-0")
    assert rows(found) == {1: ["a", "b"], 2: ["a", "b"], 3: ["a", None]}
    assert list(found.columns) == ["leads", "leader_epoch", "high_watermark", "log_end_offset", "epochs", 0, 1]
    assert found.drop(columns=[0, 1]).to_dict("list") == {
        "leads": [True, False, False],
        "leader_epoch": [0, 0, 0],
        "high_watermark": [1, 1, 1],
        "log_end_offset": [2, 2, 1],
        "epochs": [[[0, 0]]] * 3,
    }
    assert (found.index.name, dict(found.dtypes.astype(str))["high_watermark"]) == ("replica", "int64")


def test_a_consumer_reads_up_to_the_high_watermark(kept: Lab) -> None:
    """What not every replica in sync has is not shown, by the leader any more than by a follower."""
    kept.produce("t-0", "a").run()
    kept.freeze(3).produce("t-0", "b", acks=1).run()
    assert kept.tables.consumer_records("t-0").value.to_dict() == {0: "a"}
    assert kept.thaw(3).run().tables.consumer_records("t-0").value.to_dict() == {0: "a", 1: "b"}


def test_an_empty_log_is_a_table_too(kept: Lab) -> None:
    """Before anything is produced both tables have their columns and their types."""
    assert kept.tables.replica_log("t-0").log_end_offset.to_list() == [0, 0, 0]
    assert (list(kept.tables.consumer_records("t-0").columns), len(kept.tables.consumer_records("t-0"))) == (
        ["leader_epoch", "value"],
        0,
    )


def test_an_unclean_election_loses_a_record(kept: Lab) -> None:
    """The learner's own steps to it: the record is there, is acknowledged, and is gone, as journal and table say."""
    for number in range(7):
        kept.produce("t-0", number).run()
    kept.freeze(2).freeze(3).produce("t-0", 7).run()
    kept.shrink_isr("t-0", 2).run().shrink_isr("t-0", 3).run()
    assert kept.tables.consumer_records("t-0").value.to_list() == ["0", "1", "2", "3", "4", "5", "6", "7"]
    kept.kill(1).thaw(2).thaw(3).run().start(1).run()
    assert rows(kept.tables.replica_log("t-0")) == {n: ["0", "1", "2", "3", "4", "5", "6"] for n in (1, 2, 3)}
    lost = kept.journal("record_lost").iloc[-1]
    assert (lost.partition, lost.offset, lost.value, lost.acks, lost.leader) == ("t-0", 7, "7", "all", 1)
    before = kept.rewind(kept.journal("log_truncate").index[-1])
    assert before.tables.replica_log("t-0").log_end_offset.to_list() == [7, 7, 7]
    assert kept.rewind(kept.journal("acknowledged").index[-1]).tables.replica_log("t-0").log_end_offset.to_list() == [8, 7, 7]


def test_a_tail_is_lost(kept: Lab) -> None:
    """The disk of a dead broker loses records, and the broker fetches them again."""
    kept.produce("t-0", "a").run().kill(2).run()
    assert rows(kept.disks.lose_tail(2, "t-0", 0).tables.replica_log("t-0"))[2] == [None]
    assert rows(kept.start(2).run().tables.replica_log("t-0"))[2] == ["a"]


def test_a_directory_fails(kept: Lab) -> None:
    """The leader moves to a broker whose directory is well."""
    assert kept.disks.fail_log_dir(1, "t-0").run().partitions().leader["t-0"] == 2


def test_an_old_leader_can_be_spoken_to(kept: Lab) -> None:
    """With `broker` a record goes to that broker, and a broker that does not lead the partition refuses it."""
    kept.produce("t-0", "a", broker=2).run()
    assert kept.journal("respond").body.iloc[-1]["error"] == "NOT_LEADER_OR_FOLLOWER"


REFUSED: list[tuple[str, Callable[[Lab], object], str]] = [
    ("no such partition", lambda lab: lab.produce("t-7", "a"), "There is no partition 't-7'; the partitions are t-0."),
    ("no such log", lambda lab: lab.tables.replica_log("t-7"), "There is no log of 't-7'; the partitions with a log: t-0."),
    (
        "a follower",
        lambda lab: lab.tables.consumer_records("t-0", 2),
        "Broker 2 does not lead t-0 in its own memory; running brokers",
    ),
    ("no running leader", lambda lab: lab.kill(1).tables.consumer_records("t-0"), "A consumer of t-0 finds no running leader"),
    ("odd acks", lambda lab: lab.produce("t-0", "a", acks=2), 'acks cannot be 2: it is 1 or "all".'),
    ("true is not 1", lambda lab: lab.produce("t-0", "a", acks=True), "acks cannot be True"),
    ("no such broker", lambda lab: lab.produce("t-0", "a", broker=9), "Broker 9 is not running"),
    ("not behind", lambda lab: lab.shrink_isr("t-0", 2), "Broker 2 has all records of t-0: freeze it and produce a record"),
    ("a running disk", lambda lab: lab.disks.lose_tail(2, "t-0", 0), "Broker 2 is running: only a stopped broker can lose"),
    (
        "no such record",
        lambda lab: lab.kill(2).disks.lose_tail(2, "t-0", 3),
        "Broker 2 has no record at offset 3 of t-0; log end offsets: broker 1 to 0, 2 to 0",
    ),
    ("not hosted", lambda lab: lab.disks.fail_log_dir(2, "u-0"), "Broker 2 has no replica of 'u-0'; its replicas: t-0."),
]


@pytest.mark.parametrize(("act", "why"), [pytest.param(act, why, id=name) for name, act, why in REFUSED])
def test_what_cannot_be_is_refused_in_one_sentence(kept: Lab, act: Callable[[Lab], object], why: str) -> None:
    """Each refusal says what is wrong and what there is, and the journal has no record of it."""
    before = len(kept.records)
    with pytest.raises(UserError) as problem:
        act(kept)
    assert refusal(problem).startswith(why)
    assert [record.kind for record in kept.records[before:] if record.kind != "stop"] == []  # one case kills a broker first


def test_a_partition_without_leader_is_refused(kept: Lab) -> None:
    """With all replicas dead, a produce to the partition and a read of it are refused."""
    for broker in (1, 2, 3):
        kept.kill(broker)
    with pytest.raises(UserError) as problem:
        kept.produce("t-0", "a")
    assert refusal(problem).startswith("t-0 has no running leader")


def test_a_lab_without_logs_says_how_to_have_them() -> None:
    """`produce`, `log` and `read` name the setting that they need."""
    with Lab(runs=None, topics={"t": [[1, 2, 3]]}) as lab:
        for ask in (
            lambda: lab.produce("t-0", "a"),
            lambda: lab.tables.replica_log("t-0"),
            lambda: lab.tables.consumer_records("t-0"),
        ):
            with pytest.raises(UserError, match=r"keep no logs: open one with Lab\(data=True\)"):
                ask()
