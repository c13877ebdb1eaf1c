"""Each exercise: the stub fails with its message, the solution passes, wrong answers get a reason, mutations are refused."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from kcontrol.lab.exercises import answers
from kcontrol.lab.exercises.check_kinds import CHECKS, kind_of
from kcontrol.lab.exercises.examination import examine, known, prepared, report_of_wrong
from kcontrol.lab.exercises.exercises import FOLDER, judged, registry, verdict
from kcontrol.lab.exercises.verdicts import Verdict
from tests.exercises.mutations import mutations

SAMPLES = Path(__file__).parent / "samples"
Entry = dict[str, Any]

ENTRIES = [entry for folder in (FOLDER, SAMPLES) for entry in registry(folder).values()]
KEYS = {"title", "chapter", "verb", "text", "check", "minutes", "size", "stub", "solution", "open", "solved", "source", "hints"}
KEYS_OF_CHECKS = {
    "rule": {"replaces", "scenario"}, "row": {"replaces", "scenario"}, "function": {"case"}, "query": {"scenario"},
    "group_rule": {"replaces", "schedules"}, "invariant": {"scenario"},
    "value": {"scenario", "right"}, "reach": {"scenario", "goal", "allowed", "at_most", "par"},
}  # fmt: skip
MAY = {"id", "folder", "wrong", "any_of", "rest", "seconds"}.union(*KEYS_OF_CHECKS.values())
REFUSED_AT_LEAST = 5
# Mutations that are right all the same, with the reason; a mutation that passes and is not here is a fault of the check.
ALSO_RIGHT = {
    "what-compaction-keeps": [r"return \{key: value for key, value in reversed.*  # the order of a dictionary is nothing to =="],
    "fill-a-row": [r"return 'no replica is aliv.*'  # any text of a refusal is right"],
    "pauses": [r"for r in sorted\(.*  # the records of a group are those of one broker, in the order of their ids"],
    "lose-one-record": [r"acts = \[\('produce', 1, 't-0', '\w*', '1'\), .*  # what the record says is free"],
    "rolling-restart": [r"acts = .*\('start', 1\)(, \('run',\), \('run',\))?\]  # the cluster comes to rest at the end anyway"],
    "a-check-of-its-own": [r"answer = (0|12|False)  # even"],
    "begin-a-partition": [r"return 'n?one of its replicas is alive?x?'  # any text of a refusal is right"],
    "never-back-to-new": [
        r"moves = .* in reversed.*  # the order of moves is nothing to a set",
        r"led = .* in reversed.*  # nor here",
    ],
    "reach-a-stuck-move": [
        r"acts = .*\[3, 2\]\}\)\]  # who of the target is preferred is free",
        r"acts = .*, \('reassign', .*, \('reassign', .*  # the same request once more changes nothing",
    ],
    "assign-by-lag": [
        r"for tp in .*sorted.*lags\.keys\(\) - owned, .*  # the order in which free partitions are given away matters little",
        r"(assigned|owned) = .*reversed.*  # nor does the order of the members",
        r"return \(len\(held\), sum.*  # a sum counted twice, or backwards, gives the same order",
    ],
    "fill-range": [r"for place, name in sorted\(list\(enumerate\(sorted\(members\)\)\)\):  # the numbers are in order already"],
    "lock-without-herd": [
        r"before = .* in reversed.*  # the order of names is nothing to `max`",
        r"return max\(before, key=lambda name: name\[-(9|11):\], default=None\)  # the dash before it, or a leading zero less",
    ],
    "longest-wait": [r"begun = .*\['waited_ms', 'waited_ms'\]\)  # the same column, named twice"],
    "what-preemption-answers": [
        r".* in reversed\(list\(run.records\)\) .*  # the order of records is nothing to a set, nor to `all`",
        r"preempted = {r.id for r in run.records}  # an answer without a body comes of nothing else",
        r"return all.* if r.kind == 'respond'( or r.cause in preempted)?\)\)  # nor does it here",
        r"return all.* if r.cause in preempted\)\)  # what is thrown out causes nothing but its answer",
    ],
    "what-a-crash-leaves": [r"return all.* in reversed.*  # the order of rows is nothing to `all`"],
    "resume-or-wait": [r"if all.* in reversed.*  # the order of replicas is nothing to `all`"],
    "try-complete-join": [r"return all.* in reversed.*  # the order of members is nothing to `all`"],
    "bounded-end": [r"for .* in (reversed|sorted)\(list\(replicas.items\(\)\)\):  # the order of the replicas is free"],
    "offline-by-reason": [
        r"for window in (reversed|sorted)\(.*  # a sum does not depend on the order",
        r"found, last = .*records\[-2\].*  # the last records have one time",
    ],
    "who-rebalances": [
        r"(for r in|by_id, names =) .*(reversed|sorted).*  # the order of records is nothing to a count, nor to a dict",
        r"return .*(3600001|3599999|3600010|records\[-(2|11)\]).*  # the rate is rounded",
    ],
    "elect-under-a-bound": [r"for broker in (reversed|sorted)\(list\(assignment\)\):  # any live member of the ISR will do"],
    "state-a-new-promise": [r"return all.* in reversed.*  # the order of rows is nothing to `all`"],
    "state-an-invariant": [r"return all.* in reversed.*  # the order of rows is nothing to `all`"],
}


# Exercises of which one check takes long, and those of which eight checks do: slow in the tests that make so many.
LONG = {"assign-by-lag", "what-a-crash-leaves"}
LONG_EIGHT = {*LONG, "bounded-end", "elect-under-a-bound", "fewest-moves", "never-back-to-new", "state-an-invariant"}


def by_id(entries: list[Entry], long: Collection[str] = ()) -> Any:
    return [pytest.param(entry, id=entry["id"], marks=[pytest.mark.slow] * (entry["id"] in long)) for entry in entries]


@pytest.mark.parametrize("entry", by_id(ENTRIES))
def test_every_exercise_is_complete(entry: Entry) -> None:
    """Each has all that the notebooks, the shell, the class report and its check ask for, and no key that means nothing."""
    assert entry.keys() >= KEYS | KEYS_OF_CHECKS.get(entry["check"], set())
    assert entry.keys() <= KEYS | MAY
    assert entry["check"] in CHECKS or (Path(entry["folder"]) / entry["check"]).exists()
    assert entry["verb"] in ("Read", "Reach", "Order", "Fill", "Diagnose", "Query", "State", "Design")
    assert len(entry["hints"]) >= 2 and entry["text"].endswith(".")
    names = [wrong["misconception"] for wrong in entry["wrong"]]
    assert len(names) == len(set(names))
    assert {key for wrong in entry["wrong"] for key in wrong} <= {"misconception", "message", "code", "when"}


@pytest.mark.parametrize("entry", by_id(list(registry().values())))
def test_every_exercise_of_a_chapter_knows_mistakes(entry: Entry) -> None:
    """What people get wrong is the reason for an exercise: each names at least two such answers."""
    assert len(entry["wrong"]) >= 2


@pytest.mark.parametrize("entry", by_id(ENTRIES))
def test_no_hint_holds_the_solution(entry: Entry) -> None:
    """No line of the solution is in a hint, nor the value that it says."""
    text = (Path(entry["folder"]) / entry["solution"]).read_text().split('"""')[-1]
    lines = [line.strip().removeprefix(f"{answers.stub_slot(entry).name} = ") for line in text.splitlines()]
    code = [line for line in lines if len(line) > 8]
    assert not [line for line in code for hint in entry["hints"] if line in hint]


