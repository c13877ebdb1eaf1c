"""The case file against our controller, and the list of what is still missing."""

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import listed, read
from tests.conformance.runner import Result, run
from tests.conformance.validate import problems
from tests.originals import notice
from tests.tiers import slow_but

HERE = Path(__file__).resolve().parent
FILE = HERE / "controller.yaml"
OWN = HERE / "own.yaml"
NOT_YET = listed(HERE / "not_yet.txt")


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """Every case of the file, played once."""
    return list(run(read(FILE)))


def test_what_fails_is_what_the_list_names(results: list[Result]) -> None:
    """No case fails that the list does not name, and no case that it names passes; each failure says why."""
    failures = {result.id: result.actual for result in results if not result.ok}
    assert not {id: why for id, why in failures.items() if id not in NOT_YET}, "these cases fail and are not in not_yet.txt"
    assert not NOT_YET - failures.keys(), "these cases pass, or are none: take them out of not_yet.txt"


def test_what_is_promised_cannot_enter_the_list(results: list[Result]) -> None:
    """Of the cases of 2.8 about sessions, elections, transitions, brokers, fences, the queue and stored text every one passes."""
    kinds = {case["id"]: case["kind"] for case in read(FILE)}
    kept = ("pub-elect-", "pub-int-01", "pub-ctl-", "pub-fen-", "pub-brk-", "pub-unc-", "pub-isr-", "pub-psm-", "pub-rsm-")
    for result in results:
        if result.release == "2.8" and (result.id.startswith(kept) or kinds[result.id] in ("zk_client", "codec", "event_queue")):
            assert result.ok, f"{result.id}: {result.actual}"


def test_our_own_cases_hold() -> None:
    """What Kafka's classes were seen doing, or were read to do, beyond the given cases, our controller does too."""
    failures = {result.id: result.actual for result in run(read(OWN)) if not result.ok}
    assert not failures


def otherwise(value: Any) -> Any:
    """A value of the same kind that differs, as near to the leaves as possible."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1_000
        case str():
            return f"{value}x"
        case [first, *rest] if isinstance(first, dict):
            return [otherwise(first), *rest]
        case list():
            return [*value, 1_000]
        case dict() if value:
            name = next(iter(value))
            return value | {name: otherwise(value[name])}
    return 1_000


@pytest.mark.parametrize("path", slow_but([FILE, OWN], OWN), ids=["given", "own"])
def test_every_expectation_matters(path: Path) -> None:
    """Whichever key of `then` is given another value, in whichever case that holds, that case fails."""
    # What must not have been sent is left out: there another value is another thing that was not sent.
    for case in read(path):
        then = case.get("then", {})
        if case["version"] != "2.8" or case["id"] in NOT_YET:
            continue
        for name in then.keys() - {"requests_exclude"}:
            (result,) = run([case | {"then": then | {name: otherwise(then[name])}}])
            assert not result.ok, f"{case['id']} still holds with another {name}"


@pytest.mark.parametrize("name", ["controller", "own", "group", "group_own"])
def test_a_case_file_is_of_the_format(name: str) -> None:
    """The file obeys its schema, no id is there twice and no key either."""
    assert list(problems(HERE / f"{name}.yaml")) == []


@pytest.mark.shared
def test_our_copy_is_the_original(shared: Path) -> None:
    """Each copied file that differs from its original is a warning with the command that copies it."""
    names = [form.format(of) for of in ("controller", "group") for form in ("{}.yaml", "{}.schema.json", "FORMAT-{}.md")]
    notice({HERE / name: shared / "conformance" / name for name in names})
