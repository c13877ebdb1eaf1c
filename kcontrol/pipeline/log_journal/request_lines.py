"""Reads the log lines about requests of a controller to brokers (LeaderAndIsr, UpdateMetadata, StopReplica) and their responses.

Up to 2.5 each partition of a request has a line, and since 2.6 each request has one line. The lines of one request stand
together: one thread writes them before it passes the request to the broker's channel. A channel has one request in flight, so
responses come in the order of the requests. From 0.9 to 1.0 a response does not name its request. A response with a list of
partitions then belongs to the oldest waiting LeaderAndIsr or StopReplica, a response without a list to the oldest waiting
UpdateMetadata. The journal's record of a request has no partitions: they are in the log lines in the table `records`.
"""

import re
from collections import deque
from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from kcontrol.core.releases import is_since
from kcontrol.journal.journal import RecordId
from kcontrol.pipeline.log_journal.log_line import Line
from kcontrol.pipeline.log_journal.memory import RECORD, TIME, Memory
from kcontrol.pipeline.log_journal.processes import Processes

LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA = "LeaderAndIsr", "UpdateMetadata", "StopReplica"
APIS = frozenset((LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA))
BY_NAME = {api.lower(): api for api in APIS}
"""The API by its name in a log line in small letters, without "_" and blanks: "LEADER_AND_ISR", "update metadata"."""
SENT = {
    "leader_and_isr_sent": LEADER_AND_ISR, "leader_and_isr_sent_batch": LEADER_AND_ISR, "update_metadata_sent": UPDATE_METADATA,
    "update_metadata_sent_batch": UPDATE_METADATA, "stop_replica_sent": STOP_REPLICA, "stop_replica_sent_batch": STOP_REPLICA,
}  # fmt: skip
"""The API of a request, by the kind of a controller's log line about its sending."""
HANDLED = {
    "leader_and_isr_received_batch": LEADER_AND_ISR, "leader_and_isr_finished_batch": LEADER_AND_ISR,
    "metadata_batch": UPDATE_METADATA, "stop_replica_received_batch": STOP_REPLICA,
}  # fmt: skip
"""The API of a request, by the kind of a broker's log line about its handling (2.6 on)."""
BEGIN, ENDS_SINCE = "leader_and_isr_received_batch", "2.7"
"""The line about the beginning of the handling of LeaderAndIsr, and the first release with a line about its end."""
NO_ERROR, STALE = "NONE", "STALE_CONTROLLER_EPOCH"
ERRORS = {0: NO_ERROR, 11: STALE, 56: "KAFKA_STORAGE_ERROR", 77: "STALE_BROKER_EPOCH"}
"""The errors of responses by their codes in log lines."""
BREAK_MS = 1000
"""The time without a line, in ms, after which a line about a partition belongs to the next request."""
SKEW_MS = 1000
"""The time in ms by which the clock of a broker may be behind the clock of the controller."""
MOST_WAITING, MOST_ANSWERED = 1000, 8
"""The largest numbers of requests and of lines that the memory keeps for one channel."""
NODE = re.compile(r"(?:\(id: |^id:|^Node\(|^)(\d+)(?: rack|,|$)")
"""A broker's id in the text of a node: "2" (0.8.0), "id:2,host:b,port:9092", "Node(2, b, 9092)", "b:9092 (id: 2 rack: null)"."""


class Sent(NamedTuple):
    """A request that has no response yet."""

    # "LeaderAndIsr", "UpdateMetadata" or "StopReplica".
    api: str
    # The controller epoch.
    epoch: int
    # The correlation id in log lines up to 0.8.2, which is that of a batch of requests; later lines have none.
    correlation: int | None
    # The journal record of the sending.
    id: RecordId


class Group:
    """A request of a controller, and the partitions of the request that log lines have named so far."""

    def __init__(self, about: tuple[object, ...], cause: RecordId | None, id: RecordId) -> None:
        self.about, self.cause, self.id = about, cause, id
        self.last_ms, self.partitions, self.is_closed = 0, set[str](), False

    def takes(self, line: Line, about: tuple[object, ...], cause: RecordId | None) -> bool:
        """Return whether `line` belongs to this request, so that it shows a further partition or the end of the request.

        `about` is (API, epoch, correlation id, receivers) in `line`, `cause` the controller's latest transition.
        """
        if self.is_closed or about != self.about or line.at_ms - self.last_ms > BREAK_MS:
            return False
        # A transition stands between two requests. The end of a broker's process is no record of the controller.
        if cause is not None and cause.broker == line.facts["controller"] and cause != self.cause:
            return False
        return "topic" not in line.facts or line.partition not in self.partitions

    def add(self, line: Line) -> None:
        """Store the partition that a log line of this request names; a line that names no partition (2.6 on) ends the request."""
        self.last_ms = line.at_ms
        if "topic" in line.facts:
            self.partitions.add(line.partition)
        else:
            self.is_closed = True


