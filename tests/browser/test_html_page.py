"""A run as one page, without kernel and network: what it draws is what Python says, and its keys do what the methods do."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from kcontrol import Lab
from kcontrol.journal.fold import fold
from kcontrol.journal.journal import OUTSIDE, Record, RecordId
from kcontrol.views import folded_state
from kcontrol.views.explanations import MEANINGS
from kcontrol.views.group_strip import GroupStrip
from kcontrol.views.html_page import write_html
from kcontrol.views.moving_strip import MovingStrip
from kcontrol.views.text import short
from kcontrol.views.viewer import Viewer
from tests.browser.conftest import Open
from tests.lab.test_broker_0 import OTHER
from tests.views.support import NASTY, cluster, group_story, random_run, story

pytestmark = [pytest.mark.chromium]

LOOK = "(marks) => marks.map((mark) => mark.getAttribute('class').replace('kc-mark ', ''))"
ELECTION = ["/controller", "/controller_epoch"]  # what the write of an election changes, in this order
GO = "(at) => { const s = document.querySelector('.kc-slider'); s.value = at; s.dispatchEvent(new Event('input')); }"
DRAWN = """() => ({
    partitions: [...document.querySelectorAll('.kc-partitions tbody tr')].map((row) => ({
        name: row.children[0].textContent,
        replicas: [...row.querySelectorAll('.kc-rep')].map((r) => [+r.textContent, ...r.className.split(' ').slice(1)]),
        numbers: [3, 4, 5].map((i) => row.children[i].textContent),
    })),
    living: [...document.querySelectorAll('.kc-broker:not(.dead) b')].map((b) => b.textContent),
    ruler: document.querySelector('.kc-broker.rules b')?.textContent ?? null,
    counts: ['partitions', 'replicas'].map(
        (of) => [...document.querySelectorAll(`.kc-of-${of} .kc-count`)].map((c) => +c.textContent)),
    lit: ['partitions', 'replicas'].map((of) => document.querySelector(`.kc-of-${of} path.lit title`)?.textContent.split(':')[0]),
    znodes: [...document.querySelectorAll('.kc-tree details:not(.gone) > summary')].map((s) => s.title),
    sentence: document.querySelector('.kc-sentence').textContent,
    error: document.querySelector('.kc-error').hidden ? '' : document.querySelector('.kc-error').textContent,
})"""


def go(page: Page, at: int) -> None:
    page.evaluate(GO, at)
    page.wait_for_function("(at) => document.querySelector('.kc').dataset.at === String(at)", arg=at)


def expected(records: Sequence[Record], at: int) -> dict[str, Any]:
    """What the picture of a record should hold, by Python's own fold."""
    state = fold(records[: at + 1])

    def classes(p: folded_state.Partition, broker: int) -> list[Any]:
        standing = "lead" if p.leader == broker else "isr" if broker in p.isr else "out"
        return [broker, standing] + ([] if str(broker) in state["nodes"] else ["dead"])

    def numbers(p: folded_state.Partition) -> list[str]:
        return ["\u2013"] * 3 if p.leader is None else [str(p.leader_epoch), str(p.controller_epoch), str(p.zk_version)]

    def name(p: folded_state.Partition) -> str:
        return f"✖ {p.name}" if folded_state.condition(p, state) == "being deleted" else p.name

    ruler = folded_state.controller(state)
    rows = [
        {"name": name(p), "replicas": [classes(p, b) for b in p.replicas], "numbers": numbers(p)}
        for p in folded_state.partitions(state)
    ]
    known = [str(n) for n in sorted({1, 2, 3} | {r.fields["broker"] for r in records if r.kind == "start"})]
    living = [f"broker {n}" for n in known if n in state["nodes"]]
    drawn_ruler = f"broker {ruler[0]}" if ruler and str(ruler[0]) in known else None
    living.sort(key=lambda name: name != drawn_ruler)
    return {"partitions": rows, "living": living, "ruler": drawn_ruler}


