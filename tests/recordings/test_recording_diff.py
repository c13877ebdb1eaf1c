"""A recording beside our own run: what differs first is named, and what is shown of both is what both did."""

from __future__ import annotations

import copy
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.lab.tables.recording_diff import RecordingDiff
from kcontrol.recordings import recording, to_journal
from kcontrol.recordings.compare import Difference, first_difference
from kcontrol.recordings.recorded_words import translated
from tests.golden.compare import Compare
from tests.golden.compare import Difference as Otherwise
from tests.golden.test_golden import done_as_in
from tests.lab.support import refusal
from tests.recordings.support import THEIRS, in_project, name, opened
from tests.views.support import NASTY

KILLED = in_project("2.8.2", "leader-killed")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a learner's notebook would lie in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---------------------------------------------------------------- the rule


def other_party(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """What the comparison that came with the recordings says; empty where it finds no difference."""
    try:
        Compare(theirs, done_as_in(theirs, ours), ["writes", "znodes", "transitions", "requests"]).run()
    except Otherwise as found:
        return str(found)
    return ""


@pytest.mark.shared
@pytest.mark.parametrize("scenario", ["isr-order", "expansion", "controller-killed", "session-expired"])
def test_two_releases_differ_where_the_other_party_says_so(shared: Path, scenario: str) -> None:
    """Between recordings of neighbouring releases both comparisons see a difference in the same step, or both see none."""
    found = [path for path in THEIRS if path.stem == scenario]
    for one, other in pairwise(found):
        theirs, ours = recording.load(one), {**recording.load(other), "release": recording.load(one)["release"]}
        mine, said = first_difference(theirs, ours), other_party(theirs, ours)
        assert bool(mine) == bool(said), (name(one), name(other))
        assert mine is None or said.startswith((f"step {mine.step} ", "release", "scenario")), (mine, said)


def test_a_difference_says_where_what_and_both_sides() -> None:
    """Step, kind, subject, theirs and ours are those of what was changed."""
    theirs = recording.load(KILLED)
    ours = copy.deepcopy(theirs)
    state = "/brokers/topics/t/partitions/0/state"
    ours["steps"][2]["znodes"][state]["data"]["leader"] = 9
    found = first_difference(theirs, ours)
    assert found == Difference(
        2, {"kill": 2}, "znodes", state, theirs["steps"][2]["znodes"][state], ours["steps"][2]["znodes"][state]
    )


def test_what_is_missing_is_nothing() -> None:
    """Where one side has an entry more the other side is None."""
    theirs = recording.load(KILLED)
    ours = copy.deepcopy(theirs)
    moved = ours["steps"][1]["transitions"].pop()
    found = first_difference(theirs, ours)
    assert found is not None and (found.step, found.kind, found.ours) == (1, "transitions", None)
    assert (found.theirs["subject"], found.theirs["to"]) == (moved["subject"], moved["to"])


def test_metadata_that_is_sent_twice_in_a_race_counts_once() -> None:
    """One more UpdateMetadata for a partition whose ISR changes in the same step is no difference, on either side."""
    theirs = recording.load(KILLED)
    ours = copy.deepcopy(theirs)
    requests = ours["steps"][3]["requests"]
    last = [r for r in requests if r["api"] == "UpdateMetadata"][-1]
    requests.append(copy.deepcopy(last))
    assert first_difference(theirs, ours) is None
    assert other_party(theirs, ours) == ""


# ---------------------------------------------------------------- in a notebook


def test_our_run_of_a_recording_is_equal() -> None:
    """A lab that plays a recording has no difference from it by the rule and prints one sentence; more acts are possible."""
    lab = Lab.open(KILLED)
    mine = Lab.play(lab, runs=None)
    found = lab.compare(mine)
    assert isinstance(found, RecordingDiff)
    assert (
        str(found)
        == "No difference between Kafka 2.8.2, leader-killed and our leader-killed in 4 steps, by the rule of the recordings."
    )
    assert found._repr_html_() == f"<p>{found}</p>"
    assert found.difference is None
    assert set(found.table["verdict"]) <= {"same", "free"}
    assert mine.kill(3).run().partitions().loc["t-0", "leader"] in (1, 2)


def test_either_may_come_first() -> None:
    """The recording is theirs, from whichever side one asks."""
    lab, mine = Lab.open(KILLED), Lab.play(KILLED, runs=None)
    assert mine.compare(lab).names == lab.compare(mine).names


def test_a_changed_rule_is_seen() -> None:
    """A learner's own election that prefers another replica differs from what Kafka did, in the step in which it was used."""

    def last_one(assignment: Any, isr: Any, live: Any, *, unclean: bool, **rest: Any) -> Any:
        return next((b for b in reversed(assignment) if b in live and b in isr), None)

    lab = Lab.open(in_project("2.8.2", "isr-order"))
    found = lab.compare(Lab.play(lab, strategies={"offline": last_one}, runs=None))
    assert found.difference is not None
    assert "kill" in found.difference.do
    html = found._repr_html_()
    assert html.count("<mark>") == 2
    assert "The first difference is in step" in html
    table = found.table
    differs = table[table["verdict"] == "differs"]
    assert differs["step"].min() == found.difference.step


def test_the_table_has_all_of_both() -> None:
    """Each write, transition and request of the recording is in its column once, in its order; so are ours."""
    lab = Lab.open(KILLED)
    table = lab.compare(Lab.play(lab, runs=None)).table
    golden, _ = opened(KILLED)
    for kind in ("writes", "transitions", "requests"):
        theirs = table[table["kind"] == kind]["theirs"].dropna()
        assert len(theirs) == sum(len(step[kind]) for step in golden["steps"])
    moves = list(table[(table["kind"] == "transitions") & (table["step"] == 2)]["theirs"].dropna())
    assert moves == [
        f"{t['by']}: {t['subject']} {t['from']} → {t['to']}, epoch {t['epoch']}" for t in golden["steps"][2]["transitions"]
    ]


def test_a_scenario_of_ones_own() -> None:
    """A dict with brokers and steps is played; its journal has its steps, and playing it again gives the same journal."""
    scenario = {"name": "mine", "brokers": [1, 2], "steps": [{"start": [1, 2]}, {"create": {"t": {"0": [2, 1]}}}, {"kill": 1}]}
    mine = Lab.play(scenario, runs=None)
    assert list(mine.partitions()["leader"]) == [2]
    assert [r.fields["do"] for r in mine.records if r.kind == "scenario"] == [
        {"start": [1, 2]},
        {"create_topic": {"t": {"0": [2, 1]}}},
        {"kill": 1},
    ]
    assert str(mine.compare(Lab.play(scenario, runs=None))).startswith("Both runs have equal records")
    assert list(Lab.play(mine, runs=None).partitions()["leader"]) == [2]


def test_a_played_run_can_be_kept_and_opened(folder: Path) -> None:
    """A played lab's journal opens again, and compares with the recording as the lab did."""
    lab = Lab.open(KILLED)
    Lab.play(lab, runs=None).save(folder / "mine.jsonl")
    assert "No difference" in str(lab.compare(Lab.open(folder / "mine.jsonl")))


def test_where_another_broker_wins_nothing_more_is_compared() -> None:
    """With another winner the first difference is the winner; later rows are marked as not compared."""
    theirs = recording.load(in_project("2.8.2", "controller-killed"))
    ours = copy.deepcopy(theirs)
    ours["steps"][2]["znodes"]["/controller"]["ephemeral_owner"] = 3
    found = RecordingDiff(("theirs", "ours"), theirs, ours)
    assert found.difference is not None and found.difference.kind == "winner"
    assert set(found.table[found.table["step"] >= 2]["verdict"]) == {"not compared"}


# ---------------------------------------------------------------- what goes wrong


def refused(act: Any) -> str:
    """The sentence with which something is refused."""
    with pytest.raises(UserError) as problem:
        act()
    return refusal(problem)


def test_a_run_without_steps_is_refused(folder: Path) -> None:
    """A recording cannot be compared with a run that follows no scenario; the sentence says how to make one."""
    lab = Lab.open(KILLED)
    assert "Lab.play(recording)" in refused(lambda: lab.compare(Lab(brokers=1, runs=None)))
    assert "is not a run" in refused(lambda: lab.compare("mine"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("scenario", "words"), [
    ({"brokers": [1]}, "not a scenario"),
    ({"brokers": [1], "steps": ["start"]}, "not a scenario"),
    ({"brokers": [1], "steps": [{"juggle": 1}]}, "'juggle' is not known; there are start"),
    ({"brokers": [1], "steps": [{"kill": 1}]}, "Broker 1 is not running"),
    ({"brokers": [1], "steps": [{"start": 1}, {"expand": {"t": {"1": [1]}}}]}, "no topic 't'"),
    ({"brokers": [1], "steps": [{"start": 1}, {"create": ["t"]}]}, "'create_topic'"),
    ({"brokers": [1], "release": "nine", "steps": [{"start": 1}]}, "'nine'"),
    ({"brokers": "all", "steps": [{"start": 1}]}, "'all'"),
    ({"brokers": [1], "release": "2.0.1", "steps": [{"start": 1}]}, "2.0"),
])  # fmt: skip
def test_what_cannot_be_played_is_refused(scenario: dict[str, Any], words: str) -> None:
    """A scenario of another form, a step that cannot be done and a release that is not played are refused in one sentence."""
    assert words in refused(lambda: Lab.play(scenario, runs=None))


def test_files_that_are_neither(folder: Path) -> None:
    """A file that is no journal and no recording, one that was cut off and one that is not there are refused in one sentence."""
    for content, words in (
        (b"hello", "not a journal"),
        (KILLED.read_bytes()[:3000], "broken JSON"),
        (b'{"release": "2.8.2"}', "not a recording"),
        (b'\xff\xfe"release"', "broken JSON"),
        (b"", "not a journal"),
    ):
        (folder / "odd.json").write_bytes(content)
        assert words in refused(lambda: Lab.open(folder / "odd.json"))
    assert "cannot be read" in refused(lambda: Lab.open(folder / "nowhere.json"))


def test_a_broker_may_be_called_0() -> None:
    """Broker 0 is a broker as any other, and not taken for a client."""
    znode = {"data": None, "version": 0, "ephemeral_owner": None}
    made = [("open", None), ("create", "/brokers"), ("create", "/brokers/ids"), ("create", "/brokers/ids/0")]
    writes = [
        {"by": 0, "op": op} | ({"path": path, "data": None, "ephemeral": path.endswith("0")} if path else {}) for op, path in made
    ]
    tree = {path: znode | {"ephemeral_owner": 0 if path.endswith("0") else None} for _, path in made if path}
    step = {"do": {"start": 0}, "writes": writes, "transitions": [], "requests": [], "znodes": tree}
    golden = {
        "release": "2.8.2", "scenario": "nought", "brokers": [0], "session_timeout_ms": 3000, "unclean": None, "steps": [step],
    }  # fmt: skip
    back = recording.of_journal(to_journal.to_journal(golden))
    assert back == translated(golden)


def test_words_that_there_are() -> None:
    """The journal can be had in Kafka's words, with a column more and the same rows; other words are refused."""
    lab = Lab.open(KILLED)
    plain, words = lab.journal(), lab.journal(words="kafka")
    assert list(words.columns) == [*plain.columns, "log"]
    assert list(words.index) == list(plain.index)
    changes = lab.journal("change", words="kafka")
    assert changes["log"].str.contains(r"\[Controller id=1 epoch=1\] Changed").all()
    assert (words[words["kind"] == "receive"]["log"] == "").all()
    assert "'kafka'" in refused(lambda: lab.journal(words="pirate"))


@pytest.mark.parametrize("release", ["0.8.1.1", "2.8.2"])
@pytest.mark.parametrize("scenario", ["leader-killed", "unclean-allowed", "new-topic-first-replica-dead", "controlled-shutdown"])
def test_our_run_writes_the_log_lines_of_the_real_one(release: str, scenario: str) -> None:
    """State by state our controller's lines of state-change.log are those of the recording, but for times and order."""
    lab = Lab.open(in_project(release, scenario))
    both = [run.journal(words="kafka") for run in (lab, Lab.play(lab, runs=None))]
    lines = ["\n".join(table[table["kind"].isin(["change", "failed_change"])]["log"]).splitlines() for table in both]
    theirs, ours = (sorted(TIME.sub("", line) for line in side if "anged" in line) for side in lines)
    assert len(theirs) > 10
    assert [ISR.sub("", line) for line in ours] == [ISR.sub("", line) for line in theirs]


TIME = re.compile(r"^\[\d+ ms\] ")  # which a recording has not
ISR = re.compile(r"isr=List\([\d, ]*\)|,ISR:[\d,]*")  # whose order is free where several have joined


def test_the_outline_escapes_nothing_and_breaks_no_line(folder: Path) -> None:
    """A recorded name with a line break stays on its line."""
    from kcontrol.lab import text_report

    odd = KILLED.read_text().replace("/topics/t", "/topics/t\\nx").replace('"t-', '"t\\nx-')
    (folder / "odd.json").write_text(odd)
    lines = text_report.report(Lab.open(folder / "odd.json")).splitlines()
    assert [line for line in lines if line.startswith("t\ufffdx-0: OnlinePartition")]
    assert json.loads(odd) and NASTY not in odd
