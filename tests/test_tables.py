"""The tables: every pair of states, every event, every effect, every rule and every kind of record has its row."""

from __future__ import annotations

import inspect
import typing
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest

from kcontrol.broker import events as broker_events
from kcontrol.broker import handlers as replica
from kcontrol.broker.events import BrokerRequest
from kcontrol.cluster.actions import ACTIONS
from kcontrol.cluster.run_settings import FAULTS, Settings
from kcontrol.cluster.world import World
from kcontrol.controller import event_thread, partition_machine, replica_machine
from kcontrol.controller.earlier import event_queue_0_11, listeners_to_0_10
from kcontrol.controller.handlers import design_of
from kcontrol.controller.leader_election import STRATEGIES
from kcontrol.controller.partition_machine import PARTITION_TRANSITIONS
from kcontrol.controller.replica_machine import REPLICA_TRANSITIONS
from kcontrol.core import effects, events
from kcontrol.core.controller_rules import EVENT_THREAD, LISTENERS, QUEUE, Rules, rules
from kcontrol.core.events import ControllerState, Event
from kcontrol.core.model import PartitionState, ReplicaState, TopicPartition
from kcontrol.core.rule_fields import declared
from kcontrol.core.transitions import Changes, Transition, TransitionTable
from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH
from kcontrol.driver.instant_effects import PERFORM
from kcontrol.driver.round_trips import ROUND_TRIPS
from kcontrol.group.group_rules import GroupRules
from kcontrol.journal.fold import CHANGES
from kcontrol.journal.record_fields import FIELDS
from tests.core.logs import lost_by_unclean_election
from tests.core.support import ALL_FAULTS, TOPICS, cluster, settle, walk
from tests.core.test_broker_to_controller import wish
from tests.group.test_coordinators_in_a_cluster import cluster as group_cluster
from tests.group.test_coordinators_in_a_cluster import stable
from tests.group.test_log_cleaner import cluster as log_cluster
from tests.parts import ROOT

# Kafka's validPreviousStates, target by target. Source: PartitionStateMachine.scala and ReplicaStateMachine.scala (2.8).
PARTITION_SOURCES = {
    "NewPartition": {"NonExistentPartition"},
    "OnlinePartition": {"NewPartition", "OnlinePartition", "OfflinePartition"},
    "OfflinePartition": {"NewPartition", "OnlinePartition", "OfflinePartition"},
    "NonExistentPartition": {"OfflinePartition"},
}
REPLICA_SOURCES = {
    "NewReplica": {"NonExistentReplica"},
    "OnlineReplica": {"NewReplica", "OnlineReplica", "OfflineReplica", "ReplicaDeletionIneligible"},
    "OfflineReplica": {"NewReplica", "OnlineReplica", "OfflineReplica", "ReplicaDeletionIneligible"},
    "ReplicaDeletionStarted": {"OfflineReplica"},
    "ReplicaDeletionSuccessful": {"ReplicaDeletionStarted"},
    "ReplicaDeletionIneligible": {"OfflineReplica", "ReplicaDeletionStarted"},
    "NonExistentReplica": {"ReplicaDeletionSuccessful"},
}


# ---------------------------------------------------------------- states


@pytest.mark.parametrize("source", PartitionState, ids=str)
@pytest.mark.parametrize("target", PartitionState, ids=str)
def test_a_pair_of_partition_states_is_a_row_or_a_refusal(source: PartitionState, target: PartitionState) -> None:
    """The partition table of 2.8 has a row for just the pairs that Kafka allows."""
    assert (PARTITION_TRANSITIONS.for_("2.8").find(source, target) is not None) == (str(source) in PARTITION_SOURCES[str(target)])


@pytest.mark.parametrize("source", ReplicaState, ids=str)
@pytest.mark.parametrize("target", ReplicaState, ids=str)
def test_a_pair_of_replica_states_is_a_row_or_a_refusal(source: ReplicaState, target: ReplicaState) -> None:
    """The replica table of 2.8 has a row for just the pairs that Kafka allows."""
    assert (REPLICA_TRANSITIONS.for_("2.8").find(source, target) is not None) == (str(source) in REPLICA_SOURCES[str(target)])