@pytest.mark.parametrize("seed", [1, 2])
def test_the_picture_is_what_python_folds(open_page: Open, seed: int) -> None:
    """At forty places of a run full of faults: partitions, epochs, versions, the living and the ruler are Python's."""
    records = list(random_run(seed).journal.records)
    page, choose = open_page(records), random.Random(seed)
    for at in [len(records) - 1, 0, *(choose.randrange(len(records)) for _ in range(40))]:
        go(page, at)
        drawn = page.evaluate(DRAWN)
        assert drawn["error"] == ""
        assert {name: drawn[name] for name in ("partitions", "living", "ruler")} == expected(records, at), f"record {at}"
        state = fold(records[: at + 1])
        shown = set(drawn["znodes"])
        assert shown <= set(state["znodes"])
        assert {path for path, (text, *_) in state["znodes"].items() if text} <= shown


def test_the_machines_counts(open_page: Open) -> None:
    """Both machines count the states in the active controller's memory, and the row of the last transition is lit."""
    records = list(story())
    page = open_page(records)
    for at in range(300, len(records), 97):
        go(page, at)
        state = fold(records[: at + 1])
        ruler = folded_state.controller(state)
        node = state["nodes"].get(str(ruler[0])) if ruler else None
        drawn = page.evaluate(DRAWN)
        for place, machine in enumerate(("partition", "replica")):
            held = list((node["controller"].get(f"{machine}_states", {}) if node else {}).values())
            assert drawn["counts"][place] == [held.count(name) for name in MEANINGS["machines"][machine]["states"]]
            last = next(r.to_json().fields for r in records[at::-1] if r.kind == "change" and r.fields["machine"] == machine)
            assert drawn["lit"][place] == f"{short(last['source'])} to {short(last['target'])}"


def test_keys_do_what_the_methods_do(open_page: Open) -> None:
    """From any record, each key leads to the record to which the Python method of the same effect leads."""
    records = list(random_run(5).journal.records)
    page, viewer, choose = open_page(records), Viewer(records=records), random.Random(5)
    page.locator(".kc").focus()
    keys = {
        "ArrowLeft": viewer.back,
        "ArrowRight": viewer.forward,
        "Shift+ArrowLeft": viewer.previous_fault,
        "Shift+ArrowRight": viewer.next_fault,
        "Home": lambda: viewer.to(0),
        "End": lambda: viewer.to(-1),
    }
    for _ in range(60):
        key = choose.choice(
            [*keys] if choose.random() < 0.3 else ["ArrowLeft", "ArrowRight", "Shift+ArrowLeft", "Shift+ArrowRight"]
        )
        page.keyboard.press(key)
        keys[key]()
        assert page.locator(".kc").get_attribute("data-at") == str(viewer.at), key
        assert page.locator(".kc-sentence").inner_text() == viewer.headline()


def test_buttons_do_what_the_methods_do(open_page: Open) -> None:
    """A click on each button of the way leads where the method of its name leads."""
    records = list(story())
    page, viewer = open_page(records), Viewer(records=records)
    for name in [
        "previous_fault",
        "back",
        "back",
        "previous_fault",
        "forward",
        "next_fault",
        "forward",
        "forward",
        "back",
        "previous_fault",
    ]:
        page.locator(f'.kc button[data-do="{name}"]').click()
        getattr(viewer, name)()
        assert page.locator(".kc").get_attribute("data-at") == str(viewer.at), name
    page.locator('.kc-walk button[data-do="to"]').click()
    assert page.locator(".kc").get_attribute("data-at") == str(len(records) - 1)


def test_why(open_page: Open) -> None:
    """The chain of a record has the links that the method returns, with the rule and Kafka's source; a click goes there."""
    records = list(story())
    elected = next(i for i, r in enumerate(records) if r.kind == "change" and r.fields["rule"] == "offline")
    page, viewer = open_page(records, at=elected), Viewer(records=records)
    page.locator(".kc-now .kc-button").click()
    lines = [line.split(" · ") for line in viewer.why(elected)]
    shown = page.locator(".kc-chain .kc-say").all_inner_texts()
    assert [words[0].split(maxsplit=2)[2] for words in lines] == shown
    assert page.locator(".kc-chain small").all_inner_texts() == [part for words in lines for part in words[1:]]
    assert (
        "offlinePartitionLeaderElection in PartitionStateMachine.scala (2.8)" in page.locator(".kc-chain li").first.inner_text()
    )
    page.locator(".kc-chain .kc-link").last.click()
    assert page.locator(".kc-sentence").inner_text() == shown[-1]
    page.locator(".kc-why h4 button").click()
    assert page.locator(".kc-chain li:visible").count() == 0


