"""What can happen next is a value: `actions()` and `step()` are the only way in."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.cluster.actions import ACTIONS, form
from kcontrol.cluster.run_settings import FAULTS, Settings
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.core.znodes import CONTROLLER
from kcontrol.journal.record_fields import FIELDS
from kcontrol.lab import namespaces
from kcontrol.lab.operations import Operations
from kcontrol.recordings.player import STEPS
from kcontrol.recordings.recorded_words import WORDS
from kcontrol.views.explanations import MEANINGS
from kcontrol.views.text import SENTENCES
from tests.core.support import ALL_FAULTS, T0, TOPICS, cluster, journal_bytes, of_kind, settle, until, walk
from tests.parts import ROOT

PACKAGE = ROOT / "kcontrol"


@pytest.mark.parametrize("seed", range(6))
def test_every_action_that_is_offered_can_be_done(seed: int) -> None:
    """On the way of a random run every action of `actions()` can be performed on a fork, and is then the last one done."""
    world = cluster(faults=ALL_FAULTS)
    for number, _ in enumerate(walk(world, seed, 60)):
        if number % 6 == 0:
            for action in world.actions():
                branch = world.fork()
                branch.step(action)
                assert branch.done[-1] == action


IMPOSSIBLE: list[Any] = [
    (), ("dance",), (["advance"], 1, "controller"), "advance", ("advance",), ("advance", 9, "controller"),
    ("advance", 1, "nowhere"), ("advance", 1, "controller"), ("begin", 1, "controller", "at once"), ("deliver_notification", 1),
    ("renew", 1), ("reconnect", 1), ("deliver_request", 1, 2), ("send_to_controller", 1), ("fetch", 2, "t-0"),
    ("fetch", 2, "nonsense"), ("fetch", 2, 5), ("expire_session", 7), ("fire_timer", 1, "no-such-timer"),
    ("time_out_request", 1, 2), ("start", 1), ("start", "one"), ("start", -1), ("kill",), ("kill", 7), ("kill", 1, 2),
    ("terminate", 7), ("freeze", 7), ("thaw", 1), ("shrink_isr", 1), ("shrink_isr", 1, "t-0", 1), ("shrink_isr", 1, "t-1", 2),
    ("shrink_isr", 1, "nonsense", 2), ("drop_request", 1, 2), ("duplicate_request", 1, 2), ("create_topic", "t", ((1, 2),)),
    ("create_topic", "new"), ("create_topic", "new", 5), ("create_topic", "new", ("ab",)), ("create_topic", "new", ()),
    ("create_topic", "a/b", ((1, 2),)), ("create_topic", 5, ((1, 2),)), ("delete", "/nothing"), ("delete", "/brokers"),
    ("delete", "no slash"), ("delete", 5), ("set", "/nothing", ""), ("set", CONTROLLER, 5), ("set", CONTROLLER, "\ud800"),
    ("create", CONTROLLER, ""), ("create", "/nothing/below", ""), ("create", "/a//b", ""),
]  # fmt: skip


def test_an_action_that_failed_half_way_is_not_among_those_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """If what follows from an action raises, `done` ends before it, so that the actions done can be played again."""
    world = cluster(faults=ALL_FAULTS, instant_requests=True)
    world.step(("kill", 2))
    before = list(world.done)

    def fails(*args: Any) -> None:
        raise ArithmeticError

    with monkeypatch.context() as broken:
        broken.setattr(World, "_notify", fails)
        with pytest.raises(ArithmeticError):
            world.step(("start", 2))
    assert world.done == before
    again = World(world.settings)
    for action in world.done:
        again.step(action)
    assert again.done == before


@pytest.mark.parametrize("action", IMPOSSIBLE, ids=repr)
def test_what_cannot_happen_is_refused_and_changes_nothing(action: Any) -> None:
    """An action that is unknown, malformed or not possible now raises UserError in one sentence, and nothing has happened."""
    world = cluster()
    before = (world.fingerprint(), journal_bytes(world.journal.records), list(world.done), world.now_ms)
    with pytest.raises(UserError) as problem:
        world.step(action)
    assert (world.fingerprint(), journal_bytes(world.journal.records), list(world.done), world.now_ms) == before
    assert "\n" not in str(problem.value)
    assert str(problem.value).endswith(".")


@pytest.mark.parametrize(
    ("unknown", "similar"), [("thow", "thaw"), ("expire", "expire_session"), ("freeze_consumers", "freeze_consumer")]
)
def test_the_error_of_an_unknown_action_has_the_similar_ones(unknown: str, similar: str) -> None:
    """The error of an unknown action has the form of similar ones, and says where all are."""
    with pytest.raises(UserError) as problem:
        World().step((unknown, 1))
    assert form(similar) in str(problem.value) and "lab.actions() has those that are possible now" in str(problem.value)


def test_the_error_of_an_action_like_no_other_says_where_all_are() -> None:
    with pytest.raises(UserError, match=r"There is no action \('juggle',\); lab.actions\(\) has"):
        World().step(("juggle", 1))


def test_the_error_of_an_impossible_action_lists_the_possible_actions() -> None:
    """The error of an action that is not possible now lists the possible actions."""
    world = cluster(faults=("kill",))
    with pytest.raises(UserError, match=r"is not possible now; possible actions: .*\('kill', 1\), \('kill', 2\), \('kill', 3\)"):
        world.step(("renew", 1))
    with pytest.raises(UserError, match="possible actions: none"):
        World(Settings(faults=())).step(("deliver_notification", 1))


def test_the_error_of_a_malformed_action_names_its_form() -> None:
    """The error of an action with wrong arguments shows the form of its kind."""
    with pytest.raises(UserError, match=r"does not have the form \('drop_request', sender, receiver\)"):
        cluster().step(("drop_request", 1))


@pytest.mark.parametrize(("action", "words"), [
    (("alter_topic", "t", {"min.insync.replicas": "x"}), "'x' is no value of min.insync.replicas: whole numbers from 1"),
    (("alter_topic", "t", {"min.insync.replica": 1}), "did you mean min.insync.replicas"),
    (("create_topic", "w", ((1,),), {"min.insync.replicas": 0}), "0 is no value of min.insync.replicas"),
    (("alter_topic", "w", {}), "There is no topic 'w'; the topics are t and u."),
    (("alter_topic", "a/b", {}), "There is no topic 'a/b'; the topics are t and u."),
    (("delete_topic", ""), "There is no topic ''; the topics are t and u."),
])  # fmt: skip
def test_the_error_about_a_topic_says_what_is_wrong(action: tuple[Any, ...], words: str) -> None:
    """The error of an action about a topic names the wrong setting or value, or the topic that does not exist."""
    with pytest.raises(UserError) as problem:
        cluster().step(action)
    assert words in str(problem.value)


def test_a_refused_write_leaves_forks_possible() -> None:
    """After a refused act in the middle of a handler the world can still be forked, and the fork is the same world."""
    world = cluster(topics={})
    world.step(("create_topic", "t", ((1, 2),)))
    until(world, lambda w: not w.is_quiet)
    with pytest.raises(UserError):
        world.step(("delete", "/nothing"))
    assert world.fork().fingerprint() == world.fingerprint()


@pytest.mark.parametrize("frozen", [1, 3], ids=["the controller", "a leader"])
def test_a_frozen_broker_does_nothing(frozen: int) -> None:
    """Of a process that is stopped nothing is offered but its death, the end of its session, and that it goes on."""
    world = cluster(faults=ALL_FAULTS)
    world.step(("freeze", frozen))
    since = len(world.journal.records)
    settle(world, ("kill", 2), ("expire_session", 2))
    assert {action[0] for action in world.actions() if action[1] == frozen} == {"kill", "expire_session", "thaw"}
    assert [r.kind for r in world.journal.records[since:] if r.id.node == frozen] == []
    settle(world, ("thaw", frozen))
    assert world.processes[3].driver.broker.hosted[T0].leadership.isr == (1, 3)


def test_an_answer_waits_for_a_frozen_broker() -> None:
    """The controller's answer to a leader that has been stopped meanwhile stays in its queue until it is thawed."""
    world = cluster({"t": ((2, 3),)}, faults=("shrink_isr",))
    settle(world, ("shrink_isr", 2, "t-0", 3), ("send_to_controller", 2), ("freeze", 2))
    held = world.processes[2].driver.broker.hosted[T0]
    assert (held.leadership.isr, held.pending_isr) == ((2, 3), (2,))
    assert [item.event.name for item in world.processes[2].driver.threads["requests"].queue.waiting] == ["AlterIsrResponse"]
    world.step(("thaw", 2))
    world.step(("begin", 2, "requests"))
    assert world.processes[2].driver.broker.hosted[T0].leadership.isr == (2,)


