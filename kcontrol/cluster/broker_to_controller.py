"""Requests of brokers to the controller: AlterIsr of a leader (2.7 on), and ControlledShutdown of a broker that stops.

A leader sends AlterIsr to the first controller that it knew (`Network.known_controllers`), even if it knows a later controller
now. It takes the later controller only after NOT_CONTROLLER or after the connection has ended. A dead controller ends the
connection at once. A frozen controller does not respond, so the leader ends the connection after
`controller.socket.timeout.ms`.
Source: BrokerToControllerRequestThread.doWork and handleResponse (2.8), NodeToControllerRequestThread (3.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol.broker.events import AlterIsrResponse, ControlledShutdownResponse
from kcontrol.broker.shutdown import DISCONNECTED
from kcontrol.cluster.delivery import begin_if_idle, is_reachable
from kcontrol.cluster.network import BrokerToControllerRequest
from kcontrol.cluster.sessions import SessionState
from kcontrol.core.events import AlterIsrReceived, ControlledShutdown, Event
from kcontrol.driver.driver import Driver
from kcontrol.journal.journal import RecordId

if TYPE_CHECKING:
    from kcontrol.cluster.world import World

NOT_CONTROLLER = "NOT_CONTROLLER"


def record_known_controller(world: World, driver: Driver) -> None:
    """AlterIsr goes to the controller that the broker knew when its first request was queued."""
    if driver.broker.rules.alter_isr and driver.broker.controller_id >= 0:
        world.network.known_controllers.setdefault(driver.node, driver.broker.controller_id)


def refresh_controller(world: World, n: int, refused_by: int) -> None:
    """As the metadata of broker `n` say, unless this controller is `refused_by`, which refused or is frozen."""
    named = world.processes[n].driver.broker.controller_id
    if named == refused_by:
        world.network.known_controllers.pop(n, None)
    else:
        world.network.known_controllers[n] = named


def receiver_of(world: World, n: int, request: BrokerToControllerRequest) -> int:
    """-1: broker `n` knows no controller."""
    if request.to is not None:
        return request.to
    known = world.network.known_controllers.get(n, -1)
    return known if known in world.processes else world.processes[n].driver.broker.controller_id


def refusal_key(world: World, n: int, target: int) -> tuple[Any, ...]:
    """The values that decide whether `target` refuses the requests of broker `n`."""
    driver, asked = world.processes[n].driver, world.processes[target].driver
    known = asked.controller.live_broker_epochs.get(n) == driver.broker.broker_epoch
    return target, driver.broker.controller_epoch, asked.controller.is_active, known


def reaches_before_renewal(world: World, n: int, receiver: int) -> bool:
    """Whether `World.run` sends the oldest request of broker `n` before `receiver` renews its session."""
    target = receiver_of(world, n, world.network.pending(n)[0])
    # The first request to the receiver fails in its first call to ZooKeeper; a second one is sent only after the renewal.
    return n != receiver and (target != receiver or not world.processes[receiver].was_sent_request)


def can_send(world: World, n: int) -> bool:
    """If no request is in flight, the receiver runs, and would not refuse the requests again."""
    pending = world.network.pending(n)
    if not pending or len(pending) < len(world.network.to_controller[n]):
        return False
    target = receiver_of(world, n, pending[0])
    refused = ((q.refused_by, receiver_of(world, n, q)) for q in pending if q.refused_by)
    return is_reachable(world, target) and all(key != refusal_key(world, n, receiver) for key, receiver in refused)


def send_requests(world: World, n: int) -> None:
    """Send the first pending request of broker `n`, AlterIsr or ControlledShutdown, to its receiver (`receiver_of`).

    Pending requests with equal API and equal field `to` are combined with this request.
    """
    driver = world.processes[n].driver
    pending = world.network.pending(n)
    target = receiver_of(world, n, pending[0])
    correlation_id = f"{n}.{driver.incarnation}-{pending[0].record.seq}-{pending[0].api}"
    together = [request for request in pending if (request.api, request.to) == (pending[0].api, pending[0].to)]
    body: dict[Any, Any] = {}
    for request in together:
        request.receiver, request.correlation_id, request.refused_by = target, correlation_id, None
        body |= request.body
    event: Event
    if pending[0].api == "AlterIsr":
        world.network.known_controllers[n] = target
        event = AlterIsrReceived(correlation_id, n, driver.broker.broker_epoch, tuple(body.items()))
    else:
        event = ControlledShutdown(correlation_id, body["broker_id"], body["broker_epoch"])
    p = world.processes[target]
    p.was_sent_request = p.session is SessionState.EXPIRED
    p.driver.enqueue(event, pending[0].record)


def deliver_response(world: World, controller_driver: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
    """Deliver the controller's response `body` to the broker that sent the request with this correlation id.

    `record` is the response's journal record. A `body` of None means that a resigned controller has dropped the request, which
    then becomes pending again.
    """
    for n, requests in world.network.to_controller.items():
        asked = [q for q in requests if q.correlation_id == correlation_id]
        if not asked or n not in world.processes:
            continue
        driver = world.processes[n].driver
        is_alter_isr = asked[0].api == "AlterIsr"
        if body is None:
            _requeue(asked)
            return
        if is_alter_isr and NOT_CONTROLLER in (body["error"], *body["partitions"].values()):
            refresh_controller(world, n, controller_driver.node)
        if is_alter_isr and body["error"] != "NONE":
            _requeue(asked)
            for request in asked:
                request.refused_by = refusal_key(world, n, controller_driver.node)
            driver.log("request_refused", record, api=asked[0].api, error=body["error"])
            return
        world.network.settle(n, asked)
        world.log("controller_response", record, broker=n, requests=[str(q.record) for q in asked])
        driver.enqueue(_response_event(asked[0].api, body), record, "requests")
        begin_if_idle(world, n)
        return


def disconnect(world: World, n: int, stop_record: RecordId) -> None:
    """End the connections to broker `n`, whose process has ended: ControlledShutdown requests to it get DISCONNECTED.

    `stop_record` is the `stop` record of the process.

    Source: KafkaServer.controlledShutdown, `case ioe: IOException` (0.8.1, 2.8).
    """
    for asker, asked in list(world.network.to_controller.items()):
        lost = [request for request in asked if request.to == n]
        if lost and asker in world.processes:
            lose(world, world.processes[asker].driver, lost, stop_record, DISCONNECTED)
            begin_if_idle(world, asker)


def lose(world: World, driver: Driver, requests: list[BrokerToControllerRequest], cause: RecordId, error: str) -> None:
    """`cause` is the record that ended the connection; the sender gets one response with `error`."""
    world.network.settle(driver.node, requests)
    record = world.log("controller_response", cause, broker=driver.node, requests=[str(q.record) for q in requests], error=error)
    driver.enqueue(ControlledShutdownResponse(error, ()), record, "requests")


def _requeue(requests: list[BrokerToControllerRequest]) -> None:
    for request in requests:
        request.receiver, request.correlation_id = -1, ""


def _response_event(api: str, body: Any) -> Event:
    if api == "AlterIsr":
        return AlterIsrResponse(body["error"], tuple(body["partitions"].items()))
    return ControlledShutdownResponse(body["error"], tuple(body["partitions"]))


# ---------------------------------------------------------------- a frozen controller


def frozen_receiver(world: World, n: int) -> int | None:
    """None also while the metadata of `n` name the frozen broker as the controller."""
    for request in world.network.to_controller.get(n, ()):
        if request.api == "AlterIsr":
            # For a request that is not sent yet, the broker that will receive the request.
            target = receiver_of(world, n, request) if request.receiver == -1 else request.receiver
            later = world.processes[n].driver.broker.controller_id
            return target if target in world.processes and world.processes[target].frozen and later != target else None
    return None


def first_alter_isr_record(world: World, n: int) -> RecordId:
    """Of the requests without a response. Raises StopIteration if there is none."""
    return next(request.record for request in world.network.to_controller[n] if request.api == "AlterIsr")


def abandon_connection(world: World, n: int, target: int) -> None:
    """End the connection of leader `n` to the frozen controller `target`; the AlterIsr requests of `n` become pending again."""
    _requeue([request for request in world.network.to_controller[n] if request.api == "AlterIsr"])
    refresh_controller(world, n, target)
