"""The report about tables of runs: its counts against rows written by hand, its links, escaped text, and its sentences.

`tests/browser/test_report.py` opens it in a browser.
"""

from __future__ import annotations

import io
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from rich.console import Console
from typer.testing import CliRunner

from kcontrol import Lab
from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.pipeline import pipeline, pipeline_report
from kcontrol.pipeline.logs import log_tables
from kcontrol.pipeline.pipeline import MARK
from kcontrol.pipeline.pipeline_report import MOST_RUNS, sentence
from kcontrol.pipeline.report.page import html_report
from kcontrol.pipeline.report.sections import Section, sections
from kcontrol.pipeline.report.tables import read_tables
from tests.pipeline.report_tables import led, rebalance, tenure, window, write_tables

RUNS = {"a": list(range(1000, 2000, 10)), "b": [None] * 40, "quiet": [0, 5]}
ROWS = {
    "leaderships": [
        led("a", 1, "t-0", 1), led("a", 2, "t-1", 2), led("a", 5, "t-0", 2), led("a", 7, "t-0", -1), led("a", 8, "t-0", 2),
        led("a", 9, "t-0", 10), led("b", 1, "t-0", 3), led("b", 4, "t-0", 2),
    ],
    "offline_windows": [
        window("a", 5, "t-0", 1040, 1090), window("a", 5, "t-1", 1040, 1060), window("b", 3, "t-0", None, None),
        window("a", 7, "t-0", 1070, None, "unclean election refused"),
    ],
    "tenures": [tenure("a", 1, 1, 0, 50), tenure("a", 6, 10, 50, None)],
    "rebalances": [rebalance("a", 3, "join", 30, 33), rebalance("a", 4, "join", 40, 49), rebalance("a", 9, None, 90, None)],
}  # fmt: skip


class Page(HTMLParser):
    """The ids, the targets of links, the tags and the text of cells of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.tags: set[str] = set()
        self._target = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.ids += [found["id"]] if "id" in found else []
        self._target = found.get("href", "") if tag == "a" else ""

    def handle_data(self, data: str) -> None:
        if self._target:
            self.links.append((self._target, data))
            self._target = ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables of three runs: with times, without, and without a row."""
    return write_tables(tmp_path / "tables", ROWS, RUNS)


def counted(folder: Path) -> dict[str, Section]:
    return {section.id: section for section in sections(read_tables(folder))}


def test_rows_are_counted_by_run_and_key(folder: Path) -> None:
    """The counts are those of the rows written by hand; a first leader, and a leader that returns, are no moves."""
    found = {id: dict(section.counts()) for id, section in counted(folder).items()}
    assert found == {
        "offline": {("a", "death"): 2, ("a", "unclean election refused"): 1, ("b", "death"): 1},
        "moves": {("a", "2"): 1, ("a", "10"): 1, ("b", "2"): 1},
        "tenures": {("a", "1"): 1, ("a", "10"): 1},
        "rebalances": {("a", "join"): 2, ("a", "unknown"): 1},
    }
    assert counted(folder)["moves"].keys == ["2", "10"]
    assert [row["led_before"] for row in counted(folder)["moves"].rows] == [1, 2, 3]


def test_durations_leave_out_what_has_not_ended(folder: Path) -> None:
    """Sum, median and longest are of the rows with a duration, by key."""
    found = {id: [(one.key, one.ended, one.total_ms, one.median_ms, one.longest["n"]) for one in section.durations()]
             for id, section in counted(folder).items()}  # fmt: skip
    assert found["offline"] == [("death", 2, 70, 35, 5)]
    assert found["rebalances"] == [("join", 2, 12, 6, 4)]
    assert found["moves"] == []