def test_a_journal_full_of_markup(open_page: Open) -> None:
    """Topics named as markup, in every panel, and a title that would end the script make no element and raise no dialog."""
    world = cluster(topic=NASTY)
    world.step(("kill", 1))
    world.run()
    nasty = Record(
        RecordId(OUTSIDE, 0, 10**6), "act", None, 0, {"action": ["create_topic", f"</script><script>alert(2)</script>{NASTY}"]}
    )
    page = open_page([*world.journal.records, nasty], title=f"</title>{NASTY}")
    assert page.title() == f"</title>{NASTY}"
    for _ in range(25):
        page.keyboard.press("ArrowLeft")
    page.locator(".kc-line", has_text=NASTY).first.click()
    page.locator(".kc-slider").focus()
    for key in ("Home", "End"):
        page.keyboard.press(key)
    assert page.locator("img, script:not([type=module]), .kc svg foreignObject").count() == 0
    assert page.locator("script").count() == 1


def test_reduced_motion(browser: Browser, tmp_path: Path) -> None:
    """The strip slides, except in a browser that asks for reduced motion."""
    write_html(story(), tmp_path / "run.html", "A run")
    durations = []
    for wish in ("reduce", "no-preference"):
        page = browser.new_page(reduced_motion=wish)
        page.goto((tmp_path / "run.html").as_uri())
        durations.append(page.evaluate("getComputedStyle(document.querySelector('.kc-strip')).transitionDuration"))
        page.close()
    assert durations[0] == "0s"
    assert durations[1] != "0s"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_papers(browser: Browser, tmp_path: Path, scheme: Any) -> None:
    """The page follows the reader's colour scheme: ink and paper differ by far more than the least that can be read."""
    write_html(story(), tmp_path / "run.html", "A run")
    page = browser.new_page(color_scheme=scheme)
    page.goto((tmp_path / "run.html").as_uri())
    page.wait_for_selector(".kc[data-at]")
    colours = page.evaluate(
        "() => { const s = getComputedStyle(document.querySelector('.kc')); return [s.color, s.backgroundColor]; }"
    )
    ink, paper = (sum(map(int, colour[4:-1].split(","))) for colour in colours)
    assert (ink < 200 < 600 < paper) if scheme == "light" else (paper < 200 < 600 < ink)
    page.close()


def test_a_record_that_cannot_be_shown(open_page: Open) -> None:
    """A page shows the rows of a broken journal that can be folded, and marks the other rows as broken."""
    broken = Record(RecordId(9, 1, 1), "begin", None, 0, {"thread": "missing", "event": "Startup"})
    page = open_page([*story()[:50], broken])
    assert page.locator(".kc-error").inner_text().startswith("Record 51 cannot be shown: ")
    page.locator(".kc").focus()
    page.keyboard.press("Home")
    assert page.locator(".kc").get_attribute("data-at") == "0"


def test_an_empty_journal(open_page: Open, tmp_path: Path, browser: Browser) -> None:
    """No record at all is said, not an error."""
    write_html([], tmp_path / "empty.html", "Nothing")
    page, wrong = browser.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto((tmp_path / "empty.html").as_uri())
    page.wait_for_selector(".kc-sentence")
    assert page.locator(".kc-sentence").inner_text() == "Nothing has happened yet."
    assert wrong == []
    page.close()


def test_a_picture_that_was_taken_out_and_put_back(open_page: Open) -> None:
    """JupyterLab takes out what is far away: put back, the journal and the tree are still where they were."""
    records = list(story())
    elected = next(i for i, r in enumerate(records) if r.kind == "change" and r.fields["rule"] == "offline")
    page = open_page(records, at=elected)
    in_sight = """() => [
        ['.kc-journal', '.kc-line.here'], ['.kc-znodes .kc-scroll', '.kc-tree .lit > summary']
    ].every(([box, item]) => {
        const outer = document.querySelector(box).getBoundingClientRect();
        const inner = document.querySelector(item)?.getBoundingClientRect();
        return inner && inner.height > 0 && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    })"""
    page.wait_for_function(in_sight)
    page.evaluate("""async () => {
        const picture = document.querySelector('.kc'), parent = picture.parentNode;
        picture.remove();
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        parent.append(picture);
    }""")
    page.wait_for_function(in_sight)


