"""Kafka's own metrics, counted from a journal, and the table of settings."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kcontrol import Lab
from kcontrol.broker.broker_configs import CONFIGS, BrokerConfig
from kcontrol.cluster.run_settings import Settings
from kcontrol.core.errors import UserError
from kcontrol.core.events import ControllerState
from kcontrol.journal.journal import OUTSIDE, Record, RecordId
from kcontrol.lab.run import Run
from kcontrol.lab.tables.statistics import GAUGES, STATE_OF, STATES, Statistic, statistics
from tests.core.support import full_counts
from tests.lab.support import refusal
from tests.parts import ROOT, SHARED
from tests.tiers import slow_but

NINE = {
    "activeControllerId", "offlinePartitionCount", "preferredReplicaImbalanceCount", "globalTopicCount", "globalPartitionCount",
    "topicsToDeleteCount", "replicasToDeleteCount", "ineligibleTopicsToDeleteCount", "ineligibleReplicasToDeleteCount",
}  # fmt: skip


def reference() -> str:
    return (SHARED / "reference" / "controller.md").read_text()


def value(lab: Run, name: str, broker: int, attribute: str = "Value") -> float:
    return float(lab.tables.metrics().loc[(name, attribute), broker])


# ---------------------------------------------------------------- names


@pytest.mark.shared
def test_states_and_timers_are_those_of_the_reference() -> None:
    """Number and timer of each state are those of the reference's table 4.2, which was read from ControllerState.scala."""
    rows = re.findall(r"^\| (\d+) \| (\w+).*? \| (.+?) \|$", reference().split("### 4.2")[1].split("### 4.3")[0], re.M)
    timers = {name: re.search(r"(\w*|…)RateAndTimeMs", cell) for _, name, cell in rows}
    expected = {
        name: (
            int(number),
            f"{(found[1] if found[1] not in ('', '…') else name)}RateAndTimeMs" if (found := timers[name]) else None,
        )
        for number, name, _ in rows
    }
    assert len(expected) == 18
    assert {state.value: (row.value, row.timer) for state, row in STATES.items()}.items() <= expected.items()
    assert set(STATES) == set(ControllerState) >= set(STATE_OF.values())


@pytest.mark.shared
def test_gauges_are_those_of_the_reference() -> None:
    """Each gauge, and each of the nine fields of KafkaController, is named in section 17 of the reference."""
    section = reference().split("## 17.")[1].split("## 18.")[0]
    named = set(re.findall(r"\w+", section))
    assert {gauge.name for gauge in GAUGES} <= named and named >= NINE
    assert {gauge.field for gauge in GAUGES} | {"activeControllerId"} == NINE


def test_a_release_has_the_metrics_of_its_time() -> None:
    """0.8.1 has four gauges, the meter and one timer; the others came with 0.11, 1.0, 2.0 and 2.4."""

    def names(release: str) -> set[str]:
        start = Record(RecordId(OUTSIDE, 0, 2), "start", None, 0, {"broker": 1, "incarnation": 1})
        return {s.name for s in statistics([Record(RecordId(OUTSIDE, 0, 1), "run", None, 0, {"release": release}), start])}

    assert names("0.8.1") == {
        "activeControllerId", "ActiveControllerCount", "OfflinePartitionsCount", "PreferredReplicaImbalanceCount",
        "UncleanLeaderElectionsPerSec", "LeaderElectionRateAndTimeMs", "UnderReplicatedPartitions",
    }  # fmt: skip
    for name, before, since in (
        ("ControllerState", "0.10.2", "0.11.0"), ("GlobalTopicCount", "0.11.0", "1.0"), ("EventQueueTimeMs", "1.1", "2.0"),
        ("TopicsToDeleteCount", "2.3", "2.4"),
        ("UnderMinIsrPartitionCount", "0.11.0", "1.0"), ("AtMinIsrPartitionCount", "2.3", "2.4"),
    ):  # fmt: skip
        assert name not in names(before) and name in names(since)


# ---------------------------------------------------------------- counts


