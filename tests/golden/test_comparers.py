"""Two comparisons of recordings, each written from the rule in `notebooks/recordings/README.md`, find the same.

`kcontrol/recordings/compare.py` is the one that a notebook shows; `compare.py` came with the recordings. Each recording is
compared with itself after one small change: a change that the rule leaves free, or one that the rule sees.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.golden.test_golden import FAST, FOLDERS, RECORDED, compared, recorded
from tests.tiers import slow_but

Golden = dict[str, Any]
STATE = "/state"


def steps(golden: Golden) -> list[dict[str, Any]]:
    """Return the steps of a recording, the last one first."""
    return golden["steps"][::-1]


def partition_of(write: dict[str, Any]) -> str | None:
    found = re.fullmatch(r"/brokers/topics/(.+/partitions/\d+)/state", write.get("path", ""))
    return found[1] if found else None


# ---------------------------------------------------------------- changes: each returns whether it has changed something


def swap_writes_of_one_broker(golden: Golden) -> bool:
    """Rule 1: two neighbouring creations of one broker, neither about a topic, change places."""
    for step in steps(golden):
        for i, (x, y) in enumerate(pairwise(step["writes"])):
            if x["op"] == y["op"] == "create" and x["by"] == y["by"] and not {"topics", "_notification"} & {*str(x).split("/")}:
                step["writes"][i : i + 2] = [y, x]
                return True
    return False


def swap_writes_on_two_partitions(golden: Golden) -> bool:
    """Rule 1, free: two neighbouring writes of one broker on the states of two partitions change places."""
    for step in steps(golden):
        for i, (x, y) in enumerate(pairwise(step["writes"])):
            if x["by"] == y["by"] and partition_of(x) and partition_of(y) and partition_of(x) != partition_of(y):
                step["writes"][i : i + 2] = [y, x]
                return True
    return False


def lose_the_last_write_of_a_state(golden: Golden) -> bool:
    """Rules 1 and 2: one write of a state znode is missing."""
    for step in steps(golden):
        for write in step["writes"][::-1]:
            if partition_of(write):
                step["writes"].remove(write)
                return True
    return False


def add_what_is_left_out(golden: Golden) -> bool:
    """Rule 4, free: each step has a rejected transaction, a notification and a block of producer ids more."""
    for step in golden["steps"]:
        step["writes"] += [
            {"by": 1, "op": "rejected", "codes": [-110]},
            {"by": 1, "op": "create", "path": "/isr_change_notification/isr_change_0000000099", "data": None, "ephemeral": False},
            {"by": 1, "op": "set", "path": "/latest_producer_id_block", "data": {}, "version": 99},
        ]
    return True


def reverse_an_isr(golden: Golden) -> bool:
    """Rules 2, 3 and 7: the last ISR of several members in a state znode is in another order; free from five members on."""
    for step in steps(golden):
        for path, znode in step["znodes"].items():
            data = znode["data"]
            if path.endswith(STATE) and isinstance(data, dict) and len(data.get("isr", ())) > 1:
                znode["data"] = {**data, "isr": data["isr"][::-1]}
                return True
    return False


def swap_transitions_of_one_partition(golden: Golden) -> bool:
    """Rule 5: two neighbouring and different transitions of one subject change places."""
    for step in steps(golden):
        for i, (x, y) in enumerate(pairwise(step["transitions"])):
            if x != y and (x["by"], x["subject"]) == (y["by"], y["subject"]):
                step["transitions"][i : i + 2] = [y, x]
                return True
    return False


def sort_transitions_by_partition(golden: Golden) -> bool:
    """Rule 5, free: transitions of different partitions have another order."""
    for step in golden["steps"]:
        step["transitions"].sort(key=lambda t: t["subject"].partition("@")[0], reverse=True)
    return True


def lose_a_transition(golden: Golden) -> bool:
    step = next((step for step in steps(golden) if step["transitions"]), None)
    return step is not None and bool(step["transitions"].pop())


def lose(api: str) -> Callable[[Golden], bool]:
    def lose_a_request(golden: Golden) -> bool:
        """Rules 6 and 9: the last request of this kind is missing."""
        for step in steps(golden):
            for request in step["requests"][::-1]:
                if request["api"] == api:
                    step["requests"].remove(request)
                    return True
        return False

    lose_a_request.__name__ = f"lose_{api}"
    return lose_a_request


def repeat_each_update_metadata(golden: Golden) -> bool:
    """Rule 6: the last UpdateMetadata comes twice; free where a leader has changed an ISR in the step."""
    for step in steps(golden):
        for i, request in [*enumerate(step["requests"])][::-1]:
            if request["api"] == "UpdateMetadata":
                step["requests"].insert(i, copy.deepcopy(request))
                return True
    return False


def sort_requests_by_receiver(golden: Golden) -> bool:
    """Rule 6, free: requests to different brokers have another order."""
    for step in golden["steps"]:
        step["requests"].sort(key=lambda r: r["to"])
    return True


def another_isr_in_a_request(golden: Golden) -> bool:
    """Rule 6: one entry says another ISR; free where the leader changed it in the step."""
    for step in steps(golden):
        for request in step["requests"]:
            for entry in request["partitions"].values():
                if "isr" in entry:
                    entry["isr"] = [*entry["isr"], 99]
                    return True
    return False


def another_version(golden: Golden) -> bool:
    """Rule 7: one znode at the end has been written once more."""
    golden["steps"][-1]["znodes"]["/controller_epoch"]["version"] += 1
    return True


def another_winner(golden: Golden) -> bool:
    """Rule 8: `/controller` has another owner at the end."""
    znode = golden["steps"][-1]["znodes"].get("/controller")
    if znode is None:
        return False
    znode["ephemeral_owner"] = 99
    return True


def later_terms_first(golden: Golden) -> bool:
    """Rule 9, free: requests of a sender's later controller epochs come before those of its earlier epochs."""
    for step in golden["steps"]:
        step["requests"].sort(key=lambda r: -r["controller_epoch"])
    return True