def test_every_znode_of_a_transaction_is_in_sight(open_page: Open) -> None:
    """An election creates /controller and sets /controller_epoch: the tree scrolls until both of its lines are in sight."""
    records = list(story())
    elections = [i for i, r in enumerate(records) if r.kind == "write" and [op[1] for op in r.fields["ops"]] == ELECTION]
    page = open_page(records, at=elections[-1])
    page.wait_for_function(
        """(paths) => {
            const outer = document.querySelector('.kc-znodes .kc-scroll').getBoundingClientRect();
            const lit = [...document.querySelectorAll('.kc-tree .lit > summary')];
            return JSON.stringify(lit.map((line) => line.title)) === JSON.stringify(paths) && lit.every((line) => {
                const inner = line.getBoundingClientRect();
                return inner.height > 0 && inner.top >= outer.top && inner.bottom <= outer.bottom;
            });
        }""",
        arg=ELECTION,
    )


def test_the_name_of_a_state_does_not_touch_its_count(open_page: Open) -> None:
    """In the boxes of both state machines a count of two digits leaves space beside every word of the state's name."""
    page = open_page(list(story()))
    spaces = page.locator(".kc-machine g").evaluate_all(
        """(boxes) => boxes.map((box) => {
            const count = box.querySelector('.kc-count');
            count.textContent = '88';
            const names = [...box.querySelectorAll('text:not(.kc-count)')];
            return count.getBBox().x - Math.max(...names.map((name) => name.getBBox().x + name.getBBox().width));
        })"""
    )
    assert len(spaces) == 11 and min(spaces) > 2, spaces


