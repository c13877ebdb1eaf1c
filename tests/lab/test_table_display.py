"""Tables as a notebook shows them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.lab.support.table_display import breakable
from kcontrol.lab.tables.run_tables import LabTables

LONGEST_PIECE = 28  # characters that stay together: a topic id in JSON is the longest


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("leader_epoch", ["leader_", "epoch"]),
        ("/brokers/topics", ["/brokers", "/topics"]),
        ("&lt;topic&gt;/partitions", ["&lt;topic&gt;", "/partitions"]),
        ("auto.leader.rebalance", ["auto.", "leader.", "rebalance"]),
        ("PartitionReassignmentIsrChange", ["Partition", "Reassignment", "Isr", "Change"]),
        ("2.1.242", ["2.1.242"]),
        ("104857600", ["104857600"]),
        ("&lt;NA&gt;", ["&lt;NA&gt;"]),
        ("dora-8d6125075c648b06e2a4a4d2f3350d31", ["dora-8d6125075c648b06e2a4a4d2f3350d31"]),
        ("0a" * 17, ["0a" * 17]),
        ("0a" * 26, ["0a" * 8, "0a" * 8, "0a" * 8, "0a0a"]),
        ('{"a":[1,2],"b":3}', ["{", '"a":', "[1,", "2],", '"b":', "3}"]),
    ],
)
def test_a_name_breaks_between_its_words(text: str, pieces: list[str]) -> None:
    """A cell may break between the words of a name, and nowhere else."""
    assert breakable(f"<td>{text}</td>") == f"<td>{'<wbr>'.join(pieces)}</td>"


@pytest.mark.parametrize(
    "table",
    [
        Lab.partitions,
        Lab.brokers,
        LabTables.requests,
        LabTables.event_handlers,
        LabTables.watch_events,
        LabTables.metrics,
        LabTables.znodes,
        LabTables.config,
        Lab.journal,
    ],
    ids=lambda method: method.__name__,
)
def test_no_text_is_cut_and_no_piece_is_long(lab: Lab, table: Callable[[Any], pd.DataFrame]) -> None:
    """Each cell holds its whole text, and no piece of a text or name that stays together is long."""
    shown = table(lab if hasattr(Lab, table.__name__) else lab.tables)
    cells = re.findall(r"<t[hd][^>]*>([^<]*(?:<wbr>[^<]*)*)</t[hd]>", shown._repr_html_())
    assert not any(cell.endswith("...") for cell in cells if len(cell) > len("..."))
    assert len(max((piece for cell in cells for piece in re.split(r"<wbr>| ", cell)), key=len)) <= LONGEST_PIECE


def test_a_long_number_breaks_in_a_wide_table_only(lab: Lab) -> None:
    """A number of nine digits may break in the table of all settings, and not in three columns of this table."""
    settings = lab.tables.config()
    assert ">10485<wbr>7600<" in settings._repr_html_()
    assert ">104857600<" in settings[["value", "default", "meaning"]]._repr_html_()


def test_a_part_of_a_table_is_shown_as_the_table_is(lab: Lab) -> None:
    """Columns and rows that are chosen from a table keep its way of being shown."""
    assert "leader_<wbr>epoch" in lab.partitions()[["leader", "leader_epoch"]].head(1)._repr_html_()


def test_text_from_outside_stays_text(lab: Lab) -> None:
    """Markup in a znode is escaped, whatever breaks are added."""
    lab.zk.set("/controller", "<b>Bold_one</b>")
    html = lab.tables.znodes()._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;Bold_<wbr>one&lt;<wbr>/b&gt;" in html


def test_what_is_equal_in_each_row_of_a_whole_run_stands_below(lab: Lab) -> None:
    """A table of nine columns or more shows those that differ between rows, and one line with the values of the others."""
    table = lab.tables.requests()
    html = table.assign(state="<b>")._repr_html_()
    assert html.endswith("<p>In each row: run simulated, sender 1, controller_epoch 1, state &lt;b&gt;, error &lt;NA&gt;</p>")
    assert ">run<" not in html and ">state<" not in html and ">api<" in html
    assert ">simulated<" in table[["run", "api"]]._repr_html_() and ">simulated<" in table.head(1)._repr_html_()
