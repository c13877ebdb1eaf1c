"""The namespaces of a lab's commands: `lab.zk`, `lab.network`, `lab.disks` and `lab.group`.

Each command but `zk.get` returns the lab, and raises UserError for an action that is not possible. No time passes in a command.
"""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kcontrol.cluster.consumer_clients import coordinator
from kcontrol.cluster.delivery import is_reachable
from kcontrol.core.errors import UserError
from kcontrol.core.znodes import parent
from kcontrol.lab.groups import responses
from kcontrol.lab.support import arguments
from kcontrol.lab.support.calls import Commands
from kcontrol.lab.support.output import Shown
from kcontrol.views import text, zkcli

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab

LabT = TypeVar("LabT", bound="Lab")
ALL = 30  # how many legal values an error lists


class Namespace(Commands, Generic[LabT]):
    """The base class of the objects that hold a lab's commands, such as `lab.zk`; `repr` returns the subclass's docstring."""

    def __init__(self, lab: LabT) -> None:
        self._lab = lab

    if not TYPE_CHECKING:  # with it mypy would accept each call

        def __call__(self, *given: Any, **named: Any) -> Any:
            raise UserError(f"{self._owner} is no command; it has the commands {text.listed(dir(self), ALL)}.")

    def __repr__(self) -> str:
        return type(self).__doc__ or ""


class Zk(Namespace[LabT], owner="lab.zk"):
    """Znodes, read and written as with ZooKeeper's own shell.

    lab.zk.get(path)           a znode's data and its Stat
    lab.zk.set(path, data)     rewrite a znode
    lab.zk.create(path, data)  create a persistent znode
    lab.zk.delete(path)        delete a znode without children
    lab.zk.address             host:port/chroot of a real ZooKeeper, None in the simulated world

    All znodes as a table: lab.tables.znodes().
    """

    @property
    def address(self) -> str | None:
        """The address of the real ZooKeeper, as host:port/chroot; None in the simulated world."""
        return self._lab._address

    def get(self, path: str) -> Shown:
        """Return a znode's data with the eleven lines of its Stat, as `get -s` of ZooKeeper's own shell prints them.

        Raises UserError if there is no such znode.
        """
        znode = self._lab._read_znode(self._lab._there(path))
        return Shown(zkcli.format_stat(znode.data, znode.stat))

    def set(self, path: str, data: str) -> LabT:
        """Replace the data of the znode `path`, as `set` of ZooKeeper's shell. Raises UserError for a missing znode."""
        return self._lab._act("set", self._lab._there(path), arguments.words(data, "A znode's data", ""))

    def create(self, path: str, data: str = "") -> LabT:
        """Create the persistent znode `path` with this data. Raises UserError if it exists, or if its parent does not exist."""
        arguments.words(path, "A znode's path", "/x")
        arguments.words(data, "A znode's data", "")
        if path in self._lab.state["znodes"]:
            raise UserError(f"The znode {path} exists already: use lab.zk.set to change its data.")
        if not path.startswith("/") or parent(path) not in ("/", *self._lab.state["znodes"]):
            raise UserError(f"{path!r} cannot be created, because its parent does not exist: create the parent first.")
        return self._lab._act("create", path, data)

    def delete(self, path: str) -> LabT:
        """Delete the znode `path` and return this lab. Raises UserError if it does not exist, or if it has children."""
        if below := [other for other in self._lab.state["znodes"] if parent(other) == self._lab._there(path)]:
            raise UserError(f"{path} has children: delete them first: {text.listed(sorted(below), ALL)}.")
        return self._lab._act("delete", path)


class Network(Namespace[LabT], owner="lab.network"):
    """Connections between a controller and the other brokers.

    lab.network.drop_request(sender, receiver)       lose the next request before it arrives; the sender sends it again
    lab.network.duplicate_request(sender, receiver)  lose the next response; the receiver gets the request twice
    lab.network.time_out_fetch(broker)               end a follower's fetch from a frozen leader (0.8 to 1.0)

    Requests as a table: lab.tables.requests().
    """

    def drop_request(self, sender: int, receiver: int) -> LabT:
        """Break the connection before the next request of the controller `sender` reaches the broker `receiver`.

        The request is lost, and `sender` sends it again.
        """
        return self._lab._act("drop_request", sender, receiver)

    def duplicate_request(self, sender: int, receiver: int) -> LabT:
        """Break the connection before the next response of the broker `receiver` reaches the controller `sender`.

        The response is lost, `sender` sends the request again, and so `receiver` gets it twice.
        """
        return self._lab._act("duplicate_request", sender, receiver)

    def time_out_fetch(self, broker: int) -> LabT:
        """End the wait of the follower `broker` for its fetch from a frozen leader (releases 0.8 to 1.0).

        The broker then sends its response to LeaderAndIsr, which was delayed until the end of this fetch.
        """
        return self._lab._act("time_out_fetch", broker)


