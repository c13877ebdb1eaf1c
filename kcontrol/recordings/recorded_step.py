"""Finds, in one step of a recording, the events that depend on timing, such as the winner of a controller election.

A step is an action of the recorded scenario, such as a kill, with its consequences. A player repeats these events.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kcontrol.core import znodes as zk

State = Mapping[str, Any]
"""The content of a state znode."""

Join = tuple[str, int, str]
"""The action after which a follower joins an ISR: `fetch`, the follower, the partition."""

QUIET = ("open", "close", "rejected")
UNTIMED = ("/isr_change_notification/", "/latest_producer_id_block")
TOOL = "tool"
WRITTEN: Mapping[str, Callable[[str], str]] = {
    "create_topic": zk.topic_path, "create_partitions": zk.topic_path, "delete_topic": zk.delete_topic_path, "delete": str,
    "set": str, "reassign_by_znode": lambda _: zk.REASSIGN_PARTITIONS,
    "elect_preferred": lambda _: zk.PREFERRED_REPLICA_ELECTION,
}  # fmt: skip
"""The path that a tool's action writes last, by the step word, for the last name in its argument."""


class Shrink(NamedTuple):
    """The recorded removal, by the leader, of a follower from a partition's ISR."""

    # The index of the write in the step's list `writes`.
    at: int
    # The path of the state znode.
    path: str
    # The value of the znode before the write.
    earlier: State
    follower: int


