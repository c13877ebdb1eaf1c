"""Queries of a folded state, which `journal.fold` computes from records, for tables and pictures.

They return the controller; the partitions, and whether each is offline or under-replicated; and, for an action that is
possible now, its event, the path of its znode or the API of its request.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from kcontrol.core import znodes as zk

State = dict[str, Any]


class Partition(NamedTuple):
    """A partition as ZooKeeper stores it: its assigned replicas, and the content of its state znode."""

    topic: str
    number: int
    replicas: tuple[int, ...]
    # None without a state znode, -1 without a leader.
    leader: int | None
    # Without a state znode the ISR is empty, and the epochs and the version are -1.
    isr: tuple[int, ...]
    leader_epoch: int
    controller_epoch: int
    zk_version: int

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.number}"


def controller(state: State) -> tuple[int, int] | None:
    """Return (broker, controller epoch) for the broker that `/controller` names; None if no broker is named.

    The epoch is that in the broker's memory or, without it, in `/controller_epoch`; 0 without either.
    """
    found = state["znodes"].get(zk.CONTROLLER)
    try:
        broker = zk.decode_controller(found[0].encode()) if found else None
    except zk.MalformedZnode:
        broker = None
    if broker is None:
        return None
    node = state["nodes"].get(str(broker))
    held = node["controller"].get("controller_epoch", 0) if node else 0
    stored = state["znodes"].get(zk.CONTROLLER_EPOCH, ["0"])[0]
    return broker, held or (int(stored) if stored.isdecimal() else 0)


def controller_memory(state: State) -> State:
    """The context of the controller that /controller names; {} without a controller, or while its process does not run."""
    ruler = controller(state)
    held: State = state["nodes"].get(str(ruler[0]), {}).get("controller", {}) if ruler else {}
    return held


def nodes(state: Mapping[str, Any]) -> list[tuple[int, State]]:
    """The running brokers, in the order of their ids."""
    return sorted(((int(n), node) for n, node in state["nodes"].items()), key=itemgetter(0))


def without_session(state: State) -> list[int]:
    """Return the ids of the brokers whose znode below /brokers/ids is persistent, so that it outlives the broker's session."""
    lasting = [path for path, (_, _, owner) in state["znodes"].items() if zk.parent(path) == zk.BROKER_IDS and owner is None]
    names = (path[len(zk.BROKER_IDS) + 1 :] for path in lasting)
    return sorted(int(name) for name in names if name.isdecimal())


def partitions(state: State) -> list[Partition]:
    """Return every assigned partition, sorted by topic and number; a topic znode that cannot be decoded has no partitions."""
    topics = [path[len(zk.TOPICS) + 1 :] for path in sorted(state["znodes"]) if zk.parent(path) == zk.TOPICS]
    return [partition for topic in topics for partition in partitions_of(topic, state["znodes"])]


def find(state: State, name: str) -> Partition | None:
    return next((partition for partition in partitions(state) if partition.name == name), None)


def partitions_of(topic: str, znodes: State) -> list[Partition]:
    """Sorted by number; [] for a missing topic znode, or one that cannot be decoded."""
    try:
        assigned = zk.decode_topic(znodes[f"{zk.TOPICS}/{topic}"][0].encode()).partitions
    except (KeyError, zk.MalformedZnode):
        return []
    return [partition(topic, number, a.replicas, znodes) for number, a in sorted(assigned.items())]


def partition(topic: str, number: int, replicas: tuple[int, ...], znodes: State) -> Partition:
    """Return a partition with its `replicas` and the content of its state znode."""
    stored = znodes.get(f"{zk.TOPICS}/{topic}/partitions/{number}/state")
    try:
        value = zk.decode_state(stored[0].encode(), stored[1]) if stored else None
    # A state znode that cannot be decoded counts as missing.
    except zk.MalformedZnode:
        value = None
    if value is None:
        return Partition(topic, number, replicas, None, (), -1, -1, -1)
    epochs = (value.leader_epoch, value.controller_epoch, value.zk_version)
    return Partition(topic, number, replicas, value.leader, value.isr, *epochs)


def condition(partition: Partition, state: State) -> str:
    """One of "being deleted", "new" (no state znode), "online" (its leader runs) or "offline"."""
    if zk.delete_topic_path(partition.topic) in state["znodes"]:
        return "being deleted"
    if partition.leader is None:
        return "new"
    return "online" if str(partition.leader) in state["nodes"] else "offline"


def subject(action: Sequence[Any], state: State) -> str:
    """Return the event, path or API of an action: such as the path of a notification for ("deliver_notification", 1).

    Return "" for other actions. `state` is the state before the action.
    """
    kind, who = action[0], str(action[1]) if len(action) > 1 else ""
    node = state["nodes"].get(who, {})
    try:
        match kind:
            case "advance":
                return str(node["handling"][action[2]]["event"])
            case "begin":
                return str(node["queues"][action[2]][0]["event"])
            case "deliver_notification":
                return str(node["notifications"][0][1])
            case "deliver_request" | "drop_request" | "duplicate_request":
                return str(state["channels"][f"{action[1]}>{action[2]}"][0][1])
            case "send_to_controller":
                return str(state["to_controller"][who][0]["api"])
    except (KeyError, IndexError):
        pass
    return ""
