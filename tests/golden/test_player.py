"""How the player follows a recording, and how the command speaks of it; the recordings are of official brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kcontrol.recordings import recording
from kcontrol.recordings.compare import first_difference
from kcontrol.recordings.player import Player
from kcontrol.recordings.to_journal import to_journal
from tests.golden.__main__ import judged, main, not_yet, play
from tests.golden.test_golden import RECORDINGS, recorded


def followed(name: str) -> str:
    """Return which open choices of a recording were followed; it shows no difference."""
    result = judged(recorded(name))
    assert result.difference is None
    return "; ".join(result.followed)


def test_a_lag_that_falls_into_a_step_is_repeated_and_said() -> None:
    """In a step that lasts longer than replica.lag.time.max.ms leaders drop a frozen follower, as recorded with 0.10.2.2."""
    assert "step 2: leader 1 removes lagging broker 3 from the ISR of t-0" in followed("more/0.10.2.2/lag")


def test_the_partitions_of_one_reassignment_are_taken_in_the_recorded_order() -> None:
    """With the partitions of one reassignment in another order the recording of 2.8.2 has no difference, and this is said."""
    golden = recorded("more/2.8.2/many")
    assert judged(golden).difference is None
    asked = golden["steps"][3]["do"]["reassign"]
    golden["steps"][3]["do"]["reassign"] = dict(sorted(asked.items(), reverse=True))
    assert judged(golden).difference is None


def test_several_winners_of_one_step_win_in_the_recorded_order() -> None:
    """If two brokers create `/controller` in one step, the player repeats their order (2.8.2)."""
    golden = recorded("more/2.8.2/winners")
    ours, _ = play(golden)
    pairs = [(golden["steps"][2], ours["steps"][2]), (golden["steps"][4], ours["steps"][4])]
    won = [
        [[w["by"] for w in step["writes"] if w.get("path") == "/controller" and w["op"] == "create"] for step in p] for p in pairs
    ]
    assert won[0][0] == won[0][1]
    assert len(won[1][0]) == 2
    assert won[1][0] == won[1][1]


def test_a_kill_inside_together_keeps_the_session_until_a_step_waits_for_its_end() -> None:
    """A scenario without a recording creates a topic while the dead broker is registered; `await` then ends the session."""
    waiting: dict[str, Any] = {"await": {"gone": "/brokers/ids/2"}}
    acts: list[dict[str, Any]] = [{"kill": 2}, {"create": {"t": {0: [2, 1]}}}]
    steps = [{"start": [1, 2]}, {"together": acts}, {"together": [waiting]}]
    world = Player({"brokers": [1, 2], "steps": steps[:2]}).play()
    assert world.exist("/brokers/ids/2") == [True]
    assert world.journal and b'"leader":2' in _state(world)
    world = Player({"brokers": [1, 2], "steps": steps}).play()
    assert world.exist("/brokers/ids/2") == [False]
    assert b'"leader":1' in _state(world)


def _state(world: Any) -> bytes:
    (znode,) = world.tool.read(["/brokers/topics/t/partitions/0/state"], False)
    data: bytes = znode.data
    return data


def test_the_start_of_a_running_broker_leaves_it_alone() -> None:
    """In the journal of a recording a broker that runs has one incarnation, however often a step starts it (2.8.2)."""
    golden = recorded("more/2.8.2/configured")
    assert golden["steps"][3]["do"] == {"start": [1, 3]}
    starts = [r.fields["broker"] for r in to_journal(golden) if r.kind == "start"]
    assert starts == [1, 2, 3, 2]


def test_the_answer_to_an_admin_client_is_compared() -> None:
    """AlterPartitionReassignments answers with the recorded error numbers (2.8.2); another number is a difference."""
    golden = recorded("more/2.8.2/api")
    assert judged(golden).difference is None
    golden["steps"][2]["answer"]["partitions"]["x-0"] = 0
    assert "the response to AlterPartitionReassignments" in (judged(golden).difference or "")


def test_a_session_that_never_registered_has_no_name() -> None:
    """The session of a broker that gives up while it starts is `unnamed` in what our brokers did, as in the recording (2.8.2)."""
    ours, _ = play(recorded("more/2.8.2/unnamed"))
    assert [w["op"] for w in ours["steps"][2]["writes"] if w["by"] == "unnamed"] == ["open", "close"]


def test_a_recording_with_an_unnamed_session_is_read() -> None:
    """A recording whose file names a session `unnamed` is a recording, and has a journal."""
    path = RECORDINGS / "more/2.8.2/unnamed.json"
    assert to_journal(recording.load(path))[-1].kind != "run"


def test_brokers_that_shut_down_at_once_ask_in_the_recorded_order() -> None:
    """Two brokers that get SIGTERM at once ask the controller in the recorded order (3.9.1), and this is said."""
    assert "step 2: the brokers ask for their shutdown at once, in the order 2, 1" in followed("more/3.9.1/winners")


@pytest.mark.parametrize(("name", "said"), [
    ("more/0.8.1.1/winners", "in the order 1, 2"),
    ("more/0.10.2.2/winners", "in the order 1, 2"),
    ("more/0.10.2.2/winners-both-asked", "in the order 2, 1"),
    ("more/0.10.2.2/winners-late-end", "in the order 2, 1, and end when nothing else goes on"),
])  # fmt: skip
def test_a_controller_that_stops_beside_another_broker_ends_when_the_recording_says(name: str, said: str) -> None:
    """Recordings of one scenario end the controller before its answer, after the other broker's end, and before that end."""
    assert followed(name).endswith(f"step 2: the brokers ask for their shutdown at once, {said}")


