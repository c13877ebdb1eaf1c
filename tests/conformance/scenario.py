"""The kind `scenario`: what is there before, the actions one after the other, the checks at the end."""

from __future__ import annotations

from typing import Any

from kcontrol.core import znodes
from kcontrol.core.model import LeaderAndIsr, TopicPartition
from tests.conformance.actions import ACTIONS, store_topic_config, topic_znode
from tests.conformance.checks import CHECKS
from tests.conformance.stage import Case, Stage
from tests.conformance.values import CannotPlay, assignment, look_up, only_item, partition

FIRST_FENCED_EPOCH = "2.1"  # from here on the first controller creates the epoch's znode with 0 and sets it to 1


def scenario(case: Case) -> dict[str, Any]:
    """Play it; return for each check what is expected if it holds, and else what was found instead."""
    stage = Stage(case)
    prepare(stage, case)
    for item in case["when"]:
        name, value = only_item(item, "the action")
        look_up(ACTIONS, "action", name)(stage, value)
        stage.settle()
        stage.note_epochs()
    _insist_on_handlers(stage)
    return {name: look_up(CHECKS, "check", name)(stage, expected) for name, expected in case["then"].items()}


def _insist_on_handlers(stage: Stage) -> None:
    """An event that the product cannot handle yet must not pass for one that changes nothing."""
    for record in stage.records("handler_error"):
        if record.fields["error"] == "NotImplementedError":
            raise CannotPlay(record.fields["message"])


# ---------------------------------------------------------------- what is there before


def prepare(stage: Stage, case: Case) -> None:
    """Store what is given, let the first controller be elected, then start the others."""
    given = case["given"]
    for name in given:
        look_up(GIVEN, "key of given", name)
    for name, store in GIVEN.items():
        if store is not None and name in given:
            store(stage, given[name])
    _store_epoch(stage, case)
    first = given["controller"]
    if first is not None:
        for broker in (first, *(b for b in given["brokers"] if b != first)):
            stage.unstarted.discard(broker)
            stage.settle()
    stage.note_epochs()
    stage.when_from = len(stage.world.journal.records)
    if not given.get("keep_startup", False):
        stage.requests_from = stage.when_from


def _store_epoch(stage: Stage, case: Case) -> None:
    """What makes the first election end in the epoch that is given; without a controller that is what is stored."""
    given = case["given"]
    stored = given.get("controller_epoch", 1) - 1 if given["controller"] is not None else given.get("controller_epoch")
    if not stored:
        if stored == 0 and given["controller"] is None:
            stage.create(znodes.CONTROLLER_EPOCH, b"0")
        return
    starts_at = 0 if _release(case["version"]) >= _release(FIRST_FENCED_EPOCH) else 1
    stage.create(znodes.CONTROLLER_EPOCH, str(starts_at).encode())
    for epoch in range(starts_at + 1, stored + 1):
        stage.set(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch))


def _release(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _store_partitions(stage: Stage, given: Any) -> None:
    """Topic znodes, and state znodes unless the partition has none."""
    named = {partition(tp): value for tp, value in given.items()}
    for topic in dict.fromkeys(tp.topic for tp in named):
        assigned = {tp.partition: assignment(value) for tp, value in named.items() if tp.topic == topic}
        stage.create(znodes.topic_path(topic), topic_znode(stage, topic, assigned))
    for tp, value in named.items():
        if value.get("state") != "none":
            _store_state(stage, tp, value)


def _store_state(stage: Stage, tp: TopicPartition, value: Any) -> None:
    replicas = value["replicas"]
    leader, isr = value.get("leader", replicas[0]), tuple(value.get("isr", replicas))
    state = LeaderAndIsr(leader, isr, value.get("leader_epoch", 0), -1, value.get("controller_epoch", 1))
    stage.create(znodes.state_path(tp), znodes.encode_state(state))
    for _ in range(value.get("zk_version", 0)):
        stage.set(znodes.state_path(tp), znodes.encode_state(state))


def _store_topic_config(stage: Stage, given: Any) -> None:
    for topic, config in given.items():
        store_topic_config(stage, topic, config)


GIVEN = {
    # key                       how it is stored before anything runs, if it is
    "brokers":                  None,
    "controller":               None,
    "controller_epoch":         None,
    "keep_startup":             None,
    "config":                   None,
    "partitions":               _store_partitions,
    "topic_config":             _store_topic_config,
    "delete_topics":            ACTIONS["delete_topics"],
    "reassign_znode":           ACTIONS["reassign_znode"],
    "preferred_election_znode": ACTIONS["preferred_election_znode"],
    "isr_notification":         ACTIONS["isr_notification"],
}  # fmt: skip

KINDS = {"scenario": scenario}
