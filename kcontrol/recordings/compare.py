"""The comparison of two recordings of one scenario by the rule in `notebooks/recordings/README.md`.

In each step writes, ISR changes, znodes, transitions, requests and responses are compared; what depends on timing alone is left
out. The comparison ends after a step with different controllers, since all later steps depend on the controller. How many of its
last requests a controller sends before it resigns or stops depends on timing too: such requests are called unsent.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kcontrol.core.znodes import CONTROLLER, REASSIGN_PARTITIONS
from kcontrol.recordings.interleave import as_list, is_isr_change
from kcontrol.recordings.recorded_step import UNTIMED
from kcontrol.recordings.recorded_words import translated
from kcontrol.recordings.recording import Recording, Step, since, state_key

SEQUENTIAL = re.compile(
    r"/(isr_change_notification/isr_change_|log_dir_event_notification/log_dir_event_|config/changes/config_change_)\d+"
)
TOPIC_PATHS = (
    re.compile(r"/brokers/topics/(?P<topic>[^/]+)/partitions/(?P<partition>\d+)(?:/state)?"),
    re.compile(r"/brokers/topics/(?P<topic>[^/]+)(?:/partitions)?"),
    re.compile(r"/(?:config/topics|admin/delete_topics)/(?P<topic>[^/]+)"),
)
HASHED_FROM = 5  # the size from which Scala's immutable sets are hash sets; smaller sets keep their order
REPLICA_LISTS_ARE_LISTS_SINCE = "2.4"
HEAD = ("api", "controller_epoch", "delete", "live_brokers", "type")
# The fields that the controller may read before or after the leader has written.
RACED_FIELDS = ("isr", "zk_version", "offline_replicas")


class Difference(NamedTuple):
    """One difference between two recordings of a scenario: the step, the differing value, and the value in each recording."""

    # The number of the step from 0; for recordings of groups the number of the entry or log record from 1.
    step: int
    # The actions of the step, such as {"kill": [1]}; {} for a difference outside the steps.
    do: Mapping[str, Any]
    # The kind of the differing values, such as "writes" or "znodes".
    kind: str
    # Which value differs, in words, such as the path of a znode.
    about: str
    # The value of the first recording, None if it has no such value.
    theirs: Any
    # The value of the second recording, or None.
    ours: Any

    def __str__(self) -> str:
        return f"Step {self.step}, {self.kind}, {self.about}: theirs {_shown(self.theirs)}, ours {_shown(self.ours)}."


def _shown(value: Any) -> str:
    return "has no value" if value is None else f"has {value}"


def first_difference(theirs: Recording, ours: Recording, unsent: list[str] | None = None) -> Difference | None:
    """In the order of steps. Last requests of a former controller that one side lacks go to `unsent` alone."""
    return next(differences(theirs, ours, unsent), None)


def differences(theirs: Recording, ours: Recording, unsent: list[str] | None = None) -> Iterator[Difference]:
    """Yield the differences between two recordings, and stop after the first step with different actions or controllers.

    It is no difference if a controller's last requests before it resigned or stopped arrived in one recording only: append a
    sentence about it to `unsent`.
    """
    left, right = RecordingSide(theirs), RecordingSide(ours)
    before: Any = None
    for number, (a, b) in enumerate(zip(left.steps, right.steps, strict=False)):
        here = StepComparison(number, a, b, old_lists=left.old_lists, resigned=resigned(a.step, before))
        before = a.owner
        if a.step["do"] != b.step["do"]:
            yield here.differ("steps", "the actions of the step", a.step["do"], b.step["do"])
            return
        if a.owner != b.owner:
            yield here.differ("winner", "the controller after the step; the comparison ends here", a.owner, b.owner)
            return
        for part in (here.writes, here.isr_changes, here.znodes, here.transitions, here.requests, here.answers):
            yield from part()
        if unsent is not None:
            unsent += here.unsent
    if len(left.steps) != len(right.steps):
        number = min(len(left.steps), len(right.steps))
        yield Difference(number, {}, "steps", "number of steps", len(left.steps), len(right.steps))


# ---------------------------------------------------------------- one side


class SplitStep(NamedTuple):
    """One step of a recording (an action and what follows it); its ISR changes and its other writes are in two fields."""

    # The whole recorded step.
    step: Step
    # All writes that are no ISR changes by leaders, in order.
    own: list[dict[str, Any]]
    # The ISR changes by each partition's leader, in order, by the partition's name, such as "t-0".
    isr: dict[str, list[dict[str, Any]]]
    # Partitions whose ISR is compared without its order, because several followers have joined it in one step.
    unordered: frozenset[str]

    @property
    def owner(self) -> Any:
        return self.step["znodes"].get("/controller", {}).get("ephemeral_owner")


class RecordingSide:
    """One recording of a comparison; its `steps` keep the ISR changes by leaders separate from the other writes."""

    def __init__(self, recording: Recording) -> None:
        # Before 2.4 the order of a list of five or more replicas has no meaning.
        self.old_lists = since(recording["release"]) < since(REPLICA_LISTS_ARE_LISTS_SINCE)
        self._states: dict[str, dict[str, Any]] = {}
        self._unordered: set[str] = set()
        self.steps = [self._split(step) for step in translated(recording)["steps"]]

    def _split(self, step: Step) -> SplitStep:
        own: list[dict[str, Any]] = []
        isr: dict[str, list[dict[str, Any]]] = defaultdict(list)
        joined: dict[str, set[int]] = defaultdict(set)
        for write in step["writes"]:
            key = state_key(write.get("path", ""))
            before = self._states.get(key or "")
            if key is not None and self._is_isr_change(key, write):
                isr[key].append(write)
                joined[key] |= set(write["data"]["isr"]) - set(before["isr"] if before else ())
            else:
                own.append(write)
        self._unordered |= {key for key, brokers in joined.items() if len(brokers) > 1}
        unordered = frozenset(self._unordered)  # requests before the ISR shrank to one member show the old order
        self._unordered -= {key for key, value in self._states.items() if len(value["isr"]) < 2}
        return SplitStep(step, own, dict(isr), unordered)

    def _is_isr_change(self, key: str, write: dict[str, Any]) -> bool:
        before, value = self._states.pop(key, None), write.get("data")
        if write["op"] == "delete" or not isinstance(value, dict) or "isr" not in value:
            return False
        self._states[key] = value
        return before is not None and is_isr_change(before, value)


# ---------------------------------------------------------------- one step


class StepComparison:
    """The comparison of one step (an action and what follows it) of two recordings.

    Each method without arguments yields differences of one kind, such as `writes`. `a` is the step of the first recording
    ("theirs"), `b` that of the second ("ours").
    """

    def __init__(self, number: int, theirs: SplitStep, ours: SplitStep, *, old_lists: bool, resigned: frozenset[Any]) -> None:
        # `resigned`: the brokers whose last requests as controller depend on timing, as the function `resigned` returns them.
        self.number, self.a, self.b, self.resigned = number, theirs, ours, resigned
        self.unsent: list[str] = []
        self.rule = Normalizer(theirs.unordered | ours.unordered, old_lists=old_lists)

    def differ(self, kind: str, about: str, theirs: Any, ours: Any) -> Difference:
        return Difference(self.number, self.a.step["do"], kind, about, theirs, ours)

    def lists(self, kind: str, named: Mapping[Any, str], left: Mapping[Any, list[Any]], right: Mapping[Any, list[Any]]) -> Any:
        """For each key of `named`, the text for `Difference.about`, the first difference."""
        for key, name in named.items():
            theirs, ours = left.get(key, []), right.get(key, [])
            at = next((i for i, (x, y) in enumerate(zip(theirs, ours, strict=False)) if x != y), min(len(theirs), len(ours)))
            if at < max(len(theirs), len(ours)):
                pair = (side[at] if at < len(side) else None for side in (theirs, ours))
                yield self.differ(kind, f"{name}, number {at + 1}", *pair)

    def writes(self) -> Iterator[Difference]:
        left, right = self.rule.writes(self.a.own), self.rule.writes(self.b.own)
        yield from self.lists("writes", {key: _session(*key) for key in _keys(left, right)}, left, right)

    def isr_changes(self) -> Iterator[Difference]:
        """Their number and the last ISR are compared, the ISRs between them are not."""
        for key in _keys(self.a.isr, self.b.isr):
            x, y = self.a.isr.get(key, []), self.b.isr.get(key, [])
            ends = [sorted(side[-1]["data"]["isr"]) if side else None for side in (x, y)]
            if len(x) != len(y):
                yield self.differ("writes", f"number of ISR changes by the leader of {key}", len(x), len(y))
            elif ends[0] != ends[1]:
                yield self.differ("writes", f"members of the last ISR of {key}", *ends)

    def znodes(self) -> Iterator[Difference]:
        left, right = self.rule.znodes(self.a.step["znodes"]), self.rule.znodes(self.b.step["znodes"])
        for path in _keys(left, right):
            if left.get(path) != right.get(path):
                yield self.differ("znodes", path, left.get(path), right.get(path))

    def transitions(self) -> Iterator[Difference]:
        left, right = moves(self.a.step["transitions"]), moves(self.b.step["transitions"])
        yield from self.lists("transitions", {key: f"{key[1]} at controller {key[0]}" for key in _keys(left, right)}, left, right)

    def requests(self) -> Iterator[Difference]:
        raced: dict[str, set[int]] = defaultdict(set)
        for side in (self.a, self.b):
            for key, written in side.isr.items():
                raced[key] |= {write["data"]["leader_epoch"] for write in written}
        stopped = stopped_brokers(self.a.step["do"]) | set(map(int, self.a.step.get("exited", ())))
        left, left_counts = self.rule.requests(self.a.step["requests"], raced, stopped)
        right, right_counts = self.rule.requests(self.b.step["requests"], raced, stopped)
        names = {key: f"from {key[0]} to {key[1]} about {key[2] or 'no partition'}" for key in _keys(left, right)}
        unsent_between = self._remove_unsent(left, right)
        yield from self.lists("requests", names, left, right)
        for key in _keys(left_counts, right_counts):
            if left_counts[key] != right_counts[key] and key[:2] not in unsent_between:
                sender, receiver, api, delete = key
                with_delete = "" if delete == "None" else f" with delete = {delete}"
                about = f"number of {api} from {sender} to {receiver}{with_delete}"
                yield self.differ("requests", about, left_counts[key], right_counts[key])

    def _remove_unsent(self, left: dict[Any, list[Any]], right: dict[Any, list[Any]]) -> set[tuple[Any, Any]]:
        """Remove all requests of an ended controller term from both sides if the shorter list is the begin of the longer list.

        `left` and `right`, the two sides, map (sender, receiver, partition) to requests. Return the (sender, receiver) with
        removed requests.
        """
        found = set()
        for key in _keys(left, right):
            sender, receiver, _ = key
            epochs = {item["controller_epoch"] for item in (*left.get(key, ()), *right.get(key, ()))}
            term = max(epochs, default=0) if sender == self.a.owner else None
            for epoch in epochs - {term} if sender in self.resigned else ():
                x, y = ([item for item in side.get(key, ()) if item["controller_epoch"] == epoch] for side in (left, right))
                shorter, longer = sorted((x, y), key=len)
                # Which part of its queue a controller still sends when it stops depends on timing.
                if x != y and longer[: len(shorter)] == shorter:
                    for side in (left, right):
                        side[key] = [item for item in side.get(key, ()) if item["controller_epoch"] != epoch]
                    found.add((sender, receiver))
        self.unsent += [
            f"step {self.number}: controller {sender} leaves; its last requests to broker {receiver} arrive on one side only"
            for sender, receiver in sorted(found)
        ]
        return found

    def answers(self) -> Iterator[Difference]:
        """The responses to AlterPartitionReassignments; a recording without one is not compared."""
        theirs, ours = (side.step.get("answer") for side in (self.a, self.b))
        if theirs is not None and theirs != ours:
            yield self.differ("answer", "the response to AlterPartitionReassignments", theirs, ours)


def resigned(step: Step, before: Any) -> frozenset[Any]:
    """Brokers whose last requests as controller may be missing: thawed ones and, if `/controller` changes, both controllers."""
    winners = [w["by"] for w in step["writes"] if w["op"] == "create" and w["path"] == CONTROLLER]
    ends = any(
        CONTROLLER in w.get("deleted", ()) or (w["op"] in ("delete", "set") and w["path"] == CONTROLLER) for w in step["writes"]
    )
    thawed = {b for part in step["do"].get("together", [step["do"]]) for b in as_list(part.get("thaw", []))}
    return frozenset({before, *winners, *thawed} if ends else thawed)


def _keys(left: Mapping[Any, Any], right: Mapping[Any, Any]) -> list[Any]:
    return sorted({*left, *right}, key=str)


def _session(name: str, subject: Any) -> str:
    topic, partition = subject or (None, None)
    about = "" if topic is None else f" on {topic}" if partition is None else f" on {topic}-{partition}"
    return f"{'broker ' if name.isdecimal() else ''}{name}{about}"


def subject_of(path: str) -> tuple[str, str | None] | None:
    """("t", "0"), or ("t", None) for a whole topic; None for a path of no topic."""
    for pattern in TOPIC_PATHS:
        if found := pattern.fullmatch(path):
            return found["topic"], found.groupdict().get("partition")
    return None


def stopped_brokers(do: Mapping[str, Any]) -> set[Any]:
    """Of `together` also the brokers that it starts or thaws, since the order in time is unknown."""
    parts = do.get("together")
    words = ("kill", "terminate", "pause", "freeze") + (("start", "thaw") if parts else ())
    return {broker for part in parts or [do] for word in words if word in part for broker in as_list(part[word])}


def moves(transitions: Iterable[dict[str, Any]]) -> dict[tuple[int, str], list[Any]]:
    """Return lists of recorded transitions, in order, by (controller, name), such as (1, "t-0") or (1, "t-0@2").

    The list of a replica has the transitions of the replica and of its partition.
    """
    found: dict[tuple[int, str], list[Any]] = {}
    transitions = list(transitions)
    for by, name in dict.fromkeys((t["by"], t["subject"]) for t in transitions):
        of = (name, name.split("@")[0])
        found[by, name] = [
            {key: t[key] for key in ("epoch", "machine", "subject", "from", "to")} | {"failed": bool(t.get("failed"))}
            for t in transitions
            if t["by"] == by and t["subject"] in of
        ]
    return found


# ---------------------------------------------------------------- normalization


class Normalizer:
    """The conversion of recorded values for the comparison: it sorts lists that are sets in Kafka, and replaces running numbers.

    Running numbers are in the names of sequential znodes, such as `/config/changes/config_change_0000000001`.
    """

    def __init__(self, unordered: frozenset[str], *, old_lists: bool) -> None:
        # `unordered`: the partitions whose ISR is compared without its order. `old_lists`: so are long lists of replicas.
        self.unordered, self.old_lists = unordered, old_lists

    def isr(self, key: str, values: list[int]) -> list[int]:
        return sorted(values) if key in self.unordered or len(values) >= HASHED_FROM else values

    def replicas(self, values: list[int]) -> list[int]:
        return sorted(values) if self.old_lists and len(values) >= HASHED_FROM else values

    def value(self, path: str, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if (key := state_key(path)) and "isr" in data:
            return data | {"isr": self.isr(key, data["isr"])}
        partitions = data.get("partitions")
        if re.fullmatch(r"/brokers/topics/[^/]+", path) and isinstance(partitions, dict):
            return data | {"partitions": {p: self.replicas(replicas) for p, replicas in partitions.items()}}
        if (path.startswith(UNTIMED[0]) or path == REASSIGN_PARTITIONS) and isinstance(partitions, list):
            return data | {"partitions": sorted(partitions, key=str)}
        return data

    def write(self, write: dict[str, Any]) -> dict[str, Any]:
        found = {name: value for name, value in write.items() if name not in ("multi", "by")}
        if (path := write.get("path")) is not None:
            found["path"] = SEQUENTIAL.sub(lambda m: f"/{m[1]}*", path)
            if "data" in write:
                found["data"] = self.value(path, write["data"])
        return found

    def writes(self, own: Iterable[dict[str, Any]]) -> dict[tuple[str, Any], list[Any]]:
        """Return the writes `own` of a recorded step as lists by (writer, subject), in the recorded order.

        A subject is ("t", "0"), ("t", None) for a whole topic, or None for no topic. Refused writes, ISR change notifications and
        producer id blocks are left out.
        """
        by: dict[str, list[tuple[Any, dict[str, Any]]]] = defaultdict(list)
        for write in own:
            path = write.get("path", "")
            if write["op"] != "rejected" and not path.startswith(UNTIMED):
                by[str(write["by"])].append((subject_of(path), self.write(write)))
        found = {}
        for session, items in by.items():
            # The list of a partition also has the writes on its topic, and those on no topic.
            for key in {None, *(subject for subject, _ in items)}:
                found[session, key] = [write for subject, write in items if _concerns(subject, key)]
        return found

    def znodes(self, znodes: Mapping[str, Any]) -> dict[str, Any]:
        return {
            path: {**node, "data": self.value(path, node["data"])}
            for path, node in znodes.items()
            if not SEQUENTIAL.fullmatch(path) and not path.startswith(UNTIMED)
        }

    def requests(
        self, handled: Iterable[dict[str, Any]], raced: Mapping[str, set[int]], stopped: set[Any]
    ) -> tuple[dict[tuple[Any, ...], list[Any]], Counter[tuple[Any, ...]]]:
        """Return the requests in `handled` as lists by (sender, receiver, partition), and counts by sender, receiver and API.

        Leave out requests to `stopped` brokers, and ISRs that depend on timing: `raced` maps a partition to leader epochs in
        which the leader changed the ISR.
        """
        found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
        # The numbers have keys (sender, receiver, API, whether StopReplica deletes).
        counts: Counter[tuple[Any, ...]] = Counter()
        # A controller that resigns closes its connections, so the requests of two of its terms may arrive in either order.
        for r in sorted((r for r in handled if r["to"] not in stopped), key=lambda r: r["controller_epoch"]):
            head: dict[str, Any] = {name: r[name] for name in HEAD if name in r}
            for key, entry in r["partitions"].items():
                sent, is_raced = found[r["by"], r["to"], key], entry.get("leader_epoch") in raced.get(key, ())
                item = {**head, **self._entry(key, entry, is_raced=is_raced)}
                if not (is_raced and r["api"] == "UpdateMetadata" and item == _last_metadata(sent)):
                    sent.append(item)
            if not r["partitions"] and r["api"] != "StopReplica":
                leaders = {"live_leaders": r["live_leaders"]} if "live_leaders" in r else {}
                found[r["by"], r["to"], ""].append(head | leaders)
            if r["api"] != "UpdateMetadata" or not raced:
                counts[r["by"], r["to"], r["api"], str(r.get("delete"))] += 1
        return dict(found), counts

    def _entry(self, key: str, entry: dict[str, Any], *, is_raced: bool) -> dict[str, Any]:
        found = {name: value for name, value in entry.items() if not (is_raced and name in RACED_FIELDS)}
        if "isr" in found:
            found["isr"] = self.isr(key, found["isr"])
        if "replicas" in found:
            found["replicas"] = self.replicas(found["replicas"])
        if "controller_epoch" in found:  # the epoch of the decision, apart from the epoch of the request
            found["decided_under"] = found.pop("controller_epoch")
        return found


def _concerns(subject: Any, key: Any) -> bool:
    """A write about no topic (None) is in every list; a write about a whole topic is in the list of each of its partitions."""
    if subject is None:
        return True
    return key is not None and subject[0] == key[0] and subject[1] in (None, key[1])


def _last_metadata(sent: list[Any]) -> Any:
    return next((item for item in reversed(sent) if item["api"] == "UpdateMetadata"), None)
