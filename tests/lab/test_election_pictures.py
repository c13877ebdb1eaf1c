"""The pictures of the election say what the tables and the run say."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from kcontrol import Lab
from kcontrol.controller import event_thread
from kcontrol.core.errors import UserError
from kcontrol.lab.pictures import election_pictures
from kcontrol.zookeeper.memory import MemoryZooKeeper
from tests.lab.support import refusal
from tests.parts import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def outline(lab: Lab, name: str) -> list[str]:
    return lab.diagram(name).outline().splitlines()


@pytest.mark.parametrize("name", election_pictures.PICTURES)
def test_what_is_drawn_is_what_is_said(lab: Lab, name: str) -> None:
    """Each picture is drawn with one box or arrow for each line of its outline."""
    diagram = lab.diagram(name)
    classes = [g.get("class", "").split()[:1] for g in ElementTree.fromstring(diagram.svg()).iter(f"{SVG}g")]
    lines = diagram.outline().splitlines()
    assert classes.count(["edge"]) == sum(" -> " in line for line in lines) > 0
    assert classes.count(["node"]) + classes.count(["edge"]) == len(lines)


def test_an_unknown_picture_lists_those_there_are(lab: Lab) -> None:
    """Asking for another one names them all."""
    with pytest.raises(UserError) as problem:
        lab.diagram("cat")
    assert all(repr(name) in refusal(problem) for name in ("partition", "replica", *election_pictures.PICTURES))


def test_only_a_deletion_elects() -> None:
    """Of what can become of `/controller` a deletion alone leads to an election; a start and a new session do so too."""
    # The other party is `../shared/reference/controller.md` 4.3: Startup, Reelect, RegisterBrokerAndReelect, ControllerChange.
    found = {cause: (event.__name__, called) for cause, event, called in election_pictures.causes()}
    assert found == {
        "a broker starts": ("Startup", ("elect",)),
        "a session has expired, another one is open": ("RegisterBrokerAndReelect", ("maybe_resign", "elect")),
        "/controller is created": ("ControllerChange", ("maybe_resign",)),
        "/controller has other data": ("ControllerChange", ("maybe_resign",)),
        "/controller is deleted": ("Reelect", ("maybe_resign", "elect")),
    }


def test_the_map_has_every_listener(lab: Lab) -> None:
    """Each row of the table of watch events is an arrow of the map."""
    arrows = [line for line in outline(lab, "listeners") if " -> " in line]
    assert len(arrows) == len(event_thread.WATCHES)
    assert "/brokers/ids/<broker> -> BrokerModifications: data" in arrows


def test_the_map_of_the_file_leads_somewhere(lab: Lab) -> None:
    """The modules that the picture names are there, and so are the tables in them."""
    for _, _, ours in election_pictures.STRUCTURE:
        files, _, name = ours.partition(": ")
        for file in files.split(", "):
            assert (ROOT / "kcontrol" / file).exists()
        assert not name or hasattr(event_thread, name)


def test_who_stands_round_the_znode(lab: Lab) -> None:
    """The owner, the watchers, and who is down, before and after the controller's death."""
    assert "broker 1 -> /controller: owns and watches" in outline(lab, "controller")
    lab.kill(1).run()
    assert outline(lab, "controller")[:3] == ["/controller names broker 2, epoch 2", "broker 1 is down", "broker 2 controller"]


def test_no_broker_is_connected_with_the_znode_before_a_start(opened: Callable[..., Lab]) -> None:
    """Before a broker starts, the picture has no `/controller` and no arrow."""
    assert outline(opened(2, start=False), "controller") == ["/controller is missing", "broker 1 is down", "broker 2 is down"]


# ---------------------------------------------------------------- the flow


