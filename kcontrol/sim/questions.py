"""What brokers ask a controller: AlterIsr of a leader (2.7 on), and ControlledShutdown of a broker that is to stop.

A leader sends AlterIsr to the controller that the channel knew first. The channel takes another controller only after
NOT_CONTROLLER or after the end of the connection: a dead controller ends the connection at once, and a frozen controller does
not answer, so that the leader ends the connection after `controller.socket.timeout.ms`.
Source: BrokerToControllerRequestThread.doWork and handleResponse (2.8), NodeToControllerRequestThread (3.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol.events import AlterIsrReceived, AlterIsrResponse, ControlledShutdown, ControlledShutdownResponse, Event
from kcontrol.runtime.driver import Driver
from kcontrol.runtime.journal import RecordId
from kcontrol.sim.exchange import begin_if_idle, hears
from kcontrol.sim.network import Question

if TYPE_CHECKING:
    from kcontrol.sim.world import World

NOT_CONTROLLER = "NOT_CONTROLLER"


def note_controller(world: World, driver: Driver) -> None:
    """Keep the controller that this broker knows now for its channel, unless the channel has a controller already."""
    if driver.broker.rules.alter_isr and driver.broker.controller_id >= 0:
        world.network.controllers.setdefault(driver.node, driver.broker.controller_id)


def look_again(world: World, n: int, refused_by: int) -> None:
    """Give the channel of a broker the controller that its metadata names now, or none while that is the broker that refused."""
    named = world.processes[n].driver.broker.controller_id
    if named == refused_by:
        world.network.controllers.pop(n, None)
    else:
        world.network.controllers[n] = named


def whom(world: World, n: int, question: Question) -> int:
    """Return the broker that a question goes to: for AlterIsr the channel's controller while its process lives."""
    if question.to is not None:
        return question.to
    known = world.network.controllers.get(n, -1)
    return known if known in world.processes else world.processes[n].driver.broker.controller_id


def standing(world: World, n: int, target: int) -> tuple[Any, ...]:
    """Return what the answer to a question as a whole depends on: while it is unchanged, the next answer is as the last one."""
    driver, asked = world.processes[n].driver, world.processes[target].driver
    known = asked.controller.live_broker_epochs.get(n) == driver.broker.broker_epoch
    return target, driver.broker.controller_epoch, asked.controller.is_active, known


def reaches_before_renewal(world: World, n: int, receiver: int) -> bool:
    """Return whether a broker's question arrives before `receiver`, whose session has ended, hears of that end.

    A question to `receiver` itself does so once: its write waits for ZooKeeper, whose answer says that the session has ended.
    """
    target = whom(world, n, world.network.pending(n)[0])
    return n != receiver and (target != receiver or not world.processes[receiver].was_asked)


def may_ask(world: World, n: int) -> bool:
    """Return whether a broker has questions, none of them is being worked on, and their receiver can answer now."""
    pending = world.network.pending(n)
    if not pending or len(pending) < len(world.network.questions[n]):
        return False
    target = whom(world, n, pending[0])
    return hears(world, target) and all(q.refused_by != standing(world, n, whom(world, n, q)) for q in pending if q.refused_by)


def ask(world: World, n: int) -> None:
    """Send what a broker has to ask to its receiver, all of one kind in one request."""
    driver = world.processes[n].driver
    pending = world.network.pending(n)
    target = whom(world, n, pending[0])
    correlation_id = f"{n}.{driver.incarnation}-{pending[0].record.seq}-{pending[0].api}"
    together = [question for question in pending if (question.api, question.to) == (pending[0].api, pending[0].to)]
    body: dict[Any, Any] = {}
    for question in together:
        question.asked, question.correlation_id, question.refused_by = target, correlation_id, None
        body |= question.body
    event: Event
    if pending[0].api == "AlterIsr":
        world.network.controllers[n] = target
        event = AlterIsrReceived(correlation_id, n, driver.broker.broker_epoch, tuple(body.items()))
    else:
        event = ControlledShutdown(correlation_id, body["broker_id"], body["broker_epoch"])
    p = world.processes[target]
    p.was_asked = p.session == "expired"
    p.driver.enqueue(event, pending[0].record)


def answer(world: World, by: Driver, correlation_id: str, body: Any, record: RecordId) -> None:
    """Give an answer to the broker that asked; after an error as a whole the broker keeps the question, and asks again later."""
    for n, questions in world.network.questions.items():
        asked = [q for q in questions if q.correlation_id == correlation_id]
        if not asked or n not in world.processes:
            continue
        driver = world.processes[n].driver
        is_alter_isr = asked[0].api == "AlterIsr"
        if body is None:
            _take_back(asked)
            return
        if is_alter_isr and NOT_CONTROLLER in (body["error"], *body["partitions"].values()):
            look_again(world, n, by.node)
        if is_alter_isr and body["error"] != "NONE":
            _take_back(asked)
            for question in asked:
                question.refused_by = standing(world, n, by.node)
            driver.log("refused", record, api=asked[0].api, error=body["error"])
            return
        world.network.settle(n, asked)
        world.log("told", record, broker=n, settled=[str(q.record) for q in asked])
        driver.enqueue(_answer_event(asked[0].api, body), record, "requests")
        begin_if_idle(world, n)
        return


def _take_back(asked: list[Question]) -> None:
    for question in asked:
        question.asked, question.correlation_id = -1, ""


def _answer_event(api: str, body: Any) -> Event:
    if api == "AlterIsr":
        return AlterIsrResponse(body["error"], tuple(body["partitions"].items()))
    return ControlledShutdownResponse(body["error"], tuple(body["partitions"]))


# ---------------------------------------------------------------- a frozen controller


def waits_for(world: World, n: int) -> int | None:
    """Return the frozen controller that a living broker's AlterIsr waits for although the broker knows a later controller."""
    for question in world.network.questions.get(n, ()):
        if question.api == "AlterIsr":
            target = whom(world, n, question) if question.asked == -1 else question.asked
            later = world.processes[n].driver.broker.controller_id
            return target if target in world.processes and world.processes[target].frozen and later != target else None
    return None


def record_of(world: World, n: int) -> RecordId:
    """Return the record of the first AlterIsr that a broker waits with."""
    return next(question.record for question in world.network.questions[n] if question.api == "AlterIsr")


def give_up(world: World, n: int, target: int) -> None:
    """End a leader's connection to a frozen controller: the leader asks the later controller."""
    _take_back([question for question in world.network.questions[n] if question.api == "AlterIsr"])
    look_again(world, n, target)