def test_one_controller_and_what_it_counts() -> None:
    """Of three brokers one is left: it rules, one of two partitions is offline, and both have lost their first replica."""
    lab = Lab(runs=None, topics={"t": [[1, 2, 3], [2]]})
    assert [value(lab, "ActiveControllerCount", n) for n in (1, 2, 3)] == [1, 0, 0]
    assert [value(lab, "activeControllerId", n) for n in (1, 2, 3)] == [1, 1, 1]
    assert value(lab, "PreferredReplicaImbalanceCount", 1) == 0
    lab.kill(2).run()
    lab.kill(1).run()
    assert list(lab.tables.metrics().columns) == ["field", "mbean", 3]
    assert (value(lab, "OfflinePartitionsCount", 3), value(lab, "PreferredReplicaImbalanceCount", 3)) == (1, 2)
    assert (value(lab, "GlobalTopicCount", 3), value(lab, "GlobalPartitionCount", 3)) == (1, 2)


@pytest.mark.parametrize("seed", slow_but(range(6), 1, 4))
def test_the_two_counts_are_those_of_the_context(seed: int) -> None:
    """After random faults the counts from the journal are those that a scan over the controller's own memory finds."""
    chance = random.Random(seed)
    lab = Lab(brokers=4, seed=seed, runs=None, topics={"t": [[1, 2], [2, 3, 4], [4]], "u": [[3, 1], [2]]})
    for _ in range(12):
        up = [n for n in range(1, 5) if str(n) in lab.state["nodes"]]
        n = chance.randint(1, 4)
        (lab.kill(n) if n in up and len(up) > 1 else lab if n in up else lab.start(n)).run()
        for broker in lab._world.processes:
            ctx: Any = lab._world.processes[broker].driver.controller
            expected = full_counts(ctx) if ctx.is_active else (0, 0)
            found = {s.name: s.values[0] for s in statistics(lab.records) if s.broker == broker and s.kind == "gauge"}
            assert (found["OfflinePartitionsCount"], found["PreferredReplicaImbalanceCount"]) == expected


def test_counts_are_refreshed_when_an_event_ends() -> None:
    """While BrokerChange is handled the state shows it and the counts are still the old ones; then they are new."""
    lab = Lab(runs=None, topics={"t": [[2]]})
    lab.kill(2).run(until="BrokerChange")
    assert value(lab, "ControllerState", 1) == 2
    while not any(state == "OfflinePartition" for state in lab.state["nodes"]["1"]["controller"]["partition_states"].values()):
        lab.step()
    assert (value(lab, "OfflinePartitionsCount", 1), value(lab, "ControllerState", 1)) == (0, 2)
    lab.run()
    assert (value(lab, "OfflinePartitionsCount", 1), value(lab, "ControllerState", 1)) == (1, 0)


def test_events_are_timed_under_their_states() -> None:
    """A broker's death is one LeaderElection of the length that the journal says; every event that began had waited its time."""
    lab = Lab(runs=None, topics={"t": [[2, 1]]})
    before = value(lab, "LeaderElectionRateAndTimeMs", 1, "Count")
    lab.kill(2).run()
    assert value(lab, "LeaderElectionRateAndTimeMs", 1, "Count") == before + 1
    begun = [r for r in lab.records if r.id.node == 1 and r.kind == "begin" and r.fields["thread"] == "controller"]
    queued = {r.id: r.at_ms for r in lab.records if r.kind == "enqueue"}
    ends = {r.cause: r.at_ms for r in lab.records if r.kind == "end"}
    found = {s.name: s.values for s in statistics(lab.records) if s.broker == 1}
    assert list(found["EventQueueTimeMs"]) == [r.at_ms - queued[r.cause] for r in begun if r.cause is not None]
    deaths = [ends[r.id] - r.at_ms for r in begun if r.fields["event"] == "BrokerChange"]
    assert list(found["LeaderElectionRateAndTimeMs"]) == deaths and deaths[-1] > 0
    assert value(lab, "LeaderElectionRateAndTimeMs", 1, "Max") == max(deaths)


