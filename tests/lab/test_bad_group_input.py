"""Bad arguments about consumer groups, in both recorded releases: one short sentence, or Kafka's error, and no change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import to_json
from tests.lab.group_runs import stable

LONG = "x" * 40_000
NO_NAMES = (None, True, -1, 1.5, b"x", [], ["anna"], {"a": 1}, object(), "", " ", LONG, "<b>&", "a\nb", "ü😀", "\ud800", "zoe")
RUNS = {"0.9.0.1": stable("0.9"), "2.8.2": stable("2.8")}
Ask = Callable[[Lab, Any], object]

# fmt: off
ASKED: dict[str, Ask] = {
    "join":            lambda lab, value: lab.group.join(value),
    "sync":            lambda lab, value: lab.group.sync(value),
    "heartbeat":       lambda lab, value: lab.group.heartbeat(value),
    "leave":           lambda lab, value: lab.group.leave(value),
    "freeze":          lambda lab, value: lab.group.freeze_consumer(value),
    "restart":         lambda lab, value: lab.group.restart(value),
    "expire":          lambda lab, value: lab.group.expire_poll_interval(value),
    "find":            lambda lab, value: lab.group.find_coordinator(value, 1),
    "commit":          lambda lab, value: lab.commit(value, "t-0", 1),
    "partition":       lambda lab, value: lab.commit("anna", value, 1),
    "dance":           lambda lab, value: lab.step((value, "anna")),
    "request":         lambda lab, value: lab.step(("coordinator_request", "anna", value, 0, {"group": "billing"})),
    "fields":          lambda lab, value: lab.step(("coordinator_request", "anna", "SyncGroup", 0, value)),
    "subscription":    lambda lab, value: lab.step(("coordinator_request", "anna", "JoinGroup", 0, {
        "group": "billing", "member": "", "session": 10_000, "type": "consumer", "protocols": [["range", value or "0"]]})),
    "assignment":      lambda lab, value: lab.step(("coordinator_request", "anna", "SyncGroup", 0, {
        "group": "billing", "member": "m", "gen": 1, "assignment": {"m": value or "0"}})),
    "client":          lambda lab, value: lab.step(("coordinator_request", value, "Heartbeat", 0, {
        "group": "billing", "member": "m", "gen": 1})),
    "version":         lambda lab, value: lab.step(("coordinator_request", "cli", "DescribeGroups",
                                                    value if value != -1 else "1", {"groups": ["billing"]})),
    "about":           lambda lab, value: lab.step(("describe_group", 1, value if value != ["anna"] else 1)),
    "second group":    lambda lab, value: lab.group.delete_groups("billing", value if not isinstance(value, str) else 7),
    "strip":           lambda lab, value: lab.group_strip(value if value is not None else 7),
    "why":             lambda lab, value: lab.why(f"generation of {value}"),
    "rewind":          lambda lab, value: lab.rewind(value if value != -1 else 10**9),
    "ballots":         lambda lab, value: lab.tables.ballots(value if value is not None else 7),
    "reactions":       lambda lab, value: lab.tables.reactions(value if value is not None else 7),
    "table_sql":       lambda lab, value: lab.tables.table_sql(value),
}
# fmt: on


def state(lab: Lab) -> tuple[Any, ...]:
    """Return what an action could have changed."""
    return len(lab.records), to_json(lab.state), lab.actions()


@pytest.mark.parametrize("release", RUNS)
@pytest.mark.parametrize("about", ASKED)
def test_a_wrong_value_is_one_short_sentence(about: str, release: str) -> None:
    """A value of another kind, an unknown or very long name, and markup change nothing; each gets one sentence."""
    lab = RUNS[release]
    before = state(lab)
    for value in NO_NAMES:
        with pytest.raises(UserError) as problem:
            ASKED[about](lab, value)
        said = str(problem.value)
        assert said.endswith(".") and "\n" not in said and len(said) <= 1_500, (value, said[:200])
        assert state(lab) == before, value


@pytest.mark.parametrize("release", RUNS)
@pytest.mark.parametrize("request_name", ["DescribeGroups", "ListGroups"])
def test_a_request_without_a_group_has_a_response(release: str, request_name: str) -> None:
    """A request of an administrator with an empty group id has a row in the table of responses, and its state is unchanged."""
    lab = RUNS[release].branch()
    groups = to_json(lab.state["nodes"]["1"]["group"]["groups"])
    fields = {"group": ""} if request_name == "DescribeGroups" else {}
    lab.step(("coordinator_request", "cli", request_name, 0, fields)).run()
    assert lab.tables.group_responses().iloc[-1].request == request_name
    assert to_json(lab.state["nodes"]["1"]["group"]["groups"]) == groups
    lab.close()


def test_a_refusal_about_a_long_name_is_one_short_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The printed sentence about a group with a long name, or with a line break, is one line with the beginning of the name."""
    lab = RUNS["2.8.2"].branch()
    for name in ("x" * 30_000, "a\nb"):
        lab.group.delete_groups(name).run()
        said = capsys.readouterr().out
        assert said.count("\n") == 1 and "GROUP_ID_NOT_FOUND (69)" in said and len(said) < 300
    lab.close()
