"""Texts on coloured bars of group strips, matrices, run lines and search strips: their contrast by WCAG 2."""

from __future__ import annotations

import re

import pytest

from kcontrol.lab.lab import Lab
from kcontrol.views.group_strip import COLOURS, on_bar
from kcontrol.views.picture import STRIP_STYLE

FILLS = {name: fill.replace("#fff", "#ffffff").replace("#000", "#000000") for name, fill in
         re.findall(r"\.(onbar|onlight|fired)\{fill:(#\w+)", STRIP_STYLE)}  # fmt: skip


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", [*COLOURS, "#57606a"])
def test_a_text_on_a_bar_has_a_contrast_of_4_5(colour: str) -> None:
    """The text on a bar of each colour of members, offsets and controllers has a contrast of at least 4.5 (WCAG 2, AA)."""
    assert contrast(FILLS[on_bar(colour)], colour) >= 4.5


def test_the_last_step_of_a_search_has_a_contrast_of_4_5() -> None:
    """The number of the last step of a found run, black on the colour of a violation, has a contrast of at least 4.5."""
    assert contrast(FILLS["onlight"], FILLS["fired"]) >= 4.5


def test_the_numbers_in_a_group_strip_have_the_class_of_their_bar() -> None:
    """Each number on a bar of a group strip, and each letter on a partition, has the class that belongs to the bar's colour."""
    svg = Lab.play("billing").group_strip().svg()
    found = re.findall(r'fill="(#\w{6})"[^>]*><title>[^<]*</title></rect><text [^>]*class="(on\w+)"', svg)
    assert {colour for colour, _ in found} >= set(COLOURS[:3])
    assert all(css == on_bar(colour) for colour, css in found)