@pytest.mark.parametrize(("name", "said"), [
    ("more/0.8.1.1/two-topics-deleted", "step 4: the topics are deleted in the order views, clicks"),
    ("more/1.0.2/two-topics-deleted", "step 3: the controller gets an event for each deleted topic"),
    ("more/1.0.2/two-topics-deleted", "step 4: the topics are deleted in the order views, clicks"),
])  # fmt: skip
def test_topics_are_deleted_in_the_recorded_order(name: str, said: str) -> None:
    """Two topics whose deletion begins in one event are deleted in the recorded order before 2.5, and this is said."""
    assert said in followed(name).split("; ")


def test_the_order_in_which_followers_join_is_said() -> None:
    """A broker that follows leaders of two partitions joins their ISRs in the recorded order (2.8.2), and this is said."""
    assert followed("2.8.2/leader-killed") == "step 3: broker 2 joins the ISR of t-1 before broker 2 joins the ISR of t-0"


def test_a_broker_that_stops_joins_again_only_where_it_was_recorded() -> None:
    """A stopping broker fetches once more for one of its two partitions, as recorded with 0.10.2.2, and this is said."""
    said = "step 2: broker 3 fetches once more for orders-0 before it stops"
    assert followed("more/0.10.2.2/stopped-for-one-partition") == said


# ---------------------------------------------------------------- differences that depend on timing


def test_the_order_of_an_isr_that_shrinks_to_one_member_is_free_until_the_next_step() -> None:
    """In the step in which an ISR with free order shrinks to one member, what was sent before shows the order free."""
    golden, ours = recorded("isr-order"), recorded("isr-order")
    for side, isr in ((golden, [1, 2, 3]), (ours, [1, 3, 2])):
        side["steps"] = [_step([1], None), _step(isr, isr), _step([1], isr), _step([1], None)]
    assert first_difference(golden, ours) is None
    golden["steps"][3], ours["steps"][3] = _step([1], [1, 2, 3]), _step([1], [1, 3, 2])
    found = first_difference(golden, ours)
    assert found is not None
    assert (found.step, found.kind) == (3, "requests")


