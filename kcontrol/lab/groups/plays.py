"""Performs the prepared runs (plays) of the chapters about groups, by name: `Lab.play("billing", until="dora joins")`.

A play has the arguments of its lab and a table of named steps. A step is a list of actions, such as ("join", "anna").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kcontrol.cluster import consumer_state
from kcontrol.core.errors import UserError
from kcontrol.group.request_reactions import has_reaction
from kcontrol.lab.support import arguments
from kcontrol.views import text

if TYPE_CHECKING:
    from kcontrol.lab.lab import Lab

LabT = TypeVar("LabT", bound="Lab")
Act = tuple[str, ...]
NAMES = ("anna", "bert", "cleo", "dora")
SESSION = {"session.timeout.ms": 10_000}
STATIC = {"consumers": {name: {"group.id": "billing", "group.instance.id": name} for name in NAMES}}
MINUTE = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 60_000}
TOPICS = {"__consumer_offsets": [[2, 3, 1]], "t": [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]}


class Play(NamedTuple):
    """A prepared run of a chapter: its release, the arguments of `Lab`, and its named steps, each with its actions.

    An action is a key of WORDS and arguments for its function: ("freeze_consumer", "dora").
    """

    release: str
    arguments: Mapping[str, Any]
    steps: Mapping[str, tuple[Act, ...]]


def _billing(*others: str, **settings: Any) -> dict[str, Any]:
    """Four consumers of group billing, whose coordinator is broker 2; `others` belong to group audit."""
    consumers = {name: {"group.id": "billing"} | settings for name in NAMES}
    return {"consumers": consumers | {name: {"group.id": "audit"} for name in others}, "topics": TOPICS}


PLAYS: Mapping[str, Play] = {
    # One incident in group billing, which chapters 12 to 16 continue.
    # The consumers run by themselves; dora's process stands still until it is started, and cleo does not poll for a minute.
    "billing": Play("2.8", _billing(), {
        "three members": (("freeze_consumer", "dora"), ("alive",)),
        "dora joins": (("stop_polling", "cleo"), ("thaw_consumer", "dora"), ("alive", "1 s")),
        "cleo is late": (("alive", "60 s"),),
        "four members": (("start_polling", "cleo"), ("alive",)),
    }),
    # The leader of the group dies between its JoinGroup and its SyncGroup.
    "leader dies": Play("0.9", _billing(**SESSION), {
        "one member": (("settle", "anna"),),
        "bert joins": (("join", "bert"), ("heartbeat", "anna"), ("join", "anna")),
        "bert waits": (("sync", "bert"),),
        "anna is removed": (("fire_timer", "session billing anna"),),
        "one member again": (("join", "bert"), ("sync", "bert")),
    }),
    # A member joins while the assignment is being written: the write of another group's commit delays the leader's SyncGroup.
    "late store": Play("0.9", _billing("zoe", **SESSION), {
        "two members": (("settle", "anna"), ("join", "bert"), ("heartbeat", "anna"), ("join", "anna")),
        "the assignment is written": (
            ("id", "dora"), ("sync", "bert"), ("commit", "zoe"), ("send", "sync", "anna"), ("send", "join", "dora")
        ),
        "dora joins": (("step",),),
        "the write is acknowledged": (("run",),),
        "three members": (("settle", "anna", "bert", "dora"),),
    }),
    # The generation grows and grows: a consumer that polls too late, and the leader, whose JoinGroup always begins a rebalance.
    "running generation": Play("2.8", _billing(), {
        "generation 1": (("settle", "anna", "bert", "cleo"),),
        "generation 2": (("expire_poll_interval", "cleo"), ("settle", "anna", "bert")),
        "generation 3": (("settle", "anna", "bert", "cleo"),),
        "generation 4": (("join", "bert"), ("join", "anna"), ("settle", "anna", "bert", "cleo")),
        "generation 5": (("expire_poll_interval", "cleo"), ("settle", "anna", "bert")),
    }),
    # Each night a fourth consumer joins while cleo is busy: cleo sends heartbeats, and does not join again.
    "nightly": Play("0.9", _billing(**SESSION) | {"purgatory": True}, {
        "three members": (("freeze_consumer", "dora"), ("alive",)),
        "dora joins": (("stop_polling", "cleo"), ("thaw_consumer", "dora"), ("alive", "1 s")),
        "cleo is removed": (("alive", "15 s"),),
    }),
    # Nothing is committed for longer than the retention time, which is one minute here instead of a day.
    "quiet weekend": Play("0.9", _billing(**SESSION) | {"config": MINUTE}, {
        "three members": (("freeze_consumer", "dora"), ("alive",)),
        "Friday": (
            ("commit", "anna", "t-0", "4200"), ("run",), ("commit", "bert", "t-2", "3900"), ("run",),
            ("commit", "cleo", "t-4", "4100"), ("run",)
        ),
        "Monday": (("alive", "121 s"),),
    }),
    # A static member restarts within its session timeout: same generation, another member id.
    "static restart": Play("2.8", _billing() | STATIC, {
        "two members": (("settle", "anna", "bert"),),
        "bert restarts": (("restart", "bert"), ("join", "bert"), ("sync", "bert")),
    }),
}  # fmt: skip


# ---------------------------------------------------------------- the words of acts


def _send(request: str, lab: Lab, *names: str) -> None:
    """One consumer at a time; MEMBER_ID_REQUIRED makes a consumer send again (KIP-394)."""
    for name in names:
        getattr(lab.group, request)(name).run()
        if _consumer(lab, name)["error"] == "MEMBER_ID_REQUIRED":
            getattr(lab.group, request)(name).run()


def _fire(lab: Lab, timer: str) -> None:
    """The first timer whose name begins with `timer`; then the cluster runs."""
    _, broker, name = next(a for a in lab.actions() if a[0] == "fire_timer" and a[2].startswith(timer))
    lab.fire_timer(broker, name).run()


def _settle(lab: Lab, *names: str) -> None:
    """Until the group is Stable with all of them; if all wait for responses, the join phase's timer fires."""
    while not set(names) <= _assigned(lab):
        asking = [name for name in names if _consumer(lab, name)["asked"] is None]
        for name in asking:
            _send(next_request(_consumer(lab, name)), lab, name)
        if not asking:
            _fire(lab, f"join {_consumer(lab, names[0])['group']}")


