"""The still picture: what it shows, and that outside text stays text."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from kcontrol.journal.fold import fold
from kcontrol.views import still_picture
from tests.views.support import NASTY, cluster, story

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_what_it_shows() -> None:
    """The picture has the title, the summary, every broker, the controller epoch and every partition, and marks dead brokers."""
    world = cluster((3, 2, 1))
    world.step(("kill", 2))
    world.run()
    shown = texts(still_picture.svg(fold(world.journal.records), (1, 2, 3), "A title"))
    assert shown[:2] == ["A title", "2 of 3 brokers, broker 3 is controller (epoch 1), 3 partitions online"]
    assert {"broker 1", "broker 2", "broker 3", "dead", "controller, epoch 1", "orders-0", "orders-1", "orders-2"} <= set(shown)


def test_leader_in_sync_and_dead_differ_by_more_than_colour() -> None:
    """A leader is bold on a fill, a replica that is not in sync has a broken frame, a dead one is struck through."""
    world = cluster((3, 2, 1))
    world.step(("kill", 2))
    world.run()
    root = ElementTree.fromstring(still_picture.svg(fold(world.journal.records)))
    frames = [element.get("class", "") for element in root.iter(f"{SVG}rect")]
    assert frames.count("lead") == 3
    assert frames.count("out dead") == 3
    assert len([element for element in root.iter(f"{SVG}path") if element.get("class") == "strike"]) == 3


def test_it_is_the_same_for_the_same_state() -> None:
    """Times, zxids and session ids are not in it, so two runs of the same story have the same picture."""
    assert still_picture.svg(fold(story())) == still_picture.svg(fold(list(story())))
    other = cluster((3, 2, 1), seed=9)
    other.now_ms += 1_000_000
    assert still_picture.svg(fold(other.journal.records)) == still_picture.svg(fold(cluster((3, 2, 1)).journal.records))


def test_many_partitions_are_counted() -> None:
    """A picture stays small: what has no room is counted."""
    world = cluster()
    world.step(("create_topic", "many", tuple((1, 2) for _ in range(50))))
    world.run()
    assert f"and {53 - still_picture.MOST_PARTITIONS} more" in texts(still_picture.svg(fold(world.journal.records)))


def test_outside_text_stays_text() -> None:
    """A topic named as markup, a title with a quote and a control character are text; the picture is well-formed."""
    svg = still_picture.svg(fold(cluster(topic=NASTY).journal.records), title='"><svg onload=x>\x00')
    root = ElementTree.fromstring(svg)
    assert {element.tag for element in root.iter()} == {f"{SVG}{tag}" for tag in ("svg", "style", "rect", "text")}
    assert any(shown.startswith("<img src=x") for shown in texts(svg))


def test_an_empty_journal() -> None:
    """No record at all is a picture too."""
    assert texts(still_picture.svg(fold([]))) == ["0 brokers, no controller, no partitions"]
