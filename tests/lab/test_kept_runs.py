"""Many runs: the folder that they are in, the picture with a line for each, a cluster like one of them, and a query's plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
from IPython.core.formatters import DisplayFormatter

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.lab.history.example_runs import EXAMPLES
from kcontrol.lab.history.kept_runs import MOST_LINES, Runs, run_line
from kcontrol.pipeline.query_plan import operators, tree
from kcontrol.views.run_lines import RunLines
from tests.lab.support import refusal
from tests.parts import ROOT

ASSIGNMENT = {"t": [[1, 2], [2, 3]]}


@pytest.fixture
def one(folder: Path) -> Runs:
    """A folder with one run, in which the controller is killed."""
    lab = Lab(topics=ASSIGNMENT).kill(1).run()
    lab.close()
    return Lab.runs()


# ---------------------------------------------------------------- the folder


def test_a_folder_without_runs_has_the_twelve_of_kcontrol(folder: Path) -> None:
    """Without a run of the reader there are twelve, in a folder of their own, and each can be opened."""
    runs = Lab.runs()
    assert runs.names == sorted(EXAMPLES) and len(EXAMPLES) == 12
    assert not list((folder / "runs").glob("*.jsonl"))
    assert all(runs.open(name).records for name in runs.names)


def test_an_own_run_comes_last(one: Runs) -> None:
    """A reader with one run sees it below the twelve, and the next run below that."""
    assert runs_of_kcontrol(one) == 12 and len(one.names) == 13
    one.like(one.names[-1])
    assert runs_of_kcontrol(one) == 12 and len(one.names) == 14 and one.names[-1] > one.names[-2]


def runs_of_kcontrol(runs: Runs) -> int:
    return sum(name in EXAMPLES for name in runs.names)


def test_a_reader_with_many_runs_sees_only_these(folder: Path) -> None:
    """With twelve runs of the reader there is no other run."""
    for _ in range(12):
        Lab(1, topics={}).close()
    assert runs_of_kcontrol(Lab.runs()) == 0 and len(Lab.runs().names) == 12


def test_a_named_folder_has_its_own_runs_alone(folder: Path) -> None:
    """A folder that is named has no run of kcontrol; without a journal it is refused in one sentence."""
    (folder / "class").mkdir()
    with pytest.raises(UserError) as problem:
        assert Lab.runs("class").names
    refusal(problem)
    Lab(1, runs=None).save("class/mine.jsonl")
    assert Lab.runs("class").names == ["mine"]


def test_a_file_that_is_no_journal_is_named_and_left_out(one: Runs, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged journal has a sentence, and the picture has the other runs."""
    (folder / "runs" / "wrong.jsonl").write_text("nonsense\n")
    lines = one.picture().lines
    assert len(lines) == 13 and "wrong.jsonl is not a journal" in capsys.readouterr().out


def test_an_unknown_run_is_refused_with_the_newest(one: Runs) -> None:
    """The sentence about an unknown run lists the newest runs."""
    for ask in (one.open, one.like, one.picture):
        with pytest.raises(UserError) as problem:
            ask("yesterday")
        assert one.names[-1] in refusal(problem)


# ---------------------------------------------------------------- a cluster like a run


def test_a_cluster_like_a_run_has_its_brokers_release_and_topics(folder: Path) -> None:
    """Brokers, release and replicas of every partition are those of the run, also of names that Kafka's tool refuses."""
    lab = Lab(brokers=[4, 7, 9], release="1.1", topics={"t": [[7, 4]] * 11})
    lab.step(("create_topic", "<b>", ((9, 4),)))
    lab.run().kill(4).run().close()
    like = (runs := Lab.runs()).like(runs.names[-1])
    assert like.records[0].fields["release"] == "1.1" and sorted(like.brokers().index) == [4, 7, 9]
    assert like.partitions().replicas.to_dict() == lab.partitions().replicas.to_dict()
    assert like.brokers().alive.all()


# ---------------------------------------------------------------- the picture


def test_a_line_has_the_terms_kills_and_windows_of_its_run(one: Runs) -> None:
    """The line of a run with a kill has two terms, the kill, and a time without a leader that begins with it."""
    run = one.open(one.names[-1])
    line = run_line(run.records, "mine")
    (first, second), (kill,), ((begin, end),) = line.terms, line.kills, line.offline
    assert (first[2], second[2], second[1]) == (1, 2, line.length)
    assert first[1] >= kill == begin < end <= line.length
    tenures = run.tables.tenures()
    assert [first[0], second[0]] == (tenures.begin_ms - run.records[0].at_ms).tolist()


def test_windows_that_overlap_are_one_stripe(folder: Path) -> None:
    """Two partitions that are without a leader at one time have one stripe."""
    lab = Lab(topics={"t": [[1, 2], [1, 3]]}, runs=None).kill(1).run()
    assert len(lab.tables.offline_windows()) == 2
    assert len(run_line(lab.records, "x").offline) == 1


def test_a_recording_has_a_line_of_records(folder: Path) -> None:
    """The line of a recording, which has no times, is as long as its records."""
    run = Lab.open("2.8.2/controller-killed")
    line = run_line(run.records, "real")
    assert not line.has_times and line.length == len(run.records) - 1 and [b for _, _, b in line.terms] == [1, 2]
    assert line.size.endswith("rec.") and "records without a leader" in line.words


