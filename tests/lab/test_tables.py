"""The pandas tables of runs whose end is known."""

from __future__ import annotations

import json
from collections.abc import Callable

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import Record
from kcontrol.lab.run import Run
from kcontrol.lab.tables import journal_tables
from tests.lab.support import refusal

TYPES = {
    "partitions": journal_tables.PARTITIONS,
    "brokers": journal_tables.BROKERS,
    "znodes": journal_tables.ZNODES,
    "journal": journal_tables.JOURNAL,
}


def test_partitions_of_a_new_topic(lab: Lab) -> None:
    """Each partition is led by its preferred replica, under leader epoch 0, and every replica is in sync."""
    found = lab.partitions()
    assert list(found.index) == ["t-0", "t-1"]
    assert found.to_dict("list") == {
        "leader": [2, 1],
        "isr": [[2, 3], [1, 2, 3]],
        "replicas": [[2, 3], [1, 2, 3]],
        "leader_epoch": [0, 0],
        "controller_epoch": [1, 1],
        "zk_version": [0, 0],
        "state": ["OnlinePartition", "OnlinePartition"],
    }


def test_partitions_after_the_controller_has_died(lab: Lab) -> None:
    """What the dead controller had no part in is untouched; the other partition has been decided about twice."""
    found = lab.kill(1).run().partitions()
    assert found.leader.to_dict() == {"t-0": 2, "t-1": 2}
    assert found.leader_epoch.to_dict() == {"t-0": 0, "t-1": 2}
    assert found.isr.to_dict() == {"t-0": [2, 3], "t-1": [2, 3]}
    assert found.controller_epoch.to_dict() == {"t-0": 1, "t-1": 2}


def test_partitions_without_leader(lab: Lab) -> None:
    """A partition whose replicas are all dead has leader -1, the state Offline and its last ISR."""
    found = lab.kill(3).run().kill(2).run().partitions().loc["t-0"]
    assert (found.leader, found.isr, found.state) == (-1, [2], "OfflinePartition")


def test_a_partition_that_has_no_state_yet(lab: Lab) -> None:
    """Before its controller has decided, a partition has replicas and nothing else."""
    found = lab.create_topic("u", [[3, 1]]).partitions().loc["u-0"]
    assert found.replicas == [3, 1]
    assert found.isr == []
    assert found[["leader", "leader_epoch", "zk_version", "state"]].isna().all()


def test_brokers(lab: Lab) -> None:
    """Of a dead, a frozen and a fresh broker each has its row, and one of them rules."""
    found = lab.kill(1).run().freeze(3).start(7).brokers()
    assert list(found.index) == [1, 2, 3, 7]
    assert found.alive.to_dict() == {1: False, 2: True, 3: True, 7: True}
    assert found.frozen.to_dict() == {1: False, 2: False, 3: True, 7: False}
    assert not lab.thaw(3).brokers().frozen.any()
    assert found.registered.to_dict() == {1: False, 2: True, 3: True, 7: False}
    assert found.controller.to_dict() == {1: False, 2: True, 3: False, 7: False}
    assert found.controller_epoch.loc[[2, 3]].tolist() == [2, 2]
    assert found.leads.to_dict() == {1: [], 2: ["t-0", "t-1"], 3: [], 7: []}
    assert found.queue[7] == ["BrokerStartup"]


def test_a_broker_that_believes_it_rules(lab: Lab) -> None:
    """A controller whose znode was deleted is active in its own memory until it receives the notification."""
    lab.zk.delete("/controller")
    assert lab.brokers().controller.sum() == 0
    assert lab.brokers().believes_so.to_dict() == {1: True, 2: False, 3: False}


def test_znodes_are_those_of_the_world(lab: Lab) -> None:
    """Every znode of the world is a row, with its text, its version and its owner, sorted by path."""
    found = lab.kill(1).run().tables.znodes()
    stored = lab._world.snapshot()["znodes"]
    assert list(found.index) == sorted(stored)
    rows = found.astype(object).where(found.notna(), None)
    assert {path: list(row) for path, row in zip(rows.index, rows.itertuples(index=False), strict=True)} == stored


def test_requests(lab: Lab) -> None:
    """A failover's requests: to the living, under the new epoch, first waiting, then answered."""
    known = len(lab.tables.requests())
    lab.kill(1).run(until="a controller is elected").run_event(2)
    waiting = lab.tables.requests()[known:]
    assert set(waiting.state) == {"waiting"}
    assert set(waiting.receiver) == {2, 3} and set(waiting.sender) == {2} and set(waiting.controller_epoch) == {2}
    last = lab.run().tables.requests()[known:]
    assert [tuple(row) for row in last.tail(2)[["api", "receiver", "partitions"]].itertuples(index=False)] == [
        ("UpdateMetadata", 2, ["t-1"]),
        ("UpdateMetadata", 3, ["t-1"]),
    ]
    assert "waiting" not in set(last.state) and "answered" in set(last.state)


def test_a_request_to_a_broker_that_dies_is_dropped(lab: Lab) -> None:
    """What was on its way to a broker that is gone never had an answer."""
    lab.create_topic("u", [[3, 1]]).run(until=lambda it: "1>3" in it.state["channels"]).kill(3).run()
    assert "dropped" in set(lab.tables.requests().query("receiver == 3").state)