def test_a_queue_that_waits_is_counted() -> None:
    """The size of the queue counts the events that no thread has begun; a new process has no waiting times."""
    lab = Lab(runs=None)
    lab.kill(3).expire_session(3).step(("deliver_notification", 1)).step(
        ("deliver_notification", 1)
    )  # the first is about the broker's znode and queues no event
    assert value(lab, "EventQueueSize", 1) == 1
    lab.run().start(3)
    assert value(lab, "EventQueueTimeMs", 3, "Count") == 0 < value(lab, "EventQueueTimeMs", 1, "Count")


def test_unclean_elections_are_counted() -> None:
    """An election from outside the ISR is marked once, and the rate is per second since the broker's start."""
    lab = Lab(brokers=3, runs=None, topics={"t": [[2, 3]]}, config={"unclean.leader.election.enable": True})
    lab.kill(3).run()
    lab.kill(2).run()
    assert value(lab, "UncleanLeaderElectionsPerSec", 1, "Count") == 0
    lab.start(3).run()
    assert value(lab, "UncleanLeaderElectionsPerSec", 1, "Count") == 1
    started = next(r.at_ms for r in lab.records if r.kind == "start" and r.fields["broker"] == 1)
    age_ms = lab.records[-1].at_ms - started
    assert value(lab, "UncleanLeaderElectionsPerSec", 1, "MeanRate") == pytest.approx(1_000 / age_ms)


def test_a_recording_has_no_statistics() -> None:
    """What real brokers counted is in no recording: it is refused in a sentence and not shown as noughts."""
    recorded = Lab.open(ROOT / "tests" / "golden" / "recordings" / "2.8.2" / "leader-killed.json")
    for ask in (recorded.tables.metrics, recorded.tables.prometheus):
        with pytest.raises(UserError, match="A recording of real brokers has no metrics") as problem:
            ask()
        refusal(problem)


# ---------------------------------------------------------------- Prometheus


def test_prometheus_reads_what_the_table_says() -> None:
    """Prometheus's own client library parses the text, and finds the table's numbers under the MBeans' names."""
    lab = Lab(runs=None, topics={"t": [[2, 3]]})
    lab.kill(2).run()
    families = {family.name: family for family in text_string_to_metric_families(lab.tables.prometheus())}
    frame = lab.tables.metrics()
    for (name, attribute), row in frame[frame["mbean"] != ""].iterrows():
        domain, kind = re.findall(r"kafka\.(\w+):type=(\w+)", row["mbean"])[0]
        family = families[f"kafka_{domain}_{kind}_{name}"]
        suffix = "" if attribute == "Value" else "_total" if family.type == "counter" else "_count"
        samples = {s.labels["broker"]: s.value for s in family.samples if s.name == f"{family.name}{suffix}"}
        if attribute in ("Value", "Count"):
            assert samples == {"1": row[1], "3": row[3]}
        assert family.documentation == row["mbean"]
    assert families["kafka_controller_ControllerStats_LeaderElectionRateAndTimeMs"].type == "summary"


def test_labels_may_hold_anything() -> None:
    """A run's name with quotes, backslashes and lines comes through Prometheus's parser as it was."""
    name = 'a "b" \\ c\nd{}=,'
    run = Run(Lab(runs=None, brokers=1).records, name)
    (family, *_) = text_string_to_metric_families(run.tables.prometheus())
    assert {sample.labels["run"] for sample in family.samples} == {name}


def test_quantiles_fall_between_values() -> None:
    """A quantile between two values is between them; of one value it is that value, as in Kafka's metrics library."""
    from kcontrol.lab.tables.statistics import _quantile

    assert [_quantile((7,), q) for q in (0.5, 0.99)] == [7, 7]
    assert [_quantile((4, 1, 3, 2), q) for q in (0.5, 0.99)] == [2.5, 4]
    assert Statistic(1, "", "x", "gauge", (1,)).mbean == ""