def test_faults_are_offered_only_if_the_settings_say_so() -> None:
    """`actions()` of a cluster at rest offers the faults of its settings and no other, none of which goes on by itself."""
    for fault in ("kill", "expire_session", "terminate", "freeze", "shrink_isr"):
        offered = cluster(faults=(fault,)).actions()
        assert {action[0] for action in offered} - {"fire_timer"} == {fault} and not any(action.routine for action in offered)
    assert ("thaw", 2) not in cluster(faults=("freeze", "thaw")).actions()
    world = cluster(faults=("start", "create_topic", "delete_controller"))
    assert {action[0] for action in world.actions()} - {"fire_timer"} == {"delete"}
    world.step(("kill", 2))
    assert ("start", 2) in world.actions()


def test_topics_are_offered_where_they_can_be_created() -> None:
    """A topic of the settings is on offer once some broker has made the place for it, until it exists."""
    world = World(Settings(brokers=(1,), topics={"t": ((1,),)}, faults=("create_topic",)))
    assert world.actions() == []
    settle(world, ("start", 1))
    assert ("create_topic", "t", ((1,),)) in world.actions()
    world.step(("create_topic", "t", ((1,),)))
    assert not any(action[0] == "create_topic" for action in world.actions())


def test_two_sessions_that_were_left_behind_end_in_their_order() -> None:
    """A broker that was killed twice leaves two sessions, and `expire` ends the older one first."""
    world = World(Settings(brokers=(1,)))
    for _ in range(2):
        world.step(("start", 1))
        world.step(("kill", 1))
    opened = [r.fields["session"] for r in of_kind(world, "open")]
    world.step(("expire_session", 1))
    world.step(("expire_session", 1))
    assert [r.fields["session"] for r in of_kind(world, "close")] == opened
    assert [r.cause for r in of_kind(world, "close")] == [r.id for r in of_kind(world, "stop")]