# What Kafka's machines do about a target, or about a source and its target. Source: doHandleStateChanges of PartitionStateMachine
# and ReplicaStateMachine (2.8), ReplicaStateMachine.handleStateChange (0.8.0).
PARTITION_ACTIONS: dict[Any, Any] = {
    "NewPartition": partition_machine.memory_only,
    ("NewPartition", "OnlinePartition"): partition_machine.first_leader,
    "OnlinePartition": partition_machine.elect_leader,
    "OfflinePartition": partition_machine.memory_only,
    "NonExistentPartition": partition_machine.memory_only,
}
REPLICA_ACTIONS: dict[Any, Any] = {
    "NewReplica": replica_machine.start_new_replica,
    ("NewReplica", "OnlineReplica"): replica_machine.add_to_assignment,
    "OnlineReplica": replica_machine.send_leader_and_isr,
    "OfflineReplica": replica_machine.stop_and_leave_isr,
    "ReplicaDeletionStarted": replica_machine.stop_and_delete,
    "ReplicaDeletionSuccessful": replica_machine.memory_only,
    "ReplicaDeletionIneligible": replica_machine.memory_only,
    "NonExistentReplica": replica_machine.unassign,
}
REPLICA_ACTIONS_0_8_0 = REPLICA_ACTIONS | {
    "OfflineReplica": replica_machine.leave_isr,
    "NonExistentReplica": replica_machine.delete_and_unassign,
}


@pytest.mark.parametrize(("table", "actions"), [
    (PARTITION_TRANSITIONS.for_("2.8"), PARTITION_ACTIONS),
    (REPLICA_TRANSITIONS.for_("2.8"), REPLICA_ACTIONS),
    (REPLICA_TRANSITIONS.for_("0.8.0"), REPLICA_ACTIONS_0_8_0),
], ids=["partitions", "replicas", "replicas of 0.8.0"])  # fmt: skip
def test_a_row_has_the_action_of_its_target(table: TransitionTable, actions: dict[Any, Any]) -> None:
    """Kafka chooses the action by the target state; for a new replica or partition that comes online there is another one."""
    expected = {row[:2]: actions.get((str(row.source), str(row.target)), actions[str(row.target)]) for row in table}
    assert {row[:2]: row.action for row in table} == expected


@pytest.mark.parametrize("table", [PARTITION_TRANSITIONS, REPLICA_TRANSITIONS], ids=lambda table: table.name)
def test_a_table_can_be_read(table: TransitionTable) -> None:
    """Each row says what the move means; partitions alone have rows that write; every state is part of a row."""
    writes = {"partition": {None, "create", "set"}, "replica": {None}}[table.name]
    assert {row.write for row in table} == writes
    assert all(row.note and row.note == row.note.strip() and callable(row.action) for row in table)
    assert {row.source for row in table} | {row.target for row in table} == set(table.states)


def test_a_pair_cannot_be_listed_twice() -> None:
    """A table with two rows for one pair is refused when it is made."""
    row = Transition(PartitionState.NEW, PartitionState.ONLINE, print, "note")
    for twice in ([row, row], [row._replace(until="1.1"), row._replace(since="1.0")], [row, row._replace(since="1.0")]):
        with pytest.raises(ValueError, match="lists a pair of states twice"):
            TransitionTable("toy", PartitionState, "here", twice)
    TransitionTable("toy", PartitionState, "here", [row._replace(since="1.0"), row._replace(until="1.0")])


