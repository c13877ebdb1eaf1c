"""The namespace of a run's tables: `lab.tables`, and `Lab.open(file).tables` for a run from a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from kcontrol.core.model import TopicPartition
from kcontrol.lab import analysis, record_lookup
from kcontrol.lab.groups import (
    ballots,
    coordinators,
    listing,
    offsets_topic,
    reaction_grid,
    rebalances,
    responses,
    waiting,
)
from kcontrol.lab.groups import metrics as group_metrics
from kcontrol.lab.groups import settings as group_settings
from kcontrol.lab.history import history_tables, log_evidence
from kcontrol.lab.support import arguments, replacements
from kcontrol.lab.support.calls import Commands
from kcontrol.lab.support.late import pd
from kcontrol.lab.support.output import Shown
from kcontrol.lab.tables import (
    controller_memory,
    deletions,
    elections,
    groups,
    journal_tables,
    outages,
    partition_history,
    reassignments,
    replica_logs,
    replicas,
    statistics,
    watch_handlers,
)
from kcontrol.lab.tables import invariants as invariants_table
from kcontrol.pipeline.door import WORLD, spark_views

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab
    from kcontrol.lab.run import Run


class Tables(Commands, owner="lab.tables"):
    """Tables of a run; `partitions`, `brokers` and `journal` are on the run itself.

    State now
      replicas()                    each replica: the controller's state, its broker's role
      reassignments()  deletions()  reassignments and deletions in progress
      znodes()  watches()           ZooKeeper's tree, and the watches of each broker
      controller_memory(broker)     the fields of a controller, with Kafka's names
      leadership_views(partition)   the leader in ZooKeeper and in each broker's caches
      election_candidates(p)        the next leader, and the reason against each other replica

    Consumer groups
      members()  offsets()          members and committed offsets
      offsets_topic(partition)      the records of the offsets topic, their bytes and fields
      assignment()                  members x partitions
      ballots(group)                the vote on the assignor
      consumer_groups(group)        offsets and lag, as kafka-consumer-groups --describe
      coordinators()                the partitions of the offsets topic that each broker leads, loads and owns
      loads()                       each load and unload of such a partition, with its outcome
      timers()  parked()            timers that are set, and requests that wait
      delayed_operations()          Kafka's purgatories: tries, watch lists, timers
      rebalances()                  each rebalance: begin, end, reason, generations, members
      reactions(request)            the response to each request in each state
      reaction_grid()               states x requests, with the cell that was used last
      group_responses()             responses to ListGroups, DescribeGroups and others

    History
      controllers()                 each controller, its epoch, and how its term ended
      requests()                    each request of a controller to a broker
      watch_events(broker)          each event in a controller's queue, and its result
      handler_steps(event, broker)  each read, write, transition and request of a handler
      partition_history(partition)  each write about a partition
      outages()                     each time without a leader
      diff(before, after)           the differences between the states after two records
      metrics()  prometheus()       Kafka's own metrics
      run_table(name)               a table of the whole run, as Spark has it
      table_sql(name)               the SQL text of this table

    Records, in a lab with data=True
      replica_log(partition)        each replica's log
      consumer_records(partition)   the records that a consumer can read

    Rules
      event_handlers()              each znode, its event and its handler
      legal_transitions(machine)    the legal target states of each state
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def __repr__(self) -> str:
        return type(self).__doc__ or ""

    # ---------------------------------------------------------------- state now

    def replicas(self) -> pd.DataFrame:
        """Return one row per replica: its state in the controller's memory, and its role (leader or follower) at its broker."""
        return replicas.replicas(self._run.state)

    def reassignments(self) -> pd.DataFrame:
        """Return one row per partition that is being reassigned: its replicas, its target, and the replicas not in sync yet."""
        return reassignments.reassignments(self._run.state)

    def deletions(self) -> pd.DataFrame:
        """Return one row per replica of each topic to be deleted.

        The columns are the replica's state, and whether the topic is in each set of the deletion manager, such as `ineligible`.
        """
        return deletions.deletions(self._run.state)

    def znodes(self) -> pd.DataFrame:
        """Return one row per znode, indexed by path: the data as text, the version, and the owner of an ephemeral znode."""
        return journal_tables.znodes(self._run.state)

    def watches(self) -> pd.DataFrame:
        """Return one row per watch that a running broker has set at ZooKeeper, of the kind "data" or "children"."""
        return journal_tables.watches(self._run.records)

    def controller_memory(self, broker: int | None = None) -> pd.DataFrame:
        """Return one row per field of a broker's controller context, with Kafka's name of the field and its value.

        `broker` is by default the active controller. Raises UserError if this broker does not run.
        """
        return controller_memory.memory(self._run.state, broker)

    def leadership_views(self, partition: str) -> pd.DataFrame:
        """Return one row per copy of a partition's leader, ISR and epochs: in ZooKeeper, the controller and each broker.

        A broker has copies from LeaderAndIsr and from UpdateMetadata. Raises UserError for an unknown partition.
        """
        return replicas.leadership_views(self._run.state, partition)

    def election_candidates(self, partition: str) -> elections.CandidateTable:
        """Return the replicas of a partition, each with a verdict on whether it may become leader.

        Verdicts are "dead", "next" (the next leader), "next, unclean" (the next leader, outside the ISR) and others. Raises
        UserError for an unknown partition.
        """
        return elections.candidates(self._run.state, partition, self._run._rules(), self._run._allows_unclean())

    def members(self) -> pd.DataFrame:
        """Return one row per member of each consumer group, from the memory of the group's coordinator.

        `waits_for` is the member's parked request, "join" or "sync"; "" without a parked request.
        """
        return groups.members(self._run.state, self._run._played)

    def offsets(self) -> pd.DataFrame:
        """Return one row per committed offset of each consumer group, from the memory of the group's coordinator."""
        return groups.offsets(self._run.state)

    def offsets_topic(self, partition: str | None = None, *, offset: int | None = None) -> pd.DataFrame:
        """Return one row per record of a partition of `__consumer_offsets`, by default the first with a record.

        `offset` chooses one record and shows its fields. Raises UserError for an unknown partition or offset.
        """
        # A row has key, value, batch, and what compaction does with the record.
        return offsets_topic.table(self._run.state, self._run._played, partition, offset)

    # ---------------------------------------------------------------- consumer groups

    def assignment(self) -> pd.DataFrame:
        """Return one row per member of each group, one column per partition: whether the partition is assigned to the member."""
        return listing.assignment(self._run.state, self._run._played)

    def ballots(self, group: str | None = None) -> pd.DataFrame:
        """Return the vote on a group's assignor: one row per member, and a last row with the winner.

        `group` is by default the only group with members. Raises UserError if there is no such group.
        """
        return ballots.ballots(self._run.state, group)

    def coordinators(self) -> pd.DataFrame:
        """Return one row per broker and partition of `__consumer_offsets`: whether it leads, loads and owns the partition.

        The owner coordinates the partition's groups. Further columns have errors by which a broker refuses requests.
        """
        return coordinators.coordinators(self._run.state, self._run._played)

    def loads(self) -> pd.DataFrame:
        """Return one row per load and unload of a partition of `__consumer_offsets`, with the groups and the result in words.

        `batches` is the number of batches that a load has read from the log.
        """
        return coordinators.loads(self._run.records)

    def consumer_groups(self, group: str | None = None) -> pd.DataFrame:
        """Return the rows that `kafka-consumer-groups --describe` prints of `group`, by default of all groups.

        The lag is missing if no leader runs, or if the brokers store no records. Raises UserError for an unknown group.
        """
        return listing.described(self._run.state, self._run._played, group)

    def timers(self) -> pd.DataFrame:
        """Return one row per timer that a broker has set, the next to fire first: when it fires, its event, group and member."""
        return waiting.timers(self._run.records, self._run.state)

    def parked(self) -> pd.DataFrame:
        """Return one row per request that a coordinator has parked: its time of arrival, and the event that will complete it."""
        return waiting.parked(self._run.records, self._run.state)

    def delayed_operations(self) -> pd.DataFrame:
        """Return one row per delayed operation of a coordinator: its tries, the timing wheels of its timer, how it was completed.

        Raises UserError for a run without `purgatory=True`.
        """
        return waiting.operations(self._run.records)

    def group_responses(self) -> pd.DataFrame:
        """Return one row per group or partition (`about`) in each response to an admin request about groups.

        `error` and `code` are the error's name and number; for ListGroups and DescribeGroups `response` describes the group.
        """
        return responses.responses(self._run.records)

    def rebalances(self) -> pd.DataFrame:
        """Return one row per rebalance of a group: begin, end, reason, generations before and after, and members at the end."""
        return rebalances.rebalances(self._run.records)

    def reactions(self, request: str | None = None) -> pd.DataFrame:
        """Return the coordinator's response per group state, request and condition; the first row whose condition holds applies.

        `request` limits the rows. Raises UserError for a request that the release does not have.
        """
        return rebalances.reactions(self._run._played, request)

    def reaction_grid(self) -> pd.DataFrame:
        """Return what the coordinator answers to each request in each group state, as a grid; the run's last request is marked.

        Raises UserError for a release without a group coordinator.
        """
        return reaction_grid.grid(self._run.records, self._run._played)

    # ---------------------------------------------------------------- history

    def controllers(self) -> pd.DataFrame:
        """Return one row per term of a controller: the broker, its controller epoch, and the causes of its begin and end."""
        return journal_tables.controllers(self._run.records)

    def requests(self) -> pd.DataFrame:
        """Return one row per request of a controller to a broker, in the order of sending.

        `outcome` is the response's error code, "waiting" before the response, "dropped" if lost, or "handled" in a recording.
        """
        return journal_tables.requests(self._run.records, self._run.state)

    def watch_events(self, broker: int | None = None) -> pd.DataFrame:
        """Return one row per event in a controller's queue: its cause, the time in ms it waited, and its result.

        `broker` limits the rows to this broker's queue. Raises UserError for a recording, which has no events.
        """
        return watch_handlers.handled_events(self._run.records, broker)

    def handler_steps(self, event: str, broker: int | None = None, *, memory: bool = False) -> pd.DataFrame:
        """Return one row per step of one handler of `event`, such as "BrokerChange": the last handler that did more than read.

        `broker` limits the handlers to one broker; `memory` adds changes of the controller's memory. Raises UserError if
        `event` was not handled.
        """
        # A step is a read, a write, a transition or a request.
        return analysis.handled(self._run.records, event, broker, memory=memory)

    def partition_history(self, partition: str) -> pd.DataFrame:
        """Return one row per ZooKeeper write about a partition, with its leader, ISR and replicas after the write.

        Raises UserError for an unknown partition.
        """
        return partition_history.stored(self._run.records, TopicPartition.parse(elections.find(self._run.state, partition).name))

    def outages(self) -> pd.DataFrame:
        """Return one row per outage of a partition, a time without a running leader: begin, end, leader before and after."""
        return outages.outages(self._run.records)

    def run_table(self, name: str) -> pd.DataFrame:
        """Return a table of the whole run, such as "elections" or "commits", with the rows and columns of the table in Spark.

        Raises UserError, listing the tables, for an unknown name.
        """
        records = self._run.records
        found = history_tables.table(records, self._run.name, arguments.one_of(name, history_tables.TABLES, "table"))
        # A run of `Lab.open_logs` has the columns `inferred` and `line` too.
        return log_evidence.with_evidence(found, records, name) if records[0].fields["world"] == WORLD else found

    def table_sql(self, name: str) -> Shown:
        """Return the SQL text by which Spark makes a table, such as "elections", of the journals of one or many runs.

        Raises UserError, listing the tables, for an unknown name.
        """
        return Shown(spark_views.table_sql(arguments.one_of(name, spark_views.TABLES, "table")))

    def diff(self, before: object, after: object = -1) -> pd.DataFrame:
        """Return one row per znode and field of a broker's memory that changed from record `before` to record `after`.

        A record is an id such as "2.1.58" or a position. Raises UserError for an unknown record.
        """
        past = self._run._past
        return journal_tables.diff(*(past.at(record_lookup.position(self._run.records, to)) for to in (before, after)))

    def metrics(self) -> pd.DataFrame:
        """Return Kafka's metrics of controller and coordinator: a row per metric and attribute, a column per running broker."""
        return statistics.table(self._statistics())

    def prometheus(self) -> Shown:
        """Return Kafka's own metrics of the controller and the coordinator as text that Prometheus reads."""
        return Shown(statistics.exposition(self._statistics(), self._run.name))

    def _statistics(self) -> list[statistics.Statistic]:
        return statistics.statistics(self._run.records) + group_metrics.statistics(self._run.records, self._run.state)

    # ---------------------------------------------------------------- records

    def replica_log(self, partition: str) -> pd.DataFrame:
        """Return one row per replica of a partition, dead brokers included, and one column per offset with the records' values.

        A missing record is None. Raises UserError if there is no such log.
        """
        return replica_logs.log(self._run.state, partition)

    def consumer_records(self, partition: str, broker: int | None = None) -> pd.DataFrame:
        """Return one row per record of a partition below the high watermark, from the log of the leader or of `broker`.

        Raises UserError if this broker does not run, has no log, or is no leader in its own memory.
        """
        return replica_logs.read(self._run.state, partition, broker)

    # ---------------------------------------------------------------- rules

    def event_handlers(self) -> pd.DataFrame:
        """Return one row per znode and event: the kind of change, Kafka's handler, the event, and the brokers that watch."""
        return watch_handlers.handlers(self._run._rules())

    def legal_transitions(self, machine: str = "partition") -> pd.DataFrame:
        """Return the legal transitions of "partition", "replica" or "group": a row per source state, a column per target state.

        A cell has the transition's function, "" if illegal. Raises UserError for an unknown `machine`.
        """
        chosen = arguments.one_of(machine, replacements.MACHINES, "transition table of")
        return controller_memory.moves(self._run._table(chosen))


