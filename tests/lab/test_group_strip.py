"""The group strip: what a picture of a consumer group says, against the tables of the same run and the rules of the release."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.fold import fold
from kcontrol.lab import catalogue
from kcontrol.lab.run import Run
from kcontrol.views import clock, group_moments
from kcontrol.views.group_strip import MOST, STATE, GroupStrip, _bar
from kcontrol.views.html_page import html_page
from kcontrol.views.moving_strip import strips_of
from tests.lab.group_runs import RECORDED

ALL = ("anna", "bert", "cleo")
TOPICS = {"__consumer_offsets": [[1, 2, 3]], "t": [[1, 2, 3]] * 6}
LEAVES = ("0.9.0.1/group/leader-leaves", "2.8.2/group/leader-leaves")
HOLLOW, FILLED = "flag", "ink"  # the classes of a diamond that has no area, and of one that has
SVG = "{http://www.w3.org/2000/svg}"
Opened = Callable[..., Lab]


def ask(lab: Lab, request: str, *consumers: str) -> None:
    """Let consumers send one request each, and the coordinator answer."""
    for consumer in consumers:
        getattr(lab.group, request)(consumer)
    lab.run()


def fire(lab: Lab, words: str) -> None:
    broker, timer = next(action[1:] for action in lab.actions() if action[0] == "fire_timer" and str(action[2]).startswith(words))
    lab.fire_timer(broker, timer).run()


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
        assert f" {member.client_id}: in generation 1; {', '.join(member.partitions)}; SessionTimedOut in 10 s" in line


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


def flags(strip: GroupStrip) -> list[tuple[str, str]]:
    """Return (event, time) of each flag of a picture: ("SessionTimedOut", "in 10 s")."""
    found = [node for node in ElementTree.fromstring(strip.svg()).iter() if node.tag in (f"{SVG}path", f"{SVG}text")]
    pairs = ((path, shown) for path, shown in pairwise(found) if str(path.get("d")).endswith("h-12"))
    return sorted((path[0].text or "", shown.text or "") for path, shown in pairs)


def pending(run: Run, group: str) -> list[tuple[str, str]]:
    """Return (event, time) of each timer of a group in the table of timers, in the words of a flag."""
    rows = run.tables.timers().query("group_id == @group")
    return sorted((row.event, f"in {clock.duration(row.in_ms)}" if row.in_ms > 0 else "due") for row in rows.itertuples())


@pytest.mark.parametrize("release", ["0.9", "2.8"])
@pytest.mark.parametrize("step", ["three members", "dora joins", "cleo is late", "four members"])
def test_a_flag_counts_from_the_end_of_the_run(release: str, step: str) -> None:
    """The flags and the text have the times of the table of timers, in the middle of a run and 40 s after its last column."""
    lab = Lab.play("billing", release, until=step)
    for later in (lab.branch(at=len(lab.records) * 3 // 4), lab, lab.run("40 s", alive=True)):
        assert flags(later.group_strip()) == pending(later, "billing")
        said = re.findall(r"(\w+TimedOut) (in \d[\d.]* \w+)", "\n".join(later.group_strip().lines()))
        assert sorted(said) == pending(later, "billing")
    assert said


def shown_at(strip: dict[str, Any], at: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return (lines, flags) that the viewer shows at one record, with the flags as `flags` returns them."""
    drawn, lines = ([item for item in strip[name] if item[0] <= at < (item[1] or at + 1)] for name in ("flags", "text"))
    return [line for _, _, line in lines], sorted((event, words) for _, _, _, _, _, _, words, event in drawn if event)


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_the_viewer_has_the_deadlines_of_each_record(release: str) -> None:
    """At each record the viewer's strip has the flags, the title and the lines that a run that ends there has."""
    lab = Lab.play("billing", release, until="cleo is late")
    records, (strip,) = list(lab.records), strips_of(lab.records)
    begin, armed = strip["marks"][0][0], set[int]()
    for at in [*range(begin, len(records), 9), *(record for record, _ in strip["marks"]), len(records) - 1]:
        until = GroupStrip(records[: at + 1], "billing")
        lines, seen = shown_at(strip, at)
        assert seen == flags(until), at
        # A member that joins later has a lane of the picture already, and there the deadline of its new member id.
        later = [re.sub(r"^  \w .*: not in the group; Pending", "  Pending", line) for line in lines]
        later = [line for line in later if line in until.lines() or not line.endswith(": not in the group")]
        assert later[0] == until.title and sorted(later) == sorted(until.lines()), at
        armed.add(len(seen))
    assert {1, 2, 3} <= armed


