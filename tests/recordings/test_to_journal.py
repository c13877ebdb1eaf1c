"""Every recording becomes a journal: nothing of it is lost, it folds to the trees that were recorded, and its order makes sense.

The other party is the recording itself, made with official brokers: its trees were read from ZooKeeper apart from its writes.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kcontrol.core.errors import UserError
from kcontrol.journal.fold import Fold
from kcontrol.journal.journal import Record
from kcontrol.journal.journal_file import read, write
from kcontrol.recordings import recording, to_journal
from kcontrol.recordings.recorded_words import translated
from kcontrol.views import text
from kcontrol.views.record_rows import rows
from tests.recordings.support import EACH, OURS, RELEASES, THEIRS, in_project, name, opened
from tests.views.conftest import ask as ask
from tests.views.support import NASTY, Ask

DRAWN = """
    const model = { get: (name) => ({ rows: given, records: given, brokers: [1, 2, 3], asked: [], details: true })[name] };
    const timeline = viewer.timelineOf(model);
    return given.map((_, index) => viewer.sceneAt(model, timeline, index, {}).partitions.length).at(-1);
"""


def without_transaction_numbers(writes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Writes as they are, but for the running number of their transaction."""
    return [{key: value for key, value in write.items() if key != "multi"} for write in writes]


@pytest.mark.parametrize("path", EACH)
def test_a_recording_is_all_in_its_journal(path: Path) -> None:
    """Read back step by step, a journal has every write, transition and request of its recording, each list in its order."""
    golden, records = opened(path)
    back = recording.of_journal(records)
    assert {key: back[key] for key in recording.HEAD} == {key: golden[key] for key in recording.HEAD}
    for mine, theirs in zip(back["steps"], translated(golden)["steps"], strict=True):
        assert mine["do"] == theirs["do"]
        assert mine["writes"] == without_transaction_numbers(theirs["writes"])
        assert mine["transitions"] == theirs["transitions"]
        assert mine["requests"] == theirs["requests"]


@pytest.mark.parametrize("path", EACH)
def test_the_fold_comes_to_the_recorded_trees(path: Path) -> None:
    """After each step the folded znodes, with versions and owners, are those that the recorder read from ZooKeeper."""
    golden, records = opened(path)
    fold, trees = Fold(), []
    for record in records:
        if record.kind == "scenario" and record.fields["step"]:
            trees.append(dict(fold.state["znodes"]))
        fold.add(record)
    trees.append(dict(fold.state["znodes"]))
    for mine, step in zip(trees, golden["steps"], strict=True):
        theirs = {path: [node["data"], node["version"], node["ephemeral_owner"]] for path, node in step["znodes"].items()}
        assert {path: [recording.data(path, node[0]), *node[1:]] for path, node in mine.items()} == theirs


@pytest.mark.parametrize("path", EACH)
def test_causes_come_first(path: Path) -> None:
    """Every cause is an earlier record; what controllers move and send, and every request that arrives, has one."""
    _, records = opened(path)
    place = {record.id: at for at, record in enumerate(records)}
    assert len(place) == len(records)
    assert [r.id for at, r in enumerate(records) if r.cause is not None and place.get(r.cause, at) >= at] == []
    wanted = {"change", "failed_change", "send", "receive", "response", "update", "start", "stop", "close"}
    assert [text.sentence(r) for r in records if r.kind in wanted and r.cause is None] == []


def sent_leaderships(r: Record) -> set[tuple[Any, ...]]:
    """The leaderships in the requests of a batch, except those of topics in deletion."""
    sent = r.fields["requests"]
    entries = list(sent.get("leader_and_isr", {}).get("values", []))
    entries += [{"partition": tp, **entry} for tp, entry in sent.get("update_metadata", {}).get("partitions", {}).items()]
    return {(e["partition"], e["leader"], e["leader_epoch"], tuple(e["isr"])) for e in entries if e["leader"] != -2}


SENT_BEFORE_IT_FROZE = {"two-zombies": ["Broker 2 sends LeaderAndIsr to 3 about t-1."]}  # recorded when it was answered


