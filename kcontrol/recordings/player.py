"""The player of scenarios: `Player(scenario).play()` performs all steps in order, and returns the world.

A scenario has `brokers` and `steps`. A step is an action or several actions, such as {"kill": [1]}, with all that follows; its
words, such as "kill", are the keys of STEPS. A recording also has what real brokers did in each step; the player repeats the
choices that depend on timing, such as the winners of controller elections.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kcontrol.broker import config_values
from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import actions
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.sessions import SessionState
from kcontrol.cluster.world import World
from kcontrol.core import znodes as zk
from kcontrol.core.errors import UserError
from kcontrol.core.model import ReplicaAssignment, TopicPartition
from kcontrol.recordings.interleave import as_list
from kcontrol.recordings.recorded_choices import LOCAL, RecordedChoices, creates_controller, is_bid, writes_of
from kcontrol.recordings.recorded_step import Join, RecordedStep, Shrink, State
from kcontrol.recordings.recorded_words import translated

RECORDERS = ("patience", "quiet")  # the waiting times of the recorder, which the player ignores


class Player:
    """The player of a scenario. For a recording it repeats the recorded choices, such as the winner of an election.

    Raises UserError if `scenario` lacks `brokers` or a list `steps`.
    """

    def __init__(self, scenario: Mapping[str, Any], settings: Settings | None = None) -> None:
        # Without `settings` the scenario has them. `followed` has a sentence for each open choice that the player has repeated.
        self.steps = _steps(scenario)
        self.world = World(self._with_deletion_order(settings or settings_of(scenario)))
        self.number, self.recorded = 0, RecordedStep({})
        self.winners: list[int] = []
        self.choices = RecordedChoices(self.recorded, self.world)
        self.bids_wait = True  # whether a candidate creates /controller only after all brokers have the watch event
        self.waits = True  # whether an action waits for its effect; inside `together` no action waits
        self.slow: int | None = None
        self.rejoining: int | None = None  # the slow broker until it has ended: it makes only recorded fetches
        self.kept: set[int] = set()  # the sessions of these brokers stay open until a step waits for their end
        self.states: dict[str, State] = {}
        self.joins: list[Join] = []
        self.shrinks: list[Shrink] = []
        self.written = 0  # by brokers, in this step
        self.moved: Counter[int] = Counter()  # broker -> its transitions as controller in this step
        self.followed: list[str] = []

    def _with_deletion_order(self, settings: Settings) -> Settings:
        """Controllers delete the topics of a step in the recorded order."""
        if not any("deletion_order" in step for step in self.steps):
            return settings
        own = replace(settings.changes, deletion_order=lambda topics: self.recorded.deleted(topics))
        return replace(settings, changes=own)

    @property
    def next_controller(self) -> int | None:
        """The winner of the step's next election, else of its last; None in a run without a recording."""
        return self.winners[0] if self.winners else None

    def play(self) -> World:
        """Perform all steps, and return the simulated cluster, which runs after each step until no action of its own is left.

        Raises UserError if a step is not possible.
        """
        for number, step in enumerate(self.steps):
            self.world.step(("scenario", number, step["do"]))
            self.number, self.recorded = number, RecordedStep(step)
            self.winners = self.recorded.winners
            self.choices = RecordedChoices(self.recorded, self.world)
            self.written = 0
            self.moved.clear()
            self.joins, self.shrinks = self.recorded.isr_changes(self.states)
            self.bids_wait = not self._another_controller_acts_after(number)
            kept = set(self.kept)
            self._do(step["do"])
            self.kept -= kept
            self._rest()
            self._end_sessions()
            self._rest()
            self._shrink(len(self.recorded.writes))
        return self.world

    def _do(self, step: dict[str, Any]) -> None:
        for word, argument in step.items():
            if word in RECORDERS or (word in ("sleep", "await") and self.waits):
                continue
            if word not in STEPS:
                raise UserError(f"The step word {word!r} is not known; there are {', '.join([*STEPS, *RECORDERS])}.")
            try:
                STEPS[word](self, argument)
            except (AttributeError, TypeError, ValueError) as problem:
                raise UserError(f"The step {word!r} is about something that it cannot be about: {problem}.") from None

    def _settle(self, but: str = "", writes: int | None = None) -> None:
        """Perform the cluster's own actions until none is left, or until brokers have made `writes` more znode writes.

        `writes` None means no limit. Actions of the kind `but`, such as "expire_session", are left out.
        """
        end = None if writes is None else self.written + writes
        # The sessions in `kept` stay open until all actions of the step are performed.
        while routine := [a for a in self._routine() if a[0] != but and not (a[0] == "expire_session" and a[1] in self.kept)]:
            if end is not None and self.written >= end:
                return
            action = self._next(routine)
            if action[0] == "time_out_fetch":
                self.followed.append(f"step {self.number}: a fetch of broker {action[1]} from a frozen leader times out")
            self.world.step(action)
            self.written += sum(map(writes_of, self.world.last_step))
            self.moved.update(r.id.node for r in self.world.last_step if r.kind in ("change", "failed_change"))
            self.choices.watch(self.world.last_step)
            if len(self.winners) > 1 and any(map(creates_controller, self.world.last_step)):
                del self.winners[0]

    def _rest(self) -> None:
        """For a recorded scenario sessions do not expire here: the player ends them where the recording does."""
        self._settle(but="expire_session" if self.recorded.is_recorded else "")

    def _end_sessions(self, first_writes: int | None = None) -> None:
        """Those of dead and frozen brokers that end within the first `first_writes` writes (None: all)."""
        for broker in self.recorded.closes(first_writes):
            if self._has_orphaned_session(broker):
                self._shrink(self.recorded.end_of(broker))
                self.world.step(("expire_session", broker))
                # Brokers have reacted to this end before the next session ended.
                if self.recorded.anything_follows_the_end_of(broker):
                    self._rest()

    def _has_orphaned_session(self, broker: int) -> bool:
        p = self.world.processes.get(broker)
        return broker in self.world.orphaned_sessions or (p is not None and p.frozen and p.session is SessionState.OPEN)

    def _shrink(self, first_writes: int) -> None:
        """Let leaders remove lagging followers from ISRs, as the recorded step does among its first `first_writes` writes.

        Each removal is performed once; a removal that is not possible in the run is left out.
        """
        while self.shrinks and self.shrinks[0].at < first_writes:
            lag = self.shrinks.pop(0)
            tp, leader = zk.parse_state_path(lag.path), lag.earlier["leader"]
            (znode,) = self.world.tool.read([lag.path], False)
            if znode is None or leader not in self.world.processes:
                continue
            held = zk.decode_state(znode.data)
            if (held.leader, held.leader_epoch) != (leader, lag.earlier["leader_epoch"]) or lag.follower not in held.isr:
                continue
            if actions.ACTIONS["shrink_isr"].possible(self.world, leader, str(tp), lag.follower):
                self.world.step(("shrink_isr", leader, str(tp), lag.follower))
                self._rest()
                self.followed.append(
                    f"step {self.number}: leader {leader} removes lagging broker {lag.follower} from the ISR of {tp}"
                )

    def _next(self, routine: list[Any]) -> Any:
        """Return the action of `routine` that comes next in the recording.

        `routine` has the actions that the cluster can perform now by itself.
        """
        prompt = [action for action in routine if not self._must_wait(action)]
        ends = [] if self.recorded.end_at_rest else [a for a in prompt if a[0] == "exit" and a[1] in self.recorded.at_once]
        if ends:
            return ends[0]
        self.slow = self.slow if prompt else None
        routine = prompt or [action for action in routine if not self._is_unrecorded(action)] or routine
        if action := self.choices.next(routine):
            return action
        # A candidate creates `/controller` only after the other brokers have handled the watch event of the election.
        bids = [action for action in routine if is_bid(self.world, action)] if self.bids_wait else []
        if bids and (handling := [a for a in routine if a[0] in LOCAL and a not in bids and a[2:] != ("main",)]):
            return handling[0]
        # A controller of 0.8 that handles the watch event late does not resign: then the winner's actions come first.
        mine = [action for action in routine if action[0] in LOCAL and action[1] == self.next_controller]
        winner = self.next_controller if bids else None
        awaited = [] if winner is None else [a for a in routine if a[:2] == ("deliver_request", winner)]
        following = (mine or awaited or bids or routine)[0]
        if following[0] == "send_to_controller":
            asking = [("send_to_controller", broker) for broker in self.recorded.at_once]
            return next((action for action in asking if action in routine), following)
        return self._next_fetch(routine, following) if following[0] == "fetch" else following

    def _next_fetch(self, routine: list[Any], following: Any) -> Any:
        """Return the next fetch to perform: the first of `self.joins` that is possible now, else `following`.

        `self.joins` has the fetches by which followers join an ISR in the recorded step; the returned fetch is removed from it.
        `routine` has the actions that are possible now.
        """
        for fetch in self.joins:
            if fetch in routine:
                self.joins.remove(fetch)
                if fetch != following:
                    first, second = (f"broker {n} joins the ISR of {tp}" for _, n, tp in (fetch, following))
                    self.followed.append(f"step {self.number}: {first} before {second}")
                return fetch
        return following

    def _must_wait(self, action: Any) -> bool:
        """Return whether an action, such as the end of a broker, must wait although the action is possible now.

        An action waits for the writes and transitions that come before the action in the recording.
        """
        if action[0] in ("renew", "reconnect") and self.written < self.recorded.writes_before_the_new_session_of(action[1]):
            return True
        if action[0] == "exit" and self.written < self.recorded.writes_before_the_end_of(action[1]):
            return True
        # Of brokers that stop together, each waits for the transitions that it makes in the recording.
        if action[0] == "exit" and action[1] in self.recorded.at_once:
            return self.moved[action[1]] < self.recorded.transitions_by(action[1])
        # While a broker that stops has still to join an ISR again, its end, requests to it and all timers wait.
        late = action == ("exit", self.slow) or (action[0], action[-1]) == ("deliver_request", self.slow)
        return self.slow is not None and (late or action[0] == "fire_timer" or self._is_unrecorded(action))

    def _is_unrecorded(self, action: Any) -> bool:
        """Return whether `action` is a fetch by which a stopping broker joins an ISR again, and the recording lacks this join."""
        return action[:2] == ("fetch", self.rejoining) and action not in self.joins

    def _another_controller_acts_after(self, number: int) -> bool:
        """Return whether a later step than `number` has transitions by a broker that is controller at neither end of the step.

        Such a broker is controller only within the step. Steps after the next change of the controller do not count.
        """
        winner = self.winners[-1] if self.winners else None
        for step in self.steps[number + 1 :]:
            owner = step.get("znodes", {}).get("/controller", {}).get("ephemeral_owner")
            if any(transition["by"] not in (winner, owner) for transition in step.get("transitions", ())):
                return True
            # The search ends with the step in which the controller changes.
            if owner != winner:
                return False
        return False

    def _routine(self) -> list[Any]:
        """Without faults; the recorded timeout of a fetch if all actions must wait for it."""
        is_long = not self.recorded.is_recorded or self.written < self.recorded.writes_of_brokers
        # The time-out of a request to a frozen broker is left out when all recorded writes of the step are made.
        routine = [action for action in actions.routine_actions(self.world) if action[0] != "time_out_request" or is_long]
        # If every action must wait, a recorded time-out of a fetch comes next.
        timeouts = self.choices.fetch_timeouts()[:1] if all(map(self._must_wait, routine)) else []
        return timeouts or routine

    def start(self, brokers: Any) -> None:
        """Start a broker, or a list of brokers one after the other; a running broker is skipped."""
        for broker in as_list(brokers):
            if broker not in self.world.processes:
                self.world.step(("start", broker))
                self._wait()

    def _wait(self) -> None:
        if self.waits:
            self._rest()

    def kill(self, brokers: Any) -> None:
        """Kill a broker, or a list of brokers; their sessions then end in the order of the recording."""
        killed = as_list(brokers)
        for broker in killed:
            self.world.step(("kill", broker))
        if not self.waits:
            # Among several actions of a step the sessions stay open until a later step.
            self.kept |= set(killed)
            return
        ended = [broker for broker in self.recorded.closes() if broker in killed]
        for broker in [*dict.fromkeys(ended), *(b for b in killed if b not in ended)]:
            if broker in self.world.orphaned_sessions:
                self.world.step(("expire_session", broker))
            # Brokers have reacted to this end before the next session ended.
            if self.recorded.anything_follows_the_end_of(broker):
                self._settle(but="expire_session")

    def pause(self, brokers: Any) -> None:
        """Freeze a broker or a list of brokers, and end their ZooKeeper sessions."""
        for broker in as_list(brokers):
            if not (broker in self.world.processes and self.world.processes[broker].frozen):
                self.world.step(("freeze", broker))
            # Among several actions of a step the sessions stay open.
            if self.waits:
                self.world.step(("expire_session", broker))

    def freeze(self, brokers: Any) -> None:
        for broker in as_list(brokers):
            self.world.step(("freeze", broker))

    def thaw(self, brokers: Any) -> None:
        for broker in as_list(brokers):
            self.world.step(("thaw", broker))

    def together(self, steps: list[dict[str, Any]]) -> None:
        """Perform the actions in a list such as [{"kill": [1]}, {"start": [2]}], one soon after the other.

        Between two actions the cluster only makes the writes, and ends the sessions, that the recording has there.
        """
        self.waits = False
        try:
            for step in steps:
                for word, argument in step.items():
                    # The world runs until the brokers have made the writes that the recording has before this action.
                    self._catch_up(word, argument)
                self._do(step)
        finally:
            self.waits = True

    def _catch_up(self, word: str, argument: Any) -> None:
        """The writes, and the ends of sessions, that come before this action in the recording."""
        if writes := self.recorded.writes_before(word, argument):
            self._settle(but="expire_session", writes=writes)
        self._end_sessions(self.recorded.at)

    def await_(self, what: dict[str, str]) -> None:
        """Run until the znode `what["exists"]`, if given, exists, and then until `what["gone"]`, if given, does not.

        End earlier if no action is possible.
        """
        # In a recorded step the player repeats the recorded ends of sessions instead.
        for how, path in what.items() if not self.recorded.is_recorded else ():
            done = [how != "gone"]
            while self.world.exist(path) != done and (routine := [a for a in self._routine() if a[0] != "expire_session"]):
                self.world.step(self._next(routine))
            (stat,) = self.world.tool.exists([path], False)
            # The znode of a dead or frozen broker goes with its session.
            owner = self.world.owners.get(stat.ephemeral_owner) if stat is not None and how == "gone" else None
            if owner is not None and self._has_orphaned_session(owner):
                self.world.step(("expire_session", owner))

    def sleep(self, seconds: float) -> None:
        """Until the cluster rests, whatever `seconds`; no session expires."""
        self._settle(but="expire_session")

    def create_partitions(self, topics: dict[str, Any]) -> None:
        version = self.world.settings.rules().topic_znode
        for topic, added in topics.items():
            (znode,) = self.world.tool.read([zk.topic_path(topic)], False)
            if znode is None:
                raise UserError(f"There is no topic {topic!r} to expand: create it in an earlier step.")
            stored = zk.decode_topic(znode.data)
            grown = stored.partitions | {int(p): ReplicaAssignment(tuple(replicas)) for p, replicas in added.items()}
            self.world.step(("set", zk.topic_path(topic), zk.encode_topic(stored._replace(partitions=grown), version).decode()))

    def terminate(self, brokers: Any) -> None:
        """Stop a broker, or a list of brokers, by a controlled shutdown, as SIGTERM does."""
        for broker in self.recorded.at_once or as_list(brokers):
            # In some recordings a broker fetches once more before it stops, and joins an ISR again.
            self.slow = self.rejoining = broker if self.recorded.is_in_sync_again(broker) else None
            if self.slow is not None:
                again = " and ".join(tp for _, follower, tp in self.joins if follower == broker)
                self.followed.append(f"step {self.number}: broker {broker} fetches once more for {again} before it stops")
            self.world.step(("terminate", broker))
            if not self.recorded.at_once:
                self._wait()
        self.slow = self.rejoining = None

    def elect_preferred(self, partitions: list[str]) -> None:
        text = zk.encode_partition_list(tuple(map(TopicPartition.parse, partitions))).decode()
        self.world.step(("create", zk.PREFERRED_REPLICA_ELECTION, text))

    def create_topic(self, topics: dict[str, Any]) -> None:
        """{"t": {"0": [1, 2]}}, with settings {"t": {"partitions": {"0": [1, 2]}, "config": {...}}}."""
        for topic, assignment in topics.items():
            # In the recording the controller has handled the earlier topics before.
            if self.recorded.meets_earlier_topics_before(topic):
                self._rest()
            replicas = assignment.get("partitions", assignment)
            numbered = {int(p): tuple(brokers) for p, brokers in replicas.items()}
            config = [assignment["config"]] if assignment.get("config") else []
            self.world.step(("create_topic", topic, numbered, *config))

    def reassign_by_znode(self, targets: dict[str, list[int]]) -> None:
        parsed = {TopicPartition.parse(tp): tuple(replicas) for tp, replicas in targets.items()}
        self.world.step(("create", zk.REASSIGN_PARTITIONS, zk.encode_reassignment(parsed).decode()))

    def reassign(self, targets: dict[str, list[int] | None]) -> None:
        """None cancels a reassignment. Raises ValueError without a controller, or before 2.4."""
        (stat,) = self.world.tool.exists([zk.CONTROLLER], False)
        owner = self.world.owners.get(stat.ephemeral_owner) if stat is not None else None
        if owner is None or not self.world.settings.rules().reassigns_on_request:
            raise ValueError(f"no controller of release {self.world.settings.release} handles AlterPartitionReassignments now")
        self.world.step(("reassign", owner, targets))

    def delete_topic(self, topics: Any) -> None:
        for earlier, topic in zip([None, *as_list(topics)], as_list(topics), strict=False):
            if writes := self.recorded.writes_between_deletions(earlier, topic):
                self._settle(but="expire_session", writes=writes)
            elif self.recorded.deleted_apart:
                self._rest()
            self.world.step(("delete_topic", topic))

    def delete(self, path: str) -> None:
        self.world.step(("delete", path))

    def set_(self, znodes: dict[str, Any]) -> None:
        for path, value in znodes.items():
            self.world.step(("set", path, value if isinstance(value, str) else zk.encode(value).decode()))


