"""Diagrams say what the tables say, and show outside text as text."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from kcontrol.controller.partition_machine import PARTITION_TRANSITIONS
from kcontrol.controller.replica_machine import REPLICA_TRANSITIONS
from kcontrol.core.model import PartitionState
from kcontrol.core.transitions import Transition, TransitionTable
from kcontrol.journal.journal import OUTSIDE, Record, RecordId
from kcontrol.views import diagrams
from tests.views.support import NASTY, cluster, story

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "style", "g", "title", "path", "polygon", "a", "text"}


def titles(svg: str, css: str) -> list[str]:
    """What Graphviz calls the nodes or edges of a drawn picture."""
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return [g.findtext(f"{SVG}title", "") for g in groups if g.get("class", "").split()[:1] == [css]]


@pytest.mark.parametrize("table", [PARTITION_TRANSITIONS, REPLICA_TRANSITIONS.for_("2.8")], ids=lambda table: table.name)
def test_nodes_and_edges_are_the_table(table: TransitionTable) -> None:
    """The drawn picture has a node for each state and an edge for each row, and no other; so has the outline."""
    diagram = diagrams.machine(table)
    assert sorted(titles(diagram.svg(), "node")) == sorted(map(str, table.states))
    assert sorted(titles(diagram.svg(), "edge")) == sorted(f"{row.source}->{row.target}" for row in table)
    said = [str(state) for state in table.states] + [f"{row.source} -> {row.target}: {row.note}" for row in table]
    assert diagram.outline().splitlines() == said


@pytest.mark.parametrize("table", [PARTITION_TRANSITIONS, REPLICA_TRANSITIONS.for_("2.8")], ids=lambda table: table.name)
def test_a_machine_is_no_wider_than_a_page(table: TransitionTable) -> None:
    """A notebook's cell shows about 800 points of a picture: seven states stand one below the other."""
    width = ElementTree.fromstring(diagrams.machine(table).svg()).get("width", "")
    assert width.endswith("pt") and 0 < float(width.removesuffix("pt")) < 800


def test_an_edge_without_a_decision_has_no_label() -> None:
    """An edge has the name of its row's function, but for rows that change the state in memory alone."""
    svg = diagrams.machine(REPLICA_TRANSITIONS.for_("2.8")).svg()
    assert "stop_and_leave_isr" in svg and "memory_only" not in svg


def test_counts_and_the_lit_state() -> None:
    """How many are in a state stands in its box, and the current state is marked by more than colour."""
    diagram = diagrams.machine(PARTITION_TRANSITIONS, PartitionState.ONLINE, {PartitionState.ONLINE: 7, PartitionState.NEW: 0})
    assert "OnlinePartition 7" in diagram.outline().splitlines()
    (lit,) = [g for g in ElementTree.fromstring(diagram.svg()).iter(f"{SVG}g") if "current" in g.get("class", "").split()]
    assert lit.findtext(f"{SVG}title") == "OnlinePartition"
    assert "stroke-width:3.5" in diagrams.STYLE.split(".current")[2]


def test_a_swapped_row_is_seen() -> None:
    """An edge bears the name of the function that decides it."""

    def my_own_rule() -> None: ...

    mine = PARTITION_TRANSITIONS.with_action(PartitionState.OFFLINE, PartitionState.ONLINE, my_own_rule)
    assert "my_own_rule" in diagrams.machine(mine).svg()
    assert "my_own_rule" not in diagrams.machine(PARTITION_TRANSITIONS).svg()


def test_the_chain_of_causes() -> None:
    """From the end of a session to the next leader: each link once, the first cause first, with rule and Kafka's source."""
    elected = next(r for r in story() if r.kind == "change" and r.fields["rule"] == "offline")
    outline = diagrams.why(story(), elected.id).outline().splitlines()
    links = [line for line in outline if "  " in line]
    assert "Broker 2 is killed" in links[0]
    assert "ends the session of broker 2" in links[1]
    assert "rule: the leader is dead: a live replica of the ISR becomes leader" in links[-1]
    assert "offlinePartitionLeaderElection in PartitionStateMachine.scala (2.8)" in links[-1]
    assert "OfflinePartition -> OnlinePartition: a new leader is elected" in links[-1]
    assert any("processBrokerChange in KafkaController.scala (2.8)" in line for line in links)
    ids = [line.split()[0] for line in links]
    assert outline[len(links) :] == [f"{a} -> {b}" for a, b in pairwise(ids)]


def test_a_record_that_is_not_there() -> None:
    """Asking for the cause of a record of another journal is a KeyError."""
    with pytest.raises(KeyError):
        diagrams.why(story(), RecordId(9, 9, 9))


@pytest.mark.parametrize("name", [NASTY, '"><svg onload=x>', "a\\nb\\N\\G", "<b>bold</b>", "&amp;"])
def test_outside_text_stays_text(name: str) -> None:
    """A topic's name is neither markup nor an escape of Graphviz: the picture shows it letter by letter."""
    record = Record(RecordId(OUTSIDE, 0, 1), "act", None, 0, {"action": ["create_topic", name]})
    root = ElementTree.fromstring(diagrams.why([record], record.id).svg())
    shown = "".join(element.text or "" for element in root.iter(f"{SVG}text"))
    assert name.replace(" ", "") in shown.replace(" ", "").replace("\xa0", "")
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= DRAWN


def test_a_label_that_is_all_markup() -> None:
    """What Graphviz would read as one of its HTML labels is shown as it is."""
    table = TransitionTable(
        "<b>", PartitionState, "<i>nowhere</i>", [Transition(PartitionState.NEW, PartitionState.ONLINE, lambda: 0, "<u>n</u>")]
    )
    svg = diagrams.machine(table).svg()
    assert "&lt;i&gt;nowhere&lt;/i&gt;" in svg
    assert "&lt;u&gt;n&lt;/u&gt;" in svg
    assert "&lt;lambda&gt;" in svg


def test_dark_paper() -> None:
    """The picture brings its own style for a dark theme, and shows its outline where no picture is shown."""
    bundle = diagrams.machine(PARTITION_TRANSITIONS)._repr_mimebundle_()
    assert "@media (prefers-color-scheme:dark)" in bundle["image/svg+xml"]
    assert bundle["text/plain"].startswith("NonExistentPartition\n")


def test_a_nasty_topic_in_a_real_run() -> None:
    """The whole way: a world with such a topic, asked why its partition is led."""
    records = cluster(topic=NASTY).journal.records
    led = next(r for r in records if r.kind == "change" and r.fields["leadership"])
    assert "<img" not in diagrams.why(records, led.id).svg()
