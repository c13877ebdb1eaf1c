"""Finds the release of Kafka that wrote a folder of logs: by its lines "Kafka version", else by the wording of other lines."""

import re
from collections.abc import Iterable

from kcontrol.core.controller_rules import rules
from kcontrol.core.errors import UserError
from kcontrol.core.releases import PLAYABLE_RELEASES, sort_key

WORDINGS = (
    ("hanged state of replica ", r"changed state of replica \d+ for partition \S+ to ", "0.8.0", "0.8.0"),
    ("hanged state of replica ", r"hanged state of replica \d+ for partition \S+ from ", "0.8.1", "3.9"),
    (" state from ", r" state from (?:NonExistent|New|Online|Offline)Partition to ", "0.8.1", "3.9"),
    (" Controller ", r"^\W?[^\]]*\]? *\w+ Controller \d+ epoch \d+ ", "0.8.0", "0.11.0"),
    ("[Controller id=", r"\[Controller id=\d+", "1.0", "3.9"),
    ("LeaderAndIsr request (", r"LeaderAndIsr request \(\S+\) with correlationId \d+ to broker ", "0.8.0", "0.8.2"),
    ("LeaderAndIsr request (", r"sending become-\w+ LeaderAndIsr request \(\S+\) to broker ", "0.9", "0.11.0"),
    (" to OnlinePartition with ", r" to OnlinePartition with leader -?\d+", "0.8.0", "1.0"),
    (" to OnlinePartition with ", r" to OnlinePartition with state LeaderAndIsr\(", "1.1", "3.9"),
    ("] Changed partition ", r"INFO +\[Controller id=\d+ epoch=\d+\] Changed partition ", "2.6", "3.9"),
    ("leaderRecoveryState=", r"leaderRecoveryState=", "3.2", "3.9"),
    ("isr=List(", r"isr=List\([\d, ]*\), zkVersion=\d+\)", "1.1", "3.1"),
    (" successfully elected ", r" successfully elected as leader", "0.8.0", "0.10.2"),
    (" successfully elected ", r" successfully elected as the controller", "0.11.0", "3.9"),
    (" successfully elected ", r" successfully elected as the controller\. Epoch ", "2.1", "3.9"),
    ("bounced brokers: ", r", bounced brokers: ", "2.2", "3.9"),
    ("Preparing to restabilize group ", r"Preparing to restabilize group ", "0.9", "0.10.2"),
)
"""Wordings of lines: a part of the text, a regular expression for the text, and the first and last release that prints the line.

A text that matches the regular expression has the part, which Spark finds faster.
"""
KINDS = (
    "partition_transition", "replica_transition", "leader_and_isr_sent", "controller_elected", "brokers_changed",
    "controller_epoch", "controller_resigning", "rebalance_prepared",
)  # fmt: skip
"""The kinds of lines whose wordings WORDINGS has."""


def release_of(versions: Iterable[str], found: Iterable[str]) -> str:
    """Return the newest release in `versions` that kcontrol knows, else the first release that can print the wordings `found`.

    `found` are regular expressions of WORDINGS that match log lines. Return "2.8" without either.
    """
    if known := newest(versions):
        return known
    words = set(found)
    lines = [(since, until) for _, pattern, since, until in WORDINGS if pattern in words]
    if not lines:
        return "2.8"
    low = max((since for since, _ in lines), key=sort_key)
    return next((release for release in PLAYABLE_RELEASES if sort_key(release) >= sort_key(low)), PLAYABLE_RELEASES[-1])


def newest(versions: Iterable[str]) -> str | None:
    """None if all versions are vendors', such as "5.5.1-ccs"."""
    return max(filter(None, map(_number, versions)), key=sort_key, default=None)


def checked(release: str) -> str:
    """Return `release` if kcontrol has the rules of this release. Raises UserError for any other text."""
    try:
        return rules(release).release
    except (ValueError, TypeError, AttributeError):
        raise UserError(f"There are no rules of release {release!r}: choose one of 0.8.0 to 3.9, such as 2.8.") from None


def _number(version: str) -> str | None:
    """Return kcontrol's release for a version in a log, such as "2.8" for "2.8.2"; None for a vendor's, such as "5.5.1-ccs"."""
    found = re.match(r"\d+(?:\.\d+){1,3}", version)
    if found is None or "-ccs" in version or "-ce" in version:
        return None
    try:
        return rules(found[0]).release
    except ValueError:
        return None
