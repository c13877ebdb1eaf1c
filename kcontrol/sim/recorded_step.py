"""What a recording says about one of its steps, as far as the player needs it.

Kafka leaves some choices open: which broker wins an election, when a session ends, which of two acts ZooKeeper sees first,
whether a timer falls into a step. A recording has made these choices, and the player follows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.znodes import CONTROLLER, PREFERRED_REPLICA_ELECTION, REASSIGN_PARTITIONS, delete_topic_path, topic_path

State = Mapping[str, Any]
"""What a state znode holds."""

QUIET = ("open", "close", "rejected")
UNTIMED = ("/isr_change_notification/", "/latest_producer_id_block")
TOOL = "tool"
WRITTEN: Mapping[str, Callable[[str], str]] = {
    "create": topic_path, "expand": topic_path, "delete-topic": delete_topic_path, "znode-delete": str, "znode-set": str,
    "reassign": lambda _: REASSIGN_PARTITIONS, "prefer": lambda _: PREFERRED_REPLICA_ELECTION,
}  # fmt: skip
"""The path that a tool's act writes last, by the step word, for the last name in its argument."""


class Shrink(NamedTuple):
    """A leader takes a follower out of the ISR: the number of the write, what the state znode held before, and the follower."""

    at: int
    path: str
    before: State
    follower: int


class RecordedStep:
    """One step of a recording; empty for a step of a plain scenario."""

    def __init__(self, step: Mapping[str, Any]) -> None:
        self.step = step
        self.writes: Sequence[Mapping[str, Any]] = step.get("writes", ())
        self.is_recorded = "writes" in step
        self.owner: int | None = step.get("znodes", {}).get(CONTROLLER, {}).get("ephemeral_owner")
        self.at_once: Sequence[int] = step.get("at_once", ())  # brokers that shut down at once, in the order of their requests
        self.winners = self._winners()
        self.at = 0  # the writes before this one belong to acts that are done

    def _winners(self) -> list[int]:
        """Return the owner of `/controller` at the end; the brokers that create it, in order, where several times one does."""
        created = [w["by"] for w in self.writes if (w["op"], w.get("path")) == ("create", CONTROLLER)]
        won = [broker for broker in created if isinstance(broker, int)]
        return won if len(won) > 1 else [] if self.owner is None else [self.owner]

    @property
    def writes_of_brokers(self) -> int:
        """Return how many writes brokers make in this step."""
        return _writes_of_brokers(self.writes)

    # ---------------------------------------------------------------- when sessions end

    def closes(self, before: int | None = None) -> list[int]:
        """Return the brokers whose sessions end in this step, or before this number of its writes, in order."""
        return [w["by"] for w in self.writes[:before] if w["op"] == "close" and isinstance(w["by"], int)]

    def end_of(self, broker: int) -> int:
        """Return the number of the write that ends this broker's session, or how many writes there are where it does not end."""
        return next((i for i, w in enumerate(self.writes) if (w["op"], w["by"]) == ("close", broker)), len(self.writes))

    def anything_follows_the_end_of(self, broker: int) -> bool:
        """Return whether the write after the end of this broker's session changes a znode."""
        at = self.end_of(broker)
        return any(w["op"] not in QUIET for w in self.writes[at + 1 : at + 2])

    # ---------------------------------------------------------------- in which order acts are seen

    def before(self, word: str, argument: Any) -> int:
        """Return how many writes of brokers ZooKeeper saw between the last act and this one; go on behind this act."""
        begin, end = self._span(word, argument)
        between, self.at = self.writes[self.at : begin], end
        return _writes_of_brokers(between)

    def writes_before_the_end_of(self, broker: int) -> int:
        """Return how many writes of brokers come before the end of this broker's session; 0 where it does not end."""
        return _writes_of_brokers(self.writes[: self.end_of(broker)]) if broker in self.closes() else 0

    def writes_before_the_new_session_of(self, broker: int) -> int:
        """Return how many writes of brokers come before this broker opens a session; 0 where it opens none."""
        opened = next((i for i, w in enumerate(self.writes) if (w["op"], w["by"]) == ("open", broker)), 0)
        return _writes_of_brokers(self.writes[:opened])

    def _span(self, word: str, argument: Any) -> tuple[int, int]:
        """Return where the writes of an act begin and end; the death of a broker comes after its last write."""
        rest = range(self.at, len(self.writes))
        names = list(argument) if isinstance(argument, (list, dict)) else [argument]
        if word in WRITTEN and names:
            own = [i for i in rest if self.writes[i]["by"] == TOOL]
            last = next((i for i in own if self.writes[i].get("path") == WRITTEN[word](names[-1])), None)
            return (self.at, self.at) if last is None else (own[0], last + 1)
        if word == "start":
            opened = next((i for i in rest if self.writes[i]["op"] == "open" and self.writes[i]["by"] in names), self.at)
            return opened, opened
        if word == "await":
            come = next(
                (i + 1 for i in rest for how, path in argument.items() if _is_awaited(self.writes[i], how, path)), self.at
            )
            return come, come
        if word == "kill":
            own = [i for i in rest if self.writes[i]["by"] in names]
            closed = next((i for i in own if self.writes[i]["op"] == "close"), len(self.writes))
            died = max((i + 1 for i in own if i < closed), default=self.at)
            return died, died
        return self.at, self.at

    # ---------------------------------------------------------------- other choices

    def meets_earlier_topics_before(self, topic: str) -> bool:
        """Return whether a partition of another topic was Online before the first one of this topic was New."""
        met = False
        for transition in self.step.get("transitions", ()):
            if transition["subject"].rpartition("-")[0] == topic:
                return met
            met = met or transition["to"] == "Online"
        return False

    def is_in_sync_again(self, broker: int) -> bool:
        """Return whether an ISR is written without this broker, and then one of this partition with it."""
        left: set[str] = set()
        for w in self.writes:
            isr = w["data"]["isr"] if w.get("path", "").endswith("/state") and w["op"] == "set" else None
            if isr is not None and broker not in isr:
                left.add(w["path"])
            elif isr is not None and w["path"] in left:
                return True
        return False

    def isr_changes(self, held: dict[str, State]) -> tuple[list[tuple[str, int]], list[Shrink]]:
        """Return the followers that leaders take into an ISR, by the path of the state znode, and those that they take out.

        Both are in order. `held` is what state znodes hold, and is kept up to date.
        """
        joins, shrinks = [], []
        for at, write in enumerate(self.writes):
            path, value = write.get("path", ""), write.get("data")
            if not path.endswith("/state"):
                continue
            before = held.pop(path, None)
            if write["op"] == "delete" or not isinstance(value, Mapping) or "isr" not in value:
                continue
            held[path] = value
            if before is not None and all(before[key] == value[key] for key in ("leader", "leader_epoch")):
                joins += [(path, broker) for broker in value["isr"] if broker not in before["isr"]]
                shrinks += [Shrink(at, path, before, broker) for broker in before["isr"] if broker not in value["isr"]]
        return joins, shrinks


def _writes_of_brokers(writes: Sequence[Mapping[str, Any]]) -> int:
    return sum(w["op"] not in QUIET and w["by"] != TOOL and counts(w["path"]) for w in writes)


def counts(path: str) -> bool:
    """Return whether the moment of a write to this path says how far the cluster has come."""
    return not path.startswith(UNTIMED)


def _is_awaited(write: Mapping[str, Any], how: str, path: str) -> bool:
    if how == "gone":
        return path in write.get("deleted", ()) or (write["op"], write.get("path")) == ("delete", path)
    return (write["op"], write.get("path")) == ("set" if how == "set" else "create", path)