def test_the_flag_of_the_next_timer_is_filled_at_each_record() -> None:
    """Of the flags at a record the first one has the class "next"; flags of later timers stand right of it, in the picture."""
    (strip,) = strips_of(Lab.play("billing", until="cleo is late").records)
    for at in range(strip["marks"][0][0], strip["marks"][-1][0]):
        drawn = [item[3:8] for item in strip["flags"] if item[0] <= at < (item[1] or at + 1) and item[7]]
        first = min((x for x, *_ in drawn), default=0)
        assert [css for x, _, css, _, _ in drawn if x == first] == ["next"] * sum(x == first for x, *_ in drawn)
        assert {css for x, _, css, _, _ in drawn if x > first} <= {"flag"}
        assert all(x < float(strip["box"].split()[2]) for x, *_ in drawn)


def test_a_member_without_a_lane_has_a_line(opened: Opened) -> None:
    """At a record before the first column the text names the members of that time, also one that has left since."""
    lab = stable(opened)
    lab.group.leave("cleo").run()
    for _ in range(13):
        ask(lab, "join", *ALL[:2])
        ask(lab, "sync", *ALL[:2])
    every, (strip,) = group_moments.moments(lab.records, "billing"), strips_of(lab.records)
    stands = next(moment.record for moment in every if moment.group and moment.group["state"] == "Stable")
    assert stands < strip["marks"][0][0] and "cleo" not in strip["svg"]
    lines, _ = shown_at(strip, stands)
    assert lines[0].startswith("Group billing: Stable, generation 1")
    assert [line for line in lines if line.startswith("  \u2013 cleo: in generation 1; t-4, t-5; SessionTimedOut in ")] == lines[
        -1:
    ]


def test_a_timer_whose_time_has_come_is_due(opened: Opened) -> None:
    """A timer that a fired timer has overtaken has no negative time: its flag and its line say that it is due."""
    lab = stable(opened)
    fire(lab, "session billing bert")
    assert lab.tables.timers().query("client_id == 'anna'").in_ms.iloc[0] <= 0
    assert "; SessionTimedOut due" in lab.group_strip().lines()[1]
    assert flags(lab.group_strip()) == pending(lab, "billing") and ("SessionTimedOut", "due") in flags(lab.group_strip())


def test_each_strip_counts_from_the_end_of_its_own_run() -> None:
    """In a picture of two runs each strip has the times of the table of timers of its own run."""
    old, new = (Lab.play("billing", release, until=step) for release, step in (("0.9", "dora joins"), ("2.8", "cleo is late")))
    both = old.group_strip(beside={"2.8": new})
    assert flags(both) == sorted(pending(old, "billing") + pending(new, "billing"))


@pytest.mark.parametrize("name", RECORDED)
def test_a_flag_of_a_recording_counts_from_its_last_record(name: str) -> None:
    """The flags of a recorded group have the times of the table of timers of the recording."""
    strip = Lab.open(name).group_strip()
    assert flags(strip) == pending(Lab.open(name), strip.group_id)


def test_each_state_has_a_word_or_its_first_letter(opened: Opened) -> None:
    """No box of the row of states has its colour alone: it has the state's name, cut or whole, or the first letter."""
    lab = stable(opened)
    for _ in range(4):
        ask(lab, "join", *ALL)
        ask(lab, "sync", *ALL)
    root = ElementTree.fromstring(lab.group_strip().svg())
    drawn = [
        (node[0].text or "", "".join(after.itertext())) for node, after in pairwise(root) if node.get("height") == str(STATE)
    ]
    assert len(drawn) > 10 and all(shown for _, shown in drawn)
    assert all(shown in (state, state[:1]) or state.startswith(shown.removesuffix("…")) for state, shown in drawn)
    assert {len(shown) for _, shown in drawn} & {1}