def _step(isr: list[int], sent: list[int] | None) -> dict[str, Any]:
    """One step that ends with this ISR, in which broker 1 has sent another one before."""
    state = {"leader": 1, "leader_epoch": 0, "controller_epoch": 1, "version": 1, "isr": isr}
    path = "/brokers/topics/t/partitions/0/state"
    entry = {"leader": 1, "leader_epoch": 9, "isr": sent, "controller_epoch": 1}
    request = {"by": 1, "to": 2, "api": "LeaderAndIsr", "controller_epoch": 1, "partitions": {"t-0": entry}, "live_leaders": [1]}
    writes = [{"by": 1, "op": "set", "path": path, "data": state, "version": 1}]
    znodes = {"/controller": {"data": None, "version": 0, "ephemeral_owner": 1}}
    return {"do": {}, "writes": writes, "transitions": [], "requests": [request] if sent else [], "znodes": znodes}


@pytest.mark.parametrize("leaves", [True, False])
def test_the_last_requests_of_a_controller_that_resigns_are_free(*, leaves: bool) -> None:
    """Without its last request a controller differs, unless its time as controller ended in this step, which is then said."""
    golden, ours = recorded("isr-order"), recorded("isr-order")
    for side in (golden, ours):
        side["steps"] = [_step([1], None), _step([1], [1])]
        if leaves:
            side["steps"][1]["writes"].append({"by": "tool", "op": "delete", "path": "/controller"})
            side["steps"][1]["znodes"]["/controller"]["ephemeral_owner"] = 2
    ours["steps"][1]["requests"].pop()
    unsent: list[str] = []
    assert (first_difference(golden, ours, unsent) is None) is leaves
    assert unsent == (["step 1: controller 1 leaves; its last requests to broker 2 arrive on one side only"] if leaves else [])


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize(("content", "sentence"), [
    ("{", "It is broken JSON."),
    ("[]", "is not a recording of brokers"),
    ('{"exchange": [{"at": 1}]}', "It cannot be played: KeyError"),
    (None, "It cannot be read: No such file or directory."),
])  # fmt: skip
def test_a_broken_file_does_not_end_a_run_of_many(
    content: str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is no recording fails in one line that says why, the files after it are played, and the exit code is 1."""
    broken, good = tmp_path / "broken.json", RECORDINGS / "2.8.2/start-order-321.json"
    if content is not None:
        broken.write_text(content)
    assert main([str(broken), str(good)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert sentence in said[0]
    assert said[1:] == ["2.8.2/start-order-321: no difference", "1 passed, 1 failed"]


def test_a_difference_that_is_declared_is_printed_and_does_not_fail(capsys: pytest.CaptureFixture[str]) -> None:
    """The recording that docs/omissions.md names is printed as declared, is counted apart, and leaves the exit code 0."""
    assert main([str(RECORDINGS / "3.9.1/reassign-controller-killed.json")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("3.9.1/reassign-controller-killed: declared in docs/omissions.md: Step 5, requests")
    assert said[-1] == "0 passed, 1 declared, 0 failed"


def test_another_difference_of_a_declared_recording_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A declared recording that differs in an earlier step than the declared one has failed."""
    golden = recorded("3.9.1/reassign-controller-killed")
    assert not_yet()["3.9.1/reassign-controller-killed"]["step"] > 1
    golden["steps"][1]["writes"].pop()
    path = tmp_path / "3.9.1" / "reassign-controller-killed.json"
    path.parent.mkdir()
    path.write_text(json.dumps(golden))
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed"


def test_a_fetch_that_times_out_while_a_stopping_broker_waits() -> None:
    """A broker that stops fetches once more after the fetch of another broker from a frozen leader has timed out."""
    # Source: AbstractFetcherManager.shutdownIdleFetcherThreads, ReplicaFetcherThread.sendRequest (0.10.2.2), recorded.
    assert followed("more/0.10.2.2/fetch-times-out-at-shutdown").split("; ") == [
        "step 7: broker 3 fetches once more for orders-1 before it stops",
        "step 7: a fetch of broker 2 from a frozen leader times out",
    ]
