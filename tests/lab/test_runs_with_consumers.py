"""A run with consumers can be looked at in every way in which any other run can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kcontrol.core.errors import UserError
from kcontrol.journal.journal import to_json
from kcontrol.lab.lab import Lab
from kcontrol.lab.run import Run
from kcontrol.views.html_page import write_html
from tests.views.support import group_story

RELEASES = ("0.9", "2.8")
TABLES = ("partitions", "brokers", "znodes", "watches", "tenures", "requests", "replicas", "metrics")


def stages(release: str) -> list[Run]:
    """Return the run after each change of the group's state, after the last commit, and at its end."""
    run = Run(group_story(release).journal.records)
    ends = [index for index, record in enumerate(run.records) if record.kind in ("group", "append")]
    return [run.rewind(index) for index in ends] + [run]


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_every_table_at_every_stage(release: str) -> None:
    """Each table, the journal in both kinds of words and each kind of record alone have rows at each stage of the group."""
    for moment in stages(release):
        assert len(moment.journal()) == len(moment.journal(words="kafka")) == len(moment.records)
        for kind in {record.kind for record in moment.records}:
            assert len(moment.journal(kind)) == sum(record.kind == kind for record in moment.records)
        assert not any(getattr(moment.tables if hasattr(moment.tables, name) else moment, name)().empty for name in TABLES)
    states = {state for moment in stages(release) for state in moment.tables.members()["state"]}
    assert states >= {"AwaitingSync" if release == "0.9" else "CompletingRebalance", "Stable"}


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_every_picture_at_every_stage(release: str, tmp_path: Path) -> None:
    """The viewer with its still picture, the page and the machine's diagram are made at each stage of the group."""
    for moment in stages(release):
        bundle, _ = moment._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in bundle and bundle["image/svg+xml"].startswith("<svg")
        assert "Stable" in moment.diagram("group").source
        write_html(moment.records, tmp_path / "run.html", "A run")
        assert "__consumer_offsets" in (tmp_path / "run.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("release", RELEASES)
def test_the_reasons_of_every_kind_of_record(release: str) -> None:
    """The chain of causes of the last record of each kind can be drawn."""
    run = stages(release)[-1]
    for record in {record.kind: record for record in run.records}.values():
        assert f'"{record.id}"' in run.why(str(record.id)).source


@pytest.mark.parametrize("release", RELEASES)
def test_kept_and_read_again(release: str, tmp_path: Path) -> None:
    """A run with consumers that was saved is the same run when it is opened, and comparing both finds no difference."""
    run = stages(release)[-1]
    run.save(tmp_path / "run.jsonl")
    again = Lab.open(tmp_path / "run.jsonl")
    assert to_json(again.state) == to_json(run.state)
    assert again.journal().equals(run.journal())
    assert run.compare(again).at == len(run.records)


def test_a_lab_with_consumers(opened: Callable[..., Lab]) -> None:
    """A lab shows a group as soon as it is Stable, draws the picture, and branches and compares."""
    lab = opened(consumers={"anna": "billing", "bert": "billing"}, topics={"t": [[1, 2]], "__consumer_offsets": [[1, 2, 3]]})
    before = lab.branch("before")
    lab.group.join("anna").run().group.join("anna").run().fire_timer(1, "join billing").run()
    lab.group.sync("anna").run()
    assert lab.tables.members()["state"].tolist() == ["Stable"]
    assert len(lab.journal()) == len(lab.records)
    assert lab._repr_mimebundle_()[0]["image/svg+xml"].startswith("<svg")
    assert lab.compare("main", "before")._repr_html_() and before.tables.members().empty


def test_what_is_at_rest_for_the_lab_is_at_rest_for_the_viewer(opened: Callable[..., Lab]) -> None:
    """Where only timers of consumer groups are left, `step` and the viewer's Step both say that the cluster is quiet."""
    lab = opened(brokers=1, topics={"__consumer_offsets": [[1]]}, consumers={"a": "g"})
    lab.group.join("a").run()
    viewer, before = lab.viewer, len(lab.records)
    assert [sort for action, _, sort in viewer.actions if action[0] == "fire_timer"] == ["fault"] * 3
    for step in (lab.step, viewer.click_step):
        with pytest.raises(UserError, match="The cluster is quiet"):
            step()
    assert len(lab.records) == before


def test_bodies_of_responses_have_partitions_and_topics(tmp_path: Path) -> None:
    """In `journal("respond")`, also of a saved run, partitions and topics replace the bytes that a consumer can read."""
    lab = Lab.play("nightly", until="dora joins")
    lab.save(tmp_path / "nightly.jsonl")
    expected = dict(zip(lab.tables.members()["client_id"], lab.tables.members()["partitions"], strict=True))
    for run in (lab, Lab.open(tmp_path / "nightly.jsonl")):
        bodies = run.journal("respond").set_index("correlation_id").body
        assigned = [body["assignment"] for body in bodies if body and body.get("assignment")]
        assert sorted(assigned[-3:]) == sorted(expected[name] for name in ("anna", "bert", "cleo"))
        subscribed = [body["members"] for body in bodies if body and body.get("members") and "generation" in body]
        assert subscribed and all(topics == ["t"] for members in subscribed for topics in members.values())
    unreadable = {"anna": {"group.id": "billing", "protocol.assignment": b"\x00\x00\xff"}}
    other = Lab(2, topics={"t": [[1]], "__consumer_offsets": [[1]]}, consumers=unreadable, runs=None).run(alive=True)
    texts = [body["assignment"] for body in other.journal("respond").body if body and body.get("assignment")]
    assert texts and set(texts) == {"\x00\x00\\xff"}
