"""Our controller against recordings of real brokers of several releases: writes, transitions, requests and znodes.

The recordings in `recordings/` were made with official Kafka brokers; `not_yet.toml` lists those that still differ, so that the
list can only shrink.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kcontrol.core.znodes import CONTROLLER
from kcontrol.recordings.compare import first_difference
from kcontrol.recordings.player import STEPS
from tests.golden import __main__ as command
from tests.golden.__main__ import difference, main, not_yet
from tests.golden.compare import Compare, Difference
from tests.originals import by_name, notice
from tests.tiers import slow_but

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
RELEASES = ("0.8.0", "0.8.1.1", "0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.4.1", "2.8.2", "3.9.1")
USUAL = "2.8.2"  # the release of a world for which none is named
FOLDERS = (*RELEASES, *(f"more/{release}" for release in RELEASES))  # those in `more` are our own, of official brokers
RECORDED = sorted(f"{folder}/{path.stem}" for folder in FOLDERS for path in (RECORDINGS / folder).glob("*.json"))
FAST = ("0.8.2.2/", "1.0.2/", "2.8.2/")  # a release of each design
MUST_AGREE = ("start-order-321", "leader-killed", "controller-killed", "controller-znode-deleted", "controller-znode-overwritten",
              "cluster-restarted")  # fmt: skip


def recorded(name: str) -> dict[str, Any]:
    """One recording, by release and scenario; without a release it is of the usual one."""
    golden: dict[str, Any] = json.loads((RECORDINGS / f"{name if '/' in name else f'{USUAL}/{name}'}.json").read_text())
    return golden


@cache
def played(scenario: str) -> str:
    """What our brokers did in a scenario, as JSON in the format of the recordings."""
    return json.dumps(command.played(recorded(scenario)))


def done_as_in(golden: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """Our side with the recorder's words for the actions of a step, which the comparison that came with the recordings reads."""
    theirs = (step["do"] for step in golden["steps"])
    return {**ours, "steps": [{**step, "do": do} for step, do in zip(ours["steps"], theirs, strict=False)]}


