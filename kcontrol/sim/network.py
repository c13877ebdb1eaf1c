"""What travels between brokers: controllers' requests, one in flight per channel, and brokers' questions to the controller.

Source: ControllerChannelManager.scala (RequestSendThread) and BrokerToControllerChannelManager.scala (2.8).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcontrol import events
from kcontrol.controller.context import ControllerContext
from kcontrol.runtime.journal import RecordId


class Parcel(NamedTuple):
    """One request on its way to one broker: which batch it belongs to, and the record of its sending.

    `is_left` says that its sender has closed the connection: the request lies in the receiver's socket.
    """

    api: str
    requests: Any
    record: RecordId
    is_left: bool = False


@dataclass(slots=True)
class Question:
    """What a broker asks the controller, or broker `to`.

    `asked` is the broker that works on it. `refused_by` is what `exchange.standing` said when the last answer refused it.
    """

    api: str
    body: Any
    record: RecordId
    to: int | None = None
    correlation_id: str = ""
    asked: int = -1
    refused_by: tuple[Any, ...] | None = None

    def copy(self) -> Question:
        return Question(self.api, self.body, self.record, self.to, self.correlation_id, self.asked, self.refused_by)


class Held(NamedTuple):
    """An answer that a broker has ready and cannot give, the record that says so, and whose fetches it waits for."""

    broker: int
    body: Any
    record: RecordId
    leaders: tuple[int, ...]


@dataclass(slots=True)
class Network:
    """The state of every channel. Nothing in here decides; the world says what is delivered when."""

    channels: dict[tuple[int, int], deque[Parcel]] = field(default_factory=dict)
    questions: dict[int, list[Question]] = field(default_factory=dict)
    in_flight: dict[str, tuple[int, int]] = field(default_factory=dict)  # correlation id -> sender and receiver
    fetching: dict[str, tuple[RecordId, tuple[int, ...]]] = field(
        default_factory=dict
    )  # of what is in flight: see held_answers_1_0
    held: dict[str, Held] = field(default_factory=dict)
    controllers: dict[int, int] = field(default_factory=dict)  # broker -> the controller to which it sends AlterIsr (2.7 on)
    thawed: set[tuple[int, int]] = field(default_factory=set)  # channels whose closing waits for the answer of a thawed broker

    def copy(self) -> Network:
        if not (self.channels or self.questions or self.in_flight or self.held):
            return Network(controllers=self.controllers.copy())  # no channel, and so none that is closed
        return Network(
            {pair: parcels.copy() for pair, parcels in self.channels.items()},
            {broker: [question.copy() for question in asked] for broker, asked in self.questions.items()},
            self.in_flight.copy(),
            self.fetching.copy(),
            self.held.copy(),
            self.controllers.copy(),
            self.thawed.copy(),
        )

    def post(self, sender: int, requests: Any, record: RecordId) -> None:
        for api, receiver in requests.queued():
            self.channels.setdefault((sender, receiver), deque()).append(Parcel(api, requests, record))

    def close(self, sender: int, receivers: Collection[int], unread: Sequence[int]) -> list[int]:
        """Throw away what waits for these receivers but for what lies `unread` there; return those for whom something waited."""
        closed = [r for r in receivers if any(not parcel.is_left for parcel in self.channels.get((sender, r), ()))]
        for receiver in closed:
            self.thawed.discard((sender, receiver))
            kept = list(self.channels.pop((sender, receiver)))[: unread.count(receiver)]
            if kept:
                self.channels[sender, receiver] = deque(parcel._replace(is_left=True) for parcel in kept)
        for correlation_id, pair in list(self.in_flight.items()):
            if pair[0] == sender and pair[1] in receivers:
                del self.in_flight[correlation_id]
        return closed

    def is_out(self, sender: int, receiver: int) -> bool:
        """Return whether the sender waits for the answer to a request that the receiver has not begun to handle."""
        waiting = self.channels.get((sender, receiver), ())
        return (sender, receiver) not in self.in_flight.values() and any(not parcel.is_left for parcel in waiting)

    def unread(self, sender: int, frozen: Collection[int]) -> list[int]:
        """Return the receiver of each request of this sender that lies in the socket of a frozen broker and has not been read.

        On each channel these are the requests that were left there, and the request that is out.
        """
        pairs = [(sender, to) for to in sorted(frozen) if (sender, to) in self.channels]
        return [to for by, to in pairs for _ in range(self._left(by, to) + self.is_out(by, to))]

    def _left(self, sender: int, receiver: int) -> int:
        return sum(parcel.is_left for parcel in self.channels[sender, receiver])

    def left_by_dead(self, receiver: int, living: Mapping[int, int]) -> list[int]:
        """Return the sender of each request that lies unread with this receiver and whose answer no process waits for.

        Its process, by incarnation, does not live any more, or has closed the connection.
        """
        parcels = [(by, parcel) for (by, to), waiting in sorted(self.channels.items()) if to == receiver for parcel in waiting]
        return [by for by, parcel in parcels if parcel.is_left or living.get(by) != parcel.record.incarnation]

    def forget(self, broker: int, unread: Sequence[int], left: Sequence[int]) -> None:
        """A process is gone: what it had queued is gone but for the requests that lie `unread` with these receivers.

        What these senders had `left` with it is gone too, and what it was asked is asked again.
        """
        for pair, parcels in [(pair, parcels) for pair, parcels in self.channels.items() if broker in pair]:
            begin, end = (0, unread.count(pair[1])) if pair[0] == broker else (left.count(pair[0]), None)
            kept = list(parcels)[begin:end]
            self.channels[pair] = deque(kept)
            if not kept:
                del self.channels[pair]
        self.in_flight = {key: pair for key, pair in self.in_flight.items() if broker not in pair}
        self.thawed = {pair for pair in self.thawed if broker not in pair}
        self.fetching = {key: found for key, found in self.fetching.items() if key in self.in_flight}
        self.held = {key: held for key, held in self.held.items() if held.broker != broker}
        self.questions.pop(broker, None)
        self.controllers.pop(broker, None)
        for question in (q for asked in self.questions.values() for q in asked if q.asked == broker):
            question.asked, question.correlation_id = -1, ""

    def deliverable(self) -> list[tuple[int, int]]:
        """The channels whose first request is not being worked on."""
        if not self.channels:
            return []
        busy = set(self.in_flight.values())
        return sorted(pair for pair, parcels in self.channels.items() if parcels and pair not in busy)

    def request_event(self, pair: tuple[int, int]) -> events.Event:
        """The first request of a channel as what its receiver hears; it is in flight from now on."""
        parcel = self.channels[pair][0]
        requests, receiver = parcel.requests, pair[1]
        sent = parcel.record
        correlation_id = f"{sent.node}.{sent.incarnation}-{receiver}-{sent.seq}-{parcel.api}"
        self.in_flight[correlation_id] = pair
        header = {
            "correlation_id": correlation_id,
            "request": parcel.record,
            "controller_id": requests.controller_id,
            "controller_epoch": requests.controller_epoch,
            "broker_epoch": requests.broker_epochs[receiver],
        }
        match parcel.api:
            case "LeaderAndIsr":
                return events.LeaderAndIsrRequest(**header, partitions=requests.leader_and_isr[receiver])
            case "StopReplica":
                return events.StopReplicaRequest(**header, partitions=requests.stop_replica[receiver])
        return events.UpdateMetadataRequest(**header, partitions=requests.update_metadata, live_brokers=requests.live_brokers)

    def answered(self, correlation_id: str) -> tuple[tuple[int, int], Parcel] | None:
        """The answer to a request has come: take the request off its channel."""
        pair = self.in_flight.pop(correlation_id, None)
        if pair is None:
            return None
        self.thawed.discard(pair)
        parcel = self.channels[pair].popleft()
        if not self.channels[pair]:
            del self.channels[pair]
        return pair, parcel

    def settle(self, broker: int, answered: list[Question]) -> None:
        """These questions need no further answer."""
        self.questions[broker] = [q for q in self.questions[broker] if q not in answered]
        if not self.questions[broker]:
            del self.questions[broker]

    def pending(self, broker: int) -> list[Question]:
        return [q for q in self.questions.get(broker, []) if q.asked == -1]


def response_event(parcel: Parcel, receiver: int, body: Any, controller: ControllerContext) -> events.Event | None:
    """What the controller hears when a broker has answered; of StopReplica, what concerns the deletion of topics alone."""
    if parcel.api == "LeaderAndIsr":
        if not controller.rules.outlives_log_dir:
            return None
        errors = tuple(body["errors"].items())
        return events.LeaderAndIsrResponseReceived(receiver, body["error"], errors, parcel.requests.leader_and_isr[receiver])
    if parcel.api == "UpdateMetadata":
        heard = controller.rules.metadata_answers
        return events.UpdateMetadataResponseReceived(receiver, body["error"]) if heard else None
    told = parcel.requests.stop_replica[receiver]
    answered = told if body["error"] == "NONE" else body["errors"]
    doomed = tuple(tp for tp in answered if told[tp].delete and controller.awaits_deletion(tp, receiver))
    if not doomed:
        return None
    errors = tuple((tp, error) for tp, error in body["errors"].items() if tp in doomed)
    return events.TopicDeletionStopReplicaResponseReceived(receiver, body["error"], errors, doomed)
