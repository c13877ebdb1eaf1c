"""Who gets which partitions: the vote, the matrix of moves, the two rounds, the bytes, and the trials of assignors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kcontrol import rules
from kcontrol.core.errors import UserError
from kcontrol.group.assignors import Subscription
from kcontrol.group.offsets_topic_records import encode
from kcontrol.group.sticky import ASSIGNORS
from kcontrol.lab.groups import assignor_trials
from kcontrol.lab.groups.assignor_trials import PARTITIONS, TOPIC, Series, played
from kcontrol.lab.lab import Lab
from tests.lab.support import refusal

Opened = Callable[..., Lab]
OFFSETS = {"__consumer_offsets": [[1, 2, 3]]}
SIX = {"t": [[1]] * 6} | OFFSETS
STRATEGY = "partition.assignment.strategy"


def joined(opened: Opened, assignor: str, late: str = "dora", release: str = "2.8") -> Lab:
    """Return a lab in which one more member has joined a group of anna, bert and cleo that was Stable."""
    settings = {"group.id": "billing", STRATEGY: assignor}
    lab = opened(release=release, consumers=dict.fromkeys(("anna", "bert", "cleo", late), settings), topics=SIX)
    return lab.group.freeze_consumer(late).run(alive=True).group.thaw_consumer(late).run(alive=True)


def held(lab: Lab) -> dict[str, list[str]]:
    found = lab.tables.members()
    return dict(zip(found.client_id, found.partitions, strict=True))


# ---------------------------------------------------------------- sticky members in a group


@pytest.mark.parametrize("release", ["2.4", "2.8", "3.9"])
def test_cooperative_members_rebalance_twice(opened: Opened, release: str) -> None:
    """Round 1 withholds the partition that moves, round 2 assigns it; no other partition has another owner or none (KIP-429)."""
    lab = joined(opened, "cooperative-sticky", release=release)
    found = lab.tables.rebalances()
    assert found["to_generation"].tolist() == [1, 2, 3] and found["reason"].tolist()[-1] == "a member offers other protocols"
    owners = [sorted(p for member in group["members"].values() for p in assigned(member)) for group in stable_groups(lab)]
    six = [f"t-{number}" for number in range(6)]
    assert owners == [six, [p for p in six if p != held(lab)["dora"][0]], six]


def assigned(member: Mapping[str, Any]) -> list[str]:
    table = rules.decode("assignment", member["assignment"]).value
    return [f"t-{number}" for field, number in table.items() if "partitions[0].partitions[" in str(field)]


def stable_groups(lab: Lab) -> list[Any]:
    """Return the group each time it became Stable."""
    return [r.to_json().fields["group_metadata"] for r in lab.records if r.kind == "group" and r.fields["to"] == "Stable"]


@pytest.mark.parametrize(("assignor", "moves"), [("range", 5), ("roundrobin", 6), ("sticky", 1), ("cooperative-sticky", 1)])
def test_the_matrix_counts_moves(opened: Opened, assignor: str, moves: int) -> None:
    """A member whose id is first joins: range moves five of six partitions, round robin all six, the sticky assignors one."""
    picture = joined(opened, assignor, "abel").group_matrix()
    (one,) = picture.matrices
    assert (one.title, sum(one.moved.values())) == (assignor, moves)
    assert picture.svg().count("*</text>") == len(one.moved) == moves
    assert repr(picture).count("*") == moves and "abel: t-0*" in repr(picture)


def test_matrices_stand_side_by_side(opened: Opened) -> None:
    """Each run has its title, a member has one letter and colour in all matrices, and text from outside is escaped."""
    lab = joined(opened, "sticky")
    picture = lab.group_matrix(beside={"<b>": lab})
    assert [one.title for one in picture.matrices] == ["sticky", "<b>"]
    assert "&lt;b&gt;" in picture.svg() and "<b>" not in picture.svg()
    with pytest.raises(UserError, match="its groups are billing"):
        lab.group_matrix("boo")


# ---------------------------------------------------------------- the vote


def test_the_ballots_are_the_vote(opened: Opened) -> None:
    """The table has each member's list, the candidates in it and its vote; the winner is the protocol of the coordinator."""
    # Source: selectProtocol of GroupMetadata.scala (0.9, 2.8).
    offered = {"anna": ["sticky", "range"], "bert": ["roundrobin", "range", "sticky"], "cleo": ["range", "sticky"]}
    consumers = {name: {"group.id": "billing", STRATEGY: names} for name, names in offered.items()}
    lab = opened(consumers=consumers, topics=SIX).run(alive=True)
    table = lab.tables.ballots()
    assert table.protocols.to_dict() == offered | {"all members": ["sticky: 1", "range: 2"]}
    assert table.vote.to_dict() == {"anna": "sticky", "bert": "range", "cleo": "range", "all members": "range"}
    assert table.candidates["bert"] == ["range", "sticky"]
    assert stable_groups(lab)[-1]["protocol"] == table.vote["all members"]
    with pytest.raises(UserError, match="groups with members: billing"):
        lab.tables.ballots("boo")


def test_without_a_common_assignor_a_member_is_refused(opened: Opened) -> None:
    """A member that offers no candidate gets INCONSISTENT_GROUP_PROTOCOL, and the group stays as it is."""
    consumers = {name: {"group.id": "billing", STRATEGY: name_of} for name, name_of in (("anna", "range"), ("bert", "sticky"))}
    lab = opened(consumers=consumers, topics=SIX).run(alive=True)
    assert lab.state["consumers"]["bert"]["error"] == "INCONSISTENT_GROUP_PROTOCOL" and list(held(lab)) == ["anna"]


