"""Operations on a cluster: one method per fault and per command of an operator, and the search of all runs.

No time passes during an operation; `Lab.run` lets time pass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from kcontrol.cluster.consumer_clients import LARGEST_LONG
from kcontrol.core.controller_rules import rules
from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.core.znodes import PREFERRED_REPLICA_ELECTION, REASSIGN_PARTITIONS, encode_partition_list, parent, topic_path
from kcontrol.lab import topic_creation
from kcontrol.lab.run import Run
from kcontrol.lab.searches import searches
from kcontrol.lab.support import arguments
from kcontrol.lab.support.output import say
from kcontrol.lab.tables import elections, reassignments, replica_logs
from kcontrol.views import folded_state, text

if TYPE_CHECKING:
    from kcontrol.lab.searches.searches import Found, NotFound

ALL = 30  # how many legal values an error lists


class Operations(Run, owner="lab"):
    """The operations of a lab: each but `search` does one action and returns the lab.

    Each raises UserError, which lists the possible actions, for an action that is not possible.
    """

    @abstractmethod
    def _act(self, *action: Any) -> Self: ...

    # ---------------------------------------------------------------- brokers and sessions

    def start(self, broker: int) -> Self:
        """Start a broker's process; a new id adds a broker to the cluster."""
        return self._act("start", broker)

    def kill(self, broker: int) -> Self:
        """Kill a broker's process, as SIGKILL does; its session stays open until it expires."""
        return self._act("kill", broker)

    def terminate(self, broker: int) -> Self:
        """Stop a broker by a controlled shutdown, as SIGTERM does: first, the partitions that it leads get other leaders.

        A partition whose ISR has no other broker keeps its leader until the process ends.
        """
        return self._act("terminate", broker)

    def freeze(self, broker: int) -> Self:
        """Stop a broker's process, as SIGSTOP does, until `thaw`; its session stays open unless `expire_session` ends it."""
        return self._act("freeze", broker)

    def thaw(self, broker: int) -> Self:
        """Let a frozen broker continue, as SIGCONT does."""
        return self._act("thaw", broker)

    def expire_session(self, broker: int) -> Self:
        """End the ZooKeeper session of a dead or a running broker, so that its ephemeral znodes are deleted."""
        return self._act("expire_session", broker)

    # ---------------------------------------------------------------- searches

    def search(
        self, promise: object, budget: Any = None, faults: Sequence[str] = ("kill", "expire_session"), spark: Any = None
    ) -> Found | NotFound:
        """Search all runs from this state, the shortest first, for a run that breaks a promise; this run does not change.

        promise  rules.always(...), rules.never(...), rules.comes_to_rest_with(...), or the name of an invariant
        budget   bounds, such as {"steps": 14, "faults": 1, "states": 100_000, "seconds": 60}
        faults   the kinds of faults that may happen, such as "freeze"
        spark    such as lab.spark(): Spark's executors search

        Return Found, with a run that can be opened, or NotFound. Raises UserError for an illegal argument.
        """
        return searches.search(self, promise, budget, faults, spark)

    # ---------------------------------------------------------------- replicas and requests

    def shrink_isr(self, partition: str, follower: int) -> Self:
        """Let the leader of a partition remove a follower from the ISR, as if it had lagged for replica.lag.time.max.ms."""
        return self._act("shrink_isr", elections.find(self.state, partition).leader, partition, follower)

    # ---------------------------------------------------------------- timers

    def fire_timer(self, broker: int, timer: str) -> Self:
        """Let a timer of `broker` fire now: the timer's event enters the queue of a thread of this broker.

        `timer` is a name in lab.tables.timers(), such as "join billing"; lab.actions() has those that can fire now.
        """
        return self._act("fire_timer", broker, timer)

    # ---------------------------------------------------------------- records

    def produce(self, partition: str, value: object, acks: object = "all", broker: int | None = None) -> Self:
        """Send one record with the value `value` to the partition's leader, or to `broker` if it is given.

        With `acks` "all" the leader waits for every replica in the ISR; with 1 it does not.
        """
        replica_logs.require(self.state)
        chosen = replica_logs.acks(acks)
        return self._act("produce", self._leader(partition) if broker is None else broker, partition, str(value), chosen)

    # ---------------------------------------------------------------- consumers

    def commit(self, name: str, partition: str, offset: int, metadata: str = "") -> Self:
        """Let the consumer `name` commit `offset` for a partition such as "t-0", with the text `metadata`.

        `offset`, from 0 to 2**63 - 1, is the next offset that the consumer reads.
        """
        arguments.partition(partition)
        # Consumers of Kafka refuse a negative offset too. Source: OffsetAndMetadata.java (2.8).
        if not 0 <= arguments.whole(offset, "An offset") <= LARGEST_LONG:
            raise UserError(f"An offset is a whole number from 0 to {LARGEST_LONG}, not {offset}.")
        arguments.string(metadata, "The metadata of an offset", "batch 7")
        return self._act("commit", name, partition, offset, *((metadata,) if metadata else ()))

    # ---------------------------------------------------------------- commands of an operator

    def create_topic(
        self,
        name: str,
        assignment: topic_creation.Assignment | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
    ) -> Self:
        """Create a topic, either with numbers of partitions and replicas, or with the replicas that `assignment` lists.

        assignment  the replicas of each partition, the preferred leader first: [[1, 2, 3], [2, 3, 1]]
        config      settings of the topic, such as {"min.insync.replicas": 2}

        Raises UserError if a number and an assignment are given, and if neither is given.
        """
        # From numbers, replicas are placed on the registered brokers as by Kafka's tool, whose two random numbers come from the
        # lab's seed and the topic's name. If only one number is given, the other is 1.
        run = self.records[0].fields
        asked = topic_creation.request(self.state, run, name, assignment, partitions, replication_factor, config)
        return self._act("create_topic", *asked)

    def alter_topic(self, name: str, config: Mapping[str, Any]) -> Self:
        """Change settings of the topic `name`, as Kafka's tool does; None as a value in `config` removes a setting."""
        # Brokers that keep logs then read the settings again; they do not after a write with `zk.set` below `/config/topics`.
        settings = topic_creation.altered_settings(self.state, self._played, self._topic(name), config)
        return self._act("alter_topic", name, settings)

    def delete_topic(self, name: str) -> Self:
        """Request the deletion of a topic, as Kafka's tool does: by a znode below `/admin/delete_topics`."""
        return self._act("delete_topic", name)

    def elect_preferred(self, *partitions: str) -> Self:
        """Request the election of the preferred replica of each of these partitions, as Kafka's tool does.

        The request is the znode `/admin/preferred_replica_election`. Raises UserError if the znode exists, and for an unknown
        partition.
        """
        if PREFERRED_REPLICA_ELECTION in self.state["znodes"]:
            raise UserError(
                f"{PREFERRED_REPLICA_ELECTION} holds a request already: let the controller complete it first, with lab.run()."
            )
        # Without arguments the list of partitions in the znode is empty.
        names = tuple(elections.find(self.state, partition).name for partition in partitions)
        asked = encode_partition_list(tuple(map(TopicPartition.parse, names)))
        return self._act("create", PREFERRED_REPLICA_ELECTION, asked.decode())

    def reassign(self, targets: reassignments.Targets, *, znode: bool = False) -> Self:
        """Request the reassignment of partitions, each to its target brokers, preferred leader first; None cancels it.

        targets  by partition: {"t-0": [2, 3], "t-1": None}
        znode    write `/admin/reassign_partitions`, as Kafka's tool does before 2.4, and send no request to the controller

        Raises UserError for an unknown partition, and for None in the znode. A sentence is printed for each partition whose
        reassignment the controller refuses.
        """
        asked = reassignments.checked(self.state, targets)
        if znode or not rules(self._played).reassigns_on_request:
            written = reassignments.request_text(self.state, asked)
            # The writer of the znode gets no response, so a sentence is printed about each reassignment to brokers that are not
            # alive.
            for sentence in reassignments.unanswered(self._played, self.state, asked):
                say(sentence)
            return self._act("create", REASSIGN_PARTITIONS, written)
        return self._act("reassign", reassignments.active_controller(self.state), asked)

    # ---------------------------------------------------------------- what is possible

    def _leader(self, partition: str) -> int:
        found = elections.find(self.state, partition)
        if found.leader is None or str(found.leader) not in self.state["nodes"]:
            raise UserError(f"{partition} has no running leader: let the cluster run, or start a broker of its ISR.")
        return found.leader

    def _topic(self, name: Any) -> str:
        if not isinstance(name, str) or not name or "/" in name or topic_path(name) not in self.state["znodes"]:
            names = text.listed(sorted({p.name.rpartition("-")[0] for p in folded_state.partitions(self.state)}), ALL)
            raise UserError(f"There is no topic {name!r}; {f'the topics are {names}' if names else 'there are none yet'}.")
        return name

    def _there(self, path: str) -> str:
        arguments.words(path, "A znode's path", "/controller")
        if path not in self.state["znodes"]:
            siblings = text.listed(sorted(p for p in self.state["znodes"] if parent(p) == parent(str(path))), ALL)
            beside = f"its parent has {siblings}" if siblings else "lab.tables.znodes() lists all znodes"
            raise UserError(f"There is no znode {path!r}; {beside}.")
        return path
