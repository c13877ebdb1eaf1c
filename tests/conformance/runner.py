"""Plays cases and says of each whether our controller did what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from tests.conformance import kinds_decisions, kinds_memory, kinds_threads, kinds_zookeeper, scenario
from tests.conformance.cases import Case
from tests.conformance.group import kinds as group_kinds
from tests.conformance.values import CannotPlay, look_up, plain

KINDS: dict[str, Callable[[Case], dict[str, Any]]] = {
    **kinds_decisions.KINDS, **kinds_memory.KINDS, **kinds_threads.KINDS, **kinds_zookeeper.KINDS, **scenario.KINDS,
}  # fmt: skip


class Result(NamedTuple):
    """What came of one case under one release. `actual` has the keys of `expected`, or is a sentence if it was not played."""

    id: str
    release: str
    ok: bool
    expected: Any
    actual: Any


def run(cases: Iterable[Case]) -> Iterator[Result]:
    """Every case once for each release that it speaks of."""
    for case in cases:
        for release in case.get("applies_to", [case.get("version", "")]):
            yield play(case, str(release))


def play(case: Case, release: str) -> Result:
    """Play one case. Whatever goes wrong on the way is a failure of this case that says what it was."""
    if "applies_to" in case:
        return play_group(case, release)
    expected = plain(expectation(case))
    try:
        if not expected:
            raise CannotPlay("the case expects nothing")
        found = look_up(KINDS, "kind", case["kind"])(case)
        unknown = [key for key in expected if key not in found]
        if unknown:
            raise CannotPlay.unknown("key of then", unknown[0], found)
        actual = {key: plain(found[key]) for key in expected}
    except CannotPlay as refusal:
        return Result(str(case["id"]), release, False, expected, str(refusal))
    except Exception as error:  # a case must not stop the others
        return Result(str(case["id"]), release, False, expected, f"{type(error).__name__}: {error}")
    return Result(str(case["id"]), release, actual == expected, expected, actual)


def play_group(case: Case, release: str) -> Result:
    """A case for the group coordinator: its expectations are partial, and are compared as their format says."""
    try:
        expected, actual = look_up(group_kinds.KINDS, "kind", case["kind"])(case, release)
    except CannotPlay as refusal:
        return Result(str(case["id"]), release, False, case["then"], str(refusal))
    except Exception as error:  # a case must not stop the others
        return Result(str(case["id"]), release, False, case["then"], f"{type(error).__name__}: {error}")
    return Result(str(case["id"]), release, expected == actual, plain(expected), plain(actual))


def expectation(case: Case) -> dict[str, Any]:
    """What must hold: `then`, and each `expect` among the steps."""
    steps = case.get("when") or []
    halfway = [step["expect"] for step in steps if isinstance(step, dict) and "expect" in step]
    return dict(case.get("then") or {}) | ({"expect": halfway} if halfway else {})


def differences(expected: Any, actual: Any, path: str = "then") -> Iterator[str]:
    """Where the two differ, one sentence each."""
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys():
        for key in expected:
            yield from differences(expected[key], actual[key], f"{path}.{key}")
    elif expected != actual:
        yield f"{path}: expected {expected}, actual {actual}"
