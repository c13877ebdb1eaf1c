"""Plays a trace: a text file of commands, each followed by what is expected of it.

    # comment
    command arguments
    ----
    what the journal says of it, line by line

A block may have several commands; what one does that begins with `~` is not shown. A blank line ends what is expected.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kcontrol.broker.broker_configs import BrokerConfig
from kcontrol.cluster import actions, consumer_clients, offsets_log
from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.effects import Append, Handler
from kcontrol.core.events import ReplicaLeaderElection
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import REASSIGN_PARTITIONS, decode_reassignment, decode_topic
from kcontrol.group.coordinator_partition import partition_for
from kcontrol.group.events import Heartbeat, JoinGroup, PartitionElected, SyncGroup
from kcontrol.group.handlers import REQUESTS, SCHEDULER
from kcontrol.group.model import GroupProtocol
from kcontrol.search.invariants import stored
from kcontrol.views.text import short
from tests.traces.lines import asked, client, leadership, lines

DATA = Path(__file__).parent / "data"
RULE = "----"
THREADS = (REQUESTS, SCHEDULER)
LOCAL = ("advance", "begin", "deliver_notification", "renew", "reconnect", "exit")

Stage = Callable[[Settings], World]


class Block(NamedTuple):
    """Comments, commands, and the lines expected of them."""

    comments: list[str]
    commands: list[str]
    expected: list[str]


def parse(text: str) -> list[Block]:
    """A trace's blocks; comments that no command follows are a block without commands."""
    blocks: list[Block] = []
    for paragraph in text.strip("\n").split("\n\n"):
        head, _, tail = f"{paragraph}\n".partition(f"{RULE}\n")
        comments = [line for line in head.splitlines() if line.startswith("#")]
        commands = [line for line in head.splitlines() if line and not line.startswith("#")]
        blocks.append(Block(comments, commands, tail.splitlines()))
    return blocks


def play(text: str, stage: Stage = World) -> tuple[str, World]:
    """The trace with what happened in place of what is expected, and the world it ends in.

    A trace of several releases, `new release=0.9,2.8`, is played under each; its lines are those of all of them.
    """
    named = re.search(r"^new .*\brelease=(\S+)", text, re.MULTILINE)
    runs = [_play(text, stage, release) for release in (named[1].split(",") if named else [""])]
    assert len({played for played, _ in runs}) == 1, "\n".join(map(str, difflib.ndiff(*(p.splitlines() for p, _ in runs[:2]))))
    return runs[-1]


def _play(text: str, stage: Stage, release: str) -> tuple[str, World]:
    player = Player(stage, release)
    played = []
    for block in parse(text):
        out = [line for command in block.commands for line in player.do(command)]
        played.append("\n".join([*block.comments, *block.commands, *([RULE, *out] if block.commands else [])]))
    assert player.world is not None, "a trace begins with the command `new`"
    return "\n\n".join(played) + "\n", player.world


