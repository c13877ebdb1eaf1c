"""In which order one batch takes brokers out of an ISR, held against what Kafka's recordings show of Scala's maps."""

from __future__ import annotations

import itertools
import json
from typing import Any

from kcontrol.controller.broker_order import in_order_of_hashes
from tests.golden.test_golden import recorded


def states(release: str) -> list[dict[str, Any]]:
    """What was written to the state znode while t-0 moved from 1,2,3 to 4,5,6, in order."""
    writes = recorded(f"{release}/reassign-123-456")["steps"][2]["writes"]
    return [write["data"] for write in writes if str(write.get("path")).endswith("/t/partitions/0/state")]


def test_few_brokers_leave_as_a_map_of_sixteen_buckets_has_them() -> None:
    """Up to four brokers come in the order in which those of the recorded reassignment left: 2.4.1's is not that of their ids."""
    isrs = [set(state["isr"]) for state in states("2.4.1")]
    left = [next(iter(before - after)) for before, after in itertools.pairwise(isrs) if before > after]
    assert in_order_of_hashes({1, 2, 3}) == left == [2, 1, 3]


def test_more_brokers_come_as_a_trie_has_them() -> None:
    """Five or more come in the order in which Kafka's own immutable sets, of equal hashes, were written to ZooKeeper."""
    sets = {json.dumps(state["isr"]) for release in ("2.4.1", "2.8.2") for state in states(release) if len(state["isr"]) > 4}
    assert len(sets) >= 4
    assert [isr for isr in map(json.loads, sets) if in_order_of_hashes(isr) != isr] == []
