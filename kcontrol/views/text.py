"""Functions that return journal records as sentences, actions as labels, and states as lines; the viewer shows these texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kcontrol.core.errors import listed as listed
from kcontrol.journal.journal import Record, to_json
from kcontrol.views import folded_state, recorded_text
from kcontrol.views.explanations import MEANINGS

LONGEST, SHORTEST = 180, 60  # of a sentence with its mark, and of a sentence before a mark
Fields = dict[str, Any]

ACTS = frozenset(
    {"start", "stop", "freeze", "thaw", "act", "scenario", "session_lost", "drop_request", "duplicate_request", "fire_timer"}
)
FAILURES = frozenset({"fail_log_dir", "lose_tail", "clean_log"})  # actions that no client does
A_CLIENT = "A client"
"""The subject of sentences about records of an admin client, a producer, a consumer, or ZooKeeper's shell."""
OF_COMPACTION = {"segment.bytes": "segment_bytes", "delete.retention.ms": "delete_retention_ms"}
LOSSES = frozenset({"record_lost", "tail_lost"})
INSIDE = frozenset({"run", "open", "read", "update", "apply_request", "end", "respond", "response"})
UNSEEN = INSIDE | {"controller_response", "set_timer", "cancel_timer", "park", "yield_lock", "try_complete", "watch_operation",
                   "check_and_complete", "follower_end", "checkpoint", "log_role", "log_config"}  # fmt: skip


def clean(text: str, longest: int = LONGEST) -> str:
    """One printable line of at most `longest` characters: text from outside cannot control a terminal."""
    shown = text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as "1 run" or "3,000 runs"; `many` is the plural if it is not `one` with an -s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def short(state: Any) -> str:
    """Return the name of a state without "Partition" or "Replica": `Offline` for `OfflinePartition`."""
    return str(state).replace("Partition", "").replace("Replica", "")


def importance(record: Record) -> int:
    """Return the importance of a journal record: 2 for an action from outside, 1 for a changed state or a message, else 0."""
    kind, fields = record.kind, record.fields
    if kind in ACTS | LOSSES:
        return 2
    if kind in {"begin", "preempt"}:
        return int(fields["thread"] != "requests" and not _event(fields["event"]).endswith("ResponseReceived"))
    if kind == "enqueue":
        return int(fields["is_notification"])
    if kind == "write":  # every start of a broker tries to create znodes that exist already
        return int(len(fields["ops"]) > 1 or fields["error"] not in {"NodeExists", "NoNode"})
    return int(kind not in UNSEEN)


# ---------------------------------------------------------------- one sentence a record


def _consumer_act(f: Fields) -> str:
    """The action ["wait", 500] gives "500 ms pass."; "" for an action that is not about a consumer or the clock."""
    kind, *subject = f["action"]
    if kind not in MEANINGS["consumer_acts"]:
        return ""
    if "error" in f:
        return f"Consumer {subject[0]} cannot read the subscription of a member and sends no assignment."
    duration = f" for {subject[1]} ms" if len(subject) > 1 and kind == "freeze_consumer" else ""
    return f"{MEANINGS['consumer_acts'][kind].format(*subject)}{duration}."


def _consumer(f: Fields) -> str:
    """Return the state of a consumer as a sentence, such as "Consumer anna sends a request to broker 1."."""
    me = f["now"]._asdict() if hasattr(f["now"], "_asdict") else f["now"]
    if me["asked"]:
        return f"Consumer {f['name']} sends a request to broker {me['asked'][0]}."
    generation = f"generation {me['generation']}" if me["generation"] >= 0 else "no generation"
    said = f"Consumer {f['name']} is in {generation} of group {me['group']}"
    if me["error"].endswith("Exception"):
        return f"{said}; its poll has thrown {me['error']}."
    if me.get("condition", "polling") != "polling":
        return f"{said}; its process is {me['condition']}."
    return f"{said}; its last response is {me['error'] or 'still to come'}."


def _appended(f: Fields) -> str:
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


def sentence(record: Record) -> str:
    """Return a journal record as one sentence; for an unknown kind the sentence has the kind."""
    r = record.to_json()
    sentence = SENTENCES.get(r.kind)
    who = A_CLIENT if r.id.broker is None else f"Broker {r.id.broker}"
    said, mark = sentence(who, r.fields) if sentence else f"{who}: {r.kind}.", recorded_text.mark(r.fields)
    mark = clean(mark, LONGEST - SHORTEST)
    return clean(said.removesuffix(mark and "."), LONGEST - len(mark)) + mark


def lines(records: Iterable[Record]) -> list[str]:
    """Return each journal record as one line: id, kind and sentence, in columns."""
    return [f"{record.id!s:<9} {record.kind:<19} {sentence(record)}" for record in records]


