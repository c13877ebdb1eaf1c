"""The conversion of a recording of a real group coordinator into a journal, so that functions for journals work for it too.

A recording has the requests and responses, stops and starts of the broker as numbered entries (`exchange`), and the records of
the group in `__consumer_offsets` (`log`).

Requests, responses and the records of the log are as recorded. A recording does not show the coordinator's memory, so this is
inferred from requests, responses and log, by these rules:

* A JoinGroup whose response names a later generation is parked. The generation begins with the last request that it waited
  for, or, if the responses come more than PROMPT_MS later, by a timer at the time of the first response.
* The members of a generation are those in the leader's response; the leader's SyncGroup makes the group Stable.
* A session restarts with the requests that do so in the release (`GROUP_REACTIONS`), and for members whose SyncGroup gets its
  response. A member whose session has passed is removed by its timer, unless a later request of the member succeeds; so is a
  member of 2.8 that sends no SyncGroup within the rebalance timeout, and an id that no JoinGroup uses. If the join phase has
  waited for the removed member alone, the generation begins with its removal.
* A periodic check writes the tombstone of an expired offset, and that of an Empty group without offsets.
* A response that contradicts the memory so far, such as UNKNOWN_MEMBER_ID, changes the memory at its request.
* A record of the log is appended by the request that explains the record; the log has its order, but no times.

Each inferred record has the field `inferred`: "record" if the recording does not have the record, "time" if the recording has
the record without its time. `requests.py` has the changes by each request, `memory.py` the memory: read these next.

Source of the rules: GroupCoordinator.scala and GroupMetadataManager.scala (0.9.0.1, 2.8.2).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kcontrol.cluster import group_admin
from kcontrol.cluster.consumer_state import Consumer, after_response
from kcontrol.cluster.coordinator_requests import HOST, Sender, event_of, is_admin
from kcontrol.core.errors import UserError
from kcontrol.group.handlers import REQUESTS
from kcontrol.journal.journal import JOURNAL_VERSION, OUTSIDE, Journal, Record, RecordId
from kcontrol.journal.journal_file import WRONG
from kcontrol.recordings.groups import requests
from kcontrol.recordings.groups.memory import BROKER, Memory
from kcontrol.recordings.groups.recording import RECORDED_GROUP, STOPPED, Step, errors, response, scenario

PROMPT_MS = 100
"""How much later than its last cause a response may be read. Recorders saw 51 ms at most."""

JOINED = "JoinGroup"
TOOL = "-"


def to_journal(recording: Step) -> list[Record]:
    """Convert a recording of a real group coordinator into a journal; return the journal's records.

    Raises UserError, which names the entry, if a request, a response or a record of the log cannot follow those before it.
    """
    replay = Replay(recording)
    try:
        for moment in replay.moments():
            replay.perform(moment)
        replay.finish()
    except WRONG as problem:
        where = f"in entry {replay.entry} of the exchange" if replay.entry else "in its log"
        raise UserError(f"The recording {recording['name']} contradicts itself {where}: {problem!r}.") from None
    return replay.journal.records


class Moment(NamedTuple):
    """One moment of a recording at which `Replay.perform` adds records, such as the arrival of a request."""

    # In ms since the start of the recording.
    at_ms: int
    # "request" (its arrival), "answer" (its response), "event" (a stop or start of the broker) or "timer" (a timer begins a
    # generation).
    kind: str
    # The entry of the recording: a request with its response, or a stop or start. For a "timer" it is the last JoinGroup with the
    # new generation in its response.
    step: Step


def consumer_name(client: str) -> str:
    """Return the name of a recorded client in the journal: "tool" for the client "-" (the recorder's own tool), else `client`."""
    return "tool" if client == TOOL else client


def consumers(recording: Step) -> dict[str, Consumer]:
    """Before the client's first request; administrators' requests make no Consumer."""
    asked = [step for step in recording["exchange"] if "api" in step and not is_admin(step["api"])]
    instances = {step["client"]: step["request"].get("instance") for step in asked if step["api"] == JOINED}
    names = dict.fromkeys(step["client"] for step in asked)
    return {consumer_name(name): Consumer(recording["group"], instance_id=instances.get(name)) for name in names}


class Replay:
    """Converts one recording of a group coordinator into a journal.

    `moments` yields the requests, responses and other events of the recording. Call `perform` for each, then `finish` once.
    """

    def __init__(self, recording: Step) -> None:
        # The number of the entry of the recording that is converted now, 0 before the first.
        self.recording, self.entry = recording, 0
        self.journal = Journal()
        self.memory = Memory(recording, self.journal)
        self.consumers = consumers(recording)
        self.ids: dict[int, str] = {}  # number of an entry -> correlation id of its request
        self.begun: dict[int, RecordId] = {}  # number of an entry -> the record at which its handler begins
        self.starts = dict(_beginnings(recording["exchange"]))
        known = {"release": recording["release"], "scenario": scenario(recording), "brokers": [BROKER]}
        known |= {"group": recording["group"], "title": recording.get("title", ""), "config": recording["broker"]}
        self._log("run", None, journal_version=JOURNAL_VERSION, world=RECORDED_GROUP, consumers=dict(self.consumers), **known)
        self.memory.start(None, inferred="record")

    def _log(self, kind: str, cause: RecordId | None, **fields: Any) -> RecordId:
        return self.journal.add(OUTSIDE, 0, kind, cause, self.memory.now_ms, fields)

    # ---------------------------------------------------------------- the order of time

    def moments(self) -> Iterator[Moment]:
        """Yield a Moment for each request, response, timer, stop and start of the recording, in the order of time."""
        found: list[tuple[tuple[int, int, int, int], Moment]] = []
        for step in self.recording["exchange"]:
            at_ms, n = step["at"], step["n"]
            found.append(((at_ms, 1, n, 0), Moment(at_ms, "event" if "event" in step else "request", step)))
            if step.get("answer") is not None:
                answered = step["answered_at"]
                place = (answered, 1, n, 1) if answered == at_ms else (answered, 0, n, 0)
                found.append((place, Moment(answered, "answer", step)))
            if n in self.starts and self.starts[n].by_timer:
                at_ms = self.starts[n].at_ms
                found.append(((at_ms, -1, n, 0), Moment(at_ms, "timer", step)))
        # At equal times timers come first, then responses, because the next request follows them.
        yield from (moment for _, moment in sorted(found, key=lambda entry: entry[0]))

    def perform(self, moment: Moment) -> None:
        self.entry = moment.step["n"]
        self.memory.expire_until(moment.at_ms)
        self.memory.now_ms = max(self.memory.now_ms, moment.at_ms)
        PERFORM[moment.kind](self, moment.step)

    def finish(self) -> None:
        """Records of the log that no recorded request explains become one append without a cause."""
        self.entry = 0
        self.memory.append_until(len(self.memory.log))

    # ---------------------------------------------------------------- requests and responses

    def _request(self, step: Step) -> None:
        n, client = step["n"], consumer_name(step["client"])
        act = self._log("scenario", None, step=n, do=step_of(step))
        cause = self._asks(client, act) if not is_admin(step["api"]) else act
        self.ids[n] = self._correlation_id(step, client, act)
        event = event_of(step["api"], step["request"], self.ids[n], Sender(step["client"].lower(), HOST, step["version"]))
        self.begun[n] = self.memory.receive(event, cause, REQUESTS)
        requests.handle(self.memory, step, self.ids[n], self.begun[n])
        if n in self.starts and not self.starts[n].by_timer:
            self.memory.complete_join(self.starts[n].answers, self.begun[n])
        self.memory.done(REQUESTS, self.begun[n])

    def _asks(self, client: str, act: RecordId) -> RecordId:
        me = self.consumers[client]
        self.consumers[client] = me._replace(requests=me.requests + 1, asked=(BROKER, self.memory.incarnation))
        return self._log("consumer", act, name=client, now=self.consumers[client])

    def _correlation_id(self, step: Step, client: str, act: RecordId) -> str:
        if is_admin(step["api"]):
            about = step["request"].get("group") or next(iter(step["request"].get("groups", ())), "")
            return f"{group_admin.PREFIX}{step['api']} {act.seq} {about}".strip()
        return f"consumer {client} {self.consumers[client].requests}"

    def _answer(self, step: Step) -> None:
        n, body = step["n"], response(step)
        cause = self.memory.released.get(self.ids[n], self.begun[n])
        record = self.memory.respond(self.ids[n], body, cause)
        client = consumer_name(step["client"])
        if is_admin(step["api"]):
            return
        me = self.consumers[client]
        after = after_response(me, body, has_lost_partitions=False) if errors(step) else me._replace(asked=None)
        latest = self.ids[n] == f"consumer {client} {me.requests}"
        self.consumers[client] = after if latest else after._replace(asked=me.asked)
        self._log("consumer", record, name=client, now=self.consumers[client])

    def _timer(self, step: Step) -> None:
        self.memory.complete_by_timer(self.starts[step["n"]].answers)

    def _event(self, step: Step) -> None:
        act = self._log("scenario", None, step=step["n"], do=step_of(step))
        if step["event"] != STOPPED:
            self.memory.now_ms = step["done_at"]
            self.memory.start(act)
            return
        self.memory.stop(act)
        for name, me in self.consumers.items():
            if me.asked:
                self.consumers[name] = me._replace(asked=None, error="disconnected")
                self._log("consumer", None, name=name, now=self.consumers[name])


PERFORM = {"request": Replay._request, "answer": Replay._answer, "timer": Replay._timer, "event": Replay._event}


def step_of(step: Step) -> Step:
    """As the field `do` of a `scenario` record: without the entry's number and the response."""
    return {name: value for name, value in step.items() if name not in ("n", "answer", "answered_at")}


# ---------------------------------------------------------------- when generations begin


class Beginning(NamedTuple):
    """The beginning of a generation at `at_ms` (since the recording's start), by a timer if `by_timer`, else by a request.

    `answers` has the recorded JoinGroups whose responses name this generation.
    """

    at_ms: int
    answers: list[Step]
    by_timer: bool


def _beginnings(exchange: list[Step]) -> Iterator[tuple[int, Beginning]]:
    """(n, Beginning): the generation begins after the request with this number."""
    left = [step for step in exchange if step.get("api") == "LeaveGroup" and "NONE" in errors(step)]
    for answered in _answered_together(exchange):
        first = min(step["answered_at"] for step in answered)
        last = max((step for step in (*answered, *left) if step["at"] <= first), key=lambda step: (step["at"], step["n"]))
        by_timer = first - last["at"] > PROMPT_MS
        # The request that began the generation; after a timer, the last JoinGroup with this generation in its response.
        n = max(step["n"] for step in answered) if by_timer else last["n"]
        yield n, Beginning(first if by_timer else last["at"], answered, by_timer)


def _answered_together(exchange: list[Step]) -> list[list[Step]]:
    """Return the successful JoinGroups of `exchange` in lists: a list has the JoinGroups with which one generation began."""
    found: list[list[Step]] = []
    for step in exchange:
        if step.get("api") != JOINED or errors(step) != ["NONE"]:
            continue
        generation = step["answer"]["generation"]
        open_until = ((same, min(other["answered_at"] for other in same)) for same in reversed(found))
        # A later JoinGroup with this generation in its response begins a list of its own: its member joined the generation
        # afterwards.
        together = (same for same, end in open_until if same[0]["answer"]["generation"] == generation and step["at"] <= end)
        if (same := next(together, None)) is not None:
            same.append(step)
        else:
            found.append([step])
    return found