def test_each_number_links_to_as_many_rows(folder: Path) -> None:
    """Each link has a target, ids are unique, and the number of a run and key is the number of rows at its target."""
    tables = read_tables(folder)
    text = html_report("Report", tables.runs, sections(tables))
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert {target for target, _ in page.links} - {f"#{id}" for id in page.ids} == set()
    captions = {id: int(count) for id, count in re.findall(r'<span id="([^"]+)">[^<]*: (\d+)</span>', text)}
    numbers = {target[1:]: int(words) for target, words in page.links if re.search(r"-r\d+-k\d+$", target)}
    assert numbers == captions
    assert sum(numbers.values()) == len([id for id in page.ids if "-row" in id]) == 12
    for id, count in captions.items():
        table = text[text.index(f'<span id="{id}"') :]
        assert table[: table.index("</table>")].count("<tr id=") == count


def test_windows_are_drawn_where_they_were(folder: Path) -> None:
    """A window of a run with times is placed by its times, one without an end to the end, and links to its row."""
    tables = read_tables(folder)
    text = html_report("Report", tables.runs, sections(tables))
    drawn = re.findall(r'<a href="#(offline-row\d+)"><rect x="([\d.]+)%" y="22" width="([\d.]+)%"', text)
    assert [(id, float(x), float(width)) for id, x, width in drawn] == [
        ("offline-row0", 4.04, 5.05), ("offline-row1", 4.04, 2.02), ("offline-row2", 7.07, 92.93), ("offline-row3", 7.5, 92.5),
    ]  # fmt: skip


def test_text_of_tables_is_escaped(tmp_path: Path) -> None:
    """Names of runs, groups and reasons that are HTML or control characters are shown as text, and nothing is loaded."""
    evil = "<script>alert(1)</script>\"'&\x1b[31m"
    rows = {"rebalances": [rebalance(evil, 1, evil, 1, 2)], "offline_windows": [window(evil, 1, evil, 0, 1, evil)]}
    folder = write_tables(tmp_path / "tables", rows, {evil: [0, 9]})
    output = io.StringIO()
    pipeline_report.report(folder, tmp_path / "page.html", Console(file=output, width=200))
    text = (tmp_path / "page.html").read_text()
    assert Page(text).tags & {"script", "img", "link", "iframe"} == set()
    assert "&lt;script&gt;" in text and "\x1b" not in text + output.getvalue()
    assert "src=" not in text and "http:" not in text and "https:" not in text