class Disks(Namespace[LabT], owner="lab.disks"):
    """Logs on the disks of brokers, in a lab with data=True.

    lab.disks.lose_tail(broker, partition, offset)  a dead broker's disk loses records that were not flushed
    lab.disks.fail_log_dir(broker, partition)       a running broker's log directory fails
    lab.disks.clean_log(broker, partition)          a running broker's log cleaner compacts a log of the offsets topic

    Logs as a table: lab.tables.replica_log(partition).
    """

    def lose_tail(self, broker: int, partition: str, offset: int) -> LabT:
        """Remove the records of `partition` from `offset` on from the disk of a dead broker, as if they were not flushed.

        Raises UserError if the broker runs or lacks such a record.
        """
        return self._lab._act("lose_tail", broker, partition, offset)

    def fail_log_dir(self, broker: int, partition: str) -> LabT:
        """Let the log directory of a partition fail at a running broker; the broker's other partitions stay online.

        Before 1.0 the failure ends the broker's process (KIP-112).
        """
        return self._lab._act("fail_log_dir", broker, arguments.words(partition, "A partition", "t-0"))

    def clean_log(self, broker: int, partition: str = "__consumer_offsets-0") -> LabT:
        """Let the log cleaner of a running broker compact its log of a partition of `__consumer_offsets`.

        Raises UserError, and cleans nothing, if the log cleaner would not clean the log.

        Source: LogCleaner.scala (0.9, 2.8).
        """
        # The cleaner cleans a log if the topic has the setting `segment.bytes`, and more than half of the bytes in the closed
        # segments are new since the last cleaning.
        return self._lab._act("clean_log", broker, arguments.words(partition, "A partition", "__consumer_offsets-0"))


