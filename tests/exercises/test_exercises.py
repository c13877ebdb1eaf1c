"""Every exercise: stubs fail with their message, solutions pass, wrong answers are told why, mutations are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kcontrol.lab.exercises import answers, sandbox_main
from kcontrol.lab.exercises.check_kinds import CHECKS, kind_of
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
    "fill-a-row": [r"return 'nobody is aliv.*'  # the words of a refusal are free"],
    "pauses": [r"for r in sorted\(.*  # the records of a group are those of one broker, in the order of their ids"],
    "lose-one-record": [r"acts = \[\('produce', 1, 't-0', '\w*', '1'\), .*  # what the record says is free"],
    "rolling-restart": [r"acts = .*\('start', 1\)(, \('run',\), \('run',\))?\]  # the cluster comes to rest at the end anyway"],
    "a-check-of-its-own": [r"answer = (0|12|False)  # even"],
    "begin-a-partition": [r"return 'n?one of its replicas is alive?x?'  # the words of a refusal are free"],
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
    "bounded-end": [r"for .* in (reversed|sorted)\(list\(replicas.items\(\)\)\):  # with whom one begins is free"],
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


def by_id(entries: list[Entry]) -> Any:
    return [pytest.param(entry, id=entry["id"]) for entry in entries]


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
    """Whoever has not begun is told so."""
    assert sandbox_main.examine(entry, answers.shipped(entry, "stub")) == {"open": True}
    assert verdict(entry, {"open": True}) == Verdict(False, entry["open"])


@pytest.mark.parametrize("entry", by_id(ENTRIES))
def test_the_solution_passes(entry: Entry) -> None:
    """The solution is solved, and shows Kafka's rule and where it is."""
    said = judged(entry, answers.shipped(entry, "solution"))
    assert said.passed and entry["solved"] in said.text and entry["source"] in said.text, said.text


@pytest.mark.parametrize("entry", by_id(ENTRIES))
def test_listed_wrong_answers_get_their_own_messages(entry: Entry) -> None:
    """Each listed wrong answer fails, and is recognised as itself and not as another one that is listed."""
    mark = kind_of(entry).prepare(entry)
    for number, listed in enumerate(entry["wrong"]):
        answer = answers.wrong(entry, listed)
        found = sandbox_main.examine(entry, answer, mark)
        assert found.get("passed") is False, (listed["misconception"], found)
        assert sandbox_main.known(entry, answer, found, mark) == number, listed["misconception"]


@pytest.mark.parametrize("entry", by_id([entry for entry in ENTRIES if entry["wrong"]]))
def test_a_listed_wrong_answer_through_the_front_door(entry: Entry) -> None:
    """A wrong answer shows where it went wrong, then the message of its misconception."""
    listed = entry["wrong"][-1]
    said = judged(entry, answers.wrong(entry, listed))
    assert (said.passed, said.misconception) == (False, listed["misconception"])
    first, second = said.text.splitlines()[:2]
    assert first.startswith("Not yet. ") and len(first) > 30 and second == listed["message"]


@pytest.mark.parametrize("entry", by_id(ENTRIES))
def test_mutations_of_the_solution_are_refused(entry: Entry, at_most: Callable[..., Any]) -> None:
    """At least five wrong answers that nobody has listed are refused, and none passes but those that are known to be right."""
    mark, refused, passed = kind_of(entry).prepare(entry), list[str](), list[str]()
    text = (Path(entry["folder"]) / entry["solution"]).read_text()
    for changed in mutations(text):
        try:
            answer = answers.answer_in(changed.text, "mutation", answers.stub_slot(entry).name)
            found = at_most(5, sandbox_main.examine, entry, answer, mark)
        except (Exception, SystemExit) as error:  # a mutation may do anything; what it does is not right
            found = {"problem": repr(error)}
        (passed if found.get("passed") else refused).append(changed.what)
    patterns = [line.split("  #")[0] for line in ALSO_RIGHT.get(entry["id"], ())]
    print(f"{entry['id']}: {len(refused)} refused, {len(passed)} right all the same")
    assert [what for what in passed if not any(re.fullmatch(pattern, what) for pattern in patterns)] == []
    assert len(refused) >= REFUSED_AT_LEAST, refused
