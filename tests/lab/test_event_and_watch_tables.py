"""The events of a controller: the handlers have Kafka's names, and the table of events agrees with the queues."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from kcontrol import Lab
from kcontrol import rules as public_rules
from kcontrol.controller.handlers import design_of
from kcontrol.core.controller_rules import rules
from kcontrol.core.errors import UserError
from kcontrol.core.releases import PLAYABLE_RELEASES
from kcontrol.lab.tables import watch_handlers
from tests.lab.support import refusal

Opened = Callable[..., Lab]
TOPIC = {"t": [[2, 3, 1], [1, 2, 3]]}

# The classes that Kafka's own source of these releases defines in controller/ and in ZookeeperLeaderElector.scala, but for those
# that listen to sessions.
CLASSES = {
    "0.8.1": {"LeaderChangeListener", "ControllerEpochListener", "BrokerChangeListener", "TopicChangeListener",
              "AddPartitionsListener", "DeleteTopicsListener", "PartitionsReassignedListener",
              "ReassignedPartitionsIsrChangeListener", "PreferredReplicaElectionListener"},
    "0.10.2": {"LeaderChangeListener", "BrokerChangeListener", "TopicChangeListener", "PartitionModificationsListener",
               "DeleteTopicsListener", "PartitionsReassignedListener", "ReassignedPartitionsIsrChangeListener",
               "PreferredReplicaElectionListener", "IsrChangeNotificationListener"},
    "1.0": {"ControllerChangeListener", "BrokerChangeListener", "TopicChangeListener", "PartitionModificationsListener",
            "TopicDeletionListener", "PartitionReassignmentListener", "PartitionReassignmentIsrChangeListener",
            "PreferredReplicaElectionListener", "IsrChangeNotificationListener", "LogDirEventNotificationListener"},
    "2.8": {"ControllerChangeHandler", "BrokerChangeHandler", "BrokerModificationsHandler", "TopicChangeHandler",
            "PartitionModificationsHandler", "TopicDeletionHandler", "PartitionReassignmentHandler",
            "PartitionReassignmentIsrChangeHandler", "PreferredReplicaElectionHandler", "IsrChangeNotificationHandler",
            "LogDirEventNotificationHandler"},
}  # fmt: skip


@pytest.mark.parametrize("release", CLASSES)
def test_handlers_bear_kafka_s_names(opened: Opened, release: str) -> None:
    """The table of a release names every class that Kafka has there for znodes, and no other."""
    assert set(opened(1, release=release).tables.event_handlers().handler) == CLASSES[release]


@pytest.mark.parametrize(
    ("event", "release", "name"),
    [
        ("PartitionModifications", "0.9.0.1", "AddPartitionsListener"),
        ("PartitionModifications", "0.10.0.1", "PartitionModificationsListener"),
        ("ControllerChange", "1.0.2", "ControllerChangeListener"),
        ("IsrChangeNotification", "0.8.2", None),
        ("LogDirEventNotification", "1.0.2", "LogDirEventNotificationListener"),
        ("BrokerModifications", "1.0.2", None),
        ("TopicDeletion", "0.8.0", None),
        ("ControllerEpochChange", "0.8.2.2", None),
    ],
)
def test_a_class_has_its_name_of_the_time(event: str, release: str, name: str | None) -> None:
    """Names have changed with releases, and some classes came later: as Kafka's source of that release has it."""
    assert watch_handlers.handler_name(event, release) == name


def test_only_controller_znodes_are_watched_by_all(opened: Opened) -> None:
    """A broker that is no controller watches the paths that the table gives to every broker, and no others."""
    for release in PLAYABLE_RELEASES:
        lab = opened(2, release=release, topics={"t": [[1, 2]]})
        table = lab.tables.event_handlers()
        assert set(table[table.watched_by == "every broker"].index) == set(lab.tables.watches().query("broker == 2").path)


def test_states_came_with_the_event_thread(opened: Opened) -> None:
    """A controller of 0.8.1 has no states, one of 2.8 has one for each event."""
    assert opened(1, release="0.8.1").tables.event_handlers().state.isna().all()
    assert opened(1).tables.event_handlers().state.notna().all()


@pytest.mark.parametrize("release", PLAYABLE_RELEASES)
@pytest.mark.parametrize("seed", range(3))
def test_watch_events_agree_with_the_queues(opened: Opened, release: str, seed: int) -> None:
    """After random steps, with ends of sessions, the table's waiting events and waiting times are those of the queues."""
    lab, chance = opened(3, release=release, seed=seed, topics=TOPIC), random.Random(seed)
    for _ in range(150):
        lab.step(chance.choice([a for a in lab.actions() if a[0] not in ("kill", "freeze", "shrink_isr", "produce")][:6]))
    names = {event.__name__ for event in design_of(rules(release)).handlers}
    received = lab.tables.watch_events()
    for broker, process in lab._world.processes.items():
        for name, thread in process.driver.threads.items():
            here = received[(received.broker == broker) & (received.thread == name) & (received.result != watch_handlers.DIED)]
            waiting = [item.event.name for item in thread.queue.waiting if item.event.name in names]
            assert here[here.result == watch_handlers.WAITS].event.tolist() == waiting
            times = thread.queue.queue_times_ms  # after five idle minutes a queue forgets them
            if len(here) and name == "controller":
                assert here.waited_ms.dropna().tolist()[-len(times) or 10_000 :] == times