def test_the_summary_has_each_count(folder: Path, tmp_path: Path) -> None:
    """The command prints the table of runs and a sentence for each section; its exit status is 0."""
    done = CliRunner().invoke(app, ["pipeline", "report", str(folder), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0
    assert "Offline windows: 4 (reason death: 3, reason unclean election refused: 1); the longest took 50 ms in a" in done.output
    assert "Leader moves: 3 (next leader 2: 2, next leader 10: 1)" in done.output
    assert re.search(r"3 runs in all\W+4\W+3\W+2\W+3\W", done.output)
    again = CliRunner().invoke(app, ["pipeline", "report", str(folder), "--out", str(tmp_path / "page.html")])
    assert again.exit_code == 0


def test_tables_without_rows_give_a_page(tmp_path: Path) -> None:
    """Runs without a window, move, tenure or rebalance are listed, and each section says that there is no row."""
    tables = read_tables(write_tables(tmp_path / "tables", {}, {"quiet": [0, 5]}))
    found = sections(tables)
    assert html_report("Report", tables.runs, found).count("The tables have no row about this.") == 4
    assert [sentence(section) for section in found][:2] == ["Offline windows: none", "Leader moves: none"]


BEGIN_MS = 1_557_126_489_123  # 2019-05-06 07:08:09,123 in UTC


def test_rows_of_logs_show_their_evidence(tmp_path: Path) -> None:
    """A report on broker logs has dates, the line of each row, what is inferred, and the number of rows with inferred values."""
    known = window("logs", 5, "t-0", BEGIN_MS, BEGIN_MS + 2500) | {"line": "broker-1/controller.log:7"}
    shown = window("logs", 6, "t-1", BEGIN_MS, BEGIN_MS + 50) | {"line": "broker-1/controller.log:8", "inferred": "record"}
    folder = write_tables(
        tmp_path / "tables", {"offline_windows": [known, shown]}, {"logs": [BEGIN_MS, BEGIN_MS + 9000]}, "in UTC"
    )
    output = io.StringIO()
    pipeline_report.report(folder, tmp_path / "page.html", Console(file=output, width=200))
    page = (tmp_path / "page.html").read_text()
    rows = re.findall(r'<tr id="offline-row\d+">(.*?)</tr>', page)
    cells = [re.findall("<td>(.*?)</td>", row) for row in rows]
    assert [row[1:4] for row in cells] == [
        ["t-0", "2019-05-06 07:08:09,123", "2.5 s"], ["t-1", "2019-05-06 07:08:09,123", "50 ms"]
    ]  # fmt: skip
    assert [row[-2:] for row in cells] == [["", "broker-1/controller.log:7"], ["record", "broker-1/controller.log:8"]]
    assert "with times in UTC" in page and "in 1 of 2 offline windows, 0 of 0 leader moves" in page
    assert "Offline windows: 2 (reason death: 2; 1 with inferred values); the longest took 2.5 s in logs" in output.getvalue()


@pytest.mark.spark
@pytest.mark.slow
def test_tables_of_logs_give_a_report(tmp_path: Path, spark: Any) -> None:
    """The report counts the windows, moves, tenures and rebalances of the tables, and the line of each row is in the logs."""
    from tests.lab.group_runs import coordinator_killed

    coordinator_killed("2.8").save_logs(tmp_path / "logs")
    log_tables.write_logs(spark, [tmp_path / "logs"], tmp_path / "tables", of_runs=True)
    found = counted(tmp_path / "tables")
    rows = {id: len(parquet.read_table(tmp_path / "tables" / table)) for id, table in
            (("offline", "offline_windows"), ("tenures", "tenures"), ("rebalances", "rebalances"))}  # fmt: skip
    assert {id: len(found[id].rows) for id in rows} == rows and min(rows.values()) >= 1
    assert [row["key"] for row in found["moves"].rows].count("2") >= 1
    for section in found.values():
        for row in section.rows:
            file, _, n = row["line"].rpartition(":")
            assert len((tmp_path / "logs" / file).read_text().splitlines()) >= int(n) >= 1
    assert found["offline"].inferred == len(found["offline"].rows)  # no line shows when a killed broker ended


@pytest.mark.spark
@pytest.mark.slow
def test_the_report_of_a_class_has_a_row_per_learner(spark: Any, tmp_path: Path) -> None:
    """Of twenty learners' folders with files of one name the page has a row per learner, and its numbers link to their rows."""
    lab = Lab(brokers=2, topics={"t": [[1, 2]]}, runs=None).run().kill(1).run()
    lab.save(tmp_path / "killed.jsonl")
    Lab(brokers=2, topics={"t": [[1, 2]]}, runs=None).run().save(tmp_path / "quiet.jsonl")
    names = [f"learner-{number:02}" for number in range(20)]
    for number, name in enumerate(names):
        (tmp_path / "class" / name / "runs").mkdir(parents=True)
        shutil.copy(
            tmp_path / ("quiet.jsonl" if number % 2 else "killed.jsonl"), tmp_path / "class" / name / "runs" / "run.jsonl"
        )
    assert pipeline.write_runs(spark, [tmp_path / "class"], tmp_path / "tables").runs == 20
    pipeline_report.report(tmp_path / "tables", tmp_path / "page.html", Console(file=io.StringIO(), width=200))
    text = (tmp_path / "page.html").read_text()
    assert all(text.count(f"{name}/runs/run</th>") >= 1 for name in names)
    expected = len(lab.tables.offline_windows())
    found = dict(counted(tmp_path / "tables")["offline"].counts())
    assert {run: count for (run, _), count in found.items()} == {f"{name}/runs/run": expected for name in names[::2]}
    page = Page(text)
    assert {target for target, _ in page.links} <= {f"#{id}" for id in page.ids}
    captions = {id: int(count) for id, count in re.findall(r'<span id="([^"]+)">[^<]*: (\d+)</span>', text)}
    assert {target[1:]: int(words) for target, words in page.links if re.search(r"-r\d+-k\d+$", target)} == captions


def test_many_runs_are_cut_in_the_terminal_only(tmp_path: Path) -> None:
    """The page has every run; the terminal has the first forty, and the totals of all."""
    runs = {f"run-{number:03}": [0, 9] for number in range(MOST_RUNS + 5)}
    folder = write_tables(tmp_path / "tables", {"tenures": [tenure(run, 1, 1, 0, None) for run in runs]}, runs)
    output = io.StringIO()
    pipeline_report.report(folder, tmp_path / "page.html", Console(file=output, width=200))
    page = (tmp_path / "page.html").read_text()
    assert [run in output.getvalue() for run in ("run-039", "run-040")] == [True, False]
    assert "45 runs in all" in output.getvalue() and all(f"{run}</th>" in page for run in runs)


@pytest.mark.parametrize(("records", "noun"), [([0], "1 journal record"), ([0, 9], "2 journal records")])
def test_a_number_of_one_has_no_plural(tmp_path: Path, records: list[int], noun: str) -> None:
    """A report of one run has "1 run", "1 tenure" and, of a run with one record, "1 journal record"."""
    folder = write_tables(tmp_path / "tables", {"tenures": [tenure("alone", 1, 1, 0, None)]}, {"alone": records})
    output = io.StringIO()
    pipeline_report.report(folder, tmp_path / "page.html", Console(file=output, width=200))
    page = (tmp_path / "page.html").read_text()
    assert f"<p>1 run with {noun}." in page and "alone: 1 tenure, 0 offline windows" in page
    assert re.search(r"│ 1 run +│", output.getvalue())


def _no_mark(folder: Path) -> None:
    (folder / MARK).unlink()


def _of_segments(folder: Path) -> None:
    (folder / MARK).write_text('{"kcontrol": "tables of __consumer_offsets", "version": 1}')


def _without_a_table(folder: Path) -> None:
    (folder / "tenures").rename(folder.parent / "tenures")


def _damaged(folder: Path) -> None:
    (folder / "tenures" / "part-0.parquet").write_bytes(b"PAR1 no table PAR1")


@pytest.mark.parametrize(("change", "words"), [
    (_no_mark, "is not a folder of tables: make one with kcontrol pipeline runs PATH --out DIR"),
    (_of_segments, "has tables of __consumer_offsets; a report needs tables of runs or tables of broker logs"),
    (_without_a_table, "has no table tenures: write the tables again"),
    (_damaged, "The table tenures in .* cannot be read"),
])  # fmt: skip
def test_other_folders_are_refused(folder: Path, change: Any, words: str) -> None:
    """A folder that is not of the pipeline, of other tables, or with a missing or damaged table, is refused in one sentence."""
    change(folder)
    with pytest.raises(UserError, match=words) as refused:
        read_tables(folder)
    assert "\n" not in str(refused.value)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    """Tables without a run, and a folder that does not exist, are refused."""
    with pytest.raises(UserError, match="have no run"):
        read_tables(write_tables(tmp_path / "tables", {}, {}))
    with pytest.raises(UserError, match="There is no folder"):
        read_tables(tmp_path / "nothing")


def test_no_file_of_the_reader_is_overwritten(folder: Path, tmp_path: Path) -> None:
    """An existing file that is no report, a folder, and a missing folder are refused, and the file stays."""
    (tmp_path / "mine.html").write_text("<p>mine")
    for out, words in (
        ("mine.html", "is there already"),
        ("tables", "is there already"),
        ("none/page.html", "cannot be written"),
    ):
        with pytest.raises(UserError, match=words):
            pipeline_report.report(folder, tmp_path / out, Console(file=io.StringIO()))
    assert (tmp_path / "mine.html").read_text() == "<p>mine"
