"""The strip of a group's coordinators: the leader, the load and the owner of the group's partition above the group."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from kcontrol import Lab
from tests.lab.group_runs import opened, settle

GROUP = "billing"


def titles(svg: str, row: int) -> list[str]:
    """Return the titles of the boxes in a row above the group, from left to right; row 0 is that of the leader."""
    root = ElementTree.fromstring(svg)
    above = [node for node in root if node.tag.endswith("rect") and len(node)]
    tops = sorted({float(node.get("y", 0)) for node in above})
    found = [node for node in above if float(node.get("y", 0)) == tops[row]]
    return [node[0].text or "" for node in sorted(found, key=lambda node: float(node.get("x", 0)))]


def stable(release: str) -> Lab:
    """Return a lab with the Stable group of anna and bert, whose partition broker 1 owns."""
    return settle(opened(release, dict.fromkeys(("anna", "bert"), GROUP)))


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_the_rows_of_a_move(release: str) -> None:
    """After a kill broker 2 loads the partition, then owns it; a line leads from the new leader to the load, and text says so."""
    lab = stable(release)
    assert lab.group_strip(coordinators=True).lines()[0] == "__consumer_offsets-0: leader 1, broker 1 owns."
    strip = lab.kill(1).run().group_strip(coordinators=True)
    svg = strip.svg()
    assert [word for word in titles(svg, 0) if word != "no leader"] == ["leader 1", "leader 2"]
    assert titles(svg, 1) == ["owns"] and titles(svg, 2)[0] == "loads" and titles(svg, 2)[-1] == "owns"
    assert svg.count("<title>the leader loads the partition</title>") == 1
    assert strip.lines()[0] == "__consumer_offsets-0: leader 2, broker 2 owns."
    assert strip.lines()[1:] == lab.group_strip().lines()


def test_two_owners_have_two_rows() -> None:
    """In 0.9 a reassignment leaves the old coordinator as an owner (KAFKA-4362): both brokers are named in the text and drawn."""
    strip = stable("0.9").reassign({"__consumer_offsets-0": [2, 3]}).run().group_strip(coordinators=True)
    assert strip.lines()[0] == "__consumer_offsets-0: leader 2, broker 1 owns, broker 2 owns."
    assert titles(strip.svg(), 1)[-1] == titles(strip.svg(), 2)[-1] == "owns"


def test_a_move_that_is_not_over() -> None:
    """Before the end of the load the text says that the new leader loads the partition."""
    lab = stable("2.8").kill(1).run("PartitionElected")
    assert lab.group_strip(coordinators=True).lines()[0] == "__consumer_offsets-0: leader 2, broker 2 loads."
