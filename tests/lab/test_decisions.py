"""The first decision that differs between two runs: which partition, which decision, and the rule on each side."""

from __future__ import annotations

from html.parser import HTMLParser

from kcontrol import Lab
from kcontrol.lab.comparison import first_decision
from tests.recordings.support import in_project
from tests.views.support import NASTY

UNCLEAN = {"unclean.leader.election.enable": True}


def rolled(release: str = "2.8", topic: str = "t", **settings: object) -> Lab:
    """Broker 2 goes and comes back before leader 1 is killed: ISR [1, 3, 2], assignment [1, 2, 3], as recordings `isr-order`."""
    lab = Lab(brokers=[4, 1, 2, 3], release=release, runs=None, **settings)  # type: ignore[arg-type]
    return lab.step(("create_topic", topic, [[1, 2, 3]])).run().kill(2).run().start(2).run().kill(1).run()


def test_two_releases_are_called_by_their_releases() -> None:
    """Runs that differ in their release alone bear its name, in the sentence, in both tables and in HTML."""
    found = rolled("0.8.1").compare(rolled("2.8"))
    assert found.names == ("0.8.1", "2.8")
    assert list(found.decided.index) == list(found.table.index) == ["0.8.1", "2.8"]
    assert "simulated" not in str(found) + found._repr_html_()


def test_runs_are_called_by_the_settings_that_differ() -> None:
    """A setting in Kafka's spelling, a seed or a replaced rule is the label where nothing else differs."""
    usual = rolled()

    def names(**settings: object) -> tuple[str, str]:
        return usual.compare(rolled(**settings)).names  # type: ignore[arg-type]

    assert names(config=UNCLEAN) == ("defaults of 2.8", "unclean.leader.election.enable=true")
    assert names(seed=9) == ("seed 7", "seed 9")
    assert names(strategies={"offline": lambda assignment, isr, live: None})[1] == "own election offline"
    assert names() == ("the first run", "the second run")


def test_names_of_branches_stay() -> None:
    """A branch keeps its name in a comparison."""
    lab = rolled()
    lab.branch("what if").kill(3).run()
    assert lab.compare("main", "what if").names == ("main", "what if")


def test_the_first_decision_of_0_8_1_and_2_8_that_differs() -> None:
    """0.8.1 elects the first broker of the ISR and 2.8 the first of the assignment, as the recordings isr-order of both show."""
    found = rolled("0.8.1").compare(rolled("2.8"))
    assert found.decision is not None
    assert found.decision.partition == "t-0"
    leaders = [decision.outcome[0] for decision in found.decision.decisions if decision]
    real = [
        Lab.open(in_project(f"{release}", "isr-order")).tables.partition_history("t-0").leader.iloc[-1]
        for release in ("0.8.1.1", "2.8.2")
    ]
    assert leaders == real == [3, 2]
    assert "PartitionLeaderSelector.scala" in found.decided.loc["0.8.1", "source"]
    assert "PartitionStateMachine.scala" in found.decided.loc["2.8", "source"]
    assert found.decided["rule"].str.len().gt(0).all()


def test_the_sentence_is_about_the_decision_and_not_about_layout() -> None:
    """The text speaks of the partition; the first record that differs, a read of /consumers, is not in it."""
    said = str(rolled("0.8.1").compare(rolled("2.8")))
    assert said.startswith("The first decision that differs is about t-0. 0.8.1: ")
    assert "/consumers" not in said


def test_a_decision_that_only_one_run_has() -> None:
    """Where a run decides no further, its side says so, and the other side has its decision."""
    lab = rolled()
    lab.branch("on").kill(2).run()
    found = lab.compare("main", "on")
    ended, other = found.decided["decision"]
    assert ended == "No further decision about t-0."
    assert other.startswith("t-0: broker 3 leads, ")


def test_a_refused_election_is_a_decision() -> None:
    """Where the default elects no leader and the other run elects uncleanly, the refusal and its reason stand on their side."""
    runs = [Lab(brokers=3, topics={"t": [[2, 3]]}, config=config, runs=None) for config in ({}, UNCLEAN)]
    for lab in runs:
        lab.kill(3).run().kill(2).run().start(3).run()
    found = runs[0].compare(runs[1])
    assert found.decision is not None
    outcomes = [decision.outcome for decision in found.decision.decisions if decision]
    assert outcomes[0] == first_decision.NO_LEADER
    assert outcomes[1][0] == 3
    assert "no leader can be elected" in found.decided["decision"].iloc[0]


def test_equal_decisions_are_no_difference() -> None:
    """Controllers of 1.1 and of 2.4 decide alike here: the comparison says that no decision about a partition differs."""
    found = rolled("1.1").compare(rolled("2.4"))
    assert found.decision is None
    assert str(found).startswith("No decision about a partition differs. The first record that differs is record ")


def test_the_earliest_difference_is_named() -> None:
    """Of two partitions that differ, the one that differs after fewer acts is named."""
    lab = Lab(brokers=5, topics={"a": [[2, 3]], "b": [[4, 5]]}, runs=None)
    lab.branch("other").kill(4).run().kill(2).run()
    found = lab.compare("main", "other").decision
    assert found is not None
    assert found.partition == "b-0"


class Parts(HTMLParser):
    """The text of a page that is shown at once, and the text that is folded away."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shown, self.folded, self.depth = "", "", 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.depth += tag == "details"

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "details"

    def handle_data(self, data: str) -> None:
        if self.depth:
            self.folded += data
        else:
            self.shown += data


def test_layout_is_folded_away_and_whole() -> None:
    """In HTML the partitions stand open; znodes and the first record are in fold-outs, each znode with its whole text."""
    one, other = rolled("0.8.1"), rolled("2.8")
    page = Parts(one.compare(other)._repr_html_())
    assert "t-0" in page.shown
    assert "/config" not in page.shown
    assert "/consumers" not in page.shown
    znodes = other.tables.znodes()
    for path in one.compare(other).differences["znodes"]:
        assert path in page.folded
        if path in znodes.index and path != "/controller":
            assert znodes.loc[path, "text"] in page.folded
    assert "First record that differs" in page.folded


def test_a_page_with_many_partitions_is_whole() -> None:
    """Forty partitions that differ are all shown: no line says that there are more."""
    lab = Lab(brokers=4, topics={"t": [[2, 3]] * 40}, runs=None)
    lab.branch("other").kill(2).run()
    page = Parts(lab.compare("main", "other")._repr_html_()).shown
    assert all(f"t-{n}" in page for n in range(40))
    assert "more" not in page


def test_names_from_outside_are_text() -> None:
    """A topic named like markup makes no element."""
    assert "<img" not in rolled("0.8.1", topic=NASTY).compare(rolled("2.8", topic=NASTY))._repr_html_()