def _run(who: str, f: Fields) -> str:
    if recorded := recorded_text.begins(f):
        return recorded
    return f"A run begins: Kafka {f['release']}, brokers {listed(f['brokers'], 9)}, {f['world']} world, seed {f.get('seed')}."


def _stop(who: str, f: Fields) -> str:
    ends = "is killed; ZooKeeper does not know yet" if f["exit_code"] is None else f"exits with code {f['exit_code']}"
    return f"Broker {f['broker']} {ends}."


def _close(who: str, f: Fields) -> str:
    gone = f["deleted"]
    left = f"{listed(gone)} {'is' if len(gone) == 1 else 'are'} deleted" if gone else "it owned no znode"
    return f"ZooKeeper ends the session of broker {f['broker']}: {left}."


WATCHED = {"NodeCreated": "has been created", "NodeDeleted": "has been deleted", "NodeDataChanged": "has other data",
           "NodeChildrenChanged": "has other children"}  # fmt: skip


def _event(event: Any) -> str:
    """Return the name of the class of an event; a journal record has the event as an object, as this name, or as a dict."""
    return event if isinstance(event, str) else str(event["event"]) if isinstance(event, dict) else type(event).__name__


def _enqueue(who: str, f: Fields) -> str:
    if f["is_notification"]:
        return f"{who} receives the notification: {_event(f['event'])} waits for its {f['thread']} thread."
    return f"{_event(f['event'])} waits for the {f['thread']} thread of {who.lower()}."


OPS = {"create": "creates", "set": "rewrites", "delete": "deletes", "check": "checks"}


def _write(who: str, f: Fields) -> str:
    if not f["ops"]:
        return f"ZooKeeper refuses a transaction of {who.lower()}: {f['error']}."
    if f["error"] is not None:
        return f"{who} tries to {listed(f'{OPS[op[0]][:-1]} {op[1]}' for op in f['ops'])}; ZooKeeper responds {f['error']}."
    return f"{who} {listed(f'{OPS[op[0]]} {op[1]}' for op in f['ops'])}."


def _read(who: str, f: Fields) -> str:
    what = {"exists": "checks whether {} exists", "read": "reads {}", "children": "reads the children of {}"}[f["how"]]
    none = ", which is missing" if f["seen"] == [None] else ""
    return f"{who} {what.format(listed(f['paths'], 3))}{none}{', and sets a watch' if f['watch'] else ''}."


def _update(who: str, f: Fields) -> str:
    owner, name = f"{who}'s {f['context']} context", str(f["field"]).replace("_", " ")
    if f["container"] == "value":
        return f"{owner} now has {name} {f['put']}."
    done = [f"puts {listed(f['put'])} into"] if f["put"] else []
    done += [f"takes {listed(f['remove'])} out of"] if f["remove"] else []
    done += ["clears"] if f["clear"] and not done else []
    return f"{owner} {' and '.join(done) or 'leaves'} {name}{' after clearing it' if f['clear'] and f['put'] else ''}."


def _apply_request(who: str, f: Fields) -> str:
    what = "all partitions" if f["partitions"] is None else listed(f["partitions"])
    as_what = {"hosted": "leadership", "metadata": "metadata"}[f["field"]]
    return f"{who} stores the {as_what} of {what} from the request."


def _move(f: Fields) -> str:
    tp, _, broker = f["subject"].rpartition("@") if f["machine"] == "replica" else (f["subject"], "", "")
    subject = f"the replica of {tp} on broker {broker}" if broker else tp
    come_from = "again " if f["source"] == f["target"] else f"from {short(f['source'])} " if f["source"] else ""
    return f"{subject} {come_from}to {short(f['target'])}"


def leadership(value: Fields) -> str:
    """Such as `leader 3, ISR [3, 1], leader epoch 1`."""
    leader = "no leader" if value["leader"] == -1 else f"leader {value['leader']}"
    return f"{leader}, ISR {value['isr']}, leader epoch {value['leader_epoch']}"


def _change(who: str, f: Fields) -> str:
    decided = f": {leadership(f['leadership'])}" if f["leadership"] else ""
    return f"{who} moves {_move(f)}{decided}."


def _conflict(who: str, f: Fields) -> str:
    return f"{who} cannot move {_move(f)}: the znode has changed ({f['reason']}); {who.lower()} reads it and decides again."


def _requests_by_broker(requests: Fields) -> str:
    named = [("LeaderAndIsr", "leader_and_isr"), ("UpdateMetadata", "update_metadata"), ("StopReplica", "stop_replica")]
    return listed(f"{api} to {listed(requests[key]['to'], 6)}" for api, key in named if key in requests)


