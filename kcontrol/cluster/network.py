"""The requests between brokers: from controllers to brokers, one in flight per channel, and from brokers to the controller.

A request that is delivered is handled at once if its receiver is idle, and its response reaches the sender in the same step. A
connection that breaks before the request is handled loses it; one that breaks after makes the sender send it again, as Kafka's
send thread does. The queues of a process end with it, with one exception, seen on real brokers: the first request of each channel
to a frozen broker is in a socket of that broker, which handles it later (`Network.unread`); the response has no receiver.

Source: ControllerChannelManager.scala (RequestSendThread) and BrokerToControllerChannelManager.scala (2.8).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcontrol.broker.events import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from kcontrol.controller.context import ControllerContext
from kcontrol.core import events
from kcontrol.journal.journal import RecordId


class QueuedRequest(NamedTuple):
    """One request in the queue of a controller's channel to a broker; `api` is a name such as "StopReplica"."""

    api: str
    # The controller's batch of requests, of which this is one.
    requests: Any
    # The `send` record of the batch.
    record: RecordId
    # True: the sender has closed the connection while the request was in the receiver's socket.
    is_orphaned: bool = False


@dataclass(slots=True)
class BrokerToControllerRequest:
    """A request of a broker to the controller or, if `to` is set, to broker `to`."""

    # "AlterIsr" or "ControlledShutdown".
    api: str
    # For AlterIsr {partition: leadership with the new ISR}, for ControlledShutdown {"broker_id": 1, "broker_epoch": 17}.
    body: Any
    # The `to_controller` record that queued the request.
    record: RecordId
    # None: the controller that the broker knows when it sends the request.
    to: int | None = None
    # "" before the request is sent.
    correlation_id: str = ""
    # The broker that handles the request now, -1 before it is sent.
    receiver: int = -1
    # What decided the receiver's last refusal (`refusal_key` in broker_to_controller.py), None without a refusal. The request is
    # sent again once a value of this tuple, such as the receiver, has changed.
    refused_by: tuple[Any, ...] | None = None

    def copy(self) -> BrokerToControllerRequest:
        return BrokerToControllerRequest(
            self.api, self.body, self.record, self.to, self.correlation_id, self.receiver, self.refused_by
        )


class DelayedResponse(NamedTuple):
    """A response of `broker` that it may not send before its fetches from `leaders` have ended.

    `body` is the response, and `record` the journal record `delay_response`, which says that the response must wait.
    """

    broker: int
    body: Any
    record: RecordId
    leaders: tuple[int, ...]