@pytest.mark.parametrize("entry", by_id(ENTRIES))
def test_the_stub_fails_with_its_own_message(entry: Entry) -> None:
    """The stub of an exercise gets the text `open` of its entry, and does not pass."""
    assert examine(entry, answers.shipped(entry, "stub")) == {"open": True}
    assert verdict(entry, {"open": True}) == Verdict(False, entry["open"])


@pytest.mark.parametrize("entry", by_id(ENTRIES))
def test_the_solution_passes(entry: Entry) -> None:
    """The solution is solved, and shows Kafka's rule, where it is, and kcontrol's code: the function, or else the solution."""
    said = verdict(entry, examine(entry, answers.shipped(entry, "solution")))
    assert said.passed and entry["solved"] in said.text and entry["source"] in said.text, said.text
    text = (Path(entry["folder"]) / entry["solution"]).read_text() if "replaces" not in entry else ""
    assert said.code and (said.code in text or said.code.startswith("def ")) and "# FILL IN" not in said.code


@pytest.mark.parametrize("entry", by_id(ENTRIES, LONG))
def test_listed_wrong_answers_get_their_own_messages(entry: Entry) -> None:
    """Each listed wrong answer fails with the first wrong case and its own message, not that of another listed one."""
    for number, listed in enumerate(entry["wrong"]):
        answer, found = answers.wrong(entry, listed), report_of_wrong(entry, number)
        assert found.get("passed") is False, (listed["misconception"], found)
        assert known(entry, answer, found) == number, listed["misconception"]
        said = verdict(entry, found | {"known": number})
        assert (said.passed, said.misconception) == (False, listed["misconception"])
        first, second = said.text.splitlines()[:2]
        assert first.startswith("Not yet. ") and len(first) > 30 and second == listed["message"]


