"""What one can do to a cluster: one method per fault and per operator's act. None of them lets time go on; `run` does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from operator import index
from typing import Any, Self, SupportsIndex

from kcontrol.errors import UserError
from kcontrol.generations import rules
from kcontrol.lab import arguments, creating, electing, logs, moving
from kcontrol.lab.creating import Assignment
from kcontrol.lab.moment import Moment
from kcontrol.lab.saying import say
from kcontrol.model import TopicPartition
from kcontrol.views import scene, text
from kcontrol.znodes import (
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    delete_topic_path,
    encode_partition_list,
    parent,
    topic_path,
)

ALL = 30  # how many legal values an error lists


class Acts(Moment):
    """Every method does one thing and returns the lab. Each raises UserError, listing what is possible, where it is not."""

    @abstractmethod
    def _act(self, *action: Any) -> Self: ...

    # ---------------------------------------------------------------- brokers and sessions

    def start(self, broker: int) -> Self:
        """Start a broker's process; an id that is new makes the cluster larger."""
        if not _is_id(broker):
            raise UserError(f"A broker's id is a number from 0 on, not {broker!r}.")
        if str(broker) in self.state["nodes"]:
            raise UserError(f"Broker {broker} is running already; {self._running()}.")
        return self._act("start", broker)

    def kill(self, broker: int) -> Self:
        """Kill a broker's process, as SIGKILL does; its session lives on until it expires."""
        return self._act("kill", self._alive(broker))

    def term(self, broker: int) -> Self:
        """Ask a broker to end in order, as SIGTERM does: it hands over what it leads before it goes."""
        return self._act("term", self._alive(broker))

    def freeze(self, broker: int) -> Self:
        """Stop a broker's process, as SIGSTOP does; its session lives on until `expire`."""
        return self._act("freeze", self._alive(broker))

    def thaw(self, broker: int) -> Self:
        """Let a frozen broker go on, as SIGCONT does."""
        return self._act("thaw", self._alive(broker))

    def expire(self, broker: int) -> Self:
        """End the session that a dead broker has left behind, or else the one that it works under."""
        return self._act("expire", broker)

    def fire(self, broker: int, timer: str) -> Self:
        """Let the time of an armed timer come."""
        return self._act("fire", self._alive(broker), timer)

    # ---------------------------------------------------------------- replicas and requests

    def shrink(self, partition: str, follower: int) -> Self:
        """A follower has lagged for too long: its leader wants it out of the ISR."""
        found = self._partition(partition)
        lagging = [b for b in found.isr if b != found.leader]
        if found.leader is None or str(found.leader) not in self.state["nodes"] or follower not in lagging:
            who = text.listed(lagging, ALL) or "none"
            raise UserError(
                f"Broker {follower} cannot leave the ISR of {partition}; with leader {found.leader}, those who can: {who}."
            )
        if "logs" in self.state and not logs.is_behind(self.state, found.leader, partition, follower):
            raise UserError(f"Broker {follower} has all of {partition}: freeze it and produce something, then it is behind.")
        return self._act("shrink", found.leader, partition, follower)

    def lose(self, sender: int, receiver: int) -> Self:
        """Break the connection before the next request of `sender` reaches `receiver`: it is sent again."""
        return self._act("lose", *self._channel(sender, receiver))

    def duplicate(self, sender: int, receiver: int) -> Self:
        """Break the connection before `receiver` can answer: it hears the same request twice."""
        return self._act("duplicate", *self._channel(sender, receiver))

    def fetch_timeout(self, broker: int) -> Self:
        """End a follower's wait for its fetch from a frozen leader: it then answers the request that it holds (0.8 to 1.0)."""
        return self._act("fetch_timeout", self._alive(broker))

    # ---------------------------------------------------------------- records and disks

    def produce(self, partition: str, value: object, acks: object = "all", broker: int | None = None) -> Self:
        """Send one record to the partition's leader, or to the broker that one takes for it.

        With `acks` 1 the leader answers at once, with "all" when every replica in sync has the record.
        """
        logs.require(self.state)
        chosen = logs.acks(acks)
        leader = self._leader(partition) if broker is None else self._alive(broker)
        return self._act("produce", leader, partition, str(value), chosen)

    def lose_tail(self, broker: int, partition: str, offset: int) -> Self:
        """Take from the disk of a broker that does not run what it had not flushed: the records from `offset` on."""
        return self._act("lose_tail", *logs.tail(self.state, broker, partition, offset))

    def fail_log_dir(self, broker: int, partition: str) -> Self:
        """Let the log directory fail in which a running broker has this partition; its other directories are well."""
        hosted = self.state["nodes"][str(self._alive(broker))]["broker"].get("hosted", {})
        if arguments.words(partition, "A partition", "t-0") not in hosted:
            names = text.listed(sorted(hosted), ALL) or "none"
            raise UserError(f"Broker {broker} has no replica of {partition!r}; those that it has: {names}.")
        return self._act("fail_log_dir", broker, partition)

    # ---------------------------------------------------------------- consumers

    def consumer(self, name: str, request: str) -> Self:
        """Let a consumer send its group's coordinator one request: join, sync, heartbeat or leave."""
        return self._act("consumer", name, request)

    def commit(self, name: str, partition: str, offset: int) -> Self:
        """Let a consumer commit the offset up to which it has read a partition."""
        return self._act("commit", name, partition, offset)

    # ---------------------------------------------------------------- an operator's hands

    def create_topic(
        self,
        name: str,
        assignment: Assignment | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
    ) -> Self:
        """Create a topic: with so many `partitions` and replicas of each, or with the replicas that `assignment` lists.

        Kafka's tool places counted replicas on the registered brokers; its two random numbers come from the lab's seed and the
        topic's name. A list has the preferred leader of each partition first. `config` has settings of the topic, such as
        `{"min.insync.replicas": 2}`. Where one count is missing, it is 1.
        """
        asked = creating.Asked(self.state, self.records[0].fields)
        return self._act(*asked.create(name, assignment, partitions, replication_factor, config))

    def alter_topic(self, name: str, config: Mapping[str, Any]) -> Self:
        """Change settings of a topic, as the tool does: a setting that is None is taken away again.

        Brokers that keep logs read the settings again; they do not hear of what `set` writes below `/config/topics`.
        """
        return self._act("alter_topic", name, creating.altered(self.state, self._played, self._topic(name), config))

    def delete_topic(self, name: str) -> Self:
        """Ask for the deletion of a topic, as the tool does: by a znode that the controller listens for."""
        if delete_topic_path(self._topic(name)) in self.state["znodes"]:
            raise UserError(f"The deletion of {name} has been asked for already: lab.run() lets the controller go on with it.")
        return self._act("delete_topic", name)

    def create(self, path: str, data: str = "") -> Self:
        """Create a persistent znode by hand."""
        arguments.words(path, "A znode's path", "/x")
        arguments.words(data, "A znode's data", "")
        if path in self.state["znodes"]:
            raise UserError(f"There is a znode {path} already; lab.set changes what it holds.")
        if not path.startswith("/") or parent(path) not in ("/", *self.state["znodes"]):
            raise UserError(f"{path!r} cannot be created: its parent is missing.")
        return self._act("create", path, data)

    def set(self, path: str, data: str) -> Self:
        """Rewrite a znode by hand."""
        return self._act("set", self._there(path), arguments.words(data, "A znode's data", ""))

    def delete(self, path: str) -> Self:
        """Delete a znode by hand; it must have no children."""
        if below := [other for other in self.state["znodes"] if parent(other) == self._there(path)]:
            raise UserError(f"{path} has children, which have to go first: {text.listed(sorted(below), ALL)}.")
        return self._act("delete", path)

    def prefer(self, *partitions: str) -> Self:
        """Ask for an election of the preferred replica, as the tool does: by the znode that the controller waits for."""
        if PREFERRED_REPLICA_ELECTION in self.state["znodes"]:
            raise UserError("Such an election has been asked for already: let the controller hold it first, with lab.run().")
        names = tuple(electing.find(self.state, partition).name for partition in partitions)
        asked = encode_partition_list(tuple(map(TopicPartition.parse, names)))
        return self._act("create", PREFERRED_REPLICA_ELECTION, asked.decode())

    def reassign(self, targets: moving.Targets, *, znode: bool = False) -> Self:
        """Ask for partitions to move: each with the brokers that it is to be on, the preferred leader first, or None to cancel.

        An admin client asks the controller, whose answer is in the journal; a refusal is printed. With `znode`, and before 2.4,
        the tool writes `/admin/reassign_partitions`; there is no answer then, so what comes of brokers that are not alive is
        printed at once. `run` lets it happen.
        """
        asked = moving.checked(self.state, targets)
        if znode or not rules(self._played).reassigns_on_request:
            written = moving.request_text(self.state, asked)
            for sentence in moving.unanswered(self._played, self.state, asked):
                say(sentence)
            return self._act("create", REASSIGN_PARTITIONS, written)
        return self._act("reassign", moving.whom_to_ask(self.state), asked)

    def list_reassignments(self) -> Self:
        """Ask the controller as an admin client does what is being reassigned; the answer is in the journal."""
        moving.require_requests(self._played)
        return self._act("list_reassignments", moving.whom_to_ask(self.state))

    # ---------------------------------------------------------------- what is possible

    @property
    def _played(self) -> str:
        return str(self.records[0].fields["release"])

    def _running(self) -> str:
        names = sorted(map(int, self.state["nodes"]))
        return f"those that run are {text.listed(names, ALL)}" if names else "none is running"

    def _alive(self, broker: int) -> int:
        if not _is_id(broker) or str(broker) not in self.state["nodes"]:
            raise UserError(f"Broker {broker!r} is not running; {self._running()}.")
        return broker

    def _channel(self, sender: int, receiver: int) -> tuple[int, int]:
        if f"{sender}>{receiver}" not in self.state["channels"]:
            waiting = text.listed((pair.replace(">", " to ") for pair in sorted(self.state["channels"])), ALL) or "none"
            raise UserError(f"No request is on its way from {sender} to {receiver}; those that are: {waiting}.")
        return sender, receiver

    def _leader(self, partition: str) -> int:
        found = self._partition(partition)
        if found.leader is None or str(found.leader) not in self.state["nodes"]:
            raise UserError(f"Nobody leads {partition} now: let the cluster run, or start a broker that is in its ISR.")
        return found.leader

    def _topic(self, name: Any) -> str:
        if not isinstance(name, str) or not name or "/" in name or topic_path(name) not in self.state["znodes"]:
            names = text.listed(sorted({p.name.rpartition("-")[0] for p in scene.partitions(self.state)}), ALL)
            raise UserError(f"There is no topic {name!r}; {f'there are {names}' if names else 'there is none yet'}.")
        return name

    def _partition(self, name: str) -> scene.Partition:
        found = next((p for p in scene.partitions(self.state) if p.name == name), None)
        if found is None:
            names = text.listed((p.name for p in scene.partitions(self.state)), ALL)
            raise UserError(f"There is no partition {name!r}; {f'there are {names}' if names else 'there is none yet'}.")
        return found

    def _there(self, path: str) -> str:
        arguments.words(path, "A znode's path", "/controller")
        if path not in self.state["znodes"]:
            siblings = text.listed(sorted(p for p in self.state["znodes"] if parent(p) == parent(str(path))), ALL)
            raise UserError(
                f"There is no znode {path!r}; {f'beside it there are {siblings}' if siblings else 'lab.znodes() lists them all'}."
            )
        return path


def _is_id(value: Any) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool) and index(value) >= 0  # NumPy's too, from a table
