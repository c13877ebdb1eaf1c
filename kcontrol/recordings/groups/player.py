"""The player of recorded requests: `GroupPlayer(recording, settings).play()` sends them, and returns the World.

Each request is sent at its recorded time; between two requests the coordinator's timers fire at their times.
"""

from collections.abc import Mapping
from typing import Any

from kcontrol.cluster import consumer_clients
from kcontrol.cluster.coordinator_requests import is_admin
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.errors import UserError
from kcontrol.group.coordinator_partition import OFFSETS_TOPIC
from kcontrol.group.handlers import REQUESTS
from kcontrol.recordings.groups.memory import BROKER
from kcontrol.recordings.groups.recording import STOPPED, Step
from kcontrol.recordings.groups.to_journal import consumer_name, step_of

CHECK = "offsets.retention.check.interval.ms"


class GroupPlayer:
    """One run in which kcontrol's coordinator receives the requests of a recording.

    `play` sends the requests and returns the simulated cluster.
    """

    def __init__(self, recording: Step, settings: Settings) -> None:
        self.recording, self.world = recording, World(settings)
        # The time between two searches for expired offsets, None without such searches; the time of the last search.
        self.every_ms = recording["broker"].get(CHECK)
        self.checked_ms = self.begin_ms = 0  # `begin_ms`: the time of the run at which the recording begins
        self.ids: dict[str, str] = {}  # the recording's name of a member -> its id here

    def play(self) -> World:
        """Send the recorded requests, stop and start the broker, each at its recorded time; return the cluster.

        Raises UserError if a request cannot be sent, because no coordinator is running.
        """
        world = self.world
        world.step(("start", BROKER))
        world.run()
        count = consumer_clients.config(world.settings).partitions
        world.step(("create_topic", OFFSETS_TOPIC, ((BROKER,),) * count))
        world.run()
        self.begin_ms = self.checked_ms = world.now_ms
        for step in self.recording["exchange"]:
            self._wait_until(self.begin_ms + step["at"])
            world.step(("scenario", step["n"], step_of(step)))
            if "event" in step:
                self._restart(step)
            else:
                self._send(step)
        if self.recording["exchange"]:
            last = max(step.get("answered_at") or step["at"] for step in self.recording["exchange"])
            self._wait_until(self.begin_ms + last)
        return world

    def _send(self, step: Step) -> None:
        request = _renamed(step["request"], self.ids)
        before = len(self.world.journal)
        client = consumer_name(step["client"])
        self.world.step(("coordinator_request", client, step["api"], step["version"], request))
        self.world.run()
        if step["api"] == "JoinGroup" and not step["request"]["member"]:
            self._note_id(step, before)

    def _note_id(self, step: Step, before: int) -> None:
        """Store which member id in this run corresponds to the recorded member id in the response to the JoinGroup `step`.

        `before` is the length of the journal before the request.
        """
        if "answer" not in step:
            return
        name, records = str(step["answer"]["member"]), self.world.journal.since(before)
        id = next(record.fields["event"].correlation_id for record in records if record.kind == "enqueue")
        made = [r.fields["body"].member_id for r in records if r.kind == "respond" and r.fields["correlation_id"] == id]
        group = self.world.processes[BROKER].driver.group
        # While the request is parked, only the group has the id.
        members = (member for held in (group.groups.values() if group else ()) for member in held.members.values())
        made += [member.member_id for member in members if member.awaiting_join == id]
        if made:
            self.ids[name] = made[0]

    def _restart(self, step: Step) -> None:
        self.world.step(("terminate" if step["event"] == STOPPED else "start", BROKER))
        self.world.run()
        self._wait_until(self.begin_ms + step["done_at"])

    def _wait_until(self, end_ms: int) -> None:
        """Let time pass until `end_ms`; fire the coordinator's timers and look for expired offsets, in the order of time."""
        while (due := self._next_due()) and due[0] <= end_ms:
            self._pass(due[0])
            self.world.step(due[1])
            self.world.run()
            if due[1][0] == "expire_offsets":
                self.checked_ms = due[0]
        self._pass(end_ms)

    def _pass(self, at_ms: int) -> None:
        if at_ms > self.world.now_ms:
            self.world.step(("wait", at_ms - self.world.now_ms))

    def _next_due(self) -> tuple[int, tuple[Any, ...]] | None:
        """(time in ms, action), ("fire_timer", broker, timer) or ("expire_offsets", broker)."""
        process = self.world.processes.get(BROKER)
        if process is None:
            return None
        timers = ((t.at_ms, ("fire_timer", BROKER, name)) for name, t in process.driver.timers.items() if t.thread == REQUESTS)
        checks = [(self.checked_ms + self.every_ms, ("expire_offsets", BROKER))] if self.every_ms else []
        return min([*timers, *checks], default=None)


def scenario_settings(recording: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Lab` for a run to which the requests of a recording can be sent: brokers, config, consumers.

    Raises UserError for a recording without a request of a consumer.
    """
    asked = [step for step in recording["exchange"] if "api" in step and not is_admin(step["api"])]
    names = dict.fromkeys(consumer_name(step["client"]) for step in asked)
    if not names:
        raise UserError("This recording has no request of a consumer, so there is nothing to play: choose another recording.")
    return {
        "brokers": [BROKER],
        "config": dict(recording["broker"]),
        "consumers": {name: {"group.id": recording["group"]} for name in names},
    }


def _renamed(request: Step, ids: Mapping[str, str]) -> Step:
    """Return a request in which each member id that is a key of `ids` is replaced by its value there."""
    found = dict(request)
    if "member" in found:
        found["member"] = ids.get(found["member"], found["member"])
    if "assignment" in found:
        found["assignment"] = {ids.get(id, id): text for id, text in found["assignment"].items()}
    if "members" in found:
        found["members"] = [_renamed(member, ids) for member in found["members"]]
    return found