def test_an_event_of_zkclient_names_its_notification(opened: Opened) -> None:
    """Under 1.0 two threads receive one notification: the thread of ZkClient, and the event thread."""
    received = (
        opened(3, release="1.0", topics=TOPIC).tables.watch_events(1).query("received == 'NodeChildrenChanged /brokers/topics'")
    )
    assert received.thread.tolist() == ["zk-events", "controller"] and received.event.tolist() == ["PathChanged", "TopicChange"]
    assert received.handler.tolist() == ["", "TopicChangeListener"]


def test_what_becomes_of_events(opened: Opened) -> None:
    """An event waits, is under way, is handled, is thrown out of the queue, or dies with its broker."""
    lab = opened(3, topics=TOPIC).kill(3).expire_session(3).step(("deliver_notification", 1)).step(("deliver_notification", 1))
    last = [lab.tables.watch_events(1).result.iloc[-1]]
    thrown = lab.branch().expire_session(1).step(("renew", 1)).tables.watch_events(1).result.tolist()
    dead = lab.branch().kill(1).tables.watch_events(1).result.iloc[-1]
    lab.step(("begin", 1, "controller"))
    last.append(lab.tables.watch_events(1).result.iloc[-1])
    lab.run_event(1)
    last.append(lab.tables.watch_events(1).query("event == 'BrokerChange'").result.iloc[-1])
    assert last == ["waits", "under way", "handled"]
    assert thrown[-2:] == ["preempted", "waits"] and dead == "ended with its broker"


def test_a_recording_has_no_watch_events() -> None:
    """`watch_events` of a recording, which has no queues, is refused with what to do."""
    with pytest.raises(UserError) as problem:
        Lab.open("2.8.2/session-expired").tables.watch_events()
    assert "play it" in refusal(problem)


def test_the_map_highlights_received_events(opened: Opened) -> None:
    """The picture counts the received events as the table does."""
    lab = opened(3, topics=TOPIC)
    lines = lab.diagram("watch_events").outline().splitlines()
    received = Counter(lab.tables.watch_events().query("handler != ''").event)
    assert received["BrokerChange"] == 2 and "BrokerChangeHandler puts BrokerChange received 2 times" in lines
    assert received["TopicChange"] == 1 and "TopicChangeHandler puts TopicChange received once" in lines
    assert received["Reelect"] == 0 and "ControllerChangeHandler puts Reelect" in lines


def test_threads_are_drawn_as_the_release_has_them(opened: Opened) -> None:
    """0.8.1: six threads and one lock; 1.0: two threads, of which one decides; 2.8: one thread. Who is at work is named."""
    old = opened(2, release="0.8.1").diagram("threads").outline()
    assert old.count("-> controllerLock") == 6 and "controllerLock -> ControllerContext" in old
    lab = opened(2)
    assert lab.diagram("threads").outline().count("-> controller\n") == 7
    between = opened(2, release="1.0").diagram("threads").outline()
    assert "notification of a znode -> zk-events" in between and "zk-events -> controller" in between and "Lock" not in between
    lab.kill(2).run(until="BrokerChange")
    assert "controller handles BrokerChange" in lab.diagram("threads").outline().splitlines()


def test_rules_by_release() -> None:
    """A rule stands in the column of each release that changed it, and nowhere else."""
    table = public_rules.table("offline_order", "fenced_writes")
    assert table.columns.tolist() == ["0.8.0", "0.8.2", "2.1.0"]
    assert table.loc["fenced_writes"].tolist() == ["no", "", "yes"]


def test_a_rule_without_elements_is_none() -> None:
    """A rule that is an empty tuple in a release, such as one of paths, is shown as "none"."""
    table = public_rules.table("root_paths", "responds_when_preempted")
    assert table["0.8.0"].tolist() == ["none", "none"]


@pytest.mark.parametrize("names", [(), ("nothing_like_it",), ("design", "nothing_like_it")])
def test_an_unknown_rule_lists_those_there_are(names: tuple[str, ...]) -> None:
    """A name that is no rule, and no name at all, are answered with the names that there are."""
    with pytest.raises(UserError) as problem:
        public_rules.table(*names)
    assert "fenced_writes" in refusal(problem) and "broker_znode" in refusal(problem)