class Channel:
    """The requests of a controller to one broker that wait for a response, and the last requests that the broker has handled."""

    def __init__(self, ends: tuple[int, int]) -> None:
        # How many processes of the sender and of the receiver have ended; the next end drops the requests in the channel.
        self.ends = ends
        # The controller epoch of the requests, None before the first request.
        self.epoch: int | None = None
        self.waiting: deque[Sent] = deque(maxlen=MOST_WAITING)
        # By API and correlation id: requests with a response by a line of the sender or the receiver; the other line may follow.
        self.answered: dict[tuple[str, int], Sent] = {}
        # Lines of the receiver that stand before the line about the sending: API, correlation id, error, time.
        self.early: deque[tuple[str, int, str, int]] = deque(maxlen=MOST_ANSWERED)

    def find(self, apis: Set[str], epoch: int | None, correlation: int | None) -> Sent | None:
        """Return the oldest waiting request of one of these APIs with this epoch and correlation id, None for none.

        An argument None is not compared. A request without a correlation id fits every id.
        """
        known = (s for s in self.waiting if s.api in apis and epoch in (None, s.epoch))
        return next((s for s in known if correlation is None or s.correlation in (None, correlation)), None)

    def has_answer(self, apis: Set[str], correlation: int | None, *, failed: bool) -> bool:
        """Return whether the receiver's log has already shown the response that a line in the sender's log shows now.

        The line is about one of `apis`. Without a `correlation` id (up to 1.0) only a response with an error (`failed`) is
        found, and only once.
        """
        if len(apis) == 1 and correlation is not None:
            return (next(iter(apis)), correlation) in self.answered
        refused = [key for key in self.answered if correlation is None and failed and key[0] in apis]
        return bool(refused and self.answered.pop(refused[0]))

    def note_answer(self, sent: Sent, correlation: int | None) -> None:
        if correlation is not None:
            self.answered[sent.api, correlation] = sent
            if len(self.answered) > MOST_ANSWERED:
                del self.answered[next(iter(self.answered))]


