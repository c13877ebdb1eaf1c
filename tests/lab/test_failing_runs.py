"""A run in which an event fails again and again: every broker has its turn, and the run ends with one sentence."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kcontrol.core.errors import UserError
from kcontrol.core.znodes import CONTROLLER, PREFERRED_REPLICA_ELECTION
from kcontrol.lab.lab import Lab
from kcontrol.lab.support.failures import PATIENCE
from tests.lab.support import is_one_sentence


@pytest.fixture(scope="module")
def stopped() -> tuple[Lab, str]:
    """A lab of 2.8 in which no failover succeeds, and the sentence that ended its run."""
    lab = Lab(brokers=3, topics={"t": [[2, 1]]}, runs=None).kill(3).run()
    lab.create_topic("v", [[3]]).run().elect_preferred("v-0").run()
    lab.zk.delete(CONTROLLER)
    with pytest.raises(UserError) as raised:
        lab.run()
    return lab, str(raised.value)


def test_other_brokers_have_their_turn_beside_a_failure_that_repeats(stopped: tuple[Lab, str]) -> None:
    """From the second failure of broker 1 on, brokers 1 and 2 win the elections in turn, as brokers of 2.8.2 both did."""
    # The other party: tests/golden/recordings/more/2.8.2/never-led-loop.json.
    winners = [r.id.node for r in stopped[0].records if r.kind == "handler_error" and r.fields["event"] == "Reelect"]
    assert len(winners) == PATIENCE["handler_error"]
    assert all(left != right for left, right in pairwise(winners[2:]))


def test_a_run_that_cannot_end_is_stopped_with_one_sentence(stopped: tuple[Lab, str]) -> None:
    """It names the last failure and what to do."""
    assert is_one_sentence(stopped[1])
    assert "20 failures, the last one of Reelect on broker " in stopped[1] and "'v', partition=0" in stopped[1]


def test_a_run_goes_on_once_its_cause_is_removed(stopped: tuple[Lab, str]) -> None:
    """Without the request a broker of the cluster becomes controller, and the cluster comes to rest."""
    branch = stopped[0].branch()
    branch.zk.delete(PREFERRED_REPLICA_ELECTION).run()
    assert branch.brokers().controller.sum() == 1


def test_a_handler_that_waits_without_end_ends_the_run_with_one_sentence() -> None:
    """A broker of 0.8.1 whose session has ended twice waits for its own registration; without the broker the run goes on."""
    # Source: KAFKA-1387, ZkUtils.createEphemeralPathExpectConflictHandleZKBug (0.8.1).
    lab = Lab(brokers=2, release="0.8.1", runs=None)
    for _ in range(2):
        lab.expire_session(2).step(("renew", 2))
    with pytest.raises(UserError, match="a handler of broker 2 has slept 100 times and still waits") as raised:
        lab.run(until=lambda lab: len(lab.records) > 2_000)  # the end of a run that nothing else stops
    assert is_one_sentence(str(raised.value))
    assert lab.kill(2).run().brokers().alive.to_dict() == {1: True, 2: False}
