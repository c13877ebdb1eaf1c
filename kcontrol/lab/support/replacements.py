"""Checks and wraps a learner's functions that replace kcontrol's functions for transitions, elections and rules of groups."""

import inspect
import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from kcontrol.cluster.consumer_protocol import OWN_ASSIGNOR
from kcontrol.controller.leader_election import STRATEGIES, Elected, ElectionInput
from kcontrol.controller.partition_machine import PARTITION_TRANSITIONS
from kcontrol.controller.replica_machine import REPLICA_TRANSITIONS
from kcontrol.core.controller_rules import Rules, rules
from kcontrol.core.errors import UserError
from kcontrol.core.releases import is_since
from kcontrol.core.rule_fields import LAST_RELEASE, declared
from kcontrol.core.transitions import NO_CHANGES, Changes, Pair, Transition, TransitionTable
from kcontrol.group.group_machine import GROUP_TRANSITIONS
from kcontrol.group.group_rules import GroupRules, group_rules
from kcontrol.group.group_strategies import GROUP_STRATEGIES
from kcontrol.lab.support import arguments, learner_errors, own_assignor

NextLeader = Callable[[list[int], list[int], list[int]], int | None]

MACHINES = {table.name: table for table in (PARTITION_TRANSITIONS, REPLICA_TRANSITIONS, GROUP_TRANSITIONS)}


class WrongAnswer(TypeError):
    """The error for a learner's election function that has returned neither a broker of the partition's assignment nor None."""


class RuleFailed(Exception):
    """An error of a learner's function; the text has the name of the function and the original error."""


def table(machine: str, release: str, changes: Changes = NO_CHANGES) -> TransitionTable:
    """Return the transition table of the state machine "partition", "replica" or "group" in a release."""
    try:
        (group_rules if machine == "group" else rules)(release)
    except ValueError:
        # A release without this state machine has the table of the last release.
        release = LAST_RELEASE
    return MACHINES[machine].for_(release, changes)


def row_name(machine: str, row: Transition) -> str:
    """Return the name of a transition, such as "partition.(OfflinePartition, OnlinePartition)"."""
    return f"{machine}.({row.source}, {row.target})"


def named_rows(release: str) -> dict[str, Transition]:
    """Return the transitions of a release by name, such as "partition.(OfflinePartition, OnlinePartition)".

    They are the rows of its three transition tables: of partitions, of replicas and of groups.
    """
    return {row_name(machine, row): row for machine in MACHINES for row in table(machine, release)}


def own_function(name: str) -> Callable[..., Any]:
    """Return the function of kcontrol that a learner's function of this name, such as "offline", replaces.

    Raises KeyError for an unknown name.
    """
    # The name is that of an election's rule ("offline"), of a rule of the group coordinator ("group.try_complete_join"), or of
    # a transition of release 2.8 ("partition.(OfflinePartition, OnlinePartition)").
    if name in GROUP_STRATEGIES:
        return GROUP_STRATEGIES[name]
    return STRATEGIES[name].rule if name in STRATEGIES else named_rows("2.8")[name].action


def changes(release: str, rows: Any = None, strategies: Any = None) -> Changes:
    """Return the learner's functions that replace actions of transitions (`rows`) and rules (`strategies`) in one run.

    Both map names, such as "offline", to functions. Raises UserError for an unknown name.
    """
    rows = arguments.mapping(rows, "Rows", '{"partition.(OfflinePartition, OnlinePartition)": mine}')
    strategies = arguments.mapping(strategies, "Strategies", '{"offline": mine}')
    # A key of `rows` is two states, or the name of a transition, such as "partition.(OfflinePartition, OnlinePartition)".
    by_name = named_rows(release) if rows else {}
    found: dict[Pair, Callable[..., Any]] = {}
    for key, function in rows.items():
        name = next((name for name, row in by_name.items() if key in (name, row[:2])), None)
        if name is None:
            raise UserError(f"Kafka {release} has no row {_key_text(key)}; its rows are {', '.join(by_name)}.")
        found[by_name[name][:2]] = _guarded(name, _function(name, function))
    legal = (*STRATEGIES, *GROUP_STRATEGIES, OWN_ASSIGNOR)
    own = {arguments.one_of(name, legal, "strategy"): _strategy(name, function) for name, function in strategies.items()}
    return Changes(found, own)


def _strategy(name: str, function: Any) -> Callable[..., Any]:
    """Return a learner's `function`, wrapped so that kcontrol can call it in place of the rule `name`, such as "offline".

    Raises UserError if `function` is not callable.
    """
    if name == OWN_ASSIGNOR:  # its errors are UserErrors, since no handler of a broker runs an assignor
        return own_assignor.leaders(_function("the assignor", function))
    # A function for a rule of the group coordinator gets the arguments of that rule, and a function for an election an
    # ElectionInput, or the assignment, the ISR and the live replicas.
    if name in GROUP_STRATEGIES:
        return _guarded(f"the rule {name}", _function(name, function))
    return _guarded(f"the election {name}", _as_rule(_function(name, function)))


def own_name(name: str) -> str:
    """Return the name of a replacement in words: "own assignor", "own election offline" or "own rule group.expired"."""
    return f"own {name}" if name == OWN_ASSIGNOR else f"own {'rule' if name in GROUP_STRATEGIES else 'election'} {name}"