# What older releases do not have, or have instead. Source: handleStateChange and assertValidPreviousStates of
# PartitionStateMachine.scala and ReplicaStateMachine.scala (0.8.0, 0.8.1, 2.2, 2.3).
OLDER_ROWS = [
    # table, release, pairs that 2.8 has and it has not, pairs that it has and 2.8 has not
    (PARTITION_TRANSITIONS, "0.8.0", {("OfflinePartition", "OfflinePartition")}, set[tuple[str, str]]()),
    (PARTITION_TRANSITIONS, "0.8.1", set[tuple[str, str]](), set[tuple[str, str]]()),
    (
        REPLICA_TRANSITIONS,
        "0.8.0",
        {
            ("ReplicaDeletionIneligible", "OnlineReplica"), ("OfflineReplica", "OfflineReplica"),
            ("ReplicaDeletionIneligible", "OfflineReplica"), ("OfflineReplica", "ReplicaDeletionStarted"),
            ("ReplicaDeletionStarted", "ReplicaDeletionSuccessful"), ("ReplicaDeletionStarted", "ReplicaDeletionIneligible"),
            ("OfflineReplica", "ReplicaDeletionIneligible"), ("ReplicaDeletionSuccessful", "NonExistentReplica"),
        },
        {("OfflineReplica", "NonExistentReplica")},
    ),
    (REPLICA_TRANSITIONS, "0.8.1", {("OfflineReplica", "ReplicaDeletionIneligible")}, set[tuple[str, str]]()),
    (REPLICA_TRANSITIONS, "2.2", {("OfflineReplica", "ReplicaDeletionIneligible")}, set[tuple[str, str]]()),
    (REPLICA_TRANSITIONS, "2.3", set[tuple[str, str]](), set[tuple[str, str]]()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "release", "missing", "extra"), OLDER_ROWS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_release_has_the_rows_of_its_time(table: TransitionTable, release: str, missing: set[Any], extra: set[Any]) -> None:
    """The table of an older release lacks the rows that came later and has those that have gone since."""

    def pairs(of: str) -> set[tuple[str, str]]:
        return {(str(row.source), str(row.target)) for row in table.for_(of)}

    assert (pairs("2.8") - pairs(release), pairs(release) - pairs("2.8")) == (missing, extra)


def test_a_changed_row_must_be_in_the_release() -> None:
    """An action for a pair that the release does not have is an error; pairs of other machines are left to their tables."""
    mine = Changes({(PartitionState.OFFLINE, PartitionState.OFFLINE): print})
    found = PARTITION_TRANSITIONS.for_("2.8", mine).find(PartitionState.OFFLINE, PartitionState.OFFLINE)
    assert found is not None and found.action is print
    assert list(REPLICA_TRANSITIONS.for_("2.8", mine)) == list(REPLICA_TRANSITIONS.for_("2.8"))
    with pytest.raises(KeyError):
        PARTITION_TRANSITIONS.for_("0.8.0", mine)


def test_a_replaced_row_is_in_another_table() -> None:
    """`replaced` gives a table with one other action and leaves this one alone; a row that is not there is an error."""
    new, online, gone = PartitionState.NEW, PartitionState.ONLINE, PartitionState.NON_EXISTENT
    mine = PARTITION_TRANSITIONS.with_action(new, online, print)
    assert [row.action is print for row in mine if (row.source, row.target) == (new, online)] == [True]
    assert not any(row.action is print for row in PARTITION_TRANSITIONS)
    with pytest.raises(KeyError):
        PARTITION_TRANSITIONS.with_action(gone, online, print)


def test_each_strategy_of_election_has_its_row() -> None:
    """Kafka has four strategies, and each names the brokers that get LeaderAndIsr. Source: Election.scala (2.8)."""
    assert {name: row.recipients for name, row in STRATEGIES.items()} == {
        "offline": "online replicas", "reassign": "target replicas", "preferred": "all replicas",
        "controlled_shutdown": "online or leaving replicas",
    }  # fmt: skip


# ---------------------------------------------------------------- events

EVENTS = {
    name: cls for name, cls in (vars(broker_events) | vars(events)).items() if inspect.isclass(cls) and issubclass(cls, Event)
}
CONCRETE = {name for name, cls in EVENTS.items() if cls not in (Event, BrokerRequest)}
DESIGNS = {LISTENERS: design_of(rules("0.10.2")), QUEUE: design_of(rules("1.0")), EVENT_THREAD: design_of(rules("2.8"))}
HANDLERS = event_thread.DESIGN.handlers
HANDLED = {cls.__name__ for table in (*(d.handlers for d in DESIGNS.values()), replica.HANDLERS) for cls in table}
STUBS = {cls.__name__ for cls, row in HANDLERS.items() if row.handler.__qualname__.startswith("listen_again")}


def omitted() -> set[str]:
    """What the first column of docs/omissions.md names."""
    rows = [line.split("|")[1] for line in (ROOT / "docs" / "omissions.md").read_text().splitlines() if line.startswith("|")]
    return {name.strip(" `") for row in rows for name in row.split(",")}


def test_every_event_has_a_handler_or_is_listed_as_omitted() -> None:
    """An event without a handler, or whose handler only listens again, stands in docs/omissions.md by name, and no other does."""
    assert omitted() & CONCRETE == (CONCRETE - HANDLED) | STUBS


def test_no_event_has_two_handlers() -> None:
    """An event belongs to the controller's thread or to the broker's, never to both."""
    assert set(HANDLERS) & set(replica.HANDLERS) == set()


# What the controller is busy with, and whether an inactive one looks at the event. Source: KafkaController.scala (2.8).
KAFKAS_EVENTS = {
    "Startup": ("ControllerChange", False),
    "ControllerChange": ("ControllerChange", False),
    "Reelect": ("ControllerChange", False),
    "RegisterBrokerAndReelect": ("ControllerChange", False),
    "Expire": ("ControllerChange", False),
    "BrokerChange": ("BrokerChange", True),
    "BrokerModifications": ("BrokerChange", True),
    "TopicChange": ("TopicChange", True),
    "PartitionModifications": ("TopicChange", True),
    "TopicDeletion": ("TopicDeletion", True),
    "TopicDeletionStopReplicaResponseReceived": ("TopicDeletion", True),
    "ZkPartitionReassignment": ("AlterPartitionReassignment", True),
    "ApiPartitionReassignment": ("AlterPartitionReassignment", True),
    "PartitionReassignmentIsrChange": ("AlterPartitionReassignment", True),
    "ListPartitionReassignments": ("ListPartitionReassignment", True),
    "ReplicaLeaderElection": ("ManualLeaderBalance", True),
    "AutoPreferredReplicaLeaderElection": ("AutoLeaderBalance", True),
    "UncleanLeaderElectionEnable": ("UncleanLeaderElectionEnable", True),
    "TopicUncleanLeaderElectionEnable": ("TopicUncleanLeaderElectionEnable", True),
    "ControlledShutdown": ("ControlledShutdown", True),
    "LeaderAndIsrResponseReceived": ("LeaderAndIsrResponseReceived", True),
    "UpdateMetadataResponseReceived": ("UpdateMetadataResponseReceived", True),
    "IsrChangeNotification": ("IsrChange", True),
    "AlterIsrReceived": ("IsrChange", True),
    "LogDirEventNotification": ("LogDirChange", True),
    "UpdateFeatures": ("UpdateFeatures", True),
}


@pytest.mark.parametrize("event", HANDLERS, ids=lambda event: event.__name__)
def test_a_controller_event_has_kafkas_state(event: type[Event]) -> None:
    """Each event of the controller has the state, and the rule about inactive controllers, that Kafka gives it."""
    row = HANDLERS[event]
    assert (row.state.value, row.only_if_active) == KAFKAS_EVENTS[event.__name__]


# The older designs: the events that every broker handles, controller or not. Source: KafkaController.scala (0.10.2, 1.0), where
# ControlledShutdown of 0.8 to 0.10 raises an exception of its own at a broker that is not controller.
AT_EVERY_BROKER = {
    QUEUE: {
        "ControllerChange", "LeaderAndIsrResponseReceived", "LogDirEventNotification", "NewSession", "PathChanged", "Reelect",
        "RegisterBroker", "Startup",
    },
    LISTENERS: {
        "AutoPreferredReplicaLeaderElection", "BrokerStartup", "ControlledShutdown", "ControllerEpochChange", "DeletionsResumed",
        "LeaderChange", "NewSession", "RegisterBroker", "TopicDeletionStopReplicaResponseReceived",
    },
}  # fmt: skip


@pytest.mark.parametrize("design", AT_EVERY_BROKER)
def test_an_older_design_has_events_for_every_broker(design: str) -> None:
    """These events are handled at each broker; all other events of the design are dropped where the broker is not controller."""
    handlers = DESIGNS[design].handlers
    assert {event.__name__ for event, row in handlers.items() if not row.only_if_active} == AT_EVERY_BROKER[design]


@pytest.mark.parametrize("design", AT_EVERY_BROKER)
def test_an_event_has_one_state_in_all_designs(design: str) -> None:
    """What the controller is busy with while it handles an event does not depend on the design."""
    states = {event.__name__: row.state.value for event, row in DESIGNS[design].handlers.items()}
    assert {name: states[name] for name in states.keys() & KAFKAS_EVENTS} == {
        name: KAFKAS_EVENTS[name][0] for name in states.keys() & KAFKAS_EVENTS
    }


def test_every_state_of_the_controller_belongs_to_an_event() -> None:
    """Idle aside, each state is that of some event of Kafka's."""
    assert {state.value for state in ControllerState} - {"Idle"} <= {state for state, _ in KAFKAS_EVENTS.values()}


# Which watch events Kafka's handlers of a path turn into an event. Source: the ZNodeChangeHandlers in KafkaController.scala (2.8)
WATCHED = [
    ("NodeCreated", "/controller", "ControllerChange"),
    ("NodeDataChanged", "/controller", "ControllerChange"),
    ("NodeDeleted", "/controller", "Reelect"),
    ("NodeChildrenChanged", "/brokers/ids", "BrokerChange"),
    ("NodeDataChanged", "/brokers/ids/17", "BrokerModifications"),
    ("NodeCreated", "/brokers/ids/17", None),
    ("NodeDeleted", "/brokers/ids/17", None),
    ("NodeChildrenChanged", "/brokers/topics", "TopicChange"),
    ("NodeDataChanged", "/brokers/topics/my.topic", "PartitionModifications"),
    ("NodeCreated", "/brokers/topics/my.topic", None),
    ("NodeDataChanged", "/brokers/topics/t/partitions", None),
    ("NodeDataChanged", "/brokers/topics/t/partitions/7/state", "PartitionReassignmentIsrChange"),
    ("NodeCreated", "/brokers/topics/t/partitions/7/state", None),
    ("NodeChildrenChanged", "/admin/delete_topics", "TopicDeletion"),
    ("NodeCreated", "/admin/reassign_partitions", "ZkPartitionReassignment"),
    ("NodeDeleted", "/admin/reassign_partitions", None),
    ("NodeDataChanged", "/admin/reassign_partitions", None),
    ("NodeCreated", "/admin/preferred_replica_election", "ReplicaLeaderElection"),
    ("NodeDataChanged", "/admin/preferred_replica_election", None),
    ("NodeChildrenChanged", "/isr_change_notification", "IsrChangeNotification"),
    ("NodeChildrenChanged", "/log_dir_event_notification", "LogDirEventNotification"),
    ("NodeChildrenChanged", "/controller", None),
]


@pytest.mark.parametrize(("said", "path", "event"), WATCHED, ids=lambda value: str(value))
def test_a_watch_event_stands_for_the_event_of_its_path(said: str, path: str, event: str | None) -> None:
    """What ZooKeeper says about a path becomes the event that Kafka's handler of that path queues, or none."""
    found = DESIGNS[EVENT_THREAD].event_for_notification(said, path)
    assert (found.name if found else None) == event


def test_the_event_of_a_notification_has_the_names_of_its_path() -> None:
    """The id of a broker, the name of a topic and a partition are read from the path."""
    assert DESIGNS[EVENT_THREAD].event_for_notification("NodeDataChanged", "/brokers/ids/17") == events.BrokerModifications(17)
    assert DESIGNS[EVENT_THREAD].event_for_notification(
        "NodeDataChanged", "/brokers/topics/a-1"
    ) == events.PartitionModifications("a-1")
    moved = events.PartitionReassignmentIsrChange(TopicPartition("a-1", 7))
    assert DESIGNS[EVENT_THREAD].event_for_notification("NodeDataChanged", "/brokers/topics/a-1/partitions/7/state") == moved


def test_every_row_of_the_watch_events_names_an_event() -> None:
    """Each row of WATCHES makes an event of the controller's thread, and each row was asked for above."""
    assert {event.__name__ for _, _, event in event_thread.WATCHES} == {event for _, _, event in WATCHED if event}
    assert all(EVENTS[event.__name__] is event for _, _, event in event_thread.WATCHES)  # type: ignore[attr-defined]


# ---------------------------------------------------------------- steps

STEPS = {
    "failover of listeners": (listeners_to_0_10.FAILOVER, listeners_to_0_10.RELEASES),
    "resignation of listeners": (listeners_to_0_10.RESIGNATION, listeners_to_0_10.RELEASES),
    "failover of the queue": (event_queue_0_11.FAILOVER, event_queue_0_11.RELEASES),
    "resignation of the queue": (event_queue_0_11.RESIGNATION, event_queue_0_11.RELEASES),
}


@pytest.mark.parametrize("table", STEPS)
def test_a_release_numbers_its_steps_without_gaps(table: str) -> None:
    """In the column of each release the places are 1, 2, 3 and so on, each once; each step is in some release."""
    rows, releases = STEPS[table]
    columns = [[row[at] for row in rows if row[at]] for at in range(1, len(releases) + 1)]
    assert [sorted(column) for column in columns] == [list(range(1, len(column) + 1)) for column in columns]
    assert {len(row) for row in rows} == {len(releases) + 1} and all(any(row[1:]) for row in rows)


# ---------------------------------------------------------------- effects, rules, actions


def test_every_instant_effect_can_be_performed() -> None:
    """The driver performs each effect that is instant, besides a commit that writes nothing; two suspend instead."""
    instant = set(typing.get_args(effects.InstantEffect)) - {effects.YieldLock, effects.Sleep}
    assert set(PERFORM) == instant | {effects.Commit}


def test_every_effect_is_instant_or_a_round_trip() -> None:
    """The driver has each effect in its table of instant effects or performs it as a round trip; a commit alone is both."""
    assert set(PERFORM) | set(ROUND_TRIPS) == set(typing.get_args(effects.RoundTripEffect | effects.InstantEffect))
    assert set(PERFORM) & set(ROUND_TRIPS) == {effects.Commit}


@pytest.mark.parametrize(("rules", "given"), [(Rules, {"release", "inter_broker_protocol"}), (GroupRules, {"release"})])
def test_every_field_of_the_rules_is_declared_with_rows(rules: type, given: set[str]) -> None:
    """Each field but what picks the column has rows, and a sentence that says what the rule decides."""
    assert set(declared(rules)) == {f.name for f in fields(rules)} - given
    assert all(rule.rows and rule.doc.endswith(".") and rule.doc[0].isupper() for rule in declared(rules).values())


@pytest.mark.parametrize("rules", [Rules, GroupRules])
def test_every_row_of_a_rule_changes_its_value(rules: type) -> None:
    """No row repeats the value of the row before it."""
    assert [name for name, rule in declared(rules).items() if any(a[1] == b[1] for a, b in pairwise(rule.rows))] == []


@pytest.mark.parametrize("rules", [Rules, GroupRules])
def test_a_rule_takes_the_values_that_its_type_names(rules: type) -> None:
    """A field typed as Literal names just the values of its rows, and no rule is any text whatever."""
    for name, hint in typing.get_type_hints(rules).items():
        if typing.get_origin(hint) is typing.Literal:
            assert set(typing.get_args(hint)) == {value for _, value in declared(rules)[name].rows}, name
        else:
            assert hint is not str or name in ("release", "inter_broker_protocol"), f"{name} is any text"


def test_every_fault_on_offer_is_an_action() -> None:
    """Each fault of the settings is a kind of action, but for the deletion of `/controller`, which is a `delete`."""
    assert {fault for fault in FAULTS if fault not in ACTIONS} == {"delete_controller"}


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_is_checked_and_performed_with_the_same_arguments(name: str) -> None:
    """`possible` refuses an action with too few or too many arguments, so `perform` need not."""
    checked, performed = (
        [parameter.default is parameter.empty for parameter in inspect.signature(function).parameters.values()]
        for function in (ACTIONS[name].possible, ACTIONS[name].perform)
    )
    assert checked == performed


# ---------------------------------------------------------------- records

CHANGES_NOTHING = {
    *("open", "act", "read", "handler_error", "exception", "connection_loss", "yield_lock", "append", "read_log"),
    *("try_complete", "watch_operation", "check_and_complete"),
    *(
        "receive", "delay_response", "send_delayed_response", "drop_request", "request_refused", "time_out_request", "conflict",
        "failed_change", "renew", "reopen", "scenario",
    ),
}  # fmt: skip


def test_the_fold_knows_every_kind_of_record() -> None:
    """Each kind in the table of fields changes the folded state or is listed as one that changes nothing."""
    assert set(CHANGES) & CHANGES_NOTHING == set()
    assert set(CHANGES) | CHANGES_NOTHING == set(FIELDS)


def ran() -> set[str]:
    """The kinds of records that a number of runs have logged."""
    worlds = []
    for seed in range(15):
        world = cluster(faults=ALL_FAULTS) if seed % 3 else World(Settings(topics=TOPICS, faults=ALL_FAULTS))
        worlds += [world for _ in walk(world, seed, 150)][:1]
    for path, text in ((CONTROLLER_EPOCH, "9"), (CONTROLLER_EPOCH, "broken")):
        world = cluster()
        settle(world, ("set", path, text), ("kill", 2), ("delete", CONTROLLER) if text == "broken" else ("expire_session", 2))
        worlds.append(world)
    world = cluster({"t": ((3, 1), (1, 3))})
    settle(world, ("scenario", 0, {"terminate": 3}), ("terminate", 3))
    world.step(("reopen", "tools"))
    lost = lost_by_unclean_election()
    lost.step(("kill", 1))
    lost.step(("lose_tail", 1, "t-0", 3))
    deleted = cluster({"t": ((1, 2),)}, data=True)
    settle(deleted, ("produce", 1, "t-0", "gone", "all"))
    settle(deleted, ("delete_topic", "t"))
    held = cluster({"t": ((3, 2),)}, release="0.8.1")
    for kind in ("freeze", "expire_session"):
        held.step((kind, 3))
    held.run()
    settle(held, ("thaw", 3))
    asking = wish("2.8")
    asking.run()
    late = stable()
    for action in (("freeze", 2), ("commit", "a", "t-0", 7)):
        late.step(action)
    late.run()
    compacted = log_cluster(segment_bytes=300)
    for offset in range(5):
        settle(compacted, ("commit", "a", "t-0", offset))
    compacted.step(("clean_log", 1, "__consumer_offsets-0"))
    watched = group_cluster(purgatory=True)
    for _ in range(2):
        settle(watched, ("join", "a"))
    settle(watched, ("fire_timer", 1, "join g"))
    worlds += [world, lost, deleted, held, asking, late, compacted, watched]
    return {record.kind for one in worlds for record in one.journal.records}


@pytest.mark.slow
def test_runs_log_what_the_text_says() -> None:
    """Random and chosen runs log every kind of the table, but for those of handlers that no broker has yet and of recordings."""
    toys = {"yield_lock", "connection_loss", "conflict", "failed_change", "request_refused"}
    assert ran() - toys == set(FIELDS) - toys - {"offsets_append"}
