"""Reads the log lines about processes: brokers that start and end, and brokers that become or cease to be controller.

A killed broker logs nothing: its end is inferred from the first log line of a controller that shows it.
"""

from kcontrol.core.znodes import CONTROLLER, CONTROLLER_EPOCH, broker_path, encode_controller
from kcontrol.journal.journal import RecordId
from kcontrol.pipeline.log_journal.log_line import Ahead, Line
from kcontrol.pipeline.log_journal.memory import RECORD, TIME, Memory


class Processes:
    """The processes and controllers of a cluster, as far as the log lines show them that were read so far.

    A method that reads a log line adds the journal records that follow from it to `memory`, which has the cluster's other state.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.ahead, self.position = Ahead(()), 0
        self.terms: dict[int, int] = {}  # broker -> its controller epoch, while it is controller in its own view
        self.causes: dict[int, RecordId] = {}  # controller -> the record that later records of its have as their cause
        self._started: dict[int, int] = {}  # broker -> its last incarnation that has logged its start
        self._listed: dict[tuple[int, int | None], set[int]] = {}  # term -> the live brokers that its failover has logged
        self._ended: dict[tuple[int, int | None], set[int]] = {}  # term -> the brokers that had ended when it began

    # ---------------------------------------------------------------- brokers

    def started(self, line: Line) -> None:
        """Read a broker's log line "started", and record the broker's start and registration, each unless it is recorded."""
        broker, memory = line.facts["broker"], self.memory
        if broker in memory.alive and self._started.get(broker) == memory.incarnations[broker]:
            # The log has no end of the former process of this broker.
            self.fail(broker)
        cause = None if broker in memory.alive else memory.start(broker, TIME)
        memory.register(broker, cause, None)
        self._started[broker] = memory.incarnations[broker]

    def stopped(self, line: Line) -> None:
        """Read "shut down completed": if the line's broker is alive, record the end of its process, with exit code 0."""
        if line.facts["broker"] in self.memory.alive:
            self._end(line.facts["broker"], 0, None)

    def leaving(self, line: Line) -> None:
        """Read a log line about a broker's controlled shutdown: the broker's end then gets exit code 0."""
        self.memory.leaving.add(line.facts["broker"])

    def changed(self, line: Line) -> None:
        """Read the line "Newly added brokers", and record the ends, starts and registrations of brokers.

        A broker has ended if the line has it as deleted or restarted.
        """
        facts, memory, controller = line.facts, self.memory, line.facts["controller"]
        memory.ensure_running(controller)
        restarted = facts.get("bounced") or []
        for broker in [*facts["deleted"], *restarted]:
            if broker in memory.alive and broker != controller:
                self.fail(broker)
        for broker in facts["live"]:
            if broker not in memory.alive:
                memory.start(broker, RECORD)
            memory.register(broker, None, RECORD)
        self.causes.pop(controller, None)

    def live(self, line: Line) -> None:
        """Read the list of live brokers that a failover logs, and record that every other broker has ended."""
        controller, live = line.facts["controller"], line.facts["live"]
        self.memory.ensure_running(controller)
        term = controller, self.terms.get(controller)
        if term in self._listed:  # later lists leave out brokers that shut down
            return
        self._listed[term] = set(live)
        for broker in sorted(self.memory.alive):
            if broker not in live and broker != controller and broker_path(broker) in self.memory.versions:
                self.fail(broker)
        for broker in live:
            self.memory.ensure_running(broker)

    def fail(self, broker: int) -> None:
        self._end(broker, 0 if broker in self.memory.leaving else None, RECORD)

    def _end(self, broker: int, exit_code: int | None, inferred: str | None) -> None:
        record = self.memory.stop(broker, exit_code, inferred)
        self.terms.pop(broker, None)
        self.causes = dict.fromkeys(self.causes, record) | {broker: record}

    # ---------------------------------------------------------------- controllers

    def elected(self, line: Line) -> None:
        """The line "successfully elected" has the controller epoch from 2.1 on."""
        self._elect(line.facts["controller"], line.facts.get("epoch"), None)

    def epoch(self, line: Line) -> None:
        """Read the log line with a new controller's epoch, and record the write of `/controller_epoch` unless the journal has it.

        If the broker is not known to be controller, record its election as inferred.
        """
        controller, epoch = line.facts["controller"], line.facts["epoch"]
        if self.memory.owners.get(CONTROLLER) != controller:
            self._elect(controller, epoch, RECORD)
        elif self.terms.get(controller) != epoch:
            self.memory.ensure_running(controller)
            cause = self.memory.write(controller, self.causes.get(controller), None, (CONTROLLER_EPOCH, str(epoch), False))
            self._begin_term(controller, epoch, cause)

    def resigned(self, line: Line) -> None:
        """Read the log line "Resigning", and record that the broker which wrote the line is no longer controller."""
        controller = line.facts["controller"]
        self.memory.ensure_running(controller)
        self._resign(controller, None)

    def speaks(self, controller: int, epoch: int) -> None:
        """A line that only a controller with this epoch writes: an election is inferred if no line showed it."""
        if self.terms.get(controller) != epoch:
            self._elect(controller, epoch, RECORD)

    def was_live(self, controller: int, epoch: int, broker: int) -> bool:
        """Return whether `broker` was live when the term of `controller` with this epoch began, as far as lines show."""
        term = controller, epoch
        return broker in self._listed[term] if term in self._listed else broker not in self._ended.get(term, ())

    def cause(self, controller: int) -> RecordId | None:
        """The latest of this controller's transition, its election, and the end of any broker."""
        # After a line "Newly added brokers" no cause is known.
        return self.causes.get(controller)

    def _elect(self, controller: int, epoch: int | None, inferred: str | None) -> None:
        memory = self.memory
        memory.ensure_running(controller)
        known = memory.owners.get(CONTROLLER) == controller and controller not in self.terms
        if not known:
            self._vacate(controller)
        writes = [] if known else [(CONTROLLER, encode_controller(controller, memory.line.at_ms).decode(), True)]
        writes += [] if epoch is None else [(CONTROLLER_EPOCH, str(epoch), False)]
        if not writes:
            return
        record = memory.write(controller, self.causes.get(controller), inferred, *writes)
        self.causes[controller] = self._update(controller, record, inferred, "active_controller_id", controller)
        if epoch is not None:
            self._begin_term(controller, epoch, record)

    def _begin_term(self, controller: int, epoch: int, cause: RecordId) -> None:
        self.terms[controller] = epoch
        self._ended[controller, epoch] = {broker for broker in self.memory.incarnations if broker not in self.memory.alive}
        self.causes[controller] = self._update(controller, cause, None, "controller_epoch", epoch)

    def _update(self, controller: int, cause: RecordId | None, inferred: str | None, field: str, put: int) -> RecordId:
        known = {"context": "controller", "container": "value", "clear": False, "remove": []}
        return self.memory.note(controller, "update", cause, inferred, field=field, put=put, **known)

    def _vacate(self, controller: int) -> None:
        """Before the election of `controller`, record as inferred that the former controller has resigned or ended.

        Do nothing if `/controller` has no owner.
        """
        holder = self.memory.owners.get(CONTROLLER)
        if holder is None:
            return
        said = self.ahead.next(self.position, "speaks", holder)
        again = self.ahead.next(self.position, "starts", holder)
        # A broker that logs more later has only resigned.
        lives = holder == controller or (said is not None and said is not again)
        if lives:
            self.memory.delete(None, None, RECORD, CONTROLLER)
            self._resign(holder, RECORD)
        else:
            self.fail(holder)

    def _resign(self, controller: int, inferred: str | None) -> None:
        if self.terms.pop(controller, None) is not None:
            self._update(controller, self.causes.get(controller), inferred, "active_controller_id", -1)