def test_run_goes_on_until_nothing_routine_is_left() -> None:
    """`run` says how many steps it took, takes no faults, and gives up at its limit."""
    world = cluster(topics={}, faults=ALL_FAULTS)
    assert world.run() == 0
    world.step(("create_topic", "t", TOPICS["t"]))
    before = len(world.done)
    with pytest.raises(RuntimeError, match="left after 3 steps"):
        world.run(limit=3)
    assert world.run() == len(world.done) - before - 3
    assert not any(action[0] in ALL_FAULTS for action in world.done[before:])


# ---------------------------------------------------------------- the same again


def one_run(seed: int, hash_seed: str) -> bytes:
    """The journal of a random run in a process of its own."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "tests.core.one_run", str(seed)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True).stdout


@pytest.mark.slow
def test_a_run_is_the_same_under_any_hash_seed() -> None:
    """Equal settings, seed and actions give equal bytes of the journal in two processes with different hash seeds."""
    one, two = one_run(11, "1"), one_run(11, "4242")
    assert len(one.splitlines()) > 500
    assert one == two


def test_a_list_of_actions_is_the_whole_history() -> None:
    """The actions of a random run, done again on a fresh world with the same settings, give the same journal."""
    world = cluster(faults=ALL_FAULTS, seed=3)
    for _ in walk(world, 3, 80):
        pass
    again = World(world.settings)
    for action in world.done:
        again.step(action)
    assert journal_bytes(again.journal.records) == journal_bytes(world.journal.records)


def test_the_seed_decides_what_is_random() -> None:
    """Another seed gives another cluster id, which is all that is drawn at random."""
    ids = [cluster(topics={}, brokers=(1,), seed=seed).zk.tree()["/cluster/id"].data for seed in (1, 1, 2)]
    assert ids[0] == ids[1] != ids[2]


# ---------------------------------------------------------------- one word for one act

OWNERS = (Operations, namespaces.Zk, namespaces.Network, namespaces.Disks, namespaces.Group)
# What the cluster does by itself, and what comes from a recording or an admin client, by `step` alone.
WITHOUT_METHOD = {
    "advance", "begin", "deliver_notification", "deliver_request", "send_delayed_response", "send_to_controller", "fetch",
    "checkpoint", "time_out_request", "exit", "expire_sessions", "renew", "reconnect", "reopen", "wait",
    "coordinator_request", "expire_offsets", "list_reassignments", "scenario",
}  # fmt: skip
# Kafka's tools write a znode for these two (`reassign` only where the release or the caller says so): the action is that write.
BY_ZNODE = {"elect_preferred": {"create"}, "reassign": {"reassign", "create"}}
# Words of a scenario that stand for several actions, for the time between them, or for what a tool writes into a znode.
NO_ACTION = {"together", "await", "sleep", "pause", "elect_preferred", "reassign_by_znode", "create_partitions"}
# Kinds of records that say exactly one act.
KINDS = {
    "begin", "checkpoint", "drop_request", "duplicate_request", "fire_timer", "freeze", "renew", "reopen", "scenario",
    "send_delayed_response", "start", "thaw", "time_out_request",
}  # fmt: skip
DROPPED = {
    "term", "resume", "expire", "shrink", "lose", "duplicate", "drop", "give", "ask", "fire", "timers", "timer_fired",
    "delayed_response", "response_delayed", "to_controller", "fetch_timeout", "time_out", "outage", "deliver", "request",
    "group_request", "resume_consumer", "prefer", "clean", "list", "describe", "delete-topic", "znode-set", "znode-delete",
    "api-reassign", "expand", "poll timeout",
}  # fmt: skip


def methods() -> dict[str, set[str]]:
    """Every public method that acts, with the actions that its code names."""
    found = {}
    for owner in OWNERS:
        for name, function in vars(owner).items():
            if inspect.isfunction(function) and not name.startswith("_"):
                tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
                named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in ACTIONS}
                calls = {
                    node.func.attr
                    for node in ast.walk(tree)
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                }
                if calls & {"_act", "_ask", "_request"}:
                    assert name not in found, f"{name} is a method of two owners"
                    found[name] = named
    return found


def test_a_method_performs_the_action_of_its_name() -> None:
    """Each action that is not the cluster's own is a method of Lab or of one namespace, and this method names no other action."""
    assert methods() == {name: BY_ZNODE.get(name, {name}) for name in {*ACTIONS, *BY_ZNODE} - WITHOUT_METHOD}


