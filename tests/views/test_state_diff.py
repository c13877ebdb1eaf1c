"""Two states next to each other: what differs, in Python and in the browser, and how it is drawn."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.journal.fold import fold
from kcontrol.lab.comparison import divergence
from kcontrol.views import state_diff
from kcontrol.views.record_rows import rows
from kcontrol.views.viewer import Viewer
from tests.views.support import NASTY, Ask, OfWorld, cluster, random_run, story

BOTH = """
    const [one, other] = [given.one, given.other].map((rows) => viewer.timelineOf({ get: () => rows }));
    return given.at.map(([a, b]) => viewer.differences(one.at(a).state, other.at(b).state));
"""


@pytest.mark.parametrize("seed", range(3))
def test_python_and_javascript_find_the_same_differences(ask: Ask, seed: int) -> None:
    """At many places of two random runs both name the same brokers, fields of partitions and znodes."""
    one, other = (list(random_run(n, 150).journal.records) for n in (seed, seed + 50))
    count = min(len(one), len(other))
    at = [(i, (i * 7) % count) for i in range(0, count, 23)]
    mine = [state_diff.differences(fold(one[: a + 1]), fold(other[: b + 1])) for a, b in at]
    assert ask(BOTH, {"one": rows(one), "other": rows(other), "at": at}) == mine
    assert {field for found in mine for fields in found["partitions"].values() for field in fields} >= {"leader", "isr"}


def test_equal_states_differ_in_nothing() -> None:
    """A state and itself have no difference, and neither have two that were only written at other times."""
    state = fold(story())
    path, (data, *rest) = "/brokers/ids/1", state["znodes"]["/brokers/ids/1"]
    later = state | {"znodes": state["znodes"] | {path: [re.sub(r'"timestamp":"\d+"', '"timestamp":"9"', data), *rest]}}
    assert later != state
    assert state_diff.differences(state, later) == {"brokers": {}, "partitions": {}, "znodes": []}


def test_what_a_death_changes() -> None:
    """A killed leader differs in its broker, in the leadership of its partition, and in the znodes that say so."""
    world = cluster()
    before = fold(world.journal.records)
    world.step(("kill", 2))
    world.run()
    found = state_diff.differences(before, fold(world.journal.records))
    assert found["brokers"] == {"2": ["alive", "dead"]}
    assert found["partitions"]["orders-1"] == ["leader", "isr", "leader_epoch", "zk_version"]
    assert found["znodes"] == ["/brokers/ids/2", *(f"/brokers/topics/orders/partitions/{n}/state" for n in range(3))]


class Elements(HTMLParser):
    """What elements there are, and what is marked."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.marked, self.inside = set[str](), list[str](), False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.inside = tag == "mark"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.marked.append(data)

    def handle_endtag(self, tag: str) -> None:
        """A mark ends."""
        self.inside = False


def test_the_table_marks_what_differs() -> None:
    """Marked are the differing fields alone, beside a sign for those who see no colour; a topic's name makes no element."""
    world = cluster(topic=NASTY)
    before = fold(world.journal.records)
    world.step(("kill", 2))
    world.run()
    drawn = state_diff.html((NASTY, "b"), (before, fold(world.journal.records)))
    found = Elements(drawn)
    assert found.tags <= {"table", "thead", "tbody", "tr", "td", "th", "mark", "details", "summary"}
    assert {"leader 2", "leader 3", "alive", "dead", "ISR [2, 3, 1]", "ISR [3, 1]"} <= set(found.marked)
    assert not {"leader 1", "controller, epoch 1", "controller epoch 1"} & set(found.marked)
    assert drawn.count("\u2260") == 1 + 3 + 4


def test_where_the_other_run_stands(ask: Ask) -> None:
    """Up to the parting at the same record, then as late as this one, and at its own end when this one is at its end."""
    body = """
        const made = (at_ms, i) => ({ id: [-1, 0, i], kind: "x", at_ms, fields: {} });
        const of = (times) => { const records = times.map(made); return viewer.timelineOf({ get: () => records }); };
        return given.map(([one, other, parted, at]) => viewer.placeBeside(of(one), at, of(other), parted));
    """
    one, other = [0, 1, 2, 3, 3, 9], [0, 1, 2, 2, 4, 8, 20]
    cases = [(0, 3, 0), (2, 3, 2), (3, 3, 3), (4, 3, 3), (5, 3, 6), (2, -1, 2), (5, -1, 6)]
    assert ask(body, [(one, other, parted, at) for at, parted, _ in cases]) == [place for _, _, place in cases]


def test_a_viewer_without_branches() -> None:
    """Over a stepper that knows no branches there is nothing to switch, and the methods say so."""
    from kcontrol.core.errors import UserError

    viewer = Viewer(OfWorld(cluster()))
    assert (viewer.branches, viewer.branch) == ([], "")
    for click in (
        lambda: viewer.click_switch("main"),
        viewer.click_branch,
        viewer.click_without,
        lambda: viewer.click_compare("x"),
    ):
        with pytest.raises(UserError, match="no branches"):
            click()


def test_records_with_one_sentence_say_what_differs(ask: Ask) -> None:
    """Two records with equal sentences name the paths of their differing fields, in Python and in the browser."""
    one, other = (Lab.open(f"{release}/group/leader-leaves") for release in ("0.9.0.1", "2.8.2"))
    pair = [rows(run.records)[3] for run in (one, other)]
    assert pair[0]["say"] == pair[1]["say"]
    said = ask("return viewer.unsaid(...given);", pair)
    assert said == " The fields that differ: do.version, do.request.group, do.request.session, do.request.rebalance."
    assert ask("return viewer.unsaid(...given);", [pair[0], pair[1] | {"say": "Another."}]) == ""
    found = divergence.divergence(("a", "b"), one.records, other.records)
    assert found.at == 3 and str(found).endswith(said)
