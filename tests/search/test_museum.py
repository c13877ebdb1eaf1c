"""The museum: each published bug is found with its switch on, by a shortest run that is written here, and not with it off.

Source: the tickets of Kafka that the rows name, and the code of the releases before and after each fix.
"""

from __future__ import annotations

import pytest

from kcontrol.cluster.world import Action
from kcontrol.search.memo_world import why_plain
from kcontrol.search.museum import BY_RULE, MUSEUM, Exhibit
from kcontrol.search.search import FOUND

QUICK_S, PLAIN_S = 60, 300
EACH = pytest.mark.parametrize("row", MUSEUM, ids=lambda row: row.ticket)


def on(broker: int, times: int, thread: str = "controller") -> list[Action]:
    return [("advance", broker, thread)] * times


def notified(broker: int) -> list[Action]:
    """A broker receives the next notification and begins to handle the event."""
    return [("deliver_notification", broker), ("begin", broker, "controller")]


B = "b-27e01c30b8738c96ea9f44179c9fcf50"
SHORTEST: dict[str, list[Action]] = {
    "fenced_writes": [*notified(1), *on(1, 4), ("delete", "/controller"), *notified(2), *on(2, 5), *on(1, 1)],
    "handlers_outlive_session": [*notified(1), *on(1, 4), ("expire_session", 1), ("renew", 1), ("reconnect", 1), *on(1, 1)],
    "broker_epochs": [
        *on(2, 2, "main"), ("expire_session", 2), *on(2, 3, "main"), ("begin", 2, "controller"), *on(2, 2),
        ("deliver_notification", 1), *notified(1), *on(1, 2),
    ],
    "ends_removed_sessions": [
        ("join", "a"), ("fire_timer", 1, "join g"), ("begin", 1, "coordinator"),
        ("fire_timer", 1, f"session g {B}"), ("begin", 1, "coordinator"),
    ],
}  # fmt: skip


PLAIN = "KAFKA-7196"  # the row whose search is the plain one, which takes longer
ROWS = [pytest.param(row, id=row.ticket, marks=[pytest.mark.slow] * (row.ticket == PLAIN)) for row in MUSEUM]


@pytest.mark.parametrize("row", ROWS)
def test_the_bug_is_found(row: Exhibit) -> None:
    """With the switch on, the search finds the shortest run, which breaks the invariant of the row, within its budget."""
    found = row.search()
    assert found.ended_by == FOUND and found.violation is not None and found.violation.startswith(f"{row.invariant}: ")
    assert list(found.actions) == SHORTEST[row.rule]


@pytest.mark.slow
@EACH
def test_the_fixed_cluster_keeps_the_promise(row: Exhibit) -> None:
    """With all switches off, the search under the budget of the row finds nothing, and no bound on its time or states ends it."""
    result = row.search(restored=False)
    assert result.violation is None
    assert result.ended_by in ("steps", "faults") and result.states > 100


@EACH
def test_a_budget_is_sixty_seconds_or_three_hundred(row: Exhibit) -> None:
    """The quick engine has sixty seconds; the plain engine, which searches consumer groups alone here, has three hundred."""
    assert row.budget.seconds == (PLAIN_S if why_plain(row.world()) else QUICK_S)
    assert bool(why_plain(row.world())) is (row.ticket == PLAIN)


def test_the_rows_of_the_rules_say_the_releases() -> None:
    """The fix of a bug is the first release of the other value of its rule."""
    fixes = {row.ticket: row.releases for row in MUSEUM}
    assert fixes == {
        "KAFKA-6082": ("0.8.0", "2.1.0"), "KAFKA-3083": ("0.8.0", "1.1.0"), "KAFKA-7235": ("0.8.0", "2.2.0"),
        "KAFKA-7196": ("0.9.0", "2.0.1"),
    }  # fmt: skip


@pytest.mark.parametrize("rule", ["handlers_outlive_session", "broker_epochs"])
def test_the_fence_holds_under_the_other_switches(rule: str) -> None:
    """With the bug of another row alone, the search for KAFKA-6082 finds no deposed controller that writes."""
    other, row = BY_RULE[rule], BY_RULE["fenced_writes"]
    swapped = row._replace(rule=rule, restored=other.restored)
    assert swapped.search().violation is None