def _key_text(key: Any) -> str:
    """Such as "(A, B)" for a pair of states, else the `repr`, cut after 80 characters."""
    return f"({', '.join(map(str, key))})" if isinstance(key, tuple) else f"{key!r:.80}"


def _function(name: str, function: Any) -> Callable[..., Any]:
    if not callable(function):
        raise UserError(f"The replacement of {name} must be a function, not {type(function).__name__}.")
    return function  # type: ignore[no-any-return]


# The rules that no code of 1.1 to 3.9 reads, since the event thread has other handlers.
OF_LISTENERS = frozenset((
    "follows_epoch", "reads_before_electing", "resigns_when_deleted", "failed_failover", "resigns_when_replaced",
    "resigns_unlocked", "skips_own_session", "checks_active_first", "send_after_resignation", "unstarted_scheduler",
    "generates_cluster_id", "znode_of_earlier_session", "replicas_of_brokers", "shutdown_moves_single_replicas",
    "last_isr_member", "deleting_topic_election", "rereads_assignment", "leaderless_replica_of_deleting_topic",
    "smaller_isr_recipients", "metadata_on_broker_startup", "metadata_on_any_failure", "deleting_topic_isr_is_sent",
    "forbidden_deletion", "deletion_waits_for_reassignment",
))  # fmt: skip


def rule_changes(given: Any, release: str) -> dict[str, Any]:
    """Return `given`, the argument `rules` of a lab, which maps rules (such as "fenced_writes") to values, after a check.

    Raises UserError, which lists the legal rules or values, for an unknown rule or value, and for a rule without effect in
    `release`.
    """
    every = declared(Rules) | declared(GroupRules)
    found = arguments.mapping(given, "Rules", '{"fenced_writes": False}')
    for name, value in found.items():
        legal = every[arguments.one_of(name, every, "rule")].values
        if not any(type(value) is type(other) and value == other for other in legal):
            raise UserError(f"The rule {name} cannot be {value!r:.80}; it can be {' or '.join(map(repr, legal))}.")
        if name in OF_LISTENERS and is_since("1.1", release):
            raise UserError(f"The rule {name} has no effect in Kafka {release}: name a release before 1.1, such as '1.0'.")
    return dict(found)


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with every error turned into RuleFailed: these are a learner's errors, and not kcontrol's."""

    @wraps(function)
    def guarded(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            reason = str(error) if isinstance(error, WrongAnswer) else learner_errors.with_line(error)
            raise RuleFailed(f"your function for {name} failed: {reason}") from error

    return guarded


def _as_rule(function: Callable[..., Any]) -> Callable[[ElectionInput], Elected | None]:
    """Return an election rule, a function of an ElectionInput, that calls the learner's `function(assignment, isr, live)`.

    If `function` has one parameter, it gets the ElectionInput. The rule raises WrongAnswer for an illegal result.
    """
    # A function with one parameter returns Elected or None. A function of three parameters, or of `*given`, returns a leader's
    # id, or None for no leader.
    takes_input = arity(function) == 1 and not inspect.getfullargspec(function).varargs

    @wraps(function)
    def rule(c: ElectionInput) -> Elected | None:
        return _assigned(c, function(c) if takes_input else elected(c, ask(function, c)))

    return rule


def _assigned(c: ElectionInput, answer: Any) -> Elected | None:
    """Return `answer`, the result of an election, if it is None or an Elected with a leader from the assignment in `c`.

    Raises WrongAnswer for any other value.
    """
    if answer is None:
        return None
    if not isinstance(answer, Elected):
        remedy = "a function of one parameter returns Elected(leader, isr), or None"
        raise WrongAnswer(f"it returned {answer!r:.60}, which is {_kind(answer)}; {remedy}")
    if answer.leader not in (*c.assignment, *c.target_replicas):
        where = f"which is not in the assignment {list(c.assignment)}"
        raise WrongAnswer(f"it returned {answer.leader!r:.60}, {where}; return the id of one of these brokers, or None")
    return answer


def arity(function: Callable[..., Any]) -> int:
    """Return the number of a function's parameters, those with defaults too; three for a function without a signature."""
    try:
        return len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return 3


def question(c: ElectionInput) -> tuple[list[int], list[int], list[int]]:
    """Return new lists of the ids in an ElectionInput, the arguments for a learner's function: assignment, ISR, live replicas."""
    return list(c.assignment), list(c.isr), sorted(c.live_replicas)


def ask(function: NextLeader, c: ElectionInput) -> int | None:
    """Call a learner's function with the assignment, the ISR and the live replicas of `c`; return the leader's id or None.

    Raises WrongAnswer if the function returns any other value.
    """
    answer: Any = function(*question(c))
    if answer is None:
        return None
    if hasattr(answer, "__index__") and not isinstance(answer, bool):
        return operator.index(answer)
    raise WrongAnswer(f"it returned {answer!r:.60}, which is {_kind(answer)}; return a broker's id, such as 2, or None")


def _kind(answer: Any) -> str:
    name = type(answer).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def elected(c: ElectionInput, leader: int | None) -> Elected | None:
    """Return the new leader and ISR of an election with the input `c` that `leader` wins; None if `leader` is None."""
    if leader is None:
        return None
    # The new ISR has the live replicas of the old ISR; if the leader is not among them, the ISR is the leader alone.
    isr: Sequence[int] = tuple(b for b in c.isr if b in c.live_replicas)
    return Elected(leader, tuple(isr)) if leader in isr else Elected(leader, (leader,), unclean=True)