def test_a_generation_is_inside_its_bar(opened: Opened) -> None:
    """The number of a generation has room in its bar: a narrow bar has it in a smaller font, and three digits need more."""
    lab = stable(opened)
    for _ in range(4):
        ask(lab, "join", *ALL)
        ask(lab, "sync", *ALL)
    lane = lab.group_strip().lanes[0]
    fonts = {}
    for generation in (7, 104):
        for width in (8, 13, 24, 60):
            (_, *numbers) = _bar(lane, lane.bars[-1]._replace(generation=generation), 0, width, 0)
            fonts[generation, width] = [int(str(ElementTree.fromstring(number).get("font-size"))) for number in numbers]
    assert fonts == {
        (7, 8): [10], (7, 13): [12], (7, 24): [12], (7, 60): [12],
        (104, 8): [], (104, 13): [], (104, 24): [10], (104, 60): [12],
    }  # fmt: skip


def test_long_names_keep_their_ends(opened: Opened) -> None:
    """Members and partitions whose names differ at the end only have different labels in the strip and in the matrix."""
    names, topic = [f"consumer-of-the-orders-of-all-customers-{n}" for n in (1, 2)], "orders_of_all_customers_of_europe"
    topics = {"__consumer_offsets": [[1]], topic: [[1]] * 3}
    lab = opened(1, topics=topics, consumers=dict.fromkeys(names, "billing")).run(alive=True)
    strip, matrix = lab.group_strip(), lab.group_matrix()
    assert [shown[-2:] for shown in texts(strip) if "…" in shown and shown[0] in "ABo"] == ["-1", "-2", "-0", "-1", "-2"]
    labels = ["".join(node.itertext()) for node in ElementTree.fromstring(matrix.svg()).iter(f"{SVG}text")]
    assert [shown[-2:] for shown in labels if shown.startswith("or")] == ["-0", "-1", "-2"]


def test_the_text_has_the_deadline_of_the_group(opened: Opened) -> None:
    """The timer of a join phase, whose flag stands beside the state, has a line of the text."""
    lab = opened(1, topics={"__consumer_offsets": [[1]], "t": [[1]]}, consumers={"anna": "billing"})
    ask(lab, "join", "anna")
    ask(lab, "join", "anna")
    (timer,) = (timer for timer in lab.tables.timers().timer if timer.startswith("join billing"))
    assert timer and lab.group_strip().lines()[-1] == "  InitialJoinTimedOut in 3 s"
    assert "in 3 s" in texts(lab.group_strip())


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
    damaged = [record if n != 10 else record._replace(kind="drop_notification") for n, record in enumerate(lab.records)]
    assert strips_of(damaged)[0]["text"] == strips_of(lab.records)[0]["text"]


def diamonds(strip: GroupStrip) -> list[str]:
    """Return the classes of the marks of the row "inferred", by column."""
    paths = ElementTree.fromstring(strip.svg()).iter(f"{SVG}path")
    return [str(node.get("class")) for node in paths if str(node.get("d")).endswith("l-4.5 -4.5z")]


@pytest.mark.parametrize("name", RECORDED)
def test_a_strip_counts_what_the_recording_has(name: str) -> None:
    """The counted requests and responses are those of the recording's file; each column has one mark, hollow if inferred."""
    run, exchange = Lab.open(name), json.loads(catalogue.file_of(name).read_text())["exchange"]
    strip = run.group_strip()
    requests, responses = (sum(strip.evidence.counts[kind].values()) for kind in ("enqueue", "respond"))
    assert requests == sum("api" in step for step in exchange) > 0
    assert responses == sum(step.get("answer") is not None for step in exchange) > 0
    inferred = ["inferred" in run.records[moment.record].fields for moment in strip.moments]
    assert diamonds(strip) == [HOLLOW if was else FILLED for was in inferred] and any(inferred)
    said = f"recorded: {requests} requests and {responses} responses; inferred: {sum(inferred)} of {len(inferred)} states"
    assert said in strip.lines()[-1] and {"requests", "responses", "inferred"} <= set(texts(strip))


