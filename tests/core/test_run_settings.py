"""Settings are taken as Kafka takes them; the other party is Kafka's own KafkaConfig and LogConfig of eleven releases."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.broker import config_values
from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.core.errors import UserError
from kcontrol.recordings.player import line_of, settings_of

TAKEN = json.loads((Path(__file__).parent / "settings" / "taken.json").read_text())
RELEASES = {line_of(release): found for release, found in TAKEN["releases"].items()}
UNCLEAN = "unclean.leader.election.enable"
SESSION, LAG = "zookeeper.session.timeout.ms", "replica.lag.time.max.ms"
SCENARIO = {"brokers": [1, 2], "release": "2.8", "steps": [{"do": {"start": [1, 2]}}]}
ASKED = [
    (release, scope, name) for release in RELEASES for scope in ("broker", "topic") for name in config_values.SETTING_TYPES[scope]
]


def ours(release: str, scope: str, name: str, text: str) -> str | None:
    """What we read, as Java prints it; None where we refuse."""
    try:
        return str(config_values.read(scope, name, text, release)).lower()
    except ValueError:
        return None


def is_below_ours(name: str, scope: str, value: str) -> bool:
    """Whether Kafka takes a number that makes no sense and that we refuse; docs/omissions.md names these settings."""
    least = 0 if "shutdown" in name or "percentage" in name else 1
    return scope == "broker" and value.lstrip("-").isdigit() and int(value) < least


@pytest.mark.parametrize(("release", "scope", "name"), ASKED)
def test_each_text_means_what_kafka_reads(release: str, scope: str, name: str) -> None:
    """What Kafka refuses is refused, and what it takes has its value, but for too small numbers that Kafka does not check."""
    known = RELEASES[release][scope]
    assert (name in config_values.names(scope, release)) is (name in known)
    for text in TAKEN["texts"] if name in known else ():
        kafkas = known[name].get(text)
        if kafkas == "ok":  # LogConfig.validate has no answer but an exception
            kafkas = text.strip().lower().lstrip("+")
        expected = None if kafkas is not None and is_below_ours(name, scope, kafkas) else kafkas
        assert ours(release, scope, name, text) == expected, text


def test_every_setting_of_a_broker_has_a_row() -> None:
    """A setting that BrokerConfig has and the table of values has not would be refused."""
    assert [name.replace(".", "_") for name in config_values.SETTING_TYPES["broker"]] == list(BrokerConfig.__slots__)


@pytest.mark.parametrize(("text", "leader"), [("false", None), ("true", 2), (False, None), (" True ", 2)])
def test_kafkas_spelling_of_false_is_false(text: object, leader: int | None) -> None:
    """A dead leader's partition has a leader out of the ISR only if unclean elections are switched on."""
    with Lab(config={UNCLEAN: text}, topics={"t": [[1, 2]]}, runs=None) as lab:
        lab.kill(2).run().kill(1).run().start(2).run()
        found = lab.partitions().leader["t-0"]
        assert (None if found is None or found != found or found == -1 else int(found)) == leader


@pytest.mark.parametrize(("config", "words"), [
    ({UNCLEAN: "maybe"}, "'maybe' is no value of unclean.leader.election.enable: true and false are legal."),
    ({UNCLEAN: 0}, "0 is no value of unclean.leader.election.enable: true and false are legal."),
    ({SESSION: "x"}, f"'x' is no value of {SESSION}: whole numbers from 1 to 2147483647 are legal."),
    ({SESSION: -5}, f"-5 is no value of {SESSION}: whole numbers from 1 to 2147483647 are legal."),
    ({LAG: 499}, f"499 is no value of {LAG}: whole numbers from 500 to 9223372036854775807 are legal."),
    ({LAG: 500.0}, "500.0 is no value"),
    ({"leader.imbalance.check.interval.seconds": True}, "True is no value"),
    ({"leader.imbalance.check.interval.seconds": None}, "None is no value"),
    ({"unclean.leader.elections.enable": True}, f"did you mean {UNCLEAN}; there are {UNCLEAN}, delete.topic.enable, "),
    ({"offsets.retention.minuts": 5},
     "'offsets.retention.minuts' is no setting of a broker here; did you mean offsets.retention.minutes?"),
    ({"num.partitions": 3}, "num.partitions does nothing here"),
    ({3: 3}, "'3' is no setting of a broker here; there are "),
    (5, "config cannot be 5"),
])  # fmt: skip
def test_an_illegal_setting_is_refused_with_what_is_legal(config: Any, words: str) -> None:
    """The lab is not opened, and one sentence says why."""
    with pytest.raises(UserError) as refused:
        Lab(config=config, runs=None)
    assert words in str(refused.value)