@pytest.mark.parametrize("seed", [2, 3])
def test_the_legend_names_every_mark_with_a_colour(open_page: Open, seed: int) -> None:
    """In a run with faults, timers and freezes, all coloured marks of the space-time diagram are in its legend."""
    page = open_page(random_run(seed).journal.records)
    last, step = int(page.locator(".kc-slider").get_attribute("max") or 0), 30
    looks: set[str] = set()
    for at in range(0, last, step):
        page.evaluate(GO, at)
        page.wait_for_selector(f'.kc[data-at="{at}"]')
        looks |= set(page.locator(".kc-spacetime .kc-mark").evaluate_all(LOOK))
    assert "cross pink" in looks and looks - {"dot faint"} <= set(page.locator(".kc-time .kc-legend .kc-mark").evaluate_all(LOOK))


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_run_with_consumers_is_drawn_to_its_end(open_page: Open, release: str) -> None:
    """After the first record of a group, in the middle and at the end the page draws the partitions and says no error."""
    records = group_story(release).journal.records
    page = open_page(records)
    first = next(index for index, record in enumerate(records) if record.kind == "group")
    for at in (first, (first + len(records)) // 2, len(records) - 1):
        go(page, at)
        drawn = page.evaluate(DRAWN)
        assert drawn["error"] == ""
        assert drawn["sentence"] and drawn["partitions"] == expected(records, at)["partitions"]


# ---------------------------------------------------------------- at first sight

SEVEN = (1, 2, 3, 4, 5, 6, 9)
EDGES = """() => [...document.querySelectorAll('.kc-broker')].map((card) => {
    const inside = card.getBoundingClientRect(), words = [...card.children].filter((word) => word.offsetWidth);
    const tops = words.map((word) => word.getBoundingClientRect().top), cards = card.parentNode;
    const cut = cards.scrollHeight > cards.clientHeight || card.scrollWidth > card.clientWidth;
    return { name: card.querySelector('b').textContent, lines: Math.max(...tops) - Math.min(...tops) < 12 ? 1 : 2, cut };
})"""


@pytest.mark.parametrize("width", [1360, 1024, 800, 560])
def test_seven_brokers_stand_without_an_edge(open_page: Open, width: int) -> None:
    """Of seven brokers the controller, broker 9, comes first; each of the idle ones takes one line, and nothing is cut."""
    page = open_page(list(cluster((9, 1, 2, 3, 4, 5, 6)).journal.records))
    page.set_viewport_size({"width": width, "height": 900})
    drawn = page.evaluate(EDGES)
    assert [card["name"] for card in drawn] == [f"broker {n}" for n in (9, 1, 2, 3, 4, 5, 6)]
    assert {(card["lines"], card["cut"]) for card in drawn} == {(1, False)}


def test_the_headline_at_rest_is_the_last_decision(open_page: Open) -> None:
    """Where nothing goes on, the headline names the leader chosen last and the rule, and why? leads to that choice."""
    world = cluster((1, 2, 3), topic="t")
    world.step(("kill", 1))
    world.run()
    records = list(world.journal.records)
    page = open_page(records)
    chosen = [r.to_json() for r in records if r.kind == "change" and r.fields["write"]][-1]
    value = chosen.fields["leadership"]
    expected = (
        f"{chosen.fields['subject'].partition('@')[0]}: broker {value['leader']} leads, leader epoch {value['leader_epoch']}"
    )
    assert page.locator(".kc-sentence").inner_text().startswith(expected)
    assert page.locator(".kc-now .kc-dim").inner_text() != ""
    page.locator(".kc-now").get_by_role("button", name="why?").click()
    assert page.locator(".kc-chain li .kc-id").first.inner_text() == str(chosen.id)


def test_a_recorded_coordinator_has_no_panel_of_zookeeper(open_page: Open) -> None:
    """The page of a recording of one coordinator shows no session, no znode and no state machine; that of brokers shows them."""
    page = open_page(Lab.open("0.9.0.1/group/leader-leaves").records)
    assert page.locator(".kc-session").all_inner_texts() == [""]
    assert not page.locator(".kc-low").is_visible()
    assert open_page(Lab.open("2.8.2/leader-killed").records).locator(".kc-low").is_visible()


def test_a_parent_that_no_record_names_is_not_gone(open_page: Open) -> None:
    """Where only the state of a partition was written, as in a run of broker logs, no other znode has the sign of a deletion."""
    begin = Record(
        RecordId(OUTSIDE, 0, 0), "run", None, 0, {"release": "2.8", "brokers": [1], "world": "broker logs", "zone": "UTC"}
    )
    ops = [["create", "/brokers/topics/t/partitions/0/state", '{"leader":1,"leader_epoch":0,"isr":[1]}', -1, False]]
    fields = {"ops": ops, "error": None, "zxid": 1, "epoch_zk_version": -1}
    page = open_page([begin, Record(RecordId(OUTSIDE, 0, 1), "write", None, 0, fields)])
    assert page.locator(".kc-znodes .lit").count() == 1
    assert page.locator(".kc-znodes .gone").count() == 0


def test_no_move_of_a_dead_controller_is_lit(open_page: Open) -> None:
    """Once the controller is dead, and until the next one has moved something, no arrow and no box of a machine is marked."""
    world = cluster()
    world.step(("kill", 1))
    page = open_page(list(world.journal.records))
    assert page.locator(".kc-machine .kc-count").all_text_contents() == ["0"] * 11
    assert page.locator(".kc-machine path.lit, .kc-machine g.to").count() == 0
    assert page.locator(".kc-move").all_inner_texts() == ["no controller is alive"] * 2


def test_a_cluster_without_topics_claims_no_past(open_page: Open) -> None:
    """After the deletion of its only topic a cluster has no topics, and the picture does not say that it never had one."""
    world = cluster()
    world.step(("delete_topic", "orders"))
    world.run()
    assert open_page(list(world.journal.records)).locator(".kc-partitions .kc-scroll > .kc-dim").inner_text() == "no topics"


@pytest.mark.parametrize(
    ("world", "place"),
    [
        ("simulated", "record 3 of 3 · 1001 ms"),
        ("zookeeper", "record 3 of 3 · 1970-01-01 00:00:01.001 UTC"),
        ("recorded", "record 3 of 3"),
    ],
)
def test_a_record_has_the_time_that_its_clock_measured(open_page: Open, world: str, place: str) -> None:
    """A virtual time is a number of ms, a wall clock's time a date, and a record of a recording has no time."""
    head, *others = cluster().journal.records[:3]
    head = head._replace(fields=head.fields | {"world": world, "scenario": "x"})
    page = open_page([r._replace(at_ms=999 + number) for number, r in enumerate([head, *others])])
    assert page.locator(".kc-place").inner_text() == place


def test_broker_0_is_drawn_as_any_other(open_page: Open) -> None:
    """Lanes, crown, cards and arrows of broker 0 are those that another first broker has in the same run, id and ports aside."""

    def drawn(first: int) -> list[str]:
        world = cluster((first, 8888, 9999))
        for action in (("kill", first), ("start", first), ("delete", "/controller")):
            world.step(action)
            world.run()
        records = world.journal.records
        page = open_page(records)
        found = []
        for at in range(0, len(records), len(records) // 12):
            go(page, at)
            found.append(page.evaluate("() => document.querySelector('.kc').outerHTML"))
        page.close()
        without_ports = [re.sub(r'("port":|127\.0\.0\.1:|dataLength )\d+', r"\1*", html) for html in found]
        return [re.sub(rf"(?<!\d){OTHER}(?!\d)", "0", html) for html in without_ports]

    mine, theirs = drawn(0), drawn(OTHER)
    assert len(mine) == len(theirs) >= 12
    for one, other in zip(mine, theirs, strict=True):
        assert re.findall(r"<[^>]*>[^<]*", one) == re.findall(r"<[^>]*>[^<]*", other)


STRIPS = """() => [...document.querySelectorAll('.kc-groups .kc-strip')].filter((strip) => strip.offsetParent).map((strip) => ({
    name: strip.querySelector('figcaption').textContent, alt: strip.querySelector('img').alt,
    words: strip.querySelector('pre').textContent.split('\\n'), now: parseFloat(strip.querySelector('.kc-strip-now').style.left),
}))"""


def test_recordings_of_two_releases(open_page: Open) -> None:
    """Both strips have the name and the text of their run, and a line at its state at this time; closing leaves the own strip."""
    old, new = (Lab.open(f"{release}/group/leader-leaves") for release in ("0.9.0.1", "2.8.2"))
    page = open_page(old.records, title=old.name, beside=(new.name, new.records, 1))
    strips = [MovingStrip(run.records, run.group_strip().group_id) for run in (old, new)]
    drawn = page.evaluate(STRIPS)
    assert [one["name"] for one in drawn] == [old.name, new.name]
    assert [one["words"] for one in drawn] == [strip.lines() for strip in strips]
    assert [one["alt"] for one in drawn] == [strip.title for strip in strips]
    for at in (len(old.records) - 1, 120, 60, 30):
        go(page, at)
        time = old.records[at].at_ms if at < len(old.records) - 1 else new.records[-1].at_ms
        shown = [strips[0].marks()[-1:] if at == len(old.records) - 1 else [m for m in strips[0].marks() if m[0] <= at][-1:]]
        shown.append([m for m in strips[1].marks() if new.records[m[0]].at_ms <= time][-1:])
        assert [one["now"] for one in page.evaluate(STRIPS)] == pytest.approx([100 * mark[0][1] for mark in shown], abs=0.02)
    page.locator('.kc-beside button[data-do="click_compare"]').click()
    go(page, len(old.records) - 1)
    assert [one["words"] for one in page.evaluate(STRIPS)] == [strips[0].lines()]


STRIP_DRAWN = """() => {
    const strip = document.querySelector('.kc-groups .kc-strip');
    const paths = [...strip.querySelectorAll('svg path')].filter((path) => path.textContent);
    return {
        flags: paths.map((path) => [path.textContent, path.nextSibling.textContent, path.getAttribute('class')]),
        title: strip.querySelector('svg text.title').textContent, alt: strip.querySelector('img').alt,
        words: strip.querySelector('pre').textContent.split('\\n'),
    };
}"""


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_flags_are_those_of_the_shown_record(open_page: Open, release: str) -> None:
    """At each record the page has the flags and the title of a run that ends there, at the last record those of the SVG."""
    lab = Lab.play("billing", release, until="cleo is late")
    page, picture, numbers = open_page(lab.records), lab.group_strip(), [record for record, _ in lab.group_strip().marks()]
    for at in [*numbers, numbers[-1] // 2, len(lab.records) - 1]:
        go(page, at)
        until = GroupStrip(lab.records[: at + 1], "billing")
        flags = [(event, words, css) for _, _, _, css, words, event in until.flags_at(until.end)]
        drawn = page.evaluate(STRIP_DRAWN)
        assert sorted(map(tuple, drawn["flags"])) == sorted(flags), at
        assert drawn["title"] == drawn["alt"] == drawn["words"][0] == until.title
        assert all(f"{event} {words}" in "\n".join(drawn["words"]) for event, words, _ in flags)
    assert drawn["words"] == picture.lines() and flags
    assert all(escape(words) in picture.svg() for flag in flags for words in flag)