STEPS: dict[str, Callable[[Player, Any], None]] = {name.rstrip("_"): getattr(Player, name) for name in (
    "start", "kill", "terminate", "freeze", "thaw", "pause", "create_topic", "create_partitions", "delete_topic", "reassign",
    "reassign_by_znode", "elect_preferred", "set_", "delete", "together", "await_", "sleep")}  # fmt: skip


def settings_of(scenario: Mapping[str, Any]) -> Settings:
    """Raises UserError, with the legal values, for an illegal setting."""
    release = release_of(scenario)
    config = BrokerConfig.of(release)
    try:
        for key, value in config_of(scenario, release).items():
            config = config.with_setting(key, value, release)
    except ValueError as problem:
        raise UserError(f"{problem}.") from None
    return Settings(release, tuple(scenario["brokers"]), config=config)


def config_of(scenario: Mapping[str, Any], release: str) -> dict[str, Any]:
    """Return the brokers' settings for a scenario by Kafka's names, without settings that the release does not have."""
    # A scenario says with `unclean` whether unclean elections are on.
    settings: dict[str, Any] = {"auto.leader.rebalance.enable": False, "delete.topic.enable": True}
    settings |= {"unclean.leader.election.enable": scenario.get("unclean")}
    known = config_values.names("broker", release)
    return {key: value for key, value in settings.items() if key in known and value is not None}


def release_of(scenario: Mapping[str, Any]) -> str:
    """Return the release of a scenario without its patch number, such as "2.8", which is also the default."""
    return line_of(str(scenario.get("release") or Settings().release))


def line_of(release: str) -> str:
    """Return the release line of a release: 2.8 for 2.8.2, 0.8.1 for 0.8.1.1."""
    parts = release.split(".")
    return ".".join(parts[:3] if parts[0] == "0" else parts[:2])


def _steps(scenario: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps of a scenario, each as a dict with its actions under `do`. Raises UserError if it is no scenario."""
    steps = scenario.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps) or "brokers" not in scenario:
        raise UserError("This is not a scenario: give a dict with brokers, a list of ids, and steps, a list of dicts.")
    return [step if isinstance(step.get("do"), dict) else {"do": step} for step in translated(scenario)["steps"]]