def test_the_picture_is_xml_with_one_frame_for_each_highlighted_line(one: Runs) -> None:
    """The SVG can be parsed, each line has its label, and the highlighted line has a frame."""
    picture = one.picture(one.names[-1])
    svg = picture.svg()
    ElementTree.fromstring(svg)
    assert svg.count('class="rules"') == 1 and all(line.name in svg for line in picture.lines)
    assert repr(picture).splitlines()[-1].startswith("> ") and repr(picture).count("> ") == 1
    assert one._repr_mimebundle_()["image/svg+xml"] == one.picture().svg()


def test_a_folder_without_a_run_is_one_sentence_in_a_notebook() -> None:
    """The notebook shows the sentence of a folder without a run as the text of the value, once, and asks for no other text."""
    sentence = "There is no journal in nowhere: a lab keeps one in the folder runs, beside the notebook."
    assert DisplayFormatter().format(Lab.runs("nowhere")) == ({"text/plain": sentence}, {})


def test_a_kill_at_the_end_leaves_the_length_readable() -> None:
    """The cross of a kill at the end of a run ends left of the run's length, which has at most eight characters of 7 pixels."""
    svg = RunLines([run_line(Lab.play("billing").kill(2).records, "a run")], "one run").svg()
    (cross,) = re.findall(r'<path d="M([0-9.]+) [0-9.]+l8 [^>]*class="strike"', svg)
    (right, words) = re.findall(r'<text x="(\d+)"[^>]*text-anchor="end">([^<]*)</text>', svg)[0]
    assert float(cross) + 8 + 3 <= int(right) - 7 * len(words) and words == "1.1 min"


@pytest.mark.slow
def test_chapter_17_begins_a_second_time(folder: Path) -> None:
    """A reader who runs chapter 17 again starts from its last run, and kills the leader of the partition that it added."""
    (path,) = (ROOT / "notebooks").glob("17-*.ipynb")
    sources = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}
    for _ in range(2):
        names: dict[str, Any] = {}
        for id in ("open", "form", "kill"):
            exec(sources[id], names)
        assert names["mine"].partitions().leader["led-0"] != names["brokers"][0]


def test_a_name_of_markup_is_text(one: Runs) -> None:
    """The name of a file is escaped in the picture."""
    records = one.open(one.names[-1]).records
    svg = RunLines([run_line(records, "<b>&")], "<i>").svg()
    assert "&lt;b&gt;&amp;" in svg and "<b>" not in svg and "<i>" not in svg


def test_the_picture_has_the_newest_forty_runs_and_those_that_are_highlighted(folder: Path) -> None:
    """Of fifty runs the newest forty have a line, and a highlighted older run has one too."""
    (folder / "many").mkdir()
    lab = Lab(1, runs=None)
    for number in range(50):
        lab.save(f"many/run-{number:02}.jsonl")
    runs = Lab.runs("many")
    assert [line.name for line in runs.picture().lines] == runs.names[-MOST_LINES:]
    assert [line.name for line in runs.picture("run-03").lines] == ["run-03", *runs.names[-MOST_LINES:]]
    assert runs.picture().headline == "40 of 50 runs, the newest last"


def test_a_run_is_named_by_its_time(one: Runs) -> None:
    """A run with an automatic file name has its date and time as the name of its line."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", one.picture().lines[-1].name)


# ---------------------------------------------------------------- plans

PLAN = """AdaptiveSparkPlan isFinalPlan=false
+- HashAggregate(keys=[run#1, kind#2], functions=[count(1)], output=[run#1, kind#2, n#3L])
   +- Exchange hashpartitioning(run#1, kind#2, 2), ENSURE_REQUIREMENTS, [plan_id=110]
      +- *(1) Project [run#1]
         +- BroadcastHashJoin [path#5], [path#0], Inner, BuildRight, false, false
            :- Filter isnotnull(value#4)
            :  +- FileScan text [value#4] Location: InMemoryFileIndex(12 paths)[file:/tmp/x.jsonl]
            +- BroadcastExchange HashedRelationBroadcastMode(List(input[0, string, true]),false), [plan_id=104]
               +- Scan In-memory table journal [kind#2]
                     +- InMemoryRelation [run#1], StorageLevel(disk, memory)
                           +- Exchange hashpartitioning(run#1, 2)
"""


def test_a_plan_has_operators_without_ids_and_paths() -> None:
    """A plan of Spark's words is a tree of operators, without projections and without the plan of a cached table."""
    assert tree(PLAN).splitlines() == [
        "HashAggregate",
        "  Exchange hashpartitioning(run, kind)",
        "    BroadcastHashJoin",
        "      Filter",
        "        FileScan text",
        "      BroadcastExchange",
        "        Scan In-memory table journal",
    ]


def test_only_a_query_has_a_plan() -> None:
    """A text is refused in one sentence: the plan is that of a DataFrame."""
    with pytest.raises(UserError) as problem:
        operators("SELECT 1")
    refusal(problem)