@pytest.mark.parametrize("path", EACH)
def test_only_running_brokers_act(path: Path) -> None:
    """Only running brokers write, move and send; a request has only values and epochs that were written before."""
    _, records = opened(path)
    living: set[int] = set()
    frozen: set[int] = set()
    stored: set[tuple[Any, ...]] = set()
    wrong, epochs = [], set()
    for r in records:
        f, n = r.fields, r.id.broker
        if r.kind in ("start", "stop"):
            (living.add if r.kind == "start" else living.discard)(f["broker"])
        elif r.kind in ("freeze", "thaw"):
            (frozen.add if r.kind == "freeze" else frozen.discard)(f["broker"])
        elif n is not None and r.kind in ("write", "change", "send") and (n not in living or n in frozen):
            wrong.append(text.sentence(r))
        for made in recording.writes(r):
            tp, value = recording.state_key(made.get("path", "")), made.get("data")
            if tp and value:
                stored.add((tp, value["leader"], value["leader_epoch"], tuple(value["isr"])))
            if made.get("path") == "/controller_epoch" and value:
                epochs.add(int(value))
        if r.kind == "send" and (f["requests"]["controller_epoch"] not in epochs or not sent_leaderships(r) <= stored):
            wrong.append(text.sentence(r))
    known = SENT_BEFORE_IT_FROZE.get(path.stem, []) if path.parent.name == "0.8.1.1" else []
    assert wrong == known


@pytest.mark.parametrize("path", EACH)
def test_a_journal_of_a_recording_is_a_journal(path: Path, tmp_path: Path) -> None:
    """Written to a file and read back it is the same; every record has a sentence of its own."""
    _, records = opened(path)
    write(records, tmp_path / "run.jsonl")
    assert read(tmp_path / "run.jsonl") == records
    assert [r.kind for r in records if text.sentence(r).endswith(f": {r.kind}.")] == []


@pytest.mark.shared
def test_all_releases_are_there() -> None:
    """The recordings beside the project are of the eleven releases; those of the learners are byte by byte among them."""
    assert {path.parent.name for path in THEIRS} == set(RELEASES)
    theirs = {name(path).removeprefix("golden/"): path.read_bytes() for path in THEIRS}
    mine = {name(path).removeprefix("recordings/"): path.read_bytes() for path in OURS if "notebooks" in path.parts}
    assert len(mine) > 15
    assert [key for key, content in mine.items() if theirs.get(key) != content] == []


@pytest.mark.parametrize("path", [*OURS[:6], *THEIRS[::23]], ids=name)
def test_the_viewer_draws_every_record(ask: Ask, path: Path) -> None:
    """The viewer's JavaScript makes a picture at each record, with the partitions of the recorded tree at the end."""
    golden, records = opened(path)
    found = [znode["data"] for where, znode in golden["steps"][-1]["znodes"].items() if where.startswith("/brokers/topics/")]
    partitions = sum(len(data["partitions"]) for data in found if isinstance(data, dict) and "partitions" in data)
    assert ask(DRAWN, rows(records)) == partitions


# ---------------------------------------------------------------- one of each in detail


def story(release: str, scenario: str, step: int) -> list[str]:
    """What happened in one step, as sentences, without what brokers learnt and answered."""
    _, records = opened(in_project(release, scenario))
    marks = [at for at, r in enumerate(records) if r.kind == "scenario"] + [len(records)]
    return [text.sentence(r) for r in records[marks[step] : marks[step + 1]] if r.kind not in ("update", "response", "receive")]


def test_a_controller_that_dies() -> None:
    """0.8.1: death, end of the session, election, epoch, replicas Online, first requests, the new leader, its requests."""
    said = story("0.8.1.1", "controller-killed", 2)
    wanted = [
        "Step 2 of the scenario: kill 1.",
        "Broker 1 is killed; ZooKeeper does not know yet.",
        "ZooKeeper ends the session of broker 1: /brokers/ids/1 and /controller are deleted.",
        "Broker 2 creates /controller.",
        "Broker 2 rewrites /controller_epoch.",
        "Broker 2 moves the replica of t-0 on broker 2 again to Online.",
        "Broker 2 sends LeaderAndIsr to 2 about t-0 and t-1.",
        "Broker 2 moves t-0 from Offline to Online: leader 2, ISR [2, 3], leader epoch 1.",
        "Broker 2 sends LeaderAndIsr to 3 about t-0.",
    ]
    places = [said.index(sentence) for sentence in wanted]
    assert places == sorted(places)


@pytest.mark.parametrize("release", ["0.8.1.1", "2.8.2"])
def test_a_controller_acts_after_its_watch_event(release: str) -> None:
    """A controller acts on a death, a topic or a start after the session's end, the znode or the registration."""
    said = story(release, "leader-killed", 2)
    first = next(at for at, s in enumerate(said) if s.startswith(("Broker 1 moves", "Broker 1 sends")))
    assert first > said.index("ZooKeeper ends the session of broker 2: /brokers/ids/2 is deleted.")
    said = story(release, "leader-killed", 1)
    first = next(at for at, s in enumerate(said) if s.startswith("Broker 1 "))
    assert first > said.index("A client creates /brokers/topics/t.")
    said = story(release, "leader-killed", 3)
    first = next(at for at, s in enumerate(said) if s.startswith("Broker 1 "))
    assert first > next(at for at, s in enumerate(said) if s.startswith("Broker 2 creates /brokers/ids/2"))


