"""Functions that return journal records of consumers and of their coordinators as sentences, for `text.py`."""

from typing import Any

from kcontrol.core.errors import listed
from kcontrol.views.explanations import MEANINGS

Fields = dict[str, Any]
POLLING = "polling"


def consumer_act(f: Fields) -> str:
    """The action ["wait", 500] gives "500 ms pass."; "" for an action that is not about a consumer or the clock."""
    kind, *subject = f["action"]
    if kind not in MEANINGS["consumer_acts"]:
        return ""
    if "error" in f:
        return f"Consumer {subject[0]} cannot read the subscription of a member and sends no assignment."
    duration = f" for {subject[1]} ms" if len(subject) > 1 and kind == "freeze_consumer" else ""
    return f"{MEANINGS['consumer_acts'][kind].format(*subject)}{duration}."


def consumer(f: Fields) -> str:
    """Return the state of a consumer as a sentence, such as "Consumer anna sends a request to broker 1."."""
    me = f["now"]._asdict() if hasattr(f["now"], "_asdict") else f["now"]
    if me["asked"]:
        return f"Consumer {f['name']} sends a request to broker {me['asked'][0]}."
    generation = f"generation {me['generation']}" if me["generation"] >= 0 else "no generation"
    said = f"Consumer {f['name']} is in {generation} of group {me['group']}"
    if me["error"].endswith("Exception"):
        return f"{said}; its poll has thrown {me['error']}."
    if me.get("condition", POLLING) != POLLING:
        return f"{said}; its process is {me['condition']}."
    return f"{said}; its last response is {me['error'] or 'still to come'}."


def appended(f: Fields) -> str:
    """Return in words what a coordinator appends to the offsets topic, such as "the offsets t-0 5 of group g"."""
    completion, values = f["completion_event"], [value for _, value in f["records"]]
    if completion is None:
        removed = all(value is None for value in values)
        return _counted(len(values), "tombstone") if removed else _counted(len(values), "record") + " of a group without members"
    if completion["event"] == "OffsetsStored":
        offsets = listed(f"{tp} {value['offset']}" for tp, value in completion["offsets"].items())
        return f"{f'the offsets {offsets}' if offsets else 'no offset'} of group {completion['group_id']}"
    if completion["event"] == "StaticMemberStored":
        return f"the new id of a static member of group {completion['group_id']}"
    return f"the assignment of group {completion['group_id']} in generation {completion['generation']}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
