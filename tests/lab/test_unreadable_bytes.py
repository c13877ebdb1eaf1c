"""Subscriptions and assignments that clients cannot read: the coordinator stores the bytes, and the poll of a client fails.

Source: ConsumerCoordinator.java: performAssignment, onJoinComplete; AbstractCoordinator.java: ensureActiveGroup (0.9.0.1),
joinGroupIfNeeded, HeartbeatThread.run (2.8.2); GroupMetadata.scala: computeSubscribedTopics (2.8.2). `tests/group/client_bytes`
has the answers of Kafka's own clients for these bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kcontrol import Lab
from kcontrol.lab.run import Run
from kcontrol.views import group_state
from tests.lab.group_runs import GROUP, ask, opened, settle
from tests.lab.test_views_of_group_runs import compare, kafkas_words, opened_again, the_journal, the_page, the_picture

BYTES = {"no bytes": b"", "one topic is missing": bytes.fromhex("00000000000200017400000000"), "a negative version": b"\xff\xff"}
RELEASES = ("0.9", "2.8")


def subscription(release: str, data: bytes) -> Lab:
    """Both members have joined, anna leads, and bert's subscription has these bytes."""
    lab = opened(release, {"anna": GROUP, "bert": {"group.id": GROUP, "protocol.metadata": data}})
    ask(lab, "join", "anna", "bert")
    if release == "0.9":
        ask(lab, "join", "anna")
    while lab.state["consumers"]["anna"]["asked"]:
        lab.fire_timer(*next(a[1:] for a in lab.actions() if a[0] == "fire_timer" and a[2].startswith(f"join {GROUP}"))).run()
    return lab


def assignment(release: str, data: bytes) -> Lab:
    """Both members have sent SyncGroup, and anna, the leader, has sent these bytes as the assignment of both."""
    return settle(opened(release, {"anna": {"group.id": GROUP, "protocol.assignment": data}, "bert": GROUP}))


@pytest.mark.parametrize("data", BYTES.values(), ids=BYTES)
@pytest.mark.parametrize("release", RELEASES)
def test_a_leader_that_cannot_read_a_subscription_sends_no_request(release: str, data: bytes) -> None:
    """The poll of the leader fails with SchemaException; it sends no SyncGroup, and nothing changes in the coordinator."""
    lab = subscription(release, data)
    before, known = len(lab.records), lab.tables.members()
    assert known["client_id"].tolist() == ["anna", "bert"]
    lab.group.sync("anna").run()
    assert [record.kind for record in lab.records[before:]] == ["act", "consumer"]
    assert lab.tables.members().equals(known)
    anna = lab.state["consumers"]["anna"]
    assert (anna["error"], anna["condition"], anna["asked"]) == ("SchemaException", "not polling", None)
    assert "cannot read the subscription" in lab.journal()["what"].iloc[-2]
    assert "its poll has thrown SchemaException" in lab.journal()["what"].iloc[-1]


@pytest.mark.parametrize("data", BYTES.values(), ids=BYTES)
@pytest.mark.parametrize("release", RELEASES)
def test_a_member_that_cannot_read_its_assignment(release: str, data: bytes) -> None:
    """The coordinator stores the bytes, the group is Stable, and the poll of each member fails: no member owns a partition."""
    lab = assignment(release, data)
    members = lab.tables.members()
    assert members["state"].tolist() == ["Stable"] * 2 and members["partitions"].tolist() == [[], []]
    held = next(held for _, group, held in group_state.cached(lab.state, "groups") if group == GROUP)
    assert [member["assignment"] for member in held["members"].values()] == [data.hex()] * 2
    for consumer in lab.state["consumers"].values():
        assert (consumer["error"], consumer["condition"], consumer["assignment"]) == ("SchemaException", "not polling", "")
        assert consumer["rejoin_needed"] == (release == "0.9") and consumer["state"] == "STABLE"


def test_a_cooperative_member_keeps_its_partitions() -> None:
    """A consumer of the protocol COOPERATIVE that cannot read its new assignment owns the partitions that it owned before."""
    mine = {"group.id": GROUP, "partition.assignment.strategy": "cooperative-sticky"}
    lab = opened("2.8", {"bert": mine, "anna": mine | {"protocol.assignment": b"\0"}, "cleo": mine})
    for name in ("anna", "cleo"):
        lab.group.freeze_consumer(name)
    for name in ("anna", "cleo"):  # so bert leads, and anna after it
        lab.run(alive=True).group.thaw_consumer(name)
    owned = lab.run(alive=True).state["consumers"]["cleo"]["assignment"]
    assert owned and owned == lab.state["consumers"]["cleo"]["last_assignment"]
    cleo = lab.group.leave("bert").run("9 s", alive=True).state["consumers"]["cleo"]
    assert (cleo["error"], cleo["assignment"], cleo["condition"]) == ("NONE", owned, "not polling")  # of its last heartbeat


@pytest.mark.parametrize("make", [subscription, assignment], ids=["subscription", "assignment"])
@pytest.mark.parametrize("release", RELEASES)
def test_consumers_whose_polls_have_failed_leave_the_group(release: str, make: Callable[[str, bytes], Lab]) -> None:
    """0.9 sends heartbeats in poll alone, so the sessions end; since 0.10.1 heartbeats go on until max.poll.interval.ms."""
    lab = make(release, b"\0")
    begun = len(lab.records)
    lab.run(alive=True)
    assert lab.tables.members().empty
    sent = [r.fields["action"][0] for r in lab.records[begun:] if r.kind == "act"]
    assert ("heartbeat" in sent) == (release == "2.8")


@cache
def looked_at(make: Callable[[str, bytes], Lab], release: str) -> Lab:
    lab = make(release, BYTES["one topic is missing"])
    return lab.group.sync("anna").run() if make is subscription else lab


def why_of_the_group(run: Run, folder: Path) -> None:
    """The generation, the leader, and the last record of each kind have their chains of causes."""
    for what in ("generation of billing", "leader of group billing", *{r.kind: str(r.id) for r in run.records}.values()):
        assert run.why(what).outline()


def tables_of_the_group(run: Run, folder: Path) -> None:
    tables = run.tables
    assert tables.assignment().shape == (2, 3) and not tables.assignment().to_numpy().any() and not tables.rebalances().empty
    assert tables.members()["partitions"].tolist() == [[], []] and run.group_strip().svg().startswith("<svg")


@pytest.mark.parametrize(
    "look", [the_journal, kafkas_words, the_picture, the_page, compare, opened_again, why_of_the_group, tables_of_the_group]
)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("make", [subscription, assignment], ids=["subscription", "assignment"])
def test_every_look_at_bytes_that_cannot_be_read(
    make: Callable[[str, bytes], Lab], release: str, look: Callable[[Run, Path], None], tmp_path: Path
) -> None:
    """No public way to look at a run fails on these bytes."""
    look(looked_at(make, release), tmp_path)