def partitions_of(requests: Fields) -> list[str]:
    """Each once; `requests` is the field of a `send` record."""
    names = [v["partition"] for v in requests.get("leader_and_isr", {}).get("values", ())]
    names += requests.get("update_metadata", {}).get("partitions", ())
    names += [tp for stopped in requests.get("stop_replica", {}).get("to", {}).values() for tp in stopped]
    return list(dict.fromkeys(names))


def _send(who: str, f: Fields) -> str:
    names = partitions_of(f["requests"])
    return f"{who} sends {_requests_by_broker(f['requests'])}{f' about {listed(names)}' if names else ''}."


def _response(who: str, f: Fields) -> str:
    sender, _, receiver = f["channel"].partition(">")
    return f"The response of broker {receiver} to {f['api']} has reached broker {sender}."


def _respond(who: str, f: Fields) -> str:
    """Return the sentence about a response of `who`, such as "Broker 1", from the fields `f` of its `respond` record."""
    if f["body"] is None:  # before 2.2 a controller whose session has expired drops the requests in its queue
        return f"{who} sends no response to the request {f['correlation_id']}."
    body = f["body"]._asdict() if hasattr(f["body"], "_asdict") else f["body"]
    results = body.get("partitions", {}).items()
    said = [f"{tp} {result}" for tp, result in results if isinstance(result, str) and result != "NONE"]
    if str(f["correlation_id"]).startswith(("consumer ", "group-admin ")):
        said += [f"{about} {error}" for about, error in body.get("errors", {}).items() if error != "NONE"]
    said += [f"{tp} {result['replicas']}" for tp, result in results if isinstance(result, dict) and "adding" in result]
    return f"{who} responds: {body.get('error', 'NONE')}{f' ({listed(said)})' if said else ''}."


def _to_controller(who: str, f: Fields) -> str:
    wanted = listed(f"{tp} {v['isr']}" for tp, v in f["body"].items()) if f["api"] == "AlterIsr" else listed(f["body"] or ())
    return f"{who} queues a request to the controller ({f['api']}): {wanted}."


def _records(records: Iterable[Fields]) -> str:
    return listed(f"{record['value']!r} at offset {record['offset']}" for record in records)


def _log_role(who: str, f: Fields) -> str:
    if f["leads"]:
        return f"{who} leads {f['partition']}."
    leader = f["now"].get("leader")
    if leader == -1:
        return f"{who} no longer serves {f['partition']}."
    return f"{who} follows {'the same leader' if leader is None else f'broker {leader}'} in {f['partition']}."


def _log_config(who: str, f: Fields) -> str:
    now, compaction = f["now"], f["now"].get("compaction") or {}
    least = {"min.insync.replicas": now["min_insync_replicas"]} if "min_insync_replicas" in now else {}
    named = least | {name: compaction[field] for name, field in OF_COMPACTION.items() if compaction}
    said = listed(f"{name} of {f['partition']} to be {value}" for name, value in named.items())
    return f"{who} takes {said or 'the default settings of ' + f['partition']}."


def _cut(who: str, f: Fields) -> str:
    cut = f"takes {_records(f['removed'])} out of its log" if f["removed"] else "removes a leader epoch without records"
    return f"{who} {cut} of {f['partition']}."


def _record_lost(who: str, f: Fields) -> str:
    said = f"broker {f['leader']} had acknowledged it with acks={f['acks']}"
    return f"Record {f['offset']} of {f['partition']}, {f['value']!r}, is on no replica any more: {said}."


def _act(who: str, f: Fields) -> str:
    kind, *subject = f["action"]
    if said := _consumer_act(f):
        return said
    if kind == "terminate":
        return f"Broker {subject[0]} receives SIGTERM."
    said = action_label(f["action"])
    return f"{said[:1].upper()}{said[1:]}." if kind in FAILURES else f"{A_CLIENT} acts: {said}."


def scenario_step(do: Mapping[str, Any]) -> str:
    """Return a step of a scenario, such as {"kill": 1}, in a few words: `kill 1`, `A sends JoinGroup`, `broker stopped`."""
    return recorded_text.entry(do) or "; ".join(f"{word} {_argument(argument)}".rstrip() for word, argument in do.items())


def _argument(argument: Any) -> str:
    match argument:
        case dict():
            return listed(argument)
        case list() if any(isinstance(item, dict) for item in argument):
            return ", then ".join(scenario_step(item) if isinstance(item, dict) else str(item) for item in argument)
        case list():
            return listed(argument)
    return str(argument)


def _controller_response(who: str, f: Fields) -> str:
    got = f"gets no response from the controller: {f['error']}" if "error" in f else "receives the controller's response"
    return f"Broker {f['broker']} {got}."