def test_metrics_on_the_shell(tmp_path: Path) -> None:
    """`kcontrol metrics FILE` prints the same text; a file that is none is one sentence."""
    lab = Lab(runs=None, brokers=1)
    lab.save(tmp_path / "simulated.jsonl")
    command = [sys.executable, "-P", "-m", "kcontrol", "metrics"]
    done = subprocess.run([*command, str(tmp_path / "simulated.jsonl")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", str(lab.tables.prometheus()))
    done = subprocess.run([*command, str(tmp_path / "none")], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("kcontrol: ") and len(done.stderr.splitlines()) == 1


# ---------------------------------------------------------------- settings


@pytest.mark.shared
def test_settings_are_those_of_the_reference() -> None:
    """Every setting of the reference's section 18 is in the table, with the defaults that it gives for 2.8 and 0.8.2."""
    # The section is about the controller; min.insync.replicas is a setting of partitions' leaders.
    section = reference().split("## 18.")[1].split("Fixed numbers")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")][1:]
    named: dict[str, tuple[str, str]] = {}
    for names, of_2_8, of_0_8_2, _ in rows:
        first, *others = re.split(r", | / ", names)
        prefix = "controlled.shutdown." if first == "controlled.shutdown.enable" else ""
        full = [first, *(prefix + other for other in others)]
        defaults = re.split(r", | / ", re.sub(r" \(.*?\)", "", of_2_8))
        old = defaults if of_0_8_2 == "same" else re.split(r", | / ", re.sub(r" \(.*?\)", "", of_0_8_2)) * len(full)
        named |= {name: pair for name, *pair in zip(full, defaults, old, strict=False)}  # type: ignore[misc]
    assert set(named) == set(CONFIGS) - {"min.insync.replicas"}
    words = {"\N{EN DASH}": None, "unset": None, "(gone)": None, "= session timeout": None, "latest": None, "max int": 2**31 - 1}
    for name, pair in named.items():
        for release, cell in zip(("2.8", "0.8.2"), pair, strict=True):
            expected = words[cell] if cell in words else {"true": True, "false": False}.get(cell) if cell.isalpha() else int(cell)
            assert CONFIGS[name].default(release) == expected, (name, release)


@pytest.mark.parametrize("release", ["0.8.1", "2.8"])
def test_worlds_take_their_values_from_the_table(release: str) -> None:
    """What the brokers of a world work by is the table's default of their release, and the fields are the rows that are used."""
    config = Settings(release=release).config
    assert {f.name.replace("_", ".") for f in fields(config)} == {row.name for row in CONFIGS.values() if row.is_used}
    assert {f.name: getattr(config, f.name) for f in fields(config)} == {
        row.name.replace(".", "_"): row.default(release) for row in CONFIGS.values() if row.is_used
    }
    frame = Lab(brokers=1, release=release, runs=None).tables.config()
    used = frame[frame.is_used]
    assert ((used.value == used.default) | (used.value.isna() & used.default.isna())).all() and frame.here.str.len().min() > 2


def test_a_changed_row_changes_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no second copy of a default: with another one in the table a broker's timer is armed for another time."""

    def armed() -> Any:
        return Lab(brokers=1, runs=None).state["nodes"]["1"]["timers"]

    assert "auto-leader-rebalance" in armed()
    row = CONFIGS["auto.leader.rebalance.enable"]
    monkeypatch.setitem(CONFIGS, row.name, row._replace(defaults=(("0.8.0", False),)))
    assert "auto-leader-rebalance" not in armed()


def test_a_setting_of_the_lab_replaces_the_default_of_the_release() -> None:
    """A setting that the lab was given is the value of `config()`, and other settings have the default of the release."""
    lab = Lab(brokers=1, release="0.8.1", runs=None, config={"leader.imbalance.check.interval.seconds": 7})
    assert lab.tables.config().value["leader.imbalance.check.interval.seconds"] == 7
    assert lab.tables.config().value["zookeeper.session.timeout.ms"] == 6_000
    said = BrokerConfig(zookeeper_session_timeout_ms=1)
    assert Settings(release="0.8.1", config=said).config is said
