"""The queue of a thread and the fence of a write, where the case files do not reach."""

from __future__ import annotations

import pytest

from kcontrol.core.effects import ControllerMoved, Op
from kcontrol.core.znodes import CONTROLLER_EPOCH
from kcontrol.driver import fenced_writes
from kcontrol.driver.fenced_writes import UNFENCED, FenceCheckFailed
from kcontrol.driver.threads import QUEUE_TIME_TIMEOUT_MS, EventQueue
from kcontrol.zookeeper.memory import MemoryClient, MemoryZooKeeper


def waiting(queue: EventQueue[str]) -> list[str]:
    return [item.event for item in queue.waiting]


def test_a_copied_queue_goes_its_own_way() -> None:
    """What is put into a copy, taken from it or forgotten there does not show in the original."""
    queue: EventQueue[str] = EventQueue()
    for at_ms, event in enumerate("abc"):
        queue.put(event, at_ms)
    queue.take(10)
    twin = queue.copy()
    twin.put("d", 20)
    twin.take(30)
    twin.idle(QUEUE_TIME_TIMEOUT_MS)
    assert (waiting(queue), queue.queue_times_ms) == (["b", "c"], [10])
    assert (waiting(twin), twin.queue_times_ms) == (["c", "d"], [])


def test_an_empty_queue_has_nothing_to_take() -> None:
    """Taking from an empty queue is an error and leaves no waiting time."""
    queue: EventQueue[str] = EventQueue()
    with pytest.raises(IndexError):
        queue.take(0)
    assert (queue.queue_times_ms, len(queue), queue.clear()) == ([], 0, [])


def test_five_idle_minutes_and_no_less_clear_the_waiting_times() -> None:
    """A thread that has found nothing for 300 s forgets how long events waited; for a millisecond less it does not."""
    queue: EventQueue[str] = EventQueue()
    queue.put("a", 0)
    queue.take(7)
    queue.idle(QUEUE_TIME_TIMEOUT_MS - 1)
    assert queue.queue_times_ms == [7]
    queue.idle(QUEUE_TIME_TIMEOUT_MS)
    assert queue.queue_times_ms == []


# ---------------------------------------------------------------- the fence


@pytest.fixture
def client() -> MemoryClient:
    """A session on a ZooKeeper whose `/controller_epoch` is at version 1."""
    client = MemoryZooKeeper(lambda: 0).connect()
    client.write([(Op("create", CONTROLLER_EPOCH, b"1"),), (Op("set", CONTROLLER_EPOCH, b"2"),), (Op("create", "/a"),)])
    return client


def test_a_fenced_write_answers_as_if_there_were_no_fence(client: MemoryClient) -> None:
    """Codes, versions and the place of a failure are those of the operations, whether they were fenced or not."""
    transactions = [(Op("set", "/a"), Op("set", "/a")), (Op("create", "/b"), Op("create", "/a")), (Op("delete", "/none"),)]
    fenced, unfenced = fenced_writes.write(client, transactions, 1), None
    assert fenced.error is None
    assert [(r.code, r.failed_index, r.versions) for r in fenced.results] == [
        ("OK", -1, (1, 2)),
        ("NodeExists", 1, ()),
        ("NoNode", 0, ()),
    ]
    unfenced = fenced_writes.write(client, transactions, UNFENCED)
    assert [(r.code, r.failed_index, len(r.versions)) for r in unfenced.results] == [
        (r.code, r.failed_index, len(r.versions)) for r in fenced.results
    ]


def test_the_failed_index_separates_the_fence_from_the_write(client: MemoryClient) -> None:
    """BadVersion of the operation is its own result; BadVersion of the check is ControllerMoved, and nothing was written."""
    own = fenced_writes.write(client, [(Op("set", "/a", b"x", expected_version=9),)], 1)
    assert (own.error, own.results[0].code, own.results[0].failed_index) == (None, "BadVersion", 0)
    moved = fenced_writes.write(client, [(Op("set", "/a", b"x"),)], 0)
    assert isinstance(moved.error, ControllerMoved)
    assert client.read(["/a"], False)[0].data == b""  # type: ignore[union-attr]


def test_a_check_that_fails_otherwise_is_no_other_controller(client: MemoryClient) -> None:
    """Without `/controller_epoch` the error names ZooKeeper's code and does not claim another controller."""
    client.write([(Op("delete", CONTROLLER_EPOCH),)])
    outcome = fenced_writes.write(client, [(Op("set", "/a"),)], 1)
    assert isinstance(outcome.error, FenceCheckFailed)
    assert (outcome.error.code, str(outcome.error)) == ("NoNode", "the check of /controller_epoch failed with NoNode")


def test_a_version_below_minus_one_is_refused_before_anything_is_sent(client: MemoryClient) -> None:
    """-1 checks nothing, every other negative version raises ValueError, and nothing is written."""
    with pytest.raises(ValueError, match="is -2; it should be -1 for none, or a version"):
        fenced_writes.write(client, [(Op("create", "/b"),)], -2)
    assert client.exists(["/b"], False) == [None]
