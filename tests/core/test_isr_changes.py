"""The controller's side of AlterIsr: its writes, its responses and its UpdateMetadata."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.controller.handlers import handle
from kcontrol.core.effects import UpdateContext
from kcontrol.core.events import AlterIsrReceived
from kcontrol.core.model import LeaderAndIsr
from tests.core.support import T0, T1
from tests.core.test_state_machines import Machines

LED = LeaderAndIsr(2, (2, 3), 4, 1, 1)


class Controller(Machines):
    """The machines' bench with t-0 led by 2 under leader epoch 4, in memory and in ZooKeeper, and the controller's handlers."""

    def __init__(self) -> None:
        super().__init__(UpdateContext("leadership", {T0: LED}))
        self.stored(T0, LED)
        self.driver.threads["controller"].handle = handle

    def alter(self, *wanted: Any, broker_id: int = 2, broker_epoch: int = 12) -> Any:
        """A leader asks for ISRs; returns the body of the answer."""
        self.driver.enqueue(AlterIsrReceived("2.1-1", broker_id, broker_epoch, wanted), None)
        self.go()
        assert self.records("handler_error") == []
        return next(body for what, *_, body in reversed(self.post.sent) if what == "respond")


def test_what_a_leader_asks_for_is_written_over_its_version() -> None:
    """The ISR is written with both epochs; the memory, the response and the metadata of all brokers have the new version."""
    # Source: KafkaController.processAlterIsr (2.8).
    controller = Controller()
    controller.learn(UpdateContext("controller_epoch", 3))
    answer = controller.alter((T0, LED._replace(isr=(2, 3, 1))))
    now = LeaderAndIsr(2, (2, 3, 1), 4, 2, 3)
    assert answer == {"error": "NONE", "partitions": {T0: now}}
    assert (controller.state(T0), controller.driver.controller.leadership[T0]) == (now, now)
    [sent] = [requests for what, requests in (sent[:2] for sent in controller.post.sent) if what == "send"]
    assert (sent.update_metadata[T0].isr, sent.update_metadata_to, sent.leader_and_isr) == ((2, 3, 1), (1, 2, 3), {})


@pytest.mark.parametrize(("broker_id", "broker_epoch"), [(2, 11), (2, 13), (7, 12)])
def test_alter_isr_needs_the_present_broker_epoch(broker_id: int, broker_epoch: int) -> None:
    """Another broker epoch than the one that is known, or an unknown broker, is answered as a whole, and nothing is written."""
    controller = Controller()
    answer = controller.alter((T0, LED._replace(isr=(2,))), broker_id=broker_id, broker_epoch=broker_epoch)
    assert answer == {"error": "STALE_BROKER_EPOCH", "partitions": {}}
    assert controller.state(T0) == LED


def test_each_partition_has_its_own_answer() -> None:
    """Unknown, fenced, stale and settled partitions are answered one by one; only the rest is written."""
    controller = Controller()
    assert controller.alter((T1, LED))["partitions"] == {T1: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert controller.alter((T0, LED._replace(leader_epoch=3, isr=(2,))))["partitions"] == {T0: "FENCED_LEADER_EPOCH"}
    assert controller.alter((T0, LED._replace(zk_version=0, isr=(2,))))["partitions"] == {T0: "INVALID_UPDATE_VERSION"}
    assert controller.alter((T0, LED))["partitions"] == {T0: LED}
    assert controller.state(T0) == LED
    assert {answer for call in controller.calls if call[0] == "write" for answer in call[1]} == {
        (("check", "/controller_epoch"), ("set", "/brokers/topics/t/partitions/0/state"))
    }


def test_a_lost_fence_is_answered_and_not_thrown() -> None:
    """A deposed controller responds UNKNOWN_SERVER_ERROR and does not read /controller: its watch event comes later."""
    controller = Controller()
    controller.learn(UpdateContext("controller_epoch_zk_version", 9))
    assert controller.alter((T0, LED._replace(isr=(2,)))) == {"error": "UNKNOWN_SERVER_ERROR", "partitions": {}}
    assert [call for call in controller.calls if call[0] != "write"] == []
    assert controller.state(T0) == LED