@dataclass(slots=True)
class Network:
    """The requests and responses between brokers, queued by channel: a pair of sender and receiver.

    The caller of `World.step` chooses the next delivery.
    """

    # (sender, receiver) -> requests in the order of sending; the first one may be in flight.
    channels: dict[tuple[int, int], deque[QueuedRequest]] = field(default_factory=dict)
    # Broker -> its requests to the controller that have no response yet.
    to_controller: dict[int, list[BrokerToControllerRequest]] = field(default_factory=dict)
    # Correlation id of a request in flight -> the sender and receiver of its channel.
    in_flight: dict[str, tuple[int, int]] = field(default_factory=dict)
    # Correlation id of a LeaderAndIsr -> the record of its receipt, and the frozen leaders from which the receiver fetched at
    # that time. The response waits for these fetches (delayed_responses.py).
    fetching_from: dict[str, tuple[RecordId, tuple[int, ...]]] = field(default_factory=dict)
    # Correlation id of a LeaderAndIsr -> its response.
    delayed_responses: dict[str, DelayedResponse] = field(default_factory=dict)
    # Broker -> the controller to which the broker sends AlterIsr (2.7 on).
    known_controllers: dict[int, int] = field(default_factory=dict)
    # The channels that the sender closes only after the receiver, which was frozen and is thawed, has sent its response.
    thawed: set[tuple[int, int]] = field(default_factory=set)

    def copy(self) -> Network:
        if not (self.channels or self.to_controller or self.in_flight or self.delayed_responses):
            return Network(known_controllers=self.known_controllers.copy())  # without a channel no channel is closed
        return Network(
            {pair: waiting.copy() for pair, waiting in self.channels.items()},
            {broker: [request.copy() for request in asked] for broker, asked in self.to_controller.items()},
            self.in_flight.copy(), self.fetching_from.copy(), self.delayed_responses.copy(), self.known_controllers.copy(),
            self.thawed.copy(),
        )  # fmt: skip

    def enqueue(self, sender: int, requests: Any, record: RecordId) -> None:
        for api, receiver in requests.in_send_order():
            self.channels.setdefault((sender, receiver), deque()).append(QueuedRequest(api, requests, record))

    def close(self, sender: int, receivers: Collection[int], unread_receivers: Sequence[int]) -> list[int]:
        """Drop the requests of `sender` to `receivers`, and return the receivers for which there was a request.

        `unread_receivers` has a receiver's id once for each request in the receiver's socket: these requests stay, marked
        `is_orphaned`.
        """
        closed = [r for r in receivers if any(not queued.is_orphaned for queued in self.channels.get((sender, r), ()))]
        for receiver in closed:
            self.thawed.discard((sender, receiver))
            kept = list(self.channels.pop((sender, receiver)))[: unread_receivers.count(receiver)]
            if kept:
                self.channels[sender, receiver] = deque(queued._replace(is_orphaned=True) for queued in kept)
        for correlation_id, pair in list(self.in_flight.items()):
            if pair[0] == sender and pair[1] in receivers:
                del self.in_flight[correlation_id]
        return closed

    def awaits_response(self, sender: int, receiver: int) -> bool:
        """Return whether the sender waits for the response to a request that the receiver has not begun to handle."""
        waiting = self.channels.get((sender, receiver), ())
        return (sender, receiver) not in self.in_flight.values() and any(not queued.is_orphaned for queued in waiting)

    def unread(self, sender: int, frozen_brokers: Collection[int]) -> list[int]:
        """Return the frozen brokers that have requests of this sender in their sockets, a broker once for each request."""
        orphans = {to: sum(q.is_orphaned for q in self.channels.get((sender, to), ())) for to in sorted(frozen_brokers)}
        return [to for to, count in orphans.items() for _ in range(count + self.awaits_response(sender, to))]

    def orphaned_senders(self, receiver: int, incarnations: Mapping[int, int]) -> list[int]:
        """Of unread requests whose responses no process awaits; a sender stands once per request."""
        unread = [(by, queued) for (by, to), waiting in sorted(self.channels.items()) if to == receiver for queued in waiting]
        return [by for by, queued in unread if queued.is_orphaned or incarnations.get(by) != queued.record.incarnation]

    def remove_process(self, broker: int, unread_receivers: Sequence[int], orphaned_senders: Sequence[int]) -> None:
        """Drop the requests of a broker whose process has ended, and requests to it whose senders await no response any more.

        `unread_receivers` and `orphaned_senders` are the results of the methods `unread` and `orphaned_senders` for this
        broker.
        """
        for pair, waiting in [(pair, waiting) for pair, waiting in self.channels.items() if broker in pair]:
            # Its own requests are dropped, except those in sockets of frozen brokers; requests to it stay at their senders,
            # except those for whose response no process waits.
            begin, end = (0, unread_receivers.count(pair[1])) if pair[0] == broker else (orphaned_senders.count(pair[0]), None)
            kept = list(waiting)[begin:end]
            self.channels[pair] = deque(kept)
            if not kept:
                del self.channels[pair]
        self.in_flight = {key: pair for key, pair in self.in_flight.items() if broker not in pair}
        self.thawed = {pair for pair in self.thawed if broker not in pair}
        self.fetching_from = {key: found for key, found in self.fetching_from.items() if key in self.in_flight}
        self.delayed_responses = {key: held for key, held in self.delayed_responses.items() if held.broker != broker}
        self.to_controller.pop(broker, None)
        self.known_controllers.pop(broker, None)
        for request in (q for asked in self.to_controller.values() for q in asked if q.receiver == broker):
            # The request of a broker that the ended process handled becomes pending again.
            request.receiver, request.correlation_id = -1, ""

    def deliverable(self) -> list[tuple[int, int]]:
        """A delivered request is in flight, and stays the oldest of its channel, until its response comes."""
        if not self.channels:
            return []
        busy = set(self.in_flight.values())
        return sorted(pair for pair, waiting in self.channels.items() if waiting and pair not in busy)

    def request_event(self, channel: tuple[int, int]) -> events.Event:
        """Mark the oldest request of the channel (sender, receiver) as in flight; return the event for the receiver."""
        queued = self.channels[channel][0]
        requests, receiver = queued.requests, channel[1]
        sent = queued.record
        correlation_id = f"{sent.node}.{sent.incarnation}-{receiver}-{sent.seq}-{queued.api}"
        self.in_flight[correlation_id] = channel
        header = {
            "correlation_id": correlation_id, "request": queued.record, "controller_id": requests.controller_id,
            "controller_epoch": requests.controller_epoch, "broker_epoch": requests.broker_epochs[receiver],
        }  # fmt: skip
        match queued.api:
            case "LeaderAndIsr":
                return LeaderAndIsrRequest(**header, partitions=requests.leader_and_isr[receiver])
            case "StopReplica":
                return StopReplicaRequest(**header, partitions=requests.stop_replica[receiver])
        return UpdateMetadataRequest(**header, partitions=requests.update_metadata, live_brokers=requests.live_brokers)

    def answered(self, correlation_id: str) -> tuple[tuple[int, int], QueuedRequest] | None:
        """The channel and the request in flight with this correlation id, which leaves the channel."""
        pair = self.in_flight.pop(correlation_id, None)
        if pair is None:
            return None
        self.thawed.discard(pair)
        queued = self.channels[pair].popleft()
        if not self.channels[pair]:
            del self.channels[pair]
        return pair, queued

    def settle(self, broker: int, requests: list[BrokerToControllerRequest]) -> None:
        """Remove `requests`, which `broker` has sent to the controller: each has a response or will get none."""
        self.to_controller[broker] = [q for q in self.to_controller[broker] if q not in requests]
        if not self.to_controller[broker]:
            del self.to_controller[broker]

    def pending(self, broker: int) -> list[BrokerToControllerRequest]:
        return [q for q in self.to_controller.get(broker, []) if q.receiver == -1]