def test_a_setting_that_a_release_does_not_have_is_refused() -> None:
    """Kafka 0.8.1 knows no switch for unclean elections and always holds them. Source: KafkaConfig.scala (0.8.1, 0.8.2)."""
    with pytest.raises(UserError, match=re.escape(f"Kafka 0.8.1 has no setting {UNCLEAN} of a broker, which came with 0.8.2")):
        Lab(release="0.8.1", config={UNCLEAN: False}, runs=None)


def test_a_topics_own_setting_outranks_the_brokers() -> None:
    """A topic that is created with unclean elections gets a leader out of the ISR; another topic does not."""
    with Lab(runs=None, topics={"u": [[1, 2]]}) as lab:
        lab.create_topic("t", [[1, 2]], {UNCLEAN: "TRUE"}).run()
        assert '"config":{"unclean.leader.election.enable":"true"}' in str(lab.zk.get("/config/topics/t"))
        lab.kill(2).run().kill(1).run().start(2).run()
        assert lab.partitions().leader.fillna(-1).to_dict() == {"t-0": 2, "u-0": -1}


@pytest.mark.parametrize(("config", "words"), [
    ({UNCLEAN: "maybe"}, "'maybe' is no value of unclean.leader.election.enable: true and false are legal."),
    ({"unclean.leader.election": True}, "did you mean unclean.leader.election.enable; there are unclean.leader.election.enable"),
    ("x", "config cannot be 'x'"),
])  # fmt: skip
def test_an_illegal_setting_of_a_topic_is_refused(config: Any, words: str) -> None:
    """Nothing is written, and one sentence says what is legal."""
    with Lab(runs=None) as lab:
        with pytest.raises(UserError) as refused:
            lab.create_topic("t", [[1, 2]], config)
        assert words in str(refused.value) and "/config/topics/t" not in lab.tables.znodes().index


def test_topics_have_no_settings_here_before_0_8_2() -> None:
    """LogConfig of 0.8.1 refuses the name. Source: LogConfig.validateNames (0.8.1)."""
    with Lab(runs=None, release="0.8.1") as lab, pytest.raises(UserError, match=r"which came with 0\.8\.2; there are none"):
        lab.create_topic("t", [[1, 2]], {UNCLEAN: True})


@pytest.mark.parametrize(("unclean", "means"), [("false", False), ("true", True), (True, True), (None, False)])
def test_a_scenarios_setting_is_read_as_kafka_reads_it(unclean: object, means: bool) -> None:
    """What a player works by is what the scenario says, or the release's default."""
    assert settings_of(SCENARIO | {"unclean": unclean}).config.unclean_leader_election_enable is means


def test_a_scenario_with_an_illegal_setting_is_not_played() -> None:
    """Lab.play refuses it in one sentence."""
    with pytest.raises(UserError, match=f"'maybe' is no value of {re.escape(UNCLEAN)}: true and false are"):
        Lab.play(SCENARIO | {"unclean": "maybe"})


def test_a_scenario_creates_a_topic_with_settings() -> None:
    """The step has the form that the scenarios of real brokers have: partitions, and config."""
    topic = {"partitions": {"0": [1, 2]}, "config": {UNCLEAN: True}}
    with Lab.play(SCENARIO | {"steps": [*SCENARIO["steps"], {"do": {"create": {"t": topic}}}]}) as lab:  # type: ignore[misc]
        assert '"config":{"unclean.leader.election.enable":"true"}' in str(lab.zk.get("/config/topics/t"))