class Player:
    """One run of one trace."""

    def __init__(self, stage: Stage, release: str = "") -> None:
        self.stage, self.release = stage, release
        self.world: World = None  # type: ignore[assignment]
        self.kinds: tuple[str, ...] = ("moves", "writes", "requests")
        self.effects: list[str] = []

    def do(self, command: str) -> Iterator[str]:
        """Carry out one command; what it printed, or else what the journal says of it."""
        quietly = command.startswith("~ ")
        word, *arguments = command.removeprefix("~ ").split(" ")
        before = len(self.world.journal.records) if self.world else 0
        if word in actions.ACTIONS:
            self.world.step((word, *_action(word, arguments)))
        else:
            yield from COMMANDS[word](self, *arguments) or ()
        yield from self.effects
        self.effects.clear()
        yield from lines(self.world.journal.records[before:], () if quietly else self.kinds)

    # ---------------------------------------------------------------- the cluster

    def new(self, *settings: str) -> None:
        """`new release=2.8 brokers=3,2,1`, and settings of brokers under Kafka's names: a cluster that has not started.

        `consumers=anna:billing,bert:billing` adds consumers with their groups; `session=10000` is the session timeout of each
        (`anna.session=30000` that of anna), `anna.strategy=range+roundrobin` the assignors that anna offers,
        `retention=1800000` how long the coordinators keep offsets, `offsets=50` the number of partitions of the offsets topic,
        `segment=400` its segment.bytes, `buffer=100` the buffer of a load;
        `purgatory=true` adds the steps of delayed operations.
        """
        given = dict(item.split("=") for item in settings)
        release = self.release or given.get("release", "2.8")
        given.pop("release", None)
        consumers = dict(item.split(":") for item in given.pop("consumers", "").split(",") if item)
        session = given.pop("session", "10000")
        own: dict[str, dict[str, Any]] = {
            name: {"session.timeout.ms": int(given.pop(f"{name}.session", session))} for name in consumers
        }
        for name in [name for name in consumers if f"{name}.strategy" in given]:
            own[name]["partition.assignment.strategy"] = given.pop(f"{name}.strategy").split("+")
        sizes = {"offsets": "partitions", "retention": "retention_ms", "segment": "segment_bytes", "buffer": "load_buffer_size"}
        group_config = {sizes[key]: int(given.pop(key)) for key in sizes if key in given}
        config = BrokerConfig.of(release)
        for key in [key for key in given if "." in key]:
            text = given.pop(key)
            config = config.with_setting(key, {"true": True, "false": False}.get(text, text))
        brokers = tuple(map(int, given.pop("brokers", "1,2,3").split(",")))
        changes = {key: value == "true" for key, value in given.items()}
        groups = {"consumer_configs": own, "group_config": group_config, "purgatory": changes.pop("purgatory", False)}
        named = {"consumers": consumers, **groups} if consumers else {}
        self.world = self.stage(Settings(release, brokers, config=config, rule_changes=changes, **named))

    def up(self) -> None:
        """Start every broker, one after the other has come to rest."""
        for broker in self.world.settings.brokers:
            self.world.step(("start", broker))
            self.world.run()

    def log(self, *kinds: str) -> None:
        self.kinds = kinds

    def topic(self, name: str, *replicas: str) -> None:
        """`topic t 1,2 2,1` creates a topic of two partitions."""
        self.world.step(("create_topic", name, tuple(tuple(map(int, r.split(","))) for r in replicas)))

    def spy(self, broker: str) -> None:
        """From now on, show what this broker's handlers ask for, effect by effect."""
        for thread in self.world.processes[int(broker)].driver.threads.values():
            thread.handle = self._spied(thread.handle)

    def _spied(self, handle: Callable[[Any, Any], Handler]) -> Callable[[Any, Any], Handler]:
        def spied(ctx: Any, event: Any) -> Handler:
            handler = handle(ctx, event)
            effect = next(handler, None)
            while effect is not None:
                self.effects.append(asked(effect))
                answer = yield effect
                try:
                    effect = handler.send(answer)
                except StopIteration:
                    return

        return spied

    # ---------------------------------------------------------------- letting it go on

    def run(self) -> None:
        self.world.run(limit=20_000)

    def event(self, broker: str, thread: str = "controller") -> None:
        self.world.run_event(int(broker), thread)

    def only(self, broker: str, _until: str = "", kind: str = "", text: str = "") -> None:
        """`only 1` goes on with broker 1 alone; `only 1 until write /controller` stops at the first such record."""
        while mine := [a for a in actions.routine_actions(self.world) if a[0] in LOCAL and a[1] == int(broker)]:
            self.world.step(mine[0])
            if kind and any(r.kind == kind and text in str(r.fields) for r in self.world.last_step):
                return

    def until(self, kind: str, text: str = "") -> None:
        """Whatever goes on, to the first record of a kind."""
        while (following := next(actions.routine_actions(self.world), None)) is not None:
            self.world.step(following)
            if any(r.kind == kind and text in str(r.fields) for r in self.world.last_step):
                return

    def hear(self, broker: str) -> None:
        """Every notification that waits for a broker is delivered to it."""
        while self.world.processes[int(broker)].notifications:
            self.world.step(("deliver_notification", int(broker)))

    def elect(self, broker: str, election_type: str, *partitions: str) -> None:
        """An admin client asks a broker for an election: `elect 1 UNCLEAN t-0`."""
        wanted = tuple(map(TopicPartition.parse, partitions))
        event = ReplicaLeaderElection(
            partitions=wanted, election_type=election_type, trigger="AdminClientTriggered", correlation_id=f"admin-{broker}"
        )
        self.world.processes[int(broker)].driver.enqueue(event, None)

    def move(self, broker: str, *targets: str) -> None:
        """An admin client asks a broker for reassignments: `move 1 t-0=4,5 t-1=` cancels the one of t-1."""
        named = dict(target.split("=") for target in targets)
        asked = {tp: tuple(map(int, ids.split(","))) if ids else None for tp, ids in named.items()}
        self.world.step(("reassign", int(broker), asked))

    # ---------------------------------------------------------------- groups

    def static(self, consumer: str) -> None:
        """From now on a consumer is a static member: its group.instance.id is its name."""
        self.world.consumers = {**self.world.consumers, consumer: self.world.consumers[consumer]._replace(instance_id=consumer)}

    def timer(self, broker: str, *words: str) -> None:
        """Let the first timer of a broker fire whose name begins with these words: `timer 2 session billing anna`."""
        timers = self.world.processes[int(broker)].driver.timers
        self.world.step(("fire_timer", int(broker), next(name for name in timers if name.startswith(" ".join(words)))))

    def clock(self) -> None:
        """From now on the time is 0, and only the command `at` changes it."""
        self.now_ms = 0
        self.world.clock = lambda: self.now_ms

    def at(self, ms: str) -> None:
        """Let time pass until so many ms after `clock`: each timer of a coordinator that is due fires at its time."""
        while due := min(self._due(int(ms)), default=None):
            self.now_ms, broker, name = due
            self.world.step(("fire_timer", broker, name))
            self.world.run()
        self.now_ms = int(ms)

    def _due(self, ms: int) -> Iterator[tuple[int, int, str]]:
        for n, process in self.world.processes.items():
            timers = process.driver.timers.items() if not process.frozen else ()
            due = ((timer.at_ms, n, name) for name, timer in timers if timer.thread in THREADS or name.startswith("append "))
            yield from (one for one in due if one[0] <= ms)

    def placed(self, *names: str) -> Iterator[str]:
        """The partition of the offsets topic to which each group belongs."""
        count = consumer_clients.config(self.world.settings).partitions
        yield from (f"{name}  {partition_for(name, count)} of {count}" for name in names)

    def elected(self, broker: str, partition: str = "0") -> None:
        """The broker is elected leader of a partition of the offsets topic that it leads already."""
        self.world.processes[int(broker)].driver.enqueue(PartitionElected(int(partition)), None)

    def record(self, broker: str, key: str, value: str) -> None:
        """`record 2 0009 00` appends a record with these bytes to the offsets topic, as a broken coordinator might."""
        driver, tp = self.world.processes[int(broker)].driver, TopicPartition("__consumer_offsets", 0)
        cause = self.world.log("act", None, action=["record", int(broker), key, value])
        offsets_log.append(driver, Append(tp, ((bytes.fromhex(key), bytes.fromhex(value)),)), cause)

    def offsets(self, broker: str) -> Iterator[str]:
        """What a broker has in its log of the offsets topic, and what of it in its cache."""
        process = self.world.processes[int(broker)].driver
        for tp, log in sorted(process.broker.logs.items()):
            yield from (f"{tp} {r.offset}  {r.value}" for r in log.records if tp.topic == "__consumer_offsets")
        for name, offsets in sorted(process.group.offsets.items()) if process.group else ():
            yield from (f"cached  {name} {tp} {entry.value.offset}" for tp, entry in sorted(offsets.committed.items()))

    def client_heartbeat(self, broker: str, *fields: str) -> None:
        """`client_heartbeat 2 group=g member=anna generation=1`: a client sends Heartbeat to a broker."""
        given = dict(field.split("=") for field in fields)
        self._ask(broker, Heartbeat("client", given["group"], self._member(given["member"]), int(given["generation"])))

    def client_join(self, broker: str, *fields: str) -> None:
        """`client_join 2 group=g member=m session=100 type=connect`: a client that is no consumer sends JoinGroup."""
        given = {"group": "", "member": "", "session": "10000", "type": "consumer"} | dict(f.split("=") for f in fields)
        asked = ("client", given["group"], self._member(given["member"]), int(given["session"]), 60_000, given["type"])
        self._ask(broker, JoinGroup(*asked, (GroupProtocol("range", b""),)))

    def client_sync(self, broker: str, *fields: str) -> None:
        """`client_sync 2 group=g member=anna generation=1`: SyncGroup goes to a broker, here with the member id of anna."""
        given = dict(field.split("=") for field in fields)
        self._ask(broker, SyncGroup("client", given["group"], self._member(given["member"]), int(given["generation"])))

    def _member(self, name: str) -> str:
        return self.world.consumers[name].member_id if name in self.world.consumers else name

    def _ask(self, broker: str, event: JoinGroup | SyncGroup | Heartbeat) -> None:
        self.world.processes[int(broker)].driver.enqueue(event, None)
        self.world.run()

    def group(self, name: str) -> Iterator[str]:
        """What the coordinator of a group has in its cache: state, generation, leader, and what each member waits for."""
        for n, process in sorted(self.world.processes.items()):
            held = process.driver.group and process.driver.group.groups.get(name)
            if held:
                ctx = process.driver.group
                yield f"{n}  {ctx.name_of(held.state)} generation {held.generation} leader {client(held.leader)}"
                for id, member in held.members.items():
                    waits = "JoinGroup" if member.awaiting_join else "SyncGroup" if member.awaiting_sync else "nothing"
                    yield f"   {client(id)} waits for {waits}"

    def votes(self, name: str) -> Iterator[str]:
        """The assignors that each member of a group offers, the votes for them, and the chosen one."""
        for process in self.world.processes.values():
            if process.driver.group and (held := process.driver.group.groups.get(name)):
                yield from (f"{client(m.member_id)} offers {', '.join(m.protocol_names)}" for m in held.members.values())
                yield f"votes {', '.join(f'{named} {count}' for named, count in held.votes.items())}: {held.protocol}"

    # ---------------------------------------------------------------- looking

    def partitions(self) -> Iterator[str]:
        """What the state znodes say."""
        for tp, value in sorted(stored(self.world)):
            yield f"{tp}  {leadership(value)} controller {value.controller_epoch} v{value.zk_version}"

    def assignments(self) -> Iterator[str]:
        """What the topic znodes say, and what `/admin/reassign_partitions` asks for."""
        tree = self.world.zk.tree()
        for path in sorted(tree):
            if path.startswith("/brokers/topics/") and path.count("/") == 3:
                for number, a in sorted(decode_topic(tree[path].data).partitions.items()):
                    yield f"{path[16:]}-{number}  {ids(a.replicas)} adding {ids(a.adding)} removing {ids(a.removing)}"
        if REASSIGN_PARTITIONS in tree:
            for tp, replicas in decode_reassignment(tree[REASSIGN_PARTITIONS].data).items():
                yield f"asked  {tp} {ids(replicas)}"

    def controller(self) -> Iterator[str]:
        """The owner of `/controller`, the controller epoch, and the brokers that are active controllers in their own memory."""
        tree = self.world.zk.tree()
        owner = self.world.owners.get(tree["/controller"].stat.ephemeral_owner) if "/controller" in tree else "nobody"
        believers = [n for n, p in sorted(self.world.processes.items()) if p.driver.controller.is_active]
        yield f"/controller belongs to {owner}, epoch {tree['/controller_epoch'].data.decode()}, active: {believers}"

    def states(self, broker: str) -> Iterator[str]:
        """Both machines in a broker's memory."""
        memory = self.world.processes[int(broker)].driver.controller
        yield from (f"{tp}  {short(state)}" for tp, state in sorted(memory.partition_states.items()))
        yield from (f"{replica}  {short(memory.replica_states[replica])}" for replica in sorted(memory.replica_states))

    def handlers(self, broker: str) -> Iterator[str]:
        """The paths that a broker listens to."""
        for path, children in sorted(self.world.processes[int(broker)].driver.znode_handlers):
            yield f"{path}{' children' if children else ''}"

    def hosted(self, broker: str) -> Iterator[str]:
        """The leadership of each replica that a broker hosts."""
        for tp, held in sorted(self.world.processes[int(broker)].driver.broker.hosted.items()):
            yield f"{tp}  {leadership(held.leadership)}"

    def queue(self, broker: str, thread: str = "controller") -> Iterator[str]:
        yield from (item.event.name for item in self.world.processes[int(broker)].driver.threads[thread].queue.waiting)

    def znodes(self, below: str) -> Iterator[str]:
        """The paths at and below one."""
        for path in sorted(self.world.zk.tree()):
            if path.startswith(below):
                yield path


COMMANDS: dict[str, Callable[..., Any]] = {
    name: found for name, found in vars(Player).items() if callable(found) and name[0] != "_" and name != "do"
}


def ids(brokers: tuple[int, ...]) -> str:
    """`4,5,6`, or `none`."""
    return ",".join(map(str, brokers)) or "none"


def _action(word: str, arguments: list[str]) -> list[Any]:
    if word in ("set", "create"):
        return [arguments[0], " ".join(arguments[1:])]
    return [int(a) if a.isdigit() else _repeated(a) for a in arguments]


def _repeated(word: str) -> str:
    """`x*3` is `xxx`; any other word is itself."""
    text, star, times = word.partition("*")
    return text * int(times) if star and times.isdigit() else word


def names() -> list[str]:
    return sorted(path.stem for path in DATA.glob("*.txt"))


def read(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()
