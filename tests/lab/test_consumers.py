"""A run with consumers can be looked at in every way in which any other run can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kcontrol.lab.lab import Lab
from kcontrol.lab.moment import Moment
from kcontrol.runtime.journal import plain
from kcontrol.views.twin import write_html
from tests.views.support import group_story

RELEASES = ("0.9", "2.8")
TABLES = ("partitions", "brokers", "znodes", "watches", "controllers", "requests", "replicas", "statistics")


def stages(release: str) -> list[Moment]:
    """Return the run after each change of the group's state, after the last commit, and at its end."""
    run = Moment(group_story(release).journal.records)
    ends = [index for index, record in enumerate(run.records) if record.kind in ("group", "offsets_append")]
    return [run.rewind(index) for index in ends] + [run]


@pytest.mark.parametrize("release", RELEASES)
def test_every_table_at_every_stage(release: str) -> None:
    """Each table, the journal in both kinds of words and each kind of record alone have rows at each stage of the group."""
    for moment in stages(release):
        assert len(moment.journal()) == len(moment.journal(words="kafka")) == len(moment.records)
        for kind in {record.kind for record in moment.records}:
            assert len(moment.journal(kind)) == sum(record.kind == kind for record in moment.records)
        assert not any(getattr(moment, name)().empty for name in TABLES)
    states = {state for moment in stages(release) for state in moment.members()["state"]}
    assert states >= {"CompletingRebalance", "Stable"}


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
    assert plain(again.state) == plain(run.state)
    assert again.journal().equals(run.journal())
    assert run.compare(again).at == len(run.records)


def test_a_lab_with_consumers(opened: Callable[..., Lab]) -> None:
    """A lab shows a group as soon as it is Stable, draws the picture, and branches and compares."""
    lab = opened(consumers={"anna": "billing", "bert": "billing"}, topics={"t": [[1, 2]], "__consumer_offsets": [[1, 2, 3]]})
    before = lab.branch("before")
    lab.consumer("anna", "join").run().consumer("anna", "join").run().fire(1, "join billing").run()
    lab.consumer("anna", "sync").run()
    assert lab.members()["state"].tolist() == ["Stable"]
    assert len(lab.journal()) == len(lab.records)
    assert lab._repr_mimebundle_()[0]["image/svg+xml"].startswith("<svg")
    assert lab.compare("main", "before")._repr_html_() and before.members().empty
