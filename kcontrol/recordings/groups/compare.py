"""Compares a run with the recording of a real group coordinator, by the rule in notebooks/recordings/groups.md.

Each field of a recorded response must be equal in the run. Members count as sets, and member ids are compared by the
JoinGroup that got them. The records of the log must be equal, without their times.

The legal time of a recorded response depends on the cause of the run's response:

* a request, such as the last member's JoinGroup: the recorded response comes after this request in the recording, and at
  most 30 ms (SLACK_MS) after the recorded response to this request.
* timers: the times of the two responses differ by at most 30 ms per timer.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kcontrol.recordings.compare import Difference
from kcontrol.recordings.groups.recording import Step

SLACK_MS = 30
TIMES = ("commit_timestamp", "expire_timestamp", "current_state_timestamp")
FREE_ORDER = "the order of members differs, which Kafka leaves open (docs/omissions.md, the order of members, ties)"


def differences(theirs: Step, ours: Step) -> Iterator[Difference]:
    """Yield how a run in a recording's format (`ours`) differs from a recording (`theirs`): responses, then the offsets topic.

    The comparison ends at the first entry of the run that is another request, stop or start than in the recording.
    """
    names = member_names(theirs, ours)
    for one, other in zip(theirs["exchange"], ours["exchange"], strict=False):
        if _asked(one) != _asked(other):
            yield Difference(one["n"], _asked(one), "exchange", "the entry; the comparison ends here", _asked(one), _asked(other))
            return
        yield from _answers(one, renamed(other, names), theirs["exchange"])
    lengths = len(theirs["exchange"]), len(ours["exchange"])
    if lengths[0] != lengths[1]:
        yield Difference(min(lengths), {}, "exchange", "number of entries", *lengths)
        return
    yield from _logs(theirs["log"], [renamed(entry, names) for entry in ours["log"]])


def member_names(theirs: Step, ours: Step) -> dict[str, str]:
    """From the run's member ids to the recording's, by the responses to one JoinGroup without an id."""
    pairs = zip(theirs["exchange"], ours["exchange"], strict=False)
    joined = ((one, other) for one, other in pairs if one.get("api") == other.get("api") == "JoinGroup")
    return {
        other["answer"]["member"]: one["answer"]["member"]
        for one, other in joined
        if not one["request"]["member"] and "answer" in one and "answer" in other
    }


def _asked(step: Step) -> Step:
    return {name: step[name] for name in ("client", "api", "version", "request", "event") if name in step}


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value of JSON's types with each text that is a member id in `names` replaced by the id's new name."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {renamed(key, names): renamed(item, names) for key, item in value.items()}
    return [renamed(item, names) for item in value] if isinstance(value, list) else value


def _answers(one: Step, other: Step, exchange: list[Step]) -> Iterator[Difference]:
    """Yield the differences in content and time between the responses to one request: `one` recorded, `other` of a run.

    The recorded response must come between the recorded request that caused the run's response and that request's own response;
    `exchange` has all recorded requests.
    """
    answer, found = one.get("answer"), other.get("answer")
    if answer is None or found is None:
        if answer != found:
            yield _differ(one, "the answer", answer, found)
        return
    for field, value in answer.items():
        if found.get(field) != value:
            yield _differ(one, field, value, found.get(field))
    at, found_at = one["answered_at"], other["answered_at"]
    # The times of a response that timers caused may differ by SLACK_MS per timer.
    if other["timers"]:
        if abs(at - found_at) > SLACK_MS * other["timers"]:
            yield _differ(one, "the time of the answer, which a timer released", f"{at} ms", f"{found_at} ms")
    else:
        cause = next(step for step in exchange if step["n"] == other["released_by"])
        if not cause["at"] <= at <= (cause.get("answered_at") or at) + SLACK_MS:
            yield _differ(one, "the time of the answer", f"{at} ms", f"released by entry {cause['n']}, sent at {cause['at']} ms")


def _differ(step: Step, about: str, theirs: Any, ours: Any) -> Difference:
    return Difference(step["n"], _asked(step), "answers", f"{step['api']}: {about}", theirs, ours)


def _logs(theirs: list[Step], ours: list[Step]) -> Iterator[Difference]:
    for n in range(max(len(theirs), len(ours))):
        one, other = (_record(side[n]) if n < len(side) else None for side in (theirs, ours))
        if one != other:
            yield Difference(n + 1, {}, "log", f"record {n + 1} of __consumer_offsets", one, other)


def _record(entry: Step) -> Step:
    """Return a record of the offsets topic without its times, and with the members of a group as a dict by member id."""
    value = entry["value"]
    if value is None:
        return {"key": entry["key"], "value": None}
    kept = {name: item for name, item in value.items() if name not in TIMES}
    if "members" in kept:
        kept["members"] = {member["member_id"]: member for member in kept["members"]}
    return {"key": entry["key"], "value": kept}


def free_orders(theirs: Step, ours: Step) -> list[int]:
    """The requests whose two responses list equal members in different orders."""
    pairs = zip(theirs["exchange"], renamed(ours["exchange"], member_names(theirs, ours)), strict=False)
    orders = ((one["n"], *(list((side.get("answer") or {}).get("members", ())) for side in (one, other))) for one, other in pairs)
    return [n for n, mine, other in orders if mine != other and sorted(mine) == sorted(other)]