def in_world(lab: Lab, world: str) -> list[Record]:
    """Returns the lab's records as if its run had taken place in another world."""
    head, *others = lab.records
    return [head._replace(fields=head.fields | {"world": world}), *others]


def test_times_are_those_of_the_clock(lab: Lab) -> None:
    """A simulated run has ms of virtual time, a run on a real ZooKeeper has dates, and a recording has no times."""
    simulated, real, recorded = (
        journal_tables.journal(in_world(lab, world), str) for world in ("simulated", "zookeeper", "recorded")
    )
    assert [name for name in simulated if name.startswith("at")] == ["at_ms"] and simulated.at_ms.dtype == "Int64"
    assert [name for name in real if name.startswith("at")] == ["at"] and real["at"].dtype == "datetime64[ms]"
    assert [name for name in recorded if name.startswith("at")] == []


def test_journal_is_every_record_in_order(lab: Lab) -> None:
    """The journal's table has the ids, times, kinds and causes of all records, and a sentence for each."""
    found = lab.journal()
    assert list(found.index) == [str(record.id) for record in lab.records]
    assert found["kind"].tolist() == [record.kind for record in lab.records]
    assert [None if pd.isna(cause) else cause for cause in found.cause] == [r.cause and str(r.cause) for r in lab.records]
    assert found["at_ms"].tolist() == [record.at_ms for record in lab.records]
    assert found.what.str.endswith(".").all()
    assert found.loc["-1.0.2", "what"] == "Broker 1 starts."


def test_journal_of_one_kind(lab: Lab) -> None:
    """The records of one kind have a column for each of their fields."""
    moves = lab.journal("change")
    assert set(moves.machine) == {"partition", "replica"}
    assert moves.loc[moves.subject == "t-0", "target"].tolist() == ["NewPartition", "OnlinePartition"]
    assert moves.loc[moves.subject == "t-0", "leadership"].tolist()[-1]["leader"] == 2


def test_journal_of_an_unknown_kind(lab: Lab) -> None:
    """A kind that the run does not have is refused, with those that it has."""
    with pytest.raises(UserError) as problem:
        lab.journal("boo")
    assert "change" in refusal(problem)


def test_diff_names_exactly_what_has_changed(lab: Lab) -> None:
    """Between the record before a client's write and the last record one znode has changed, and nothing else."""
    before = len(lab.records) - 1
    lab.zk.set("/controller_epoch", "41")
    found = lab.tables.diff(before)
    assert found.to_dict("records") == [
        {"where": "ZooKeeper", "what": "/controller_epoch", "before": "1 (version 1)", "after": "41 (version 2)"}
    ]


def test_diff_of_a_death(lab: Lab) -> None:
    """That a broker dies shows as its life alone, however much it knew."""
    before = lab.records[-1].id
    found = lab.kill(3).tables.diff(str(before))
    assert found.to_dict("records") == [{"where": "broker 3", "what": "alive", "before": True, "after": False}]


@pytest.mark.parametrize("name", TYPES)
def test_types_do_not_depend_on_rows(opened: Callable[..., Lab], name: str) -> None:
    """A table has the same columns and types with no rows, with some and after a failover."""
    empty = opened(start=False)
    full = opened(topics={"t": [[1, 2]]}).kill(1).run()
    for lab in (empty, full):
        found = getattr(lab if hasattr(lab, name) else lab.tables, name)()
        assert {column: str(dtype) for column, dtype in found.dtypes.items()} == journal_tables.timed(TYPES[name], lab.records)


def test_tables_work_with_nonsense_in_znodes(lab: Lab) -> None:
    """The table of znodes shows nonsense as text, and the tables of partitions and brokers leave the znode out."""
    for path in ("/controller", "/brokers/topics/t/partitions/1/state", "/brokers/topics/t"):
        lab.zk.set(path, '"><svg onload=x>')
        lab.partitions(), lab.brokers(), lab.tables.requests()
        assert lab.tables.znodes().text[path] == '"><svg onload=x>'
    assert lab.partitions().empty


def test_text_from_outside_is_escaped_in_html(opened: Callable[..., Lab]) -> None:
    """A topic whose name is markup stays text wherever a notebook shows it."""
    lab = opened()
    lab.step(("create_topic", "<img src=x onerror=alert(1)>", ((1, 2),))).run()
    shown = [
        lab.partitions().to_html(),
        lab.tables.znodes().to_html(),
        lab.journal().to_html(),
        lab._repr_mimebundle_()[0]["image/svg+xml"],
    ]
    assert all("<img" not in html for html in shown)
    assert all("&lt;img" in html for html in shown[:3])


def test_state_is_the_fold(lab: Lab) -> None:
    """What the tables are made of is the fold of the journal, however often it was looked at on the way."""
    for act in (lambda: lab.kill(1), lambda: lab.run(until="Reelect"), lab.run, lambda: lab.start(1), lab.run):
        act()
        assert json.dumps(lab.state, sort_keys=True) == json.dumps(fold(lab.records), sort_keys=True)
        assert lab.state == Run(lab.records).state