class RequestLines:
    """The requests of the controllers of a cluster, as the log lines read so far show them.

    Each public method reads one line, and adds the records that follow from it to the journal of `memory`.
    """

    def __init__(self, memory: Memory, processes: Processes, release: str) -> None:
        self.memory, self.processes = memory, processes
        self._has_end = is_since(ENDS_SINCE, release)
        self._groups: dict[int, Group] = {}  # controller -> its last request
        self._channels: dict[tuple[int, int], Channel] = {}  # controller and receiver

    def sent(self, line: Line) -> None:
        """Read a log line about a request that a controller sends, or about one of its partitions; record each request once."""
        api, facts = SENT[line.kind], line.facts
        controller, epoch, correlation = facts["controller"], facts["epoch"], facts.get("correlation")
        receivers = facts["to_brokers"] if "to_brokers" in facts else [facts["to_broker"]]
        about, cause = (api, epoch, correlation, *receivers), self.processes.cause(controller)
        group = self._groups.get(controller)
        if not receivers:  # Kafka logs UpdateMetadata to no broker too
            return
        if group is None or not group.takes(line, about, cause):
            sent = self._send(api, controller, receivers, epoch, correlation, None)
            group = self._groups[controller] = Group(about, cause, sent.id)
        group.add(line)

    def planned(self, line: Line) -> None:
        """Record a StopReplica request of the broker that wrote `line`, a line of controller.log (up to 2.5).

        The line has no controller epoch: the request gets the epoch of the broker's last election.
        """
        controller, receiver = line.broker, line.facts["to_broker"]
        epoch = None if controller is None else self.processes.terms.get(controller)
        # Up to 2.2 Kafka sends a request per replica. It logs the line also for a broker that has ended, and then sends nothing.
        if controller is not None and epoch is not None and not self._has_ended(receiver):
            self._send(STOP_REPLICA, controller, [receiver], epoch, None, "controller_epoch")

    def responded(self, line: Line) -> None:
        """Record the response in a log line of the controller; if no line has shown the request, record the request too.

        Up to 2.5 state-change.log has no line about a sent StopReplica, and none about an UpdateMetadata without partitions.
        """
        facts, controller = line.facts, line.facts["controller"]
        node, correlation, epoch = NODE.search(facts["to_node"]), facts.get("correlation"), facts["epoch"]
        if node is None:
            return
        named = _api(facts.get("api"))
        # The response {error_code=0} without a list of partitions is one to UpdateMetadata.
        by_form = (APIS - {UPDATE_METADATA} if "lists" in facts else {UPDATE_METADATA}) if correlation is None else APIS
        apis, receiver, code = {named} if named else by_form, int(node[1]), facts.get("error", 0)
        channel = self._channel(controller, receiver)
        if channel.has_answer(apis, correlation, failed=code != 0):
            return
        sent = channel.find(apis, epoch, correlation)
        if sent is None and len(apis) == 1:
            sent = self._send(next(iter(apis)), controller, [receiver], epoch, correlation, TIME)
        if sent is not None:
            self._respond(controller, receiver, sent, correlation, ERRORS.get(code, f"error {code}"))

    def handled(self, line: Line) -> None:
        """Read a broker's log line about a request that it has handled (2.6 on), and record the response."""
        if not (line.kind == BEGIN and self._has_end):
            self._handled(line, HANDLED[line.kind], NO_ERROR)

    def refused(self, line: Line) -> None:
        """Read a broker's log line about a request with an old controller epoch, and record the response with this error."""
        api = _api(line.facts["api"])
        if api and {"controller", "correlation"} <= line.facts.keys():
            self._handled(line, api, STALE)

    def _handled(self, line: Line, api: str, error: str) -> None:
        facts = line.facts
        controller, receiver, correlation = facts["controller"], facts["broker"], facts["correlation"]
        channel = self._channel(controller, receiver)
        known = channel.answered.get((api, correlation))
        if known is not None:
            # The line about the beginning of the request's handling comes before the line about a refusal.
            if error != NO_ERROR:
                self._note(controller, receiver, known, error, None)
            return
        sent = channel.find({api}, facts.get("epoch"), correlation)
        if sent is None:
            channel.early.append((api, correlation, error, line.at_ms))
        else:
            self._respond(controller, receiver, sent, correlation, error)

    def _channel(self, controller: int, receiver: int, epoch: int | None = None) -> Channel:
        """Return the Channel from `controller` to `receiver`, which has the requests that wait for a response.

        Make a new Channel if either process has ended, or if `epoch`, the controller epoch, has changed.
        """
        ends = self.memory.ends(controller), self.memory.ends(receiver)
        channel = self._channels.get((controller, receiver))
        if channel is None or channel.ends != ends:
            channel = self._channels[controller, receiver] = Channel(ends)
        if epoch is not None and channel.epoch not in (None, epoch):
            if channel.waiting:
                self.memory.note(controller, "close_channels", self.processes.cause(controller), RECORD, to=[receiver])
            channel = self._channels[controller, receiver] = Channel(ends)
        channel.epoch = channel.epoch if epoch is None else epoch
        return channel

    def _has_ended(self, broker: int) -> bool:
        return broker in self.memory.incarnations and broker not in self.memory.alive

    def _send(
        self, api: str, controller: int, receivers: Sequence[int], epoch: int, correlation: int | None, inferred: str | None
    ) -> Sent:  # fmt: skip
        """Record that `controller` sends a request `api`, such as "StopReplica", to the brokers `receivers`; return this request.

        `epoch` is the controller epoch. `inferred` is "time" or "controller_epoch" if no log line has this value, else None.
        """
        # `correlation` is None if the log line has no correlation id.
        memory = self.memory
        memory.ensure_running(controller)
        empty: dict[str, tuple[str, dict[str, Any]]] = {
            LEADER_AND_ISR: ("leader_and_isr", {"values": [], "to": {str(broker): [] for broker in receivers}}),
            UPDATE_METADATA: ("update_metadata", {"partitions": {}, "to": list(receivers)}),
            STOP_REPLICA: ("stop_replica", {"to": {str(broker): {} for broker in receivers}}),
        }
        name, request = empty[api]
        head = {"controller_id": controller, "controller_epoch": epoch, "live_brokers": sorted(memory.alive)}
        channels = {receiver: self._channel(controller, receiver, epoch) for receiver in receivers}
        id = memory.note(controller, "send", self.processes.cause(controller), inferred, requests=head | {name: request})
        sent = Sent(api, epoch, correlation, id)
        for receiver, channel in channels.items():
            channel.waiting.append(sent)
            early = next((found for found in channel.early if found[0] == api), None)
            if early is not None:
                channel.early.remove(early)
                if memory.line.at_ms - early[3] <= SKEW_MS:
                    self._respond(controller, receiver, sent, early[1], early[2])
        return sent

    def _respond(self, controller: int, receiver: int, sent: Sent, correlation: int | None, error: str) -> None:
        """Record the response with `error` to the request `sent`, and inferred responses to the requests before it.

        `correlation` is the id in the log line, None without an id.
        """
        group, channel = self._groups.get(controller), self._channel(controller, receiver)
        channel.note_answer(sent, correlation)
        if group is not None and group.id == sent.id:
            group.is_closed = True
        while channel.waiting:
            first = channel.waiting.popleft()
            self._note(controller, receiver, first, error if first is sent else NO_ERROR, None if first is sent else RECORD)
            if first is sent:
                break

    def _note(self, controller: int, receiver: int, sent: Sent, error: str, inferred: str | None) -> None:
        memory = self.memory
        # A line that stands after the end of the receiver, as its clock is behind, does not start the receiver again.
        if self._has_ended(receiver):
            return
        memory.ensure_running(receiver)
        name = f"{sent.id.node}.{sent.id.incarnation}-{receiver}-{sent.id.seq}-{sent.api}"
        record = memory.note(receiver, "respond", sent.id, inferred, correlation_id=name, body={"error": error, "errors": {}})
        memory.note(None, "response", record, RECORD, channel=f"{controller}>{receiver}", api=sent.api)


def _api(name: str | None) -> str | None:
    """Return the API with this name in a log line: "UpdateMetadata" for "UPDATE_METADATA"; None for another name or None."""
    return BY_NAME.get(re.sub("[_ ]", "", name or "").lower())