def response_event(queued_request: QueuedRequest, receiver: int, body: Any, controller: ControllerContext) -> events.Event | None:
    """Return the event by which a controller handles `body`, the response of the broker `receiver` to `queued_request`.

    `controller` is the controller's memory. Return None if the controller ignores the response.
    """
    if queued_request.api == "LeaderAndIsr":
        if not controller.rules.outlives_log_dir:
            return None
        errors = tuple(body["errors"].items())
        return events.LeaderAndIsrResponseReceived(
            receiver, body["error"], errors, queued_request.requests.leader_and_isr[receiver]
        )
    if queued_request.api == "UpdateMetadata":
        is_handled = controller.rules.handles_metadata_responses
        return events.UpdateMetadataResponseReceived(receiver, body["error"]) if is_handled else None
    sent = queued_request.requests.stop_replica[receiver]
    answered = sent if body["error"] == "NONE" else body["errors"]
    # The event has only the replicas whose topics are being deleted.
    deleted = tuple(tp for tp in answered if sent[tp].delete and controller.is_deletion_in_progress(tp, receiver))
    if not deleted:
        return None
    errors = tuple((tp, error) for tp, error in body["errors"].items() if tp in deleted)
    return events.TopicDeletionStopReplicaResponseReceived(receiver, body["error"], errors, deleted)