class LabTables(Tables):
    __doc__ = f"""{Tables.__doc__}  config()                      Kafka's settings of these brokers
      invariants()                  what Kafka promises, by release
      invariant_checks(*own)        whether this run has kept each promise
    """

    def __init__(self, run: Lab) -> None:
        super().__init__(run)
        self._lab = run

    def config(self) -> pd.DataFrame:
        """Return one row per broker setting of Kafka, with its value in this lab and its effect in kcontrol.

        The column `default` is the default of the lab's release; the column `defaults` has those of all releases.
        """
        settings = self._lab._world.settings
        of_brokers = journal_tables.config(settings.release, asdict(settings.config))
        return pd.concat([of_brokers, group_settings.table(settings)])

    def invariants(self) -> pd.DataFrame:
        """Return one row per invariant, indexed by name, with the first release of Kafka that promises it.

        `promised` is whether the release of this lab promises the invariant.
        """
        return invariants_table.invariants(self._lab._world.settings.release)

    def invariant_checks(self, *own: invariants_table.Own) -> pd.DataFrame:
        """Play this run again and check every invariant after each step; return one row per invariant with its first violation.

        A function in `own` gets the simulated cluster and returns True if its invariant holds.
        """
        # None means that the invariant holds too. The docstring of such a function states its invariant. If an invariant is
        # broken, `attrs["scenario"]` of the table is the run as Python code.
        return self._lab._check_invariants(own)
