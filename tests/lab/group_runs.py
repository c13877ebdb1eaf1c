"""Twelve runs of a consumer group, for tests that look at each of them in every way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kcontrol import Lab
from kcontrol.lab.run import Run

GROUP, TOPIC = "billing", [[1, 2], [2, 3], [3, 1]]


def opened(release: str, consumers: Mapping[str, Any], **settings: Any) -> Lab:
    topics = {"t": TOPIC, "__consumer_offsets": [[1, 2, 3]]}
    return Lab(release=release, consumers=consumers, topics=topics, runs=None, **settings)


def fire(lab: Lab, timer: str) -> Lab:
    """Let the first timer fire whose name begins with these words."""
    (broker, name) = next((a[1], a[2]) for a in lab.actions() if a[0] == "fire_timer" and a[2].startswith(timer))
    return lab.fire_timer(broker, name).run()


def ask(lab: Lab, request: str, *consumers: str) -> Lab:
    """Let consumers send a request one after the other; who gets MEMBER_ID_REQUIRED sends it again (KIP-394)."""
    for name in consumers:
        getattr(lab.group, request)(name).run()
        if lab.state["consumers"][name]["error"] == "MEMBER_ID_REQUIRED":
            getattr(lab.group, request)(name).run()
    return lab


def settle(lab: Lab) -> Lab:
    """Bring the group of anna and bert to Stable: since 0.11 both join in the first wait, before that anna joins twice."""
    ask(lab, "join", "anna", "bert")
    if lab.records[0].fields["release"] == "0.9":
        ask(lab, "join", "anna")
    while lab.state["consumers"]["anna"]["asked"]:
        fire(lab, f"join {GROUP}")
    return ask(lab, "sync", "anna", "bert")


def stable(release: str, **settings: Any) -> Lab:
    """Return a lab whose group is Stable with anna and bert, with one committed offset; cleo has not joined."""
    lab = settle(opened(release, dict.fromkeys(("anna", "bert", "cleo"), GROUP), **settings))
    return lab.commit("anna", "t-0", 7).run()


def join(release: str) -> Lab:
    return ask(stable(release), "join", "cleo")


def leave(release: str) -> Lab:
    """The leader leaves a Stable group, and the other member joins again and waits for its assignment."""
    return ask(ask(stable(release), "leave", "anna"), "join", "bert")


def expiry(release: str) -> Lab:
    return fire(stable(release), f"session {GROUP} bert")


def coordinator_killed(release: str) -> Lab:
    """The coordinator is killed, and another broker loads the group."""
    return ask(stable(release).kill(1).run(), "heartbeat", "anna")


def load_cut_off(release: str) -> Lab:
    """The broker that loads the group is killed before it has done so, and the third one loads."""
    lab = stable(release).kill(1).run(until="PartitionElected")
    assert lab.tables.members().empty
    return lab.kill(2).run()


def new_id(release: str) -> Lab:
    """A consumer's process ends and starts again; it joins under a new member id beside its old one."""
    return ask(stable(release).group.restart("bert"), "join", "bert")


def static_restart(release: str) -> Lab:
    """A static member restarts, and gets its place back in the same generation."""
    consumers = {name: {"group.id": GROUP, "group.instance.id": name.upper()} for name in ("anna", "bert")}
    lab = settle(opened(release, consumers)).commit("anna", "t-0", 7).run()
    return ask(lab.group.restart("bert"), "join", "bert")


RUNS: dict[str, tuple[Callable[[str], Lab], str]] = {
    f"{release} {play.__name__}": (play, release)
    for play in (join, leave, expiry, coordinator_killed, load_cut_off)
    for release in ("0.9", "2.8")
} | {"0.9 new_id": (new_id, "0.9"), "2.8 static_restart": (static_restart, "2.8")}


RECORDED = tuple(name for name in Lab.recordings().index if "/group/" in name)
"""The recordings of real coordinators, by the name that opens them."""


@cache
def recorded(name: str) -> Run:
    """Return one of RECORDED, by its name."""
    return Lab.open(name)


@cache
def played(name: str) -> Lab:
    """Return one of RUNS, by its name; a test must not act on it."""
    play, release = RUNS[name]
    return play(release)
