"""The group strip: what a picture of a consumer group says, against the tables of the same run and the rules of the release."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.fold import fold
from kcontrol.views import group_moments
from kcontrol.views.group_strip import MOST, GroupStrip, strips_of
from kcontrol.views.html_page import html_page

ALL = ("anna", "bert", "cleo")
TOPICS = {"__consumer_offsets": [[1, 2, 3]], "t": [[1, 2, 3]] * 6}
SVG = "{http://www.w3.org/2000/svg}"
Opened = Callable[..., Lab]


def ask(lab: Lab, request: str, *consumers: str) -> None:
    """Let consumers send one request each, and the coordinator answer."""
    for consumer in consumers:
        getattr(lab.group, request)(consumer)
    lab.run()


def fire(lab: Lab, words: str) -> None:
    """Fire the first timer whose name begins with these words."""
    broker, timer = next(action[1:] for action in lab.actions() if action[0] == "fire" and str(action[2]).startswith(words))
    lab.timers.fire(broker, timer).run()


def stable(opened: Opened, release: str = "2.8") -> Lab:
    """Return a lab whose group of three members is Stable in generation 1."""
    lab = opened(3, release=release, topics=TOPICS, consumers=dict.fromkeys(ALL, "billing"))
    ask(lab, "join", *ALL)
    ask(lab, "join", *ALL)
    for _ in range(2):  # the initial delay, and its extension for members that came meanwhile
        fire(lab, "join billing")
    ask(lab, "sync", *ALL)
    return lab


def texts(strip: GroupStrip) -> list[str]:
    """Return the labels of the picture."""
    return ["".join(node.itertext()) for node in ElementTree.fromstring(strip.svg()).iter(f"{SVG}text")]


def tooltips(strip: GroupStrip) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(strip.svg()).iter(f"{SVG}title")]


def test_the_text_says_what_the_table_of_members_says(opened: Opened) -> None:
    """The lines name every member with its partitions, and the title the state, the generation and the coordinator."""
    lab = stable(opened)
    table, lines = lab.tables.members(), lab.group_strip().lines()
    row = table.iloc[0]
    assert lines[0] == f"Group billing: {row.state}, generation {row.generation}, coordinator broker {row.coordinator}."
    assert len(table) == 3 and row.state == "Stable"
    for (_, member), line in zip(table.iterrows(), lines[1:], strict=True):
        assert f" {member.client}: in generation 1; {', '.join(member.partitions)}; SessionTimedOut in 10 s" in line


def test_each_partition_has_the_letter_of_its_owner(opened: Opened) -> None:
    """Below the lanes stands each partition, with the owner's letter, which the lane has too: colour does not stand alone."""
    strip = stable(opened).group_strip()
    assert [f"{lane.letter}  {lane.name}" for lane in strip.lanes] == ["A  anna", "B  bert", "C  cleo"]
    shown = texts(strip)
    assert {f"t-{n}" for n in range(6)} <= set(shown) and {"A  anna", "B  bert", "C  cleo"} <= set(shown)
    assert {"t-0 is assigned to anna", "t-3 is assigned to bert", "t-5 is assigned to cleo"} <= set(tooltips(strip))


def test_parked_requests_are_hatched(opened: Opened) -> None:
    """While the coordinator has parked JoinGroup and SyncGroup, the bars are hatched; in a generation they have its number."""
    strip = stable(opened).group_strip()
    kinds = [bar.kind for bar in strip.lanes[0].bars]
    assert kinds[0] == "join" and "sync" in kinds and kinds[-1] == "member" and strip.lanes[0].bars[-1].generation == 1
    hatched = [node for node in ElementTree.fromstring(strip.svg()).iter(f"{SVG}rect") if node.get("fill") == "url(#hatch-A)"]
    assert len(hatched) == sum(kind in ("join", "sync") for kind in kinds)
    assert "the coordinator has parked the SyncGroup of anna in generation 1" in tooltips(strip)


def test_a_deadline_that_fires_ends_the_lane(opened: Opened) -> None:
    """A session timeout is marked in the member's lane, the lane ends there, and the text has the member outside the group."""
    lab = stable(opened)
    fire(lab, "session billing bert")
    strip = lab.group_strip()
    assert strip.lanes[1].bars[-1].last < len(strip.moments) - 1
    assert tooltips(strip).count("the deadline of bert fired") == 1
    assert "  B bert: not in the group" in strip.lines()
    assert "the deadline of anna fired" not in tooltips(strip)


def test_the_next_deadline_is_filled(opened: Opened) -> None:
    """The flags are the group's pending timers; the flag of the timer that fires first is the filled one."""
    lab = stable(opened)
    for name in ALL[:2]:
        ask(lab, "heartbeat", name)
    strip = lab.group_strip()
    flags = [(node.get("class"), node[0].text) for node in ElementTree.fromstring(strip.svg()).iter(f"{SVG}path") if len(node)]
    pending = list(strip.moments[-1].deadlines)
    assert len(pending) == 3 and pending == sorted(pending, key=lambda deadline: deadline.at_ms)
    assert [css for css, _ in flags] == ["next", "flag", "flag"]