class RecordedStep:
    """One step of a recording: an action, such as a kill, and what follows it until the next action.

    The list `writes` has the step's ZooKeeper writes, and the begins and ends of sessions, in order; it is empty for a scenario
    without a recording.
    """

    def __init__(self, step: Mapping[str, Any]) -> None:
        self.step = step
        self.writes: Sequence[Mapping[str, Any]] = step.get("writes", ())
        # A scenario without a recording has only actions.
        self.is_recorded = "writes" in step
        self.owner: int | None = step.get("znodes", {}).get(zk.CONTROLLER, {}).get("ephemeral_owner")
        self.at_once: Sequence[int] = step.get("at_once", ())  # brokers that shut down together, in the order of their requests
        # Whether these brokers end only when no other routine action is left.
        self.end_at_rest: bool = step.get("end_at_rest", False)
        self.deleted_apart: bool = step.get("deleted_apart", False)  # whether the controller handles each deleted topic alone
        self.winners = self._winners()
        self.at = 0  # the writes before this one belong to earlier actions

    def _winners(self) -> list[int]:
        """In the order in which they create `/controller`; without two such writes, the controller at the end."""
        created = [w["by"] for w in self.writes if (w["op"], w.get("path")) == ("create", zk.CONTROLLER)]
        won = [broker for broker in created if isinstance(broker, int)]
        return won if len(won) > 1 else [] if self.owner is None else [self.owner]

    @property
    def writes_of_brokers(self) -> int:
        """Without ISR change notifications and blocks of producer ids."""
        return _writes_of_brokers(self.writes)

    def deleted(self, topics: Iterable[str]) -> list[str]:
        """In the order of the step's `deletion_order`, then by name."""
        named: Sequence[str] = self.step.get("deletion_order", ())
        return sorted(topics, key=lambda topic: (named.index(topic) if topic in named else len(named), topic))

    def transitions_by(self, broker: int) -> int:
        """Return the number of transitions of partitions and replicas that this broker makes as controller in this step."""
        return sum(transition["by"] == broker for transition in self.step.get("transitions", ()))

    # ---------------------------------------------------------------- ends of sessions

    def closes(self, first_writes: int | None = None) -> list[int]:
        """In the recorded order, within the first `first_writes` elements of `writes`."""
        return [w["by"] for w in self.writes[:first_writes] if w["op"] == "close" and isinstance(w["by"], int)]

    def end_of(self, broker: int) -> int:
        """The position in `writes`; their number if no write of this step ends the session."""
        return next((i for i, w in enumerate(self.writes) if (w["op"], w["by"]) == ("close", broker)), len(self.writes))

    def anything_follows_the_end_of(self, broker: int) -> bool:
        """Whether the next element of `writes` is a write to a znode that was not refused."""
        at = self.end_of(broker)
        return any(w["op"] not in QUIET for w in self.writes[at + 1 : at + 2])

    # ---------------------------------------------------------------- the order of actions and writes

    def writes_before(self, word: str, argument: Any) -> int:
        """Writes of brokers since the action of the previous call."""
        begin, end = self._span(word, argument)
        between, self.at = self.writes[self.at : begin], end
        return _writes_of_brokers(between)

    def writes_before_the_end_of(self, broker: int) -> int:
        """Return the number of brokers' writes in this step before the broker's session ends; 0 if the session does not end."""
        return _writes_of_brokers(self.writes[: self.end_of(broker)]) if broker in self.closes() else 0

    def writes_before_the_new_session_of(self, broker: int) -> int:
        """Return the number of brokers' writes in this step before this broker opens a session; 0 if it opens none."""
        opened = next((i for i, w in enumerate(self.writes) if (w["op"], w["by"]) == ("open", broker)), 0)
        return _writes_of_brokers(self.writes[:opened])

    def _span(self, word: str, argument: Any) -> tuple[int, int]:
        """Return (begin, end): `writes[begin:end]` are a tool's writes for an action such as "create_topic".

        For an action without such writes, such as ("kill", 1), both are the position of the action between the writes.
        """
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
            awaited = (i + 1 for i in rest for how, path in argument.items() if is_awaited(self.writes[i], how, path))
            found = next(awaited, self.at)
            return found, found
        if word == "kill":
            own = [i for i in rest if self.writes[i]["by"] in names]
            closed = next((i for i in own if self.writes[i]["op"] == "close"), len(self.writes))
            # A kill comes after the broker's last write before the end of its session.
            died = max((i + 1 for i in own if i < closed), default=self.at)
            return died, died
        return self.at, self.at

    # ---------------------------------------------------------------- other choices

    def meets_earlier_topics_before(self, topic: str) -> bool:
        """Whether another topic goes Online before the first transition of `topic`."""
        earlier = False
        for transition in self.step.get("transitions", ()):
            if transition["subject"].rpartition("-")[0] == topic:
                return earlier
            earlier = earlier or transition["to"] == "Online"
        return False

    def writes_between_deletions(self, earlier: str | None, topic: str) -> int:
        """Writes of brokers between both requests; 0 if the step lacks one."""
        begin, end = (self._deletion_request(name) for name in (earlier, topic))
        return 0 if begin is None or end is None else _writes_of_brokers(self.writes[begin:end])

    def _deletion_request(self, topic: str | None) -> int | None:
        request = ("create", zk.delete_topic_path(topic)) if topic is not None else None
        return next((i for i, w in enumerate(self.writes) if (w["op"], w.get("path")) == request), None)

    def is_in_sync_again(self, broker: int) -> bool:
        """Return whether this step removes `broker` from the ISR of a partition and later adds it to that ISR again."""
        removed: set[str] = set()
        for w in self.writes:
            isr = w["data"]["isr"] if w.get("path", "").endswith("/state") and w["op"] == "set" else None
            if isr is not None and broker not in isr:
                removed.add(w["path"])
            elif isr is not None and w["path"] in removed:
                return True
        return False

    def isr_changes(self, held: dict[str, State]) -> tuple[list[Join], list[Shrink]]:
        """Return the step's ISR changes in order: fetches by which followers join, such as ("fetch", 2, "t-0"), and removals.

        `held` maps paths of state znodes to their values before this step, and is updated.
        """
        joins: list[Join] = []
        shrinks = []
        for at, write in enumerate(self.writes):
            path, value = write.get("path", ""), write.get("data")
            if not path.endswith("/state"):
                continue
            before = held.pop(path, None)
            if write["op"] == "delete" or not isinstance(value, Mapping) or "isr" not in value:
                continue
            held[path] = value
            if before is not None and all(before[key] == value[key] for key in ("leader", "leader_epoch")):
                tp = str(zk.parse_state_path(path))
                joins += [("fetch", broker, tp) for broker in value["isr"] if broker not in before["isr"]]
                shrinks += [Shrink(at, path, before, broker) for broker in before["isr"] if broker not in value["isr"]]
        return joins, shrinks


def _writes_of_brokers(writes: Sequence[Mapping[str, Any]]) -> int:
    return sum(w["op"] not in QUIET and w["by"] != TOOL and counts(w["path"]) for w in writes)


def counts(path: str) -> bool:
    """Return whether writes to a path have a fixed position in a step; False for ISR change notifications and producer ids."""
    return not path.startswith(UNTIMED)


def is_awaited(write: Mapping[str, Any], how: str, path: str) -> bool:
    if how == "gone":
        return path in write.get("deleted", ()) or (write["op"], write.get("path")) == ("delete", path)
    return (write["op"], write.get("path")) == ("set" if how == "set" else "create", path)