def _member_id(lab: Lab, name: str) -> None:
    """The first JoinGroup, whose response MEMBER_ID_REQUIRED, where a release has it, names a member id."""
    if has_reaction(lab.records[0].fields["release"], "MEMBER_ID_REQUIRED"):
        lab.group.join(name).run()


def _consumer(lab: Lab, name: str) -> dict[str, Any]:
    found: dict[str, Any] = lab.state["consumers"][name]
    return found


def _assigned(lab: Lab) -> set[str]:
    """Return the client ids of all members of groups in the state Stable."""
    members = lab.tables.members()
    return set(members["client_id"][members["state"] == "Stable"])


def next_request(me: Mapping[str, Any]) -> str:
    """Return the request that a consumer's client sends next: "join", "sync" or "heartbeat".

    `me` has the fields of the consumer; `state` and `rejoin_needed` decide.

    Source: joinGroupIfNeeded and the response handlers of AbstractCoordinator.java (2.8).
    """
    if me["state"] == consumer_state.UNJOINED or me["rejoin_needed"]:
        return "join"
    return "heartbeat" if me["state"] == consumer_state.STABLE else "sync"


# A word that the table lacks is a method of `lab.group`. The words are those of a consumer's client library: a consumer that
# gets MEMBER_ID_REQUIRED joins again (KIP-394), and `settle` lets consumers send the requests by which a rebalance ends. So one
# play runs under every release. A consumer sends a request only as an action, except in `alive`
# (`cluster/consumer_clients.py`).
WORDS: Mapping[str, Callable[..., Any]] = {
    **{request: partial(_send, request) for request in ("join", "sync", "heartbeat", "leave")},
    "alive": lambda lab, *until: lab.run(*until, alive=True),
    "id": _member_id,
    "expire_poll_interval": lambda lab, name: lab.group.expire_poll_interval(name).run(),
    "restart": lambda lab, name: lab.group.restart(name).run(),
    "settle": _settle,
    "fire_timer": _fire,
    "commit": lambda lab, name, partition="t-0", offset="7": lab.commit(name, partition, int(offset)),
    "send": lambda lab, request, name: getattr(lab.group, request)(name),
    "step": lambda lab: lab.step(),
    "run": lambda lab: lab.run(),
}


# ---------------------------------------------------------------- playing


def find(scenario: object, until: object) -> Play | None:
    """None without `until`. Raises UserError for an unknown play or step."""
    found = PLAYS.get(scenario) if isinstance(scenario, str) else None
    # Without `until` any text that is no play gives None.
    if until is None or (found and until in found.steps):
        return found
    if found is None:
        raise UserError(f"Only a chapter's run has named steps; these runs are {text.listed(map(repr, PLAYS), 30)}.")
    steps = text.listed(map(repr, found.steps), 30)
    raise UserError(f"The run {scenario!r} has no step {arguments.shown(until)}; its steps are {steps}.")


def perform(lab: LabT, play: Play, until: str | None) -> LabT:
    """Up to and with the step `until`; None: all steps."""
    for step, acts in play.steps.items():
        for word, *said in acts:
            if word in WORDS:
                WORDS[word](lab, *said)
            else:
                getattr(lab.group, word)(*said)
        if step == until:
            break
    return lab
