"""Calls an assignor that a learner has written, and checks the returned assignment."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kcontrol.core.errors import UserError, listed
from kcontrol.core.model import TopicPartition
from kcontrol.group.assignors import Members, Partitions, partitions_of
from kcontrol.lab.support import arguments, learner_errors

# An assignor is a function of the topics with their numbers of partitions, and of the members' subscriptions by member id. It
# returns a list of partitions for each member; a partition is a TopicPartition or its name, such as "t-0".
Assigned = dict[str, list[TopicPartition]]
Assignor = Callable[..., Mapping[str, Sequence[Any]]]
# The assignor that the client of a group's leader runs; the bool says whether the assignor may withhold partitions.
LeadersAssignor = Callable[[Partitions, Members, bool], Assigned]


def leaders(function: Any) -> LeadersAssignor:
    """Return a function that calls the learner's assignor `function(partitions, members)` and checks the returned assignment.

    The consumer that leads a group calls the function. Raises UserError if the assignor does not take two arguments.
    """
    try:
        inspect.signature(function).bind({}, {})
    except (TypeError, ValueError):
        raise UserError(
            f"The assignor of a cluster must be a function of (partitions, members), not {arguments.shown(function)}."
        ) from None
    name = getattr(function, "__name__", "assignor")

    def assigned(partitions: Partitions, members: Members, may_withhold: bool) -> Assigned:
        every = [tp for topic in partitions for tp in partitions_of(partitions, topic)]
        return checked(name, called(name, function, dict(partitions), dict(members)), members, every, may_withhold)

    return assigned


def called(name: str, assignor: Assignor, *given: Any) -> Any:
    """Return the result of a learner's assignor, called with the arguments `given`.

    Raises UserError, whose text has `name` and the original error, if the assignor raises an error.
    """
    try:
        return assignor(*given)
    except (Exception, SystemExit) as error:
        raise UserError(f"The assignor {name!r} raised {learner_errors.with_line(error)}.") from None


def checked(
    name: str, answer: Any, members: Collection[str], partitions: Sequence[TopicPartition], may_withhold: bool
) -> Assigned:
    """Return `answer`, the result of the assignor `name`, as a list of TopicPartitions for each of `members`.

    Raises UserError for an illegal assignment; a partition without a member is legal only if `may_withhold` is True.
    """
    if not isinstance(answer, Mapping) or not all(isinstance(tps, list | tuple) for tps in answer.values()):
        raise UserError(f"The assignor {name!r} returned {arguments.shown(answer)}: return a list of partitions for each member.")
    if others := [id for id in answer if id not in members]:
        raise UserError(f"The assignor {name!r} assigned to {arguments.shown(others[0])}; the members are {listed(members, 9)}.")
    forms = {form: tp for tp in partitions for form in (tp, str(tp))}
    assigned = {id: [_partition(name, tp, forms) for tp in tps] for id, tps in answer.items()}
    given = [tp for tps in assigned.values() for tp in tps]
    if len(set(given)) != len(given) or (len(given) != len(partitions) and not may_withhold):
        wrong = f"{len(given)} assignments of {len(set(given))} different partitions"
        raise UserError(f"The assignor {name!r} made {wrong}: assign each of the {len(partitions)} partitions to one member.")
    return {id: assigned.get(id, []) for id in members}


def _partition(name: str, value: Any, forms: Mapping[Any, TopicPartition]) -> TopicPartition:
    try:
        return forms[value]
    except (KeyError, TypeError):  # a list cannot be looked up
        known = listed(dict.fromkeys(forms.values()), 9)
        raise UserError(f"The assignor {name!r} assigned {arguments.shown(value)}; the partitions are {known}.") from None
