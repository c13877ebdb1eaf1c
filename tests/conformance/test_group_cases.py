"""The case file of the group coordinator, the list of what fails, and that each expectation matters."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import Case, listed, read
from tests.conformance.group.coordinator import VERBS
from tests.conformance.group.kinds import KINDS
from tests.conformance.runner import Result, run
from tests.conformance.test_cases import otherwise
from tests.tiers import slow_but

HERE = Path(__file__).resolve().parent
FILE = HERE / "group.yaml"
OWN = HERE / "group_own.yaml"
NOT_YET = listed(HERE / "group_not_yet.txt")


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """Every case of the file, played once for each release."""
    return list(run(read(FILE)))


def test_what_fails_is_what_the_list_names(results: list[Result]) -> None:
    """No case fails that the list does not name, and no case that it names passes; each failure says why."""
    failures = {f"{result.id}@{result.release}": result.actual for result in results if not result.ok}
    assert not {id: why for id, why in failures.items() if id not in NOT_YET}, "these cases fail and are not in the list"
    assert not NOT_YET - failures.keys(), "these cases pass, or are none: take them out of the list"


def test_our_own_cases_hold() -> None:
    """What Kafka's classes were read to do beyond the given cases, our coordinator does too."""
    failures = {f"{result.id}@{result.release}": result.actual for result in run(read(OWN)) if not result.ok}
    assert not failures


def test_every_kind_and_verb_of_the_format_is_played() -> None:
    """What the schema lists, the runner knows, and nothing else."""
    schema = json.loads((HERE / "group.schema.json").read_text())
    document = read(FILE)
    verbs = {step["do"] for case in document if case["kind"] == "coordinator" for step in case.get("when", ())}
    assert {case["kind"] for case in document} == set(KINDS) <= set(_constants(schema, "kind"))
    assert verbs <= set(VERBS) <= set(_constants(schema, "do"))


def _constants(value: Any, name: str) -> list[str]:
    """All constants that a property of this name can have."""
    found: list[str] = []
    if isinstance(value, dict):
        held = value.get(name)
        if isinstance(held, dict):
            found += [held["const"]] if "const" in held else held.get("enum", [])
        for item in value.values():
            found += _constants(item, name)
    elif isinstance(value, list):
        for item in value:
            found += _constants(item, name)
    return found


ERROR = {"NONE": "ILLEGAL_GENERATION"}


def another(key: str, value: Any) -> Any:
    """Another value of the same form: errors stay errors, so that the comparison is what refuses."""
    if key in ("error", "errors", "member_errors"):
        if isinstance(value, str):
            return ERROR.get(value, "NONE")
        if isinstance(value, list):
            return [another(key, item) for item in value] or ["NONE"]
        return {name: another(key, item) for name, item in value.items()} or {"t-0": "NONE"}
    if isinstance(value, str) and value.startswith("$"):
        return "no-member"
    return otherwise(value)


def branches(case: Case, release: str) -> dict[str, Any]:
    then: dict[str, Any] = case["then"].get("by_release", {}).get(release) or case["then"]
    return then


@pytest.mark.parametrize("path", slow_but([FILE, OWN], OWN), ids=["given", "own"])
def test_every_expectation_of_a_coordinator_matters(path: Path) -> None:
    """Whichever field of whichever label is given another value, the case fails for that release."""
    for case in read(path):
        if case["kind"] != "coordinator":
            continue
        for release in case["applies_to"]:
            then = branches(case, release)
            for label, fields in then.items():
                for key, value in fields.items():
                    changed = then | {label: fields | {key: another(key, value)}}
                    (result,) = run([case | {"applies_to": [release], "then": changed}])
                    assert not result.ok, f"{case['id']}@{release} still holds with another {label}.{key}"