def test_a_scenario_has_the_words_of_actions() -> None:
    """Behind the door each word of a scenario is an action's, or one of a few that are no action; so is what the door makes."""
    assert {*STEPS} - {*ACTIONS} == NO_ACTION
    assert {*WORDS.values()} <= {*STEPS}


def test_a_record_that_says_one_act_has_its_word() -> None:
    """Kinds of records share a word with an action where they say this act; every `act` names an action of the table."""
    assert {*FIELDS} & {*ACTIONS} == KINDS
    written = "\n".join(path.read_text() for path in (PACKAGE / "cluster").glob("*.py"))
    acts = set(re.findall(r'(?:action=|\], |action = )\["(\w+)"', written))
    assert len(acts) > 15 and acts <= {*ACTIONS}


def test_no_dropped_name_is_left() -> None:
    """No action, method, kind of record, fault, scenario word or command of a trace has a former name."""
    public = {name for owner in (Lab, *OWNERS) for name in dir(owner) if not name.startswith("_")}
    assert (public | {*ACTIONS, *FIELDS, *FAULTS, *STEPS, *MEANINGS["actions"], *SENTENCES}) & DROPPED == set()


def test_a_broker_that_is_not_frozen_cannot_be_thawed() -> None:
    """The refusal says that the broker runs, or that it is down; the cluster is as before."""
    world = World(Settings())
    with pytest.raises(UserError, match="Broker 1 is not running"):
        world.step(("thaw", 1))
    world.step(("start", 1))
    with pytest.raises(UserError, match=r"^Broker 1 is not frozen\.$"):
        world.step(("thaw", 1))
    assert world.done == [("start", 1)]