def compared(golden: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """The first difference in words, or None. The comparison that came with the recordings must see one in the same step."""
    found, theirs = first_difference(golden, ours), ""
    try:
        Compare(golden, done_as_in(golden, ours), ["writes", "znodes", "transitions", "requests"]).run()
    except Difference as difference:
        theirs = str(difference)
    assert bool(found) == bool(theirs), (found, theirs)
    assert found is None or theirs.startswith((f"step {found.step} ", f"{len(ours['steps'])} steps")), (found, theirs)
    return str(found) if found else None


@pytest.mark.parametrize("name", slow_but(RECORDED, *(name for name in RECORDED if any(map(name.startswith, FAST)))))
def test_our_controller_does_what_kafkas_did(name: str) -> None:
    """Played by our brokers a recording shows no difference, unless not_yet.toml lists it; one that it lists does differ."""
    found, _ = difference(recorded(name))
    if name in not_yet():
        assert found is not None, "it agrees now: take it out of not_yet.toml"
    else:
        assert found is None, found


def test_the_list_of_what_differs_names_recordings_with_reasons() -> None:
    """Each line of not_yet.toml is a recording that is there, with a reason; none of those that must agree is among them."""
    assert {name for name in not_yet() if not (HERE / "recordings" / f"{name}.json").is_file()} == set()
    assert all(row["why"].strip() for row in not_yet().values())
    agreeing = {f"{release}/{scenario}" for release in RELEASES for scenario in MUST_AGREE}
    assert agreeing <= set(RECORDED)
    assert agreeing & set(not_yet()) == set()


@pytest.mark.shared
def test_the_recordings_here_equal_the_shared_ones(shared: Path) -> None:
    """Each copied recording or scenario that differs from its original is a warning with the command that copies it."""
    for release in RELEASES:
        notice(by_name(RECORDINGS / release, shared / "golden" / release, "*.json"))
    notice(by_name(RECORDINGS / USUAL, shared / "golden" / "scenarios", "*.yaml"))


# ---------------------------------------------------------------- that the comparison can fail


def swap_two_writes(ours: dict[str, Any]) -> None:
    """Two neighbouring writes of one broker change places."""
    writes = ours["steps"][0]["writes"]
    at = next(i for i, w in enumerate(writes) if w.get("path") == "/consumers")
    writes[at], writes[at + 1] = writes[at + 1], writes[at]


def step_with(ours: dict[str, Any], part: str, api: str | None = None) -> list[Any]:
    """The last part of this name that has anything in it, of this api."""
    found: list[Any] = [step[part] for step in ours["steps"] if any(api in (None, item.get("api")) for item in step[part])][-1]
    return found


def lose_a_write(ours: dict[str, Any]) -> None:
    """One write of a state znode is missing."""
    writes = next(step["writes"] for step in ours["steps"] if any(w.get("path", "").endswith("/state") for w in step["writes"]))
    writes.remove(next(w for w in writes if w.get("path", "").endswith("/state")))


def forget_the_fence(ours: dict[str, Any]) -> None:
    """One write was not fenced."""
    write = next(w for step in ours["steps"] for w in step["writes"] if "checked" in w)
    del write["checked"]


def reorder_an_isr(ours: dict[str, Any]) -> None:
    """The ISR of one state znode is in another order."""
    state = ours["steps"][1]["znodes"]["/brokers/topics/t/partitions/0/state"]
    state["data"] = {**state["data"], "isr": state["data"]["isr"][::-1]}


def rename_a_transition(ours: dict[str, Any]) -> None:
    """One move ended in another state."""
    step_with(ours, "transitions")[-1]["to"] = "NewPartition"


def lose_a_transition(ours: dict[str, Any]) -> None:
    step_with(ours, "transitions").pop()


def unfence_a_request(ours: dict[str, Any]) -> None:
    """One request bears an older controller epoch."""
    step_with(ours, "requests", "LeaderAndIsr")[-1]["controller_epoch"] -= 1


def make_nothing_new(ours: dict[str, Any]) -> None:
    """One new partition is not called new."""
    for request in (r for step in ours["steps"] for r in step["requests"] if r["api"] == "LeaderAndIsr"):
        for entry in request["partitions"].values():
            entry["is_new"] = False


def lose_a_request(ours: dict[str, Any]) -> None:
    """One request is missing."""
    requests = step_with(ours, "requests", "LeaderAndIsr")
    requests.remove([r for r in requests if r["api"] == "LeaderAndIsr"][-1])


def metadata_first(ours: dict[str, Any]) -> None:
    """UpdateMetadata reaches a broker ahead of LeaderAndIsr."""
    for step in ours["steps"]:
        step["requests"].sort(key=lambda r: r["api"], reverse=True)


def lose_a_znode(ours: dict[str, Any]) -> None:
    """One znode is missing at the end."""
    ours["steps"][-1]["znodes"].pop("/feature")


def another_version(ours: dict[str, Any]) -> None:
    """One znode was written once more."""
    ours["steps"][-1]["znodes"]["/controller_epoch"]["version"] += 1


def another_winner(ours: dict[str, Any]) -> None:
    """Another broker is controller."""
    znode = ours["steps"][0]["znodes"]["/controller"]
    znode["ephemeral_owner"] += 1


SPOILT = [
    swap_two_writes, lose_a_write, forget_the_fence, reorder_an_isr, rename_a_transition, lose_a_transition, unfence_a_request,
    make_nothing_new, lose_a_request, metadata_first, lose_a_znode, another_version, another_winner,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_each_kind_of_deviation_is_seen(spoil: Any) -> None:
    """What our brokers did agrees with the recording; with one thing in it changed it does not."""
    golden, ours = recorded("leader-killed"), json.loads(played("leader-killed"))
    assert compared(golden, copy.deepcopy(ours)) is None
    spoil(ours)
    assert compared(golden, ours) is not None


def test_requests_of_two_terms_of_one_controller_have_no_order() -> None:
    """Requests that a broker sent under two controller epochs compare equal in either order, those under one epoch do not."""
    golden = recorded("more/2.8.2/never-led-loop")
    other = copy.deepcopy(golden)
    requests = other["steps"][-1]["requests"]
    requests.sort(key=lambda request: -request["controller_epoch"])
    assert first_difference(golden, other) is None
    requests.sort(key=lambda request: request["api"], reverse=True)
    found = first_difference(golden, other)
    assert found is not None
    assert found.kind == "requests"


# ---------------------------------------------------------------- the player


def test_playing_twice_gives_the_same() -> None:
    """The player takes nothing from chance or time: the same recording is played the same way again."""
    assert json.dumps(command.played(recorded("cluster-restarted"))) == played("cluster-restarted")


def test_who_wins_is_read_from_the_recording() -> None:
    """With another winner written into the recording another broker becomes controller."""
    golden = recorded("controller-killed")
    at, step = next((i, s) for i, s in enumerate(golden["steps"]) if "kill" in s["do"])
    winner = step["znodes"]["/controller"]["ephemeral_owner"]
    alive = [
        b
        for b in golden["brokers"]
        if b not in ([step["do"]["kill"]] if isinstance(step["do"]["kill"], int) else step["do"]["kill"])
    ]
    other = next(b for b in alive if b != winner)
    step["znodes"]["/controller"]["ephemeral_owner"] = other
    ours = command.played({**golden, "steps": golden["steps"][: at + 1]})
    assert ours["steps"][at]["znodes"]["/controller"]["ephemeral_owner"] == other


def test_an_unknown_step_word_fails_by_name() -> None:
    """A scenario with an unknown step differs, in words that name the step and list the known ones."""
    golden = recorded("start-order-321")
    golden["steps"][-1]["do"] = {"juggle": 3}
    found, _ = difference(golden)
    assert found is not None
    assert "'juggle' is not known" in found
    assert [word for word in STEPS if word not in found] == []


def test_words_that_only_order_things_do_nothing() -> None:
    """`patience`, `sleep` and `await` change nothing in what our brokers do."""
    golden = recorded("start-order-321")
    for step in golden["steps"]:
        step["do"] = {"patience": 5, "sleep": 1, **step["do"], "await": {}}
    ours = command.played(golden)["steps"]
    assert [step["writes"] for step in ours] == [step["writes"] for step in json.loads(played("start-order-321"))["steps"]]


def test_a_scenario_whose_failovers_never_end_is_stopped() -> None:
    """Played without a recording, which says how many failovers there were, the step ends in one sentence that names the step."""
    golden = recorded("more/2.8.2/never-led-loop")
    last = {"znode-delete": CONTROLLER}
    found, _ = difference({**golden, "steps": [*({"do": step["do"]} for step in golden["steps"][:-1]), {"do": last}]})
    assert (
        found
        == f"The step {{'delete': '{CONTROLLER}'}} never ends, since handlers keep failing: check the scenario and its release."
    )


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("more/1.1.1/never-led", 2),
        ("more/1.1.1/never-led-longer", 54),
        pytest.param("more/2.8.2/never-led-loop", 214, marks=pytest.mark.slow),
    ],
)
def test_as_many_failovers_fail_as_were_recorded(name: str, count: int) -> None:
    """Where failovers fail again and again, our brokers go through as many as were recorded, with the winners in their order."""
    golden = recorded(name)
    at = next(i for i, step in enumerate(golden["steps"]) if "/controller" in str(step["do"]))
    steps = (golden["steps"][at], command.played(golden)["steps"][at])
    theirs, ours = ([w["by"] for w in step["writes"] if (w["op"], w.get("path")) == ("create", CONTROLLER)] for step in steps)
    assert (theirs, len(theirs)) == (ours, count)


# ---------------------------------------------------------------- the command


def test_the_command_says_what_differs_and_exits_accordingly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line per recording, the count as the last line, and exit status 1 as soon as one of them differs."""
    good = RECORDINGS / USUAL / "start-order-321.json"
    spoilt = recorded("start-order-321")
    lose_a_znode(spoilt)
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(spoilt))
    assert main([str(good)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{USUAL}/start-order-321: no difference", "1 passed, 0 failed"]
    assert main([str(good), str(bad)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert (said[0], said[-1]) == (f"{USUAL}/start-order-321: no difference", "1 passed, 1 failed")
    assert "znodes, /feature: theirs has no value" in said[1]


def test_the_command_writes_a_recording_that_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `--out` holds is a recording of the same format, which the comparison finds equal to the original."""
    out = tmp_path / "ours.json"
    assert main([str(RECORDINGS / USUAL / "leader-killed.json"), "--out", str(out)]) == 0
    assert compared(recorded("leader-killed"), json.loads(out.read_text())) is None
