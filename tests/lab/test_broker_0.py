"""Broker 0 is a broker: whatever is shown of a run differs in nothing but the id from the run of another first broker."""

from __future__ import annotations

import re
from functools import cache

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.journal.journal import OUTSIDE
from kcontrol.views import still_picture, text

OTHER = 7814  # in every order of the replica machine it comes where broker 0 comes, beside the two that both runs have
BOTH = (8888, 9999)
RELEASES = ("0.8.1", "2.8")
TABLES = ("partitions", "replicas", "brokers", "znodes", "watches", "tenures", "requests", "metrics", "journal")


@cache
def run(first: int, release: str) -> Lab:
    """Return a run in which the first broker is controller, leads, dies, comes back, and a client scribbles."""
    ids = [first, *BOTH]
    lab = Lab(brokers=ids, release=release, runs=None, topics={"t": [ids, [*BOTH, first]]})
    for act in (
        lambda: lab.kill(first),
        lambda: lab.start(first),
        lambda: lab.kill(BOTH[0]),
        lambda: lab.zk.delete("/controller"),
    ):
        act().run()
    return lab


def table(lab: Lab, name: str) -> pd.DataFrame:
    """The table of that name, of the lab itself or in its namespace."""
    found: pd.DataFrame = getattr(lab if hasattr(lab, name) else lab.tables, name)()
    return found


def renamed(shown: str) -> str:
    """Return what is shown of the other run with its first broker's id as 0, without ports, and without widths of columns."""
    without_ports = re.sub(r'("port":|127\.0\.0\.1:)\d+', r"\1*", shown)
    return re.sub(r"(?:\s|\\n|-)+", " ", re.sub(rf"(?<!\d){OTHER}(?!\d)", "0", without_ports))


@pytest.mark.parametrize("release", RELEASES)
def test_sentences(release: str) -> None:
    """Every sentence of the journal is that of the other run."""
    mine, theirs = (list(map(text.sentence, run(first, release).records)) for first in (0, OTHER))
    assert [renamed(said) for said in mine] == [renamed(said) for said in theirs]
    assert any(said.startswith("Broker 0 moves t-0 from ") for said in mine)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("release", RELEASES)
def test_tables(release: str, name: str) -> None:
    """Every table is that of the other run."""
    mine, theirs = (renamed(table(run(first, release), name).to_string()) for first in (0, OTHER))
    assert mine == theirs


@pytest.mark.parametrize("release", RELEASES)
def test_tables_of_a_run_with_broker_0_equal_those_of_the_other_run(release: str) -> None:
    """Partition history, leadership views, watch events, handler steps and chains of causes are those of the other run."""
    for ask in (
        lambda lab, first: lab.tables.partition_history("t-0").to_string(),
        lambda lab, first: lab.tables.leadership_views("t-0").to_string(),
        lambda lab, first: lab.tables.watch_events(first).to_string(),
        lambda lab, first: str(lab.tables.handler_steps("BrokerChange", first)),
        lambda lab, first: str(lab.why("leader of t-0")),
        lambda lab, first: str(lab.why("controller")),
    ):
        if release == "0.8.1" and "handled" in ask.__code__.co_names:
            continue  # its events have other names
        mine, theirs = (renamed(ask(run(first, release), first)) for first in (0, OTHER))
        assert mine == theirs
    assert set(run(0, release).tables.partition_history("t-0")["written_by"].dropna()) >= {0}


@pytest.mark.parametrize("release", RELEASES)
def test_the_still_picture(release: str) -> None:
    """The picture is that of the other run at every fortieth record."""
    runs = [run(first, release) for first in (0, OTHER)]
    for at in range(0, len(runs[0].records), 40):
        mine, theirs = (renamed(still_picture.svg(lab.rewind(at).state, lab.records[0].fields["brokers"])) for lab in runs)
        assert mine == theirs


def test_no_broker_has_made_what_a_client_does() -> None:
    """`node` and `written_by` are missing for a client's records, and 0 for those of broker 0."""
    lab = run(0, "2.8")
    found = lab.journal()
    assert found[found["kind"] == "act"]["node"].isna().all() and (found[found["kind"] == "change"]["node"] == 0).any()
    assert found.index[0] == f"{OUTSIDE}.0.1"
    created = lab.tables.partition_history("t-0").iloc[0]
    assert lab.why(created.record) and found.loc[created.record, "what"] == "A client creates /brokers/topics/t."