def _completes(f: Fields) -> str:
    return "completes" if f["is_complete"] else "cannot yet complete"


def _filled(words: str, who: str, f: Fields) -> str:
    return words.format_map({**f, "who": who, "it": who.lower()})


SENTENCES: dict[str, Callable[[str, Fields], str]] = {
    **{kind: partial(_filled, words) for kind, words in MEANINGS["sentences"].items()},
    "run": _run,
    "start": lambda who, f: f"Broker {f['broker']} starts{' again' if f['incarnation'] > 1 else ''}.",
    "stop": _stop,
    "close": _close,
    "notify": lambda who, f: f"ZooKeeper notifies broker {f['to']}: {f['path']} {WATCHED.get(f['type'], f['type'])}.",
    "enqueue": _enqueue,
    "write": _write,
    "read": _read,
    "update": _update,
    "apply_request": _apply_request,
    "change": _change,
    "failed_change": lambda who, f: f"{who} does not move {_move(f)}: {f['reason']}.",
    "conflict": _conflict,
    "send": _send,
    "response": _response,
    "submit": _to_controller,
    "act": _act,
    "scenario": lambda who, f: f"Step {f['step']} of the scenario: {scenario_step(f['do'])}.",
    "preempt": lambda who, f: f"{who} preempts {_event(f['event'])} in its {f['thread']} queue.",
    "respond": _respond,
    "delay_response": lambda _, f: f"Broker {f['broker']} cannot respond yet: its fetch from {listed(f['leaders'])} goes on.",
    "send_delayed_response": lambda who, f: (
        f"The fetch of broker {f['broker']} has {'timed out' if f.get('timed_out') else 'ended'}; the broker sends its response."
    ),
    "close_channels": lambda who, f: f"{who} closes its channels to {listed(f['to'])} and drops the requests in them.",
    "controller_response": _controller_response,
    "try_complete": lambda who, f: f"{who} {_completes(f)} {f['operation']} of {f['key']}.",
    "check_and_complete": lambda who, f: f"{who} checks the watch list of {f['key']} and {_completes(f)} {f['operation']}.",
    "consumer": lambda who, f: _consumer(f),
    "append": lambda who, f: f"{who} appends {_appended(f)} to {f['partition']}.",
    "log_append": lambda who, f: f"{who} appends {_records(f['records'])} to {f['partition']}.",
    "log_truncate": _cut,
    "log_delete": lambda who, f: f"{who} deletes its log of {f['partition']}, with {_records(f['removed']) or 'nothing'} in it.",
    "log_clean": lambda who, f: (
        f"The log cleaner of {who.lower()} removes {_records(f['removed']) or 'no record'} of {f['partition']}."
    ),
    "log_role": _log_role,
    "log_config": _log_config,
    "record_lost": _record_lost,
    "tail_lost": lambda who, f: f"The disk of broker {f['broker']} has lost {_records(f['removed'])} of {f['partition']}.",
}


# ---------------------------------------------------------------- actions


def action_label(action: Sequence[Any], state: dict[str, Any] | None = None) -> str:
    """At most 80 characters; `state`, the one before the action, adds its event, path or API."""
    words = [to_json(word) for word in action]
    try:
        text = MEANINGS["actions"][words[0]].format(*words[1:])
    except (IndexError, KeyError):  # an unknown action, or one with too few arguments
        text = " ".join(map(str, words))
    subject = folded_state.subject(words, state) if state else ""
    return clean(f"{text}: {subject}" if subject else text, 80)


# ---------------------------------------------------------------- a state


def summary(state: dict[str, Any], brokers: Iterable[int] = ()) -> str:
    """Return a state in one line: `2 of 3 brokers, broker 1 is controller (epoch 1), 2 partitions online`."""
    living = len(state["nodes"])
    all_of = len({*map(str, brokers), *state["nodes"]})
    count = f"{living} of {all_of} brokers" if living < all_of else f"{living} broker{'s' * (living != 1)}"
    if lasting := folded_state.without_session(state):
        count += f", {listed(f'broker {n}' for n in lasting)} registered without a session"
    controller = folded_state.controller(state)
    rules = f"broker {controller[0]} is controller (epoch {controller[1]})" if controller else "no controller"
    states = [folded_state.condition(p, state) for p in folded_state.partitions(state)]
    numbers = [(states.count(name), name) for name in ("online", "offline", "new", "being deleted") if name in states]
    if not numbers:
        return f"{count}, {rules}, no partitions"
    (first, name), *others = numbers
    partitions = ", ".join([f"{first} partition{'s' * (first != 1)} {name}", *(f"{number} {other}" for number, other in others)])
    return f"{count}, {rules}, {partitions}"