class Group(Namespace[LabT], owner="lab.group"):
    """Consumers and their groups, in a lab with consumers.

    Requests of a consumer to the coordinator of its group
      lab.group.join(consumer)       JoinGroup: enter the group, or take part in its rebalance
      lab.group.sync(consumer)       SyncGroup: get the assignment; the group's leader sends it
      lab.group.heartbeat(consumer)  Heartbeat: keep the session alive
      lab.group.leave(consumer)      LeaveGroup: leave the group

      Each of the four takes a broker as second argument, instead of the coordinator.
      lab.group.find_coordinator(consumer, broker)  FindCoordinator: which broker coordinates the group?

    Faults of a consumer's process
      lab.group.freeze_consumer(consumer, for_ms)  the process stops and sends nothing, also no heartbeat
      lab.group.thaw_consumer(consumer)         the process continues, with its member id
      lab.group.stop_polling(consumer)          heartbeats go on, but the consumer joins no more
      lab.group.start_polling(consumer)         it polls again, also after it has left its group
      lab.group.restart(consumer)               the process ends without LeaveGroup, and starts again
      lab.group.expire_poll_interval(consumer)  the consumer polls later than max.poll.interval.ms

    Requests of an administrator
      lab.group.list_groups(*states)                ListGroups: the groups of each broker
      lab.group.describe_group(group)               DescribeGroups: state, members, assignments
      lab.group.delete_groups(*groups)              DeleteGroups: groups without members, since 1.1
      lab.group.delete_offsets(group, *partitions)  OffsetDelete: offsets of a group, since 2.4

    Offsets are committed by lab.commit(consumer, partition, offset). Groups as tables: lab.tables.members() and the
    others; lab.tables.group_responses() has the responses to an administrator.
    """

    def join(self, consumer: str, broker: int | None = None) -> LabT:
        """Let a consumer send JoinGroup to its coordinator, or to `broker` if it is given."""
        return self._request(consumer, "join", broker)

    def sync(self, consumer: str, broker: int | None = None) -> LabT:
        """Let a consumer send SyncGroup to its coordinator, or to `broker` if it is given."""
        return self._request(consumer, "sync", broker)

    def heartbeat(self, consumer: str, broker: int | None = None) -> LabT:
        """Let a consumer send Heartbeat to its coordinator, or to `broker` if it is given."""
        return self._request(consumer, "heartbeat", broker)

    def leave(self, consumer: str, broker: int | None = None) -> LabT:
        """Let a consumer send LeaveGroup to its coordinator, or to `broker` if it is given."""
        return self._request(consumer, "leave", broker)

    def _request(self, consumer: str, request: str, broker: int | None) -> LabT:
        return self._lab._act(request, consumer, *(() if broker is None else (broker,)))

    def find_coordinator(self, consumer: str, broker: int) -> LabT:
        """Let a consumer send FindCoordinator to a broker, which names the coordinator from its own metadata.

        The consumer sends its next requests to the broker in the response.
        """
        # Without a running leader of the group's partition in the metadata, the error is COORDINATOR_NOT_AVAILABLE, and the
        # consumer has no coordinator. Where no broker has the offsets topic, this broker creates the topic, with
        # `offsets.topic.replication.factor` replicas.
        return self._lab._act("find_coordinator", consumer, broker)

    def freeze_consumer(self, consumer: str, for_ms: int | None = None) -> LabT:
        """Stop the process of a consumer, as SIGSTOP does: it sends nothing, also no heartbeat, until `thaw_consumer`.

        With `for_ms`, `lab.run(alive=True)` thaws the process after this time in ms of virtual time.
        """
        return self._lab._act("freeze_consumer", consumer, *(() if for_ms is None else (for_ms,)))

    def thaw_consumer(self, consumer: str) -> LabT:
        """Let a frozen consumer continue, as SIGCONT does, with its member id and its generation."""
        return self._lab._act("thaw_consumer", consumer)

    def stop_polling(self, consumer: str) -> LabT:
        """Let a consumer send heartbeats but take part in no rebalance, as if its application processed one batch for ever.

        After max.poll.interval.ms `lab.run(alive=True)` lets the consumer leave the group (since 0.10.1).
        """
        return self._lab._act("stop_polling", consumer)

    def start_polling(self, consumer: str) -> LabT:
        """Let a consumer poll again that has stopped polling, or that has left its group; after LeaveGroup it is a new member."""
        return self._lab._act("start_polling", consumer)

    def restart(self, consumer: str) -> LabT:
        """End the process of a consumer, as SIGKILL does, and start it again without a member id.

        The coordinator keeps the old member until its session ends.
        """
        # A static member that joins again gets a new member id in place of the old id.
        return self._lab._act("restart", consumer)

    def expire_poll_interval(self, consumer: str) -> LabT:
        """Let a consumer send LeaveGroup as if max.poll.interval.ms had passed since its last poll; no time passes.

        Source: HeartbeatThread of AbstractCoordinator.java (0.10.1, 2.8), KIP-62, KIP-345.
        """
        # The setting exists since 0.10.1. A static member (since 2.3) sends nothing, and its session ends later.
        return self._lab._act("expire_poll_interval", consumer)

    # ---------------------------------------------------------------- requests of an administrator

    def list_groups(self, *states: str, broker: int | None = None) -> LabT:
        """Send ListGroups to every broker that runs and is not frozen, or only to `broker`.

        `states`, such as "Stable", filter the groups. Raises UserError for an unknown state, and for states before 2.6.

        Source: handleListGroups of GroupCoordinator.scala (2.8), KIP-518.
        """
        asked = responses.states(self._lab._played, states)
        brokers = [n for n in sorted(self._lab._world.processes) if is_reachable(self._lab._world, n)]
        for n in brokers if broker is None and brokers else [broker]:
            self._lab._act("list_groups", n, asked)
        return self._lab

    def describe_group(self, group: str, broker: int | None = None) -> LabT:
        """Send DescribeGroups to the coordinator of a group, or to `broker`.

        For an unknown group the response has the state Dead. Source: handleDescribeGroup of GroupCoordinator.scala (2.8).
        """
        return self._ask("describe_group", group, (group,), broker)

    def delete_groups(self, *groups: str, broker: int | None = None) -> LabT:
        """Send DeleteGroups to the coordinator of each group, or to `broker`: a group is deleted with its offsets (since 1.1).

        Source: handleDeleteGroups of GroupCoordinator.scala (2.8), KIP-229.
        """
        if not groups:
            raise UserError('Name the groups to delete, as in lab.group.delete_groups("billing").')
        # The errors in the response are NON_EMPTY_GROUP for a group with members, and GROUP_ID_NOT_FOUND.
        for group in groups:
            arguments.string(group, "A group", "billing")
        for group in groups:
            self._ask("delete_groups", group, (group,), broker)
        return self._lab

    def delete_offsets(self, group: str, *partitions: str, broker: int | None = None) -> LabT:
        """Send OffsetDelete to a group's coordinator, or to `broker`: it deletes the offsets of these partitions (since 2.4).

        Source: handleOffsetDeleteRequest of KafkaApis.scala, handleDeleteOffsets of GroupCoordinator.scala (2.8), KIP-496.
        """
        if not partitions:
            raise UserError('Name the partitions to delete the offsets of, as in lab.group.delete_offsets("billing", "t-0").')
        for partition in partitions:
            arguments.partition(partition)
        # The errors in the response are GROUP_SUBSCRIBED_TO_TOPIC for each partition of a topic that a member subscribes to,
        # GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION, and NON_EMPTY_GROUP for a group with members that is no consumer
        # group.
        return self._ask("delete_offsets", group, (group, *partitions), broker)

    def _ask(self, action: str, group: str, about: tuple[str, ...], broker: int | None) -> LabT:
        """Send a request of an administrator; `about` has the group, and for OffsetDelete the partitions too."""
        arguments.string(group, "A group", "billing")
        chosen = coordinator(self._lab._world, group) if broker is None else broker
        return self._lab._act(action, chosen, about)