def test_the_cause_of_a_leader() -> None:
    """The chain of causes of a leader goes back to the step in which its predecessor was killed."""
    from kcontrol import Lab

    lab = Lab.open(in_project("2.8.2", "leader-killed"))
    source = lab.why("leader of t-0").source
    for words in ("kill 2", "is killed", "ends the session of broker 2", "from Offline to Online"):
        assert words in source


def test_a_frozen_controller_waits() -> None:
    """2.8: while the controller is frozen others come and go; what it does about that comes after it has thawed."""
    said = story("2.8.2", "bounced-unseen", 2)
    order = [
        said.index(s)
        for s in said
        if s.startswith(("Broker 1 freezes", "ZooKeeper ends", "Broker 2 starts again", "Broker 1 thaws"))
    ]
    assert order == sorted(order)
    first = next(at for at, s in enumerate(said) if s.startswith("Broker 1 moves"))
    assert first > max(order)


# ---------------------------------------------------------------- recordings that are none, and odd ones


def spoilt(tmp_path: Path, change: Any) -> Path:
    """A recording with something changed, as a file."""
    golden = json.loads(in_project("2.8.2", "leader-killed").read_text())
    change(golden)
    path = tmp_path / "spoilt.json"
    path.write_text(json.dumps(golden))
    return path


@pytest.mark.parametrize(("change", "words"), [
    (lambda g: g.pop("steps"), "`steps`"),
    (lambda g: g["steps"][0]["writes"][0].pop("by"), "`by`"),
    (lambda g: g["steps"][0]["writes"][1].update(op="shred"), "$.steps[0].writes[1].op"),
    (lambda g: g["steps"][1]["requests"][0].update(api="Fetch"), "$.steps[1].requests[0].api"),
    (lambda g: g.update(release="two"), "'two' is not a release"),
])  # fmt: skip
def test_what_is_no_recording_is_refused(tmp_path: Path, change: Any, words: str) -> None:
    """A file of another form is refused in one sentence that says where it differs."""
    with pytest.raises(UserError) as problem:
        recording.load(spoilt(tmp_path, change))
    assert "is not a recording of brokers" in str(problem.value)
    assert words in str(problem.value)


@pytest.mark.parametrize("path", ["/nowhere", "/brokers/ids/2"])
def test_a_recording_that_contradicts_itself(tmp_path: Path, path: str) -> None:
    """A write to a znode that was never there, or has gone with its session, is refused, with the step's number."""
    write = {"by": 1, "op": "set", "path": path, "data": "1", "version": 3}
    golden = recording.load(spoilt(tmp_path, lambda g: g["steps"][2]["writes"].append(write)))
    with pytest.raises(UserError, match=rf"contradicts itself in step 2: .*{path}"):
        to_journal.to_journal(golden)


def test_names_from_a_recording_are_text(tmp_path: Path) -> None:
    """A topic named as a piece of HTML stays what it is in tables, and is escaped in the comparison and in the page."""
    from kcontrol import Lab
    from kcontrol.lab import text_report

    odd = json.loads(
        in_project("2.8.2", "leader-killed").read_text().replace("/topics/t", f"/topics/{NASTY}").replace('"t-', f'"{NASTY}-')
    )
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(odd))
    lab = Lab.open(path)
    assert list(lab.partitions().index) == [f"{NASTY}-0", f"{NASTY}-1"]
    other = copy.deepcopy(odd)
    other["steps"][1]["transitions"].pop()
    (tmp_path / "other.json").write_text(json.dumps(other))
    html = lab.compare(Lab.open(tmp_path / "other.json"))._repr_html_()
    assert "&lt;img src=x" in html
    assert "<img" not in html
    text_report.page(lab, tmp_path / "page.html")
    assert "<img" not in (tmp_path / "page.html").read_text()


def test_records_are_plain() -> None:
    """Every field of every record is in JSON's own types, and what is recorded is not shared with the records."""
    golden = recording.load(in_project("0.8.1.1", "isr-order"))
    before = copy.deepcopy(golden)
    records = to_journal.to_journal(golden)
    assert [r for r in records if r != r.to_json()] == []
    assert isinstance(records[0], Record)
    assert golden == before