def race(lab: Lab) -> None:
    """Broker 3 reads that `/controller` is missing, and broker 2 creates the znode first."""
    lab.zk.delete("/controller").step(("deliver_notification", 3)).step(("begin", 3, "controller"))
    for _ in range(4):
        lab.step(("advance", 3, "controller"))
    lab.step(("deliver_notification", 2)).run_event(2).run()


def lost_answer(lab: Lab) -> None:
    """Broker 3's transaction succeeds and its answer is lost, so it is sent again."""
    lab.zk.delete("/controller").step(("deliver_notification", 3)).step(("begin", 3, "controller"))
    for _ in range(4):
        lab.step(("advance", 3, "controller"))
    assert isinstance(lab._world.zk, MemoryZooKeeper)
    lab._world.zk.lose_next(lab._world.processes[3].driver.client, before=False)
    lab.run()


def failing(lab: Lab) -> None:
    """The elected broker reads a registration that is no JSON, and resigns once."""
    lab.zk.create("/brokers/ids/9", "nonsense").zk.delete("/controller").run(until="a controller is elected")
    lab.run(until="a controller is elected").zk.delete("/brokers/ids/9").run()


R, E, W, Q, F = (
    election_pictures.READ,
    election_pictures.EPOCH,
    election_pictures.WRITE,
    election_pictures.WHOSE,
    election_pictures.FAILOVER,
)
WON = {(R, E), (E, W), (W, F), (F, election_pictures.RULES)}


@pytest.mark.parametrize(
    ("story", "new"),
    [
        (lambda lab: lab.kill(1), WON | {(R, election_pictures.RULED)}),
        (race, WON | {(R, election_pictures.RULED), (W, Q), (Q, election_pictures.RESIGN)}),
        (lost_answer, (WON | {(R, election_pictures.RULED), (W, Q), (Q, F)})),
        (failing, WON | {(R, election_pictures.RULED), (F, election_pictures.MOVE)}),
    ],
    ids=["clean", "race", "lost answer", "failing"],
)
def test_the_ways_that_were_taken(lab: Lab, story: Callable[[Lab], object], new: set[tuple[str, str]]) -> None:
    """A clean election, a lost race, an answer that was lost and a failed takeover each go their way through the flow."""
    before = election_pictures.ways(lab.records)
    story(lab)
    lab.run()
    taken = election_pictures.ways(lab.records) - before
    assert set(taken) == new or set(taken) == new - {(W, F)}  # a lost answer may be the only election
    assert set(taken) <= {(source, target) for source, _, target in election_pictures.ELECT}


def test_the_flow_counts(lab: Lab) -> None:
    """The count beside an arrow is how often it was taken: one election, two brokers who found it done."""
    assert "read /controller -> a controller exists: stop: names a broker (2 times)" in outline(lab, "elect")
    assert "onControllerFailover() -> controller: done (once)" in outline(lab, "elect")


@pytest.fixture
def reigns_story(lab: Lab) -> Lab:
    """Six ends of a reign."""
    lab.kill(1).run().start(1).run().expire_session(lab.tables.tenures().broker.iloc[-1]).run()
    lab.zk.delete("/controller").run()
    lab.zk.set("/controller", '{"version":1,"brokerid":3,"timestamp":"0"}').run().zk.set("/controller", "?").run()
    lab.zk.delete("/controller").run()
    failing(lab)
    return lab


def test_reigns(reigns_story: Lab, folder: Path) -> None:
    """Each content of `/controller` has a row with the broker that it names and the reason of its end."""
    found = reigns_story.tables.tenures()
    assert found.controller_epoch.fillna(0).tolist() == [1, 2, 3, 4, 0, 0, 5, 6, 7]
    ended, deleted, rewritten = "session ended", "znode deleted", "znode overwritten"
    assert found.ended_by[:-1].tolist() == [ended, ended, deleted, rewritten, rewritten, deleted, deleted, deleted]
    assert found.broker.isna().tolist() == [False] * 5 + [True] + [False] * 3
    assert found.ended_by.isna().iloc[-1]
