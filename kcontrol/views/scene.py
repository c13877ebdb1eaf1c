"""What pictures need to know of a folded state: who rules, which partitions there are, what an action is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kcontrol.znodes import (
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    TOPICS,
    MalformedZnode,
    decode_controller,
    decode_state,
    decode_topic,
    delete_topic_path,
    parent,
)

State = dict[str, Any]

PERIODIC = frozenset({"AutoPreferredReplicaLeaderElection"})


class Partition(NamedTuple):
    """A partition as ZooKeeper has it: replicas in the order of the assignment, and its leadership, if it has any yet."""

    topic: str
    number: int
    replicas: tuple[int, ...]
    leader: int | None
    isr: tuple[int, ...]
    leader_epoch: int
    controller_epoch: int
    zk_version: int

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.number}"


def controller(state: State) -> tuple[int, int] | None:
    """The broker that `/controller` names and its epoch: the one it works under, or else the one in ZooKeeper."""
    found = state["znodes"].get(CONTROLLER)
    try:
        broker = decode_controller(found[0].encode()) if found else None
    except MalformedZnode:
        broker = None
    if broker is None:
        return None
    node = state["nodes"].get(str(broker))
    held = node["controller"].get("controller_epoch", 0) if node else 0
    stored = state["znodes"].get(CONTROLLER_EPOCH, ["0"])[0]
    return broker, held or (int(stored) if stored.isdecimal() else 0)


def without_session(state: State) -> list[int]:
    """Return the brokers whose znode below /brokers/ids no session owns: it stays whether or not there is such a broker."""
    names = {path[len(BROKER_IDS) + 1 :]: owner for path, (_, _, owner) in state["znodes"].items() if parent(path) == BROKER_IDS}
    return sorted(int(name) for name, owner in names.items() if name.isdecimal() and owner is None)


def partitions(state: State) -> list[Partition]:
    """Every assigned partition, by topic and number; a topic znode that cannot be read has none."""
    znodes, found = state["znodes"], []
    for path in sorted(znodes):
        if not path.startswith(f"{TOPICS}/") or path.count("/") != 3:
            continue
        try:
            assigned = decode_topic(znodes[path][0].encode()).partitions
        except MalformedZnode:
            continue
        topic = path[len(TOPICS) + 1 :]
        found += [_partition(topic, number, a.replicas, znodes) for number, a in sorted(assigned.items())]
    return found


def _partition(topic: str, number: int, replicas: tuple[int, ...], znodes: State) -> Partition:
    stored = znodes.get(f"{TOPICS}/{topic}/partitions/{number}/state")
    try:
        value = decode_state(stored[0].encode(), stored[1]) if stored else None
    except MalformedZnode:
        value = None
    if value is None:
        return Partition(topic, number, replicas, None, (), -1, -1, -1)
    epochs = (value.leader_epoch, value.controller_epoch, value.zk_version)
    return Partition(topic, number, replicas, value.leader, value.isr, *epochs)


def condition(partition: Partition, state: State) -> str:
    """`new` before it has a leader, `online` while a living broker leads it, `offline` otherwise; last, `being deleted`."""
    if delete_topic_path(partition.topic) in state["znodes"]:
        return "being deleted"
    if partition.leader is None:
        return "new"
    return "online" if str(partition.leader) in state["nodes"] else "offline"


def subject(action: Sequence[Any], state: State) -> str:
    """What an action is about: the event that a thread takes or goes on with, the news, the request; empty where it has none."""
    kind, who = action[0], str(action[1]) if len(action) > 1 else ""
    node = state["nodes"].get(who, {})
    try:
        match kind:
            case "advance":
                return str(node["handling"][action[2]]["event"])
            case "begin":
                return str(node["queues"][action[2]][0]["event"])
            case "deliver":
                return str(node["notices"][0][1])
            case "request" | "lose" | "duplicate":
                return str(state["channels"][f"{action[1]}>{action[2]}"][0][1])
            case "ask":
                return str(state["questions"][who][0]["api"])
    except (KeyError, IndexError):
        pass
    return ""


def is_left_behind(sessions: Mapping[int, tuple[int, bool]], broker: Any) -> bool:
    """Whether a dead process of this broker still has a session, which will expire by itself."""
    return any(owner == broker and not held for owner, held in sessions.values())


def is_periodic(state: State, broker: Any, timer: str) -> bool:
    """Whether a timer of this broker is armed again and again, so that waiting for it never ends."""
    armed = state["nodes"].get(str(broker), {}).get("timers", {}).get(timer)
    return armed is not None and armed["event"]["event"] in PERIODIC


def as_json(value: Any) -> str:
    """Compact JSON, to compare actions that have been through a browser with those that have not."""
    return msgspec.json.encode(value).decode()
