"""The tables of a run: `lab.tables`, and `Lab.open(file).tables` for a run from a file. Each table has one line here.

The tables of the whole run, which Spark has too, have their lines in `kcontrol/lab/history/history_tables.py`.
"""

from kcontrol.lab import analysis
from kcontrol.lab.groups import coordinators as coordinator_tables
from kcontrol.lab.groups import listing, rebalances, responses, waiting
from kcontrol.lab.groups import offsets_topic as offsets_topic_tables
from kcontrol.lab.history.history_tables import WholeRun
from kcontrol.lab.support.registered import Section, of_run
from kcontrol.lab.tables import config as settings
from kcontrol.lab.tables import controller_memory as memory
from kcontrol.lab.tables import elections, groups, journal_tables, reassignments, replica_logs, watch_handlers
from kcontrol.lab.tables import invariants as promises
from kcontrol.lab.tables import metrics as kafka_metrics
from kcontrol.lab.tables import replicas as replica_tables

# fmt: off


class _State(Section):
    """State now."""

    replicas              = of_run(replica_tables.replicas)
    ongoing_reassignments = of_run(reassignments.ongoing_reassignments)
    ongoing_deletions     = of_run(memory.ongoing_deletions)
    znodes                = of_run(journal_tables.znodes)
    watches               = of_run(journal_tables.watches)
    controller_memory     = of_run(memory.controller_memory)
    leadership_views      = of_run(replica_tables.leadership_views)
    election_candidates   = of_run(elections.election_candidates)
    metrics               = of_run(kafka_metrics.metrics)
    prometheus            = of_run(kafka_metrics.prometheus)


class _Groups(Section):
    """Consumer groups."""

    members            = of_run(groups.members)
    offsets            = of_run(groups.offsets)
    offsets_topic      = of_run(offsets_topic_tables.offsets_topic)
    assignment         = of_run(listing.assignment)
    ballots            = of_run(listing.ballots)
    consumer_groups    = of_run(listing.consumer_groups)
    coordinators       = of_run(coordinator_tables.coordinators)
    loads              = of_run(coordinator_tables.loads)
    timers             = of_run(waiting.timers)
    parked             = of_run(waiting.parked)
    delayed_operations = of_run(waiting.delayed_operations)
    reactions          = of_run(rebalances.reactions)
    reaction_grid      = of_run(rebalances.reaction_grid)
    group_responses    = of_run(responses.group_responses)


class _Events(Section):
    """What happened."""

    watch_events  = of_run(watch_handlers.watch_events)
    handler_steps = of_run(analysis.handler_steps)
    diff          = of_run(journal_tables.diff)


class _Records(Section):
    """Records, in a lab with data=True."""

    replica_log      = of_run(replica_logs.replica_log)
    consumer_records = of_run(replica_logs.consumer_records)


class _Rules(Section):
    """Rules of the release."""

    event_handlers    = of_run(watch_handlers.event_handlers)
    legal_transitions = of_run(memory.legal_transitions)


class Tables(_State, _Groups, _Events, WholeRun, _Records, _Rules):
    """Tables of a run; `partitions`, `brokers` and `journal` are on the run itself."""


class _OfLab(Section):
    """Settings and promises."""

    config           = of_run(settings.config)
    invariants       = of_run(promises.invariants)
    invariant_checks = of_run(promises.invariant_checks)


class LabTables(Tables, _OfLab):
    __doc__ = Tables.__doc__