# ---------------------------------------------------------------- bytes


def test_bytes_field_by_field() -> None:
    """The fields' bytes, one after the other, are the bytes of the record, and the values are those that were encoded."""
    # Source: the example of an assignment in the reference of ConsumerProtocol.java.
    data = bytes.fromhex("0000 00000001 0003 666f6f 00000002 00000000 00000002 ffffffff")
    table = rules.decode("assignment", data)
    assert "".join(table.bytes) == data.hex() and rules.decode("assignment", data.hex()).equals(table)
    assert table.value.tolist() == [0, 1, "foo", 2, 0, 2, None]
    fields = {"topics": ["a", "b"], "user_data": b"\x01", "owned": [{"topic": "a", "partitions": [3]}]}
    asked = encode("subscription", 1, fields)
    assert "".join(rules.decode("subscription", asked).bytes) == asked.hex()


@pytest.mark.parametrize(
    ("record", "data", "says"),
    [
        ("boo", b"", "'offset_key'"), ("assignment", b"", "version of two bytes"), ("assignment", "zz", "hexadecimal"),
        ("assignment", 5, "must be text"), ("offset_key", "0007", "0 and 1"), ("assignment", "0000 00000001 0003 66", "3 bytes"),
        ("subscription", "ffff", "no version -1"), ("subscription", "0001 00000001 0001 61", "after the field topics[0]"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_record(record: str, data: object, says: str) -> None:
    """Bytes that end too early, another version and another record are refused in one sentence with the legal ones."""
    with pytest.raises(UserError) as problem:
        rules.decode(record, data)
    assert says in refusal(problem)


# ---------------------------------------------------------------- trials


def test_trials_of_kafkas_assignors() -> None:
    """In equal series sticky moves least, round robin most; the cooperative lag is smaller than the eager one; none is uneven."""
    table = rules.trials(assignors=dict.fromkeys(ASSIGNORS), runs=40)
    assert table.moved["sticky"] == table.moved["cooperative-sticky"] < table.moved["range"] < table.moved["roundrobin"]
    assert table.greatest_lag["cooperative-sticky"] < table.greatest_lag["sticky"]
    assert set(table.uneven) == {0} and set(table.rebalances) == {360}


def test_a_series_counts_what_happens() -> None:
    """Two members swap all partitions in the second of two rounds: six moves; a pause of one second leaves a lag of its rate."""
    places = iter(((0, 1), (1, 0)))

    def swap(partitions: Any, members: Mapping[str, Subscription]) -> dict[str, list[Any]]:
        place = next(places)
        return {name: list(PARTITIONS[3 * at : 3 * at + 3]) for name, at in zip(sorted(members), place, strict=True)}

    series = Series((1, 1, 1, 1, 1, 2), (("anna", "bert"), ("anna", "bert")))
    assert played("swap", swap, series) == {"rebalances": 2, "moved": 6, "uneven": 0, "greatest_lag": 2}


def test_an_assignor_may_ask_for_lags() -> None:
    """A function with a third parameter gets the lag of each partition; the subscriptions have what each member owns."""
    asked = []

    def mine(partitions: Any, members: Mapping[str, Subscription], lags: Mapping[Any, int]) -> dict[str, list[Any]]:
        asked.append((partitions, [member.owned for member in members.values()], set(lags)))
        return ASSIGNORS["range"](partitions, members)

    rules.trials(assignors={"mine": mine}, runs=1)
    assert asked[0] == ({TOPIC: 6}, [(), (), ()], set(PARTITIONS)) and sum(map(len, asked[1][1])) > 0


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "a list of partitions for each member"), ({"boo": []}, "the members are anna"), ({"anna": ["t-9"]}, "t-0, t-1"),
        ({"anna": ["t-0", "t-0"]}, "each of the 6 partitions"), ({"anna": ["t-0"]}, "each of the 6 partitions"),
    ],
)  # fmt: skip
def test_an_assignment_that_is_none(answer: Any, says: str) -> None:
    """An assignor that leaves a partition out, names another one or another member is refused in one sentence."""
    with pytest.raises(UserError) as problem:
        rules.trials(assignors={"mine": lambda partitions, members: answer}, runs=1)
    assert says in refusal(problem)


@pytest.mark.parametrize(
    ("assignors", "says"),
    [
        ({"mine": None}, "range, roundrobin, sticky"),
        ({"mine": 5}, "give a function"),
        ({"mine": lambda: 1 / 0}, "raised"),
        (None, "either"),
        (["range"], "either"),
    ],
)
def test_trials_without_an_assignor(assignors: Any, says: str) -> None:
    """A value that is no assignor, a function that raises, a list, and no assignor at all are refused in one sentence."""
    with pytest.raises(UserError) as problem:
        rules.trials(assignors=assignors, runs=1)
    assert says in refusal(problem)


@pytest.mark.parametrize("runs", [0, -1])
def test_trials_without_a_run(runs: int) -> None:
    """Trials of assignors refuse a number of runs below 1."""
    with pytest.raises(UserError, match="from 1 on"):
        assignor_trials.trials({"range": None}, runs, 1)
