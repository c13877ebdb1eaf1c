"""The check of a rule of groups: the answer runs in the coordinator, in schedules that depend on their number alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from kcontrol.lab.exercises.checks import Case, UnusableAnswer
from kcontrol.lab.exercises.exercises import exercise
from kcontrol.lab.exercises.group_checks import group_rule

ENTRY = exercise("try-complete-join") | {
    "schedules": [{"release": release, "count": 2, "actions": 30} for release in ("0.9", "2.8")]
}


def cases_of(entry: dict[str, Any], answer: Any) -> list[Case]:
    return list(group_rule(entry)(answer).cases)


def test_every_answer_meets_the_same_calls() -> None:
    """An answer that is always wrong is asked what the right one is asked, since Kafka's result is used after each call."""
    one, other = ([case.expected for case in cases_of(ENTRY, answer)] for answer in (lambda _: "x", lambda _: True))
    assert one == other and {True, False} <= set(one) and len(one) > 20


def test_pending_ids_come_up() -> None:
    """Under 2.8 some call has a member id that no JoinGroup has used yet, and some call has no member at all."""
    asked: list[Any] = []
    cases_of(ENTRY, lambda members: asked.append(members))
    assert any(member.is_pending for members in asked for member in members) and [] in asked


def test_an_answer_that_raises() -> None:
    """The sentence about it has the error, the schedule, the act before the call, and the arguments."""

    def raises(members: Any) -> bool:
        return bool(members[7])

    with pytest.raises(
        UnusableAnswer, match=r"IndexError.*Kafka 0\.9, schedule 0: \w+ sends JoinGroup; .*JoiningMember\(member_id="
    ):
        cases_of(ENTRY, raises)


UNLOADED = {"replaces": "group.unloaded", "schedules": [{"release": "0.9", "count": 10, "actions": 40, "moves": True}]}


def test_moves_find_both_parked_requests() -> None:
    """The leader of the partition moves while a JoinGroup waits, and while a SyncGroup waits, by the release's state names."""
    asked: list[tuple[str, str]] = []
    cases = cases_of(UNLOADED, lambda state, parked: asked.append((state, parked)))
    assert set(asked) == {("PreparingRebalance", "JoinGroup"), ("AwaitingSync", "SyncGroup")}
    assert {case.expected for case in cases} == {"NOT_COORDINATOR"}


def test_the_sentence_of_a_case_begins_with_a_capital_letter() -> None:
    """The title of a case, such as "no heartbeat since ...", begins its sentence in the verdict with a capital letter."""
    cases = cases_of(exercise("unloaded") | {"schedules": []}, lambda state, parked: None)
    assert cases and all(case.text[0].isupper() for case in cases)


def test_schedules_and_cases_find_different_answers() -> None:
    """A rule that keeps parked members alone passes each schedule of keep-alive, and fails in the cases of a later heartbeat."""
    entry = dict(exercise("keep-alive"))
    assert entry["check"] == "group_rule" and entry["case"]
    alone, both = (cases_of(one, lambda latest, session, deadline, parked: parked) for one in (entry | {"case": []}, entry))
    assert alone and all(case.is_right for case in alone)
    assert any(not case.is_right for case in both)


def test_offsets_expire_in_schedules() -> None:
    """Offsets of groups with members, without members and of no group are asked about; in each release some of them expire."""
    asked: list[Any] = []
    entry = exercise("expired") | {"case": []}
    cases = cases_of(entry, lambda offset, group, now: asked.append((group.expiry, group.state, group.protocol_type)))
    assert {expiry for expiry, _, _ in asked} == {"commit", "unsubscribed"}
    assert {state for expiry, state, _ in asked if expiry == "unsubscribed"} >= {"Empty", "Stable", "PreparingRebalance"}
    assert {("unsubscribed", "Empty", None), ("unsubscribed", "Empty", "consumer")} <= set(asked)
    assert {(case.expected, "Kafka 0.9" in case.text) for case in cases} == set(product((True, False), repeat=2))
