"""Where a sequence's two runs differ first, and in what.

Not compared, because nothing follows from it: `newMemberAdded` itself (what it does is the time of an answer), the time of the
state of a group without type, the timers of members that wait for an answer, and the order of records within one step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]
NOT_COMPARED = "newcomer"
# Fields that cases kept before answers had them lack.
LATER_FIELDS = ("type", "named")


class Difference(NamedTuple):
    """One thing that is seen differently: what it is, what we have, what Kafka has."""

    what: str
    ours: Any
    kafka: Any


class Found(NamedTuple):
    step: int
    differences: list[Difference]


def first_difference(ours: list[Json], kafka: list[Json]) -> Found | None:
    """Return the first step after which the runs differ, None if there is none.

    Kafka answers some JoinGroups of static members twice; docs/omissions.md names that we answer once. It also names an
    exception of 0.9 that ends a request, a timer's operation or a resignation halfway: no step after it is compared, and a step
    in which a timer throws it ends the comparison only if it differs.
    """
    answered: set[str] = set()
    for index, (one, other) in enumerate(zip(ours, kafka, strict=True)):
        if any(_is_dead_twice(text, "step") for text in other.get("exc", ())):
            return None
        again = {label for label in other["ans"] if label in answered and label not in one["ans"]}
        answered |= other["ans"].keys()
        found = [*_answers(one, other, again), *_records(one, other), *_states(one, other), *_rest(one, other)]
        if found:
            return None if _is_ended_halfway(one, other) else Found(index, found)
    return None


def _answers(ours: Json, kafka: Json, again: set[str]) -> list[Difference]:
    found = []
    for label in sorted({*ours["ans"], *kafka["ans"]} - again):
        one, other = ours["ans"].get(label), kafka["ans"].get(label)
        if one is None or other is None:
            found.append(Difference(f"answer {label}", one, other))
            continue
        one = {field: value for field, value in one.items() if field in other or field not in LATER_FIELDS}
        fields = [field for field in sorted({*one, *other}) if one.get(field) != other.get(field)]
        if fields:
            found.append(Difference(f"answer {label}", {f: one.get(f) for f in fields}, {f: other.get(f) for f in fields}))
    return found


def _records(ours: Json, kafka: Json) -> list[Difference]:
    is_equal = sorted(map(str, ours["app"])) == sorted(map(str, kafka["app"]))
    found = [] if is_equal else [Difference("records", ours["app"], kafka["app"])]
    raised = [[text for text in side.get("exc", ()) if not is_declared(text)] for side in (ours, kafka)]
    return found if bool(raised[0]) == bool(raised[1]) else [*found, Difference("exception", *raised)]


def is_declared(exception: str) -> bool:
    """Return whether docs/omissions.md names an exception of Kafka's: 0.9's timer takes an unloaded group from Dead to Dead."""
    return _is_dead_twice(exception, "timer")


def _is_ended_halfway(ours: Json, kafka: Json) -> bool:
    """Whether 0.9 took a group from Dead to Dead in this step: its unseen exception leaves the group in Kafka's cache."""
    stays = any(group.get("state") == "Dead" and name not in ours["st"] for name, group in kafka["st"].items())
    return stays or any(is_declared(text) for text in kafka.get("exc", ()))


def _is_dead_twice(exception: str, place: str) -> bool:
    """Return whether 0.9 has taken a group from Dead to Dead there: in a timer, or in the request of a step."""
    return exception.startswith(f"{place}: IllegalStateException") and "Dead state. Instead it is in Dead state" in exception


def _states(ours: Json, kafka: Json) -> list[Difference]:
    found = []
    for name in sorted({*ours["st"], *kafka["st"]}):
        one, other = ours["st"].get(name), kafka["st"].get(name)
        if one is None or other is None:
            sides = [side and side.get("state", "offsets") for side in (one, other)]
            found.append(Difference(f"group {name}", *sides))
            continue
        for field in _compared(one, other):
            is_empty = field == "offsets" and not one.get(field) and not other.get(field)
            if one.get(field) != other.get(field) and not is_empty:
                found.append(Difference(f"{name}.{field}", one.get(field), other.get(field)))
    return found


def _compared(ours: Json, kafka: Json) -> list[str]:
    """Return the fields of a group that are compared; 0.9 has fewer of them, and `since` means nothing without a type."""
    is_whole = "since" in kafka or "offsets_only" in ours or "offsets_only" in kafka
    fields = {*ours, *kafka} if is_whole else {*kafka, *({*ours} & {"offsets"})}
    left_out = {NOT_COMPARED} | ({"since"} if kafka.get("type") is None else set())
    return sorted(fields - left_out)


def _rest(ours: Json, kafka: Json) -> list[Difference]:
    found = [Difference(field, ours[field], kafka[field]) for field in ("own", "load") if ours[field] != kafka[field]]
    one, other = live_timers(ours), live_timers(kafka)
    if one != other:
        sides = [timer for timer in one if timer not in other], [timer for timer in other if timer not in one]
        found.append(Difference("timers", *sides))
    return found


def live_timers(seen: Json) -> list[str]:
    """Return the timers that can have an effect: a session counts for no member that waits for an answer, unless it is new."""
    parked = {
        f"session {name} {member[0]}"
        for name, group in seen["st"].items()
        for member in group.get("members", ())
        if member[6] and "N" not in member[6]
    }
    return [timer for timer in seen["tm"] if timer.rsplit(" @", 1)[0] not in parked]


# ---------------------------------------------------------------- in words


def kind_of(steps: list[Json], found: Found) -> str:
    """Return what sort of difference it is; two sequences with one cause mostly have one sort."""
    what, ours, kafka = found.differences[0]
    place, _, label = what.partition(" ")
    if place == "answer":
        verb = next(step["do"] for step in steps if step.get("as") == label)
        if ours is None or kafka is None:
            return f"answer to {verb} missing in {'ours' if ours is None else 'Kafka'}"
        fields = sorted(field for field in {*ours, *kafka} if field != "at")
        return f"answer to {verb}: {','.join(fields)} {ours.get('error', '')}>{kafka.get('error', '')}"
    if what == "records":
        return f"records {len(ours)}:{len(kafka)}"
    if what == "exception":
        return f"exception {str((ours or kafka)[0])[:70]}"
    if place == "group":
        return f"group missing in {'ours' if ours is None else 'Kafka'}"
    return what.rpartition(".")[2]