@pytest.mark.parametrize("entry", by_id(list({entry["check"].partition("/")[0]: entry for entry in ENTRIES}.values())))
def test_each_kind_of_check_runs_in_the_process_of_an_answer(entry: Entry) -> None:
    """The verdicts on the solution and on a wrong answer are the same there as here: nothing is lost on the way."""
    listed = entry["wrong"][-1:]
    for answer in (answers.shipped(entry, "solution"), *(answers.wrong(entry, one) for one in listed)):
        here = examine(entry, answer)
        if not here["passed"]:
            here |= {"known": known(entry, answer, here)}
        assert repr(judged(entry, answer)) == repr(verdict(entry, here, f'exercises.hint("{entry["id"]}")'))


def passes(entry: Entry, answer: object) -> bool:
    """Return whether an answer is right; the check ends at its first wrong case."""
    return kind_of(entry).accepts(answer) and all(case.is_right for case in prepared(entry)(answer).cases)


@pytest.mark.parametrize("count", [8, pytest.param(None, marks=pytest.mark.slow)], ids=["eight", "all"])
@pytest.mark.parametrize("entry", by_id(ENTRIES, LONG_EIGHT))
def test_mutations_of_the_solution_are_refused(entry: Entry, count: int | None, at_most: Callable[..., Any]) -> None:
    """A mutated solution that is not in the list of mistakes is refused, unless it is known to be right."""
    begun, name = time.process_time(), answers.stub_slot(entry).name
    assert passes(entry, answers.shipped(entry, "solution"))
    limit_s = 1 + 2 * (time.process_time() - begun)
    changed = list(mutations((Path(entry["folder"]) / entry["solution"]).read_text()))
    passed, refused = list[str](), list[str]()
    for mutation in random.Random(entry["id"]).sample(changed, min(count or len(changed), len(changed))):
        try:
            is_right = at_most(limit_s, passes, entry, answers.answer_in(mutation.text, "mutation", name))
        except (Exception, SystemExit):  # a mutation may do anything; what it does is not right
            is_right = False
        (passed if is_right else refused).append(mutation.what)
    patterns = [line.split("  #")[0] for line in ALSO_RIGHT.get(entry["id"], ())]
    assert [what for what in passed if not any(re.fullmatch(pattern, what) for pattern in patterns)] == []
    assert count or len(refused) >= REFUSED_AT_LEAST, refused