def test_a_recorded_stop_is_marked_as_recorded() -> None:
    """The recorder stopped the broker, so the column without a coordinator has a filled mark among hollow ones."""
    strip = Lab.open("0.9.0.1/group/coordinator-restart").group_strip()
    (place,) = (place for place, css in enumerate(diamonds(strip)) if css == FILLED)
    assert strip.moments[place].group is None and len(strip.moments) > 1


def test_requests_stand_in_the_column_of_their_state() -> None:
    """The first request comes before the first state; each response counts in the last column before its record."""
    run = Lab.open(LEAVES[1])
    strip = run.group_strip()
    assert strip.evidence.counts["enqueue"][-1] == 1
    for place in range(len(strip.moments) - 1):
        first, last = (strip.moments[at].record for at in (place, place + 1))
        between = [r for r in run.records[first:last] if r.kind == "respond" and "inferred" not in r.fields]
        assert strip.evidence.counts["respond"][place] == len(between)


def test_a_run_of_ours_has_no_evidence(opened: Opened) -> None:
    """Each state of a simulated run is known, so its strip has none of the rows of a recording."""
    strip = stable(opened).group_strip()
    assert not strip.evidence and diamonds(strip) == [] and "requests" not in texts(strip) and "recorded" not in repr(strip)


def test_strips_of_two_releases() -> None:
    """One picture and one text have both strips, each under the name of its run; their groups have different ids."""
    old, new = map(Lab.open, LEAVES)
    both = old.group_strip(beside={new.name: new})
    assert old.group_strip().title == "Group grp-3: no coordinator has the group in its cache."
    titles = [f"{run.name} \u00b7 {run.group_strip().title}" for run in (old, new)]
    assert [line for line in both.lines() if not line.startswith(" ")] == titles and set(titles) <= set(texts(both))
    assert len(diamonds(both)) == len(diamonds(old.group_strip())) + len(diamonds(new.group_strip()))
    root = ElementTree.fromstring(both.svg())
    ids = [node.get("id") for node in root.iter(f"{SVG}pattern")]
    assert len(ids) == len(set(ids)) == 2 and all(title in str(root.get("aria-label")) for title in titles)
    assert float(str(root.get("height"))) == sum(
        float(str(ElementTree.fromstring(run.group_strip().svg()).get("height"))) for run in (old, new)
    )


def test_the_viewer_of_two_recordings() -> None:
    """The viewer gets the records and the strips of both; its still picture is both strips; closing ends it."""
    old, new = map(Lab.open, LEAVES)
    viewer = old.beside(new)
    assert (viewer.title, viewer.other_name) == (old.name, new.name)
    assert (len(viewer.records), len(viewer.other)) == (len(old.records), len(new.records))
    ends = [
        shown_at(strip, len(run.records) - 1)[0]
        for strip, run in zip((*viewer.strips, *viewer.other_strips), (old, new), strict=True)
    ]
    assert ends == [run.group_strip().lines() for run in (old, new)]
    same = [[(row["kind"], row["cause"]) for row in rows[: viewer.parted]] for rows in (viewer.records, viewer.other)]
    assert viewer.parted > 0 and same[0] == same[1]
    both, still = old.group_strip(beside={new.name: new}), viewer._repr_mimebundle_()[0]
    assert still["image/svg+xml"] == both.svg() and still["text/plain"].endswith("\n".join(["", *both.lines()]))
    viewer.click_compare("")
    assert viewer._repr_mimebundle_()[0]["image/svg+xml"] != both.svg()
    assert (viewer.other_name, viewer.other, viewer.other_strips, viewer.parted) == ("", [], [], -1)


def test_a_run_beside_an_equal_run() -> None:
    """Two equal journals have no first difference."""
    run = Lab.open(LEAVES[0])
    assert run.beside(Lab.open(LEAVES[0])).parted == -1
    with pytest.raises(UserError, match="is not a run"):
        run.beside(7)  # type: ignore[arg-type]