def reverse_a_reassignment(golden: Golden) -> bool:
    """Rule 9, free: the entries of `/admin/reassign_partitions` have another order."""
    found = False
    for step in golden["steps"]:
        values = [w.get("data") for w in step["writes"] if w.get("path") == "/admin/reassign_partitions"]
        values += [n["data"] for p, n in step["znodes"].items() if p == "/admin/reassign_partitions"]
        for value in values:
            if isinstance(value, dict):
                value["partitions"] = value["partitions"][::-1]
                found = True
    return found


def lose_the_last_requests_of_old_terms(golden: Golden) -> bool:
    """Rule 9: of each step's controllers but the last one, the last request is missing; free where that controller leaves."""
    found = False
    for step in golden["steps"]:
        terms = sorted({r["controller_epoch"] for r in step["requests"]})
        for term in terms[:-1]:
            last = [r for r in step["requests"] if r["controller_epoch"] == term][-1]
            step["requests"].remove(last)
            found = True
    return found


FREE: list[Callable[[Golden], bool]] = [
    swap_writes_on_two_partitions, add_what_is_left_out, sort_transitions_by_partition, sort_requests_by_receiver,
    later_terms_first, reverse_a_reassignment,
]  # fmt: skip
CHANGES: list[Callable[[Golden], bool]] = [
    *FREE, swap_writes_of_one_broker, lose_the_last_write_of_a_state, reverse_an_isr, swap_transitions_of_one_partition,
    lose_a_transition, lose("LeaderAndIsr"), lose("UpdateMetadata"), lose("StopReplica"), repeat_each_update_metadata,
    another_isr_in_a_request, another_version, another_winner, lose_the_last_requests_of_old_terms,
]  # fmt: skip


CHANGED = (
    "2.8.2/reassign-123-456", "2.8.2/controller-killed", "more/2.8.2/never-led-loop", "more/2.8.2/many",
    "more/0.10.2.2/resign-frozen-broker",
)  # fmt: skip


@pytest.mark.parametrize("folder", slow_but(FOLDERS, *(name.rstrip("/") for name in FAST)))
def test_two_comparisons_find_the_same_in_a_changed_recording(folder: str) -> None:
    """With one change in a recording both comparisons see the first difference in the same step, or none if it is free."""
    names = [name for name in RECORDED if name.rpartition("/")[0] == folder]
    for number, name in enumerate(names):
        golden = recorded(name)
        for change in CHANGES[number % 3 :: 3]:  # a third of the changes to each recording; neighbours share the rest
            other = copy.deepcopy(golden)
            found = compared(golden, other) if change(other) else None
            assert found is None or change not in FREE, (name, change.__name__, found)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.__name__))
def test_each_change_is_seen_or_free(change: Callable[[Golden], bool]) -> None:
    """Each change happens in one of these recordings; both comparisons see it in one of them, unless the rule leaves it free."""
    found = []
    for name in CHANGED:
        golden = recorded(name)
        other = copy.deepcopy(golden)
        if change(other):
            found.append(compared(golden, other))
    assert found
    assert any(found) is (change not in FREE), found
