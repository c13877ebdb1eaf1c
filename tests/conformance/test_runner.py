"""The runner itself: what it says about cases that fail, that it cannot play, and about files that are none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conformance.__main__ import main
from tests.conformance.validate import problems

SCENARIO = {
    "id": "own-1",
    "kind": "scenario",
    "version": "2.8",
    "origin": "this test",
    "verified": "source",
    "given": {"brokers": [1, 2], "controller": 1, "partitions": {"t-0": {"replicas": [1, 2]}}},
    "when": [{"broker_down": 2}],
    "then": {"state": {"t-0": {"leader": 1, "isr": [1], "leader_epoch": 1}}},
}
META = {"format_version": 2, "component": "controller", "format": "F", "schema": "controller.schema.json", "kinds": ["scenario"]}


def written(tmp_path: Path, *cases: object) -> Path:
    """A case file with these cases."""
    path = tmp_path / "cases.yaml"
    path.write_text(yaml.safe_dump({"meta": META, "cases": list(cases)}, sort_keys=False))
    return path


def played(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[dict[str, object]], str]:
    """The exit code, the results and the last line of a run with --json."""
    code = main([str(path), "--json", *options])
    lines = capsys.readouterr().out.splitlines()
    return code, [json.loads(line) for line in lines[:-1]], lines[-1]


def test_a_case_that_holds_is_one_json_object_and_exit_code_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A passing case prints id, release, ok, expected and actual, and the run ends with the count and 0."""
    code, results, last = played(written(tmp_path, SCENARIO), capsys)
    then = {"state": {"t-0": {"leader": 1, "isr": [1], "leader_epoch": 1}}}
    assert results == [{"id": "own-1", "release": "2.8", "ok": True, "expected": then, "actual": then}]
    assert (code, last) == (0, "1 passed, 0 failed")


def test_a_wrong_expectation_is_reported_with_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A failing case shows what was expected and what happened, others still count, and the exit code is 1."""
    wrong = SCENARIO | {"id": "own-2", "then": {"state": {"t-0": {"leader": 2}}, "active": {1: True}}}
    code, results, last = played(written(tmp_path, wrong, SCENARIO), capsys)
    assert results[0]["ok"] is False
    assert results[0]["expected"] == {"state": {"t-0": {"leader": 2}}, "active": {"1": True}}
    assert results[0]["actual"] == {"state": {"t-0": {"leader": 1}}, "active": {"1": True}}
    assert (code, last) == (1, "1 passed, 1 failed")


def test_in_words_a_difference_names_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json a failure is followed by the path of what differs and both values, and nothing else."""
    wrong = SCENARIO | {"then": {"state": {"t-0": {"leader": 2, "isr": [1]}}}}
    assert main([str(written(tmp_path, wrong))]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out == ["FAIL own-1@2.8", "     then.state.t-0.leader: expected 2, actual 1", "0 passed, 1 failed"]


@pytest.mark.parametrize(("change", "named"), [
    ({"kind": "seance"}, "unknown kind 'seance'"),
    ({"when": [{"levitate": 1}]}, "unknown action 'levitate'"),
    ({"then": {"aura": "green"}}, "unknown check 'aura'"),
    ({"given": SCENARIO["given"] | {"weather": "fine"}}, "unknown key of given 'weather'"),
    ({"when": [{"inject": {"before_write": "/x", "do": {"broker_down": 1}}}]}, "unknown action to inject 'broker_down'"),
    ({"given": {"brokers": [1], "controller": 1}, "when": [{"put_event": {"event": "Seance"}}]}, "no event Seance"),
    ({"then": {"context": {"aura": []}}}, "unknown key of context 'aura'"),
    ({"when": [{"broker_down": 9}]}, "broker 9 does not live"),
    ({"then": {}}, "expects nothing"),
    ({"given": None}, "AttributeError"),
])  # fmt: skip
def test_what_is_not_known_fails_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], named: str
) -> None:
    """A kind, an action, a check or a key that is not known, or a case that expects nothing, fails and says what it was."""
    code, results, _ = played(written(tmp_path, SCENARIO | change), capsys)
    assert code == 1
    assert results[0]["ok"] is False
    assert named in str(results[0]["actual"])


def test_a_request_that_must_not_be_sent_is_shown_if_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern of requests_exclude that matches makes the case fail and shows the request."""
    sent = SCENARIO | {"then": {"requests_exclude": [{"api": "StopReplica"}, {"api": "LeaderAndIsr", "to": 1}]}}
    code, results, _ = played(written(tmp_path, sent), capsys)
    assert code == 1
    shown = results[0]["actual"]["requests_exclude"]["matched all the same"]  # type: ignore[index]
    assert [(request["api"], request["to"]) for request in shown] == [("LeaderAndIsr", 1)]


def test_only_picks_one_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--only plays the case of that id; an id that is not there is an error of its own."""
    path = written(tmp_path, SCENARIO, SCENARIO | {"id": "own-2"})
    _, results, _ = played(path, capsys, "--only", "own-2")
    assert [result["id"] for result in results] == ["own-2"]
    assert main([str(path), "--only", "own-3"]) == 2
    assert "has no case 'own-3'" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "cases: []", "cases: [1]", "a: {b: 1, b: 2}", "{{", "just words"])
def test_a_file_without_cases_is_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """What is no case file ends with exit code 2 and one line on stderr, and no traceback."""
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert main([str(path)]) == 2
    assert main([str(tmp_path / "missing.yaml")]) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 2
    assert not captured.out


def test_a_case_that_speaks_of_several_releases_is_played_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case of the other format, with `applies_to`, fails once per release and names its kind."""
    case = {"id": "g-1", "kind": "hash", "applies_to": ["0.9", "2.8"], "given": {}, "then": {"rows": []}}
    _, results, last = played(written(tmp_path, case), capsys)
    assert [result["release"] for result in results] == ["0.9", "2.8"]
    assert last == "0 passed, 2 failed"


def test_it_runs_as_a_module_from_any_folder_on_an_absolute_path(tmp_path: Path) -> None:
    """`python -m tests.conformance /absolute/FILE` works from another folder and without pytest."""
    command = [sys.executable, "-m", "tests.conformance", str(written(tmp_path, SCENARIO))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:], done.stderr) == (0, ["1 passed, 0 failed"], "")


def test_the_validator_finds_what_the_schema_and_the_format_forbid(tmp_path: Path) -> None:
    """An unknown key, an id that is there twice and a missing response are each reported under the case's id."""
    fencing = {"broker": 1, "broker_epoch": 5, "controller_epoch": 1, "leader_epoch": 0}
    request = {"api": "UpdateMetadata", "broker_epoch": 5, "controller_epoch": 1}
    two = {**SCENARIO, "id": "own-2", "kind": "broker_fencing", "given": fencing, "when": [request], "then": {"responses": []}}
    found = list(problems(written(tmp_path, SCENARIO | {"mood": 1}, SCENARIO, two)))
    assert [problem.split(":")[0].split()[0] for problem in found] == ["own-1", "own-1", "own-2"]
