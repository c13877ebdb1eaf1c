"""Raises an error with the right name for a former method of `Lab`, and for a table that is looked for in `Lab` itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError

# fmt: off
OLD_NAMES = {
    "term": "lab.terminate", "expire": "lab.expire_session", "prefer": "lab.elect_preferred",
    "shrink": "lab.shrink_isr", "fork": "lab.branch",
    "get": "lab.zk.get", "set": "lab.zk.set", "create": "lab.zk.create", "delete": "lab.zk.delete",
    "zookeeper": "lab.zk.address",
    "lose": "lab.network.drop", "duplicate": "lab.network.duplicate", "fetch_timeout": "lab.network.fetch_timeout",
    "lose_tail": "lab.disks.lose_tail", "fail_log_dir": "lab.disks.fail_log_dir",
    "consumer": "lab.group.join(consumer), lab.group.sync, lab.group.heartbeat or lab.group.leave",
    "list_reassignments": 'lab.step(("list_reassignments", broker))',
    "replicas": "lab.tables.replicas", "reassignments": "lab.tables.reassignments", "deletions": "lab.tables.deletions",
    "znodes": "lab.tables.znodes", "watches": "lab.tables.watches", "controllers": "lab.tables.controllers",
    "memory": "lab.tables.controller_memory", "requests": "lab.tables.requests", "members": "lab.tables.members",
    "offsets": "lab.tables.offsets", "outages": "lab.tables.outages", "handlers": "lab.tables.event_handlers",
    "handled": "lab.tables.handler_steps", "heard": "lab.tables.watch_events", "log": "lab.tables.replica_log",
    "read": "lab.tables.consumer_records", "stored": "lab.tables.partition_history",
    "told": "lab.tables.leadership_views", "candidates": "lab.tables.election_candidates",
    "moves": "lab.tables.legal_transitions", "statistics": "lab.tables.metrics", "prometheus": "lab.tables.prometheus",
    "config": "lab.tables.config", "diff": "lab.tables.diff", "invariants": "lab.tables.invariants",
    "check_invariants": "lab.tables.invariant_checks", "table": "lab.tables.run_table", "table_sql": "lab.tables.table_sql",
    "parked": "lab.tables.parked", "assignment": "lab.tables.assignment", "rebalances": "lab.tables.rebalances",
    "reactions": "lab.tables.reactions",
    "check": "exercises.check", "hint": "exercises.hint", "incident": "exercises.incident",
    "predict": "exercises.predict", "outcome": "exercises.outcome", "expect": "exercises.expect",
    "exercises": "exercises.list", "questions": "exercises.questions", "progress": "exercises.progress",
    "generations": "rules.table", "elections": "rules.elections", "trials": "rules.trials", "source": "rules.source",
}
# fmt: on


class OldName(UserError, AttributeError):
    """The error for a former attribute of a run, or for a table looked for in the lab; its text has the right name."""


def absent(owner: str, name: str) -> AttributeError:
    """Return the error for the unknown attribute `name` of the class `owner`.

    For a name in OLD_NAMES it is an OldName, whose text has the right name; for any other name it is an AttributeError.
    """
    if name not in OLD_NAMES:
        return AttributeError(f"{owner} has no attribute {name!r}")
    new = OLD_NAMES[name]
    imported = new.partition(".")[0]
    how = f", after `from kcontrol import {imported}`" if imported in ("exercises", "rules") else ""
    return OldName(f"There is no lab.{name}: use {new}{how}.")


class NoSuchCommand(UserError, AttributeError):
    """The error for an unknown name in a namespace such as `lab.group`; its text lists the names that the namespace has."""


class Named(type):
    """The metaclass of `Run` and `Lab`: a former attribute of these classes, such as `Lab.source`, raises OldName."""

    if not TYPE_CHECKING:  # with it mypy would accept every name as an attribute

        def __getattr__(cls, name: str) -> Any:
            raise absent(cls.__name__, name)