@pytest.mark.parametrize(("release", "name"), [("0.9", "AwaitingSync"), ("1.0", "AwaitingSync"), ("1.1", "CompletingRebalance")])
def test_states_have_the_names_of_the_release(opened: Opened, release: str, name: str) -> None:
    """The state after a join phase is AwaitingSync up to 1.0. Source: GroupState in GroupMetadata.scala (1.0, 1.1)."""
    lab = opened(3, release=release, topics=TOPICS, consumers={"anna": "billing"})
    ask(lab, "join", "anna")
    if lab.group_strip().moments[-1].members["" or next(iter(lab.group_strip().moments[-1].members))]["awaiting_join"]:
        fire(lab, "join billing")
    assert f"Group billing: {name}, generation 1" in lab.group_strip().title
    assert name in tooltips(lab.group_strip())


def test_the_coordinators_death_is_a_gap_that_says_so(opened: Opened) -> None:
    """Until another broker has loaded the group, the strip says "no coordinator" and bars are dashed; the generation goes on."""
    lab = stable(opened)
    lab.kill(lab.group_strip().moments[-1].coordinator).run()
    strip = lab.group_strip()
    assert "no coordinator" in tooltips(strip) and [bar.kind for bar in strip.lanes[0].bars][-2:] == ["unknown", "member"]
    assert [bar.generation for bar in strip.lanes[0].bars][-2:] == [1, 1]
    assert strip.moments[-1].coordinator in lab.brokers().index


def test_moments_are_where_the_fold_differs(opened: Opened) -> None:
    """After each moment's record the fold of the journal up to there has the group that the moment has."""
    lab = stable(opened)
    for moment in lab.group_strip().moments:
        node = fold(lab.records[: moment.record + 1])["nodes"][str(moment.coordinator)]
        assert node["group"]["groups"]["billing"] == moment.group


def test_marks_ascend_and_stay_in_the_picture(opened: Opened) -> None:
    """The browser's line moves to the right with the records, from the first column to the end of the last one."""
    strip = stable(opened).group_strip()
    records, places = zip(*strip.marks(), strict=True)
    assert list(records) == sorted(set(records)) and list(places) == sorted(places)
    assert 0 < places[0] < places[-1] <= 1


def test_a_long_life_shows_its_last_moments(opened: Opened) -> None:
    """A strip has at most sixty columns, and its picture says how many earlier moments are not drawn."""
    lab = stable(opened)
    for _ in range(12):
        ask(lab, "join", *ALL)
        ask(lab, "sync", *ALL)
    strip = lab.group_strip()
    assert len(strip.moments) == MOST and strip.left_out == len(group_moments.moments(lab.records, "billing")) - MOST > 0
    assert f"{strip.left_out} earlier moments are not drawn" in texts(strip)


def test_names_from_outside_are_text(opened: Opened) -> None:
    """A group's name and a consumer's name with markup are text of the picture, and no elements."""
    lab = opened(1, topics={"__consumer_offsets": [[1]], "t": [[1]]}, consumers={"<b>&": "<script>\n"})
    lab.group.join("<b>&").run()
    lab.group.join("<b>&").run()
    strip = lab.group_strip("<script>\n")
    found = {node.tag.removeprefix(SVG) for node in ElementTree.fromstring(strip.svg()).iter()}
    assert found <= {"svg", "style", "defs", "pattern", "path", "rect", "text", "title"}
    assert any("<script>" in shown for shown in texts(strip)) and "A  <b>&" in texts(strip)


def test_other_groups_are_listed(opened: Opened) -> None:
    """A group that is not there, or no name where there are two, is one sentence that lists the groups."""
    lab = opened(1, topics={"__consumer_offsets": [[1]], "t": [[1]]}, consumers={"anna": "billing", "bert": "audit"})
    with pytest.raises(UserError, match=re.escape("There is no group 'x' in this run; its groups are audit and billing.")):
        lab.group_strip("x")
    with pytest.raises(UserError, match="Name one group of this run; its groups are audit and billing"):
        lab.group_strip()
    with pytest.raises(UserError, match="it has no consumer groups"):
        opened(1).group_strip()


def test_a_page_has_the_strips_of_both_runs(opened: Opened) -> None:
    """A page with a run beside another one has the strips of both, each with its text; a run without groups has none."""
    lab, earlier = stable(opened), opened(3, release="0.9", topics=TOPICS, consumers={"anna": "billing"})
    page = html_page(lab.records, "2.8", beside=("0.9", earlier.records, 0))
    assert page.count('"group":"billing","svg"') == 2 and "Stable, generation 1" in page
    assert strips_of(opened(1).records) == []


def test_a_damaged_journal_still_has_its_strip(opened: Opened) -> None:
    """A record that contradicts those before it is left out, and the strip shows the rest."""
    lab = stable(opened)
    damaged = [record if n != 10 else record._replace(kind="drop") for n, record in enumerate(lab.records)]
    assert strips_of(damaged)[0]["text"] == strips_of(lab.records)[0]["text"]
