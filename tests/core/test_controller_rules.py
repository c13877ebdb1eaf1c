"""The rules are data: declared once with their rows, one column for each release."""

from __future__ import annotations

import pytest

from kcontrol.cluster.run_settings import Settings
from kcontrol.cluster.world import World
from kcontrol.core.controller_rules import Rules, rules
from kcontrol.core.errors import UserError
from kcontrol.core.rule_fields import declared

LINES = "0.8.0 0.8.1 0.8.2 0.9.0 0.10.0 0.10.1 0.10.2 0.11.0 1.0 1.1"
RELEASES = (*LINES.split(), *(f"2.{minor}" for minor in range(9)), *(f"3.{minor}" for minor in range(10)))

CHANGED = {
    # rule                   last release before, value    first release after, value
    "offline_order":         ("0.8.1", "isr",              "0.8.2", "ar"),
    "unclean_default":       ("0.10.2", True,              "0.11.0", False),
    "follows_epoch":         ("0.8.1", True,               "0.8.2", False),
    "reads_before_electing": ("0.8.1", False,              "0.8.2", True),
    "resigns_when_replaced": ("0.8.2", False,              "0.9.0", True),
    "znode_of_earlier_session":             ("0.8.2", "is awaited",       "0.9.0", "fails"),
    "metadata_on_broker_startup":      ("0.8.2", "new brokers",      "0.9.0", "all brokers"),
    "rereads_assignment":    ("0.8.2", True,               "0.9.0", False),
    "shutdown_order":        ("0.9.0", "isr",              "0.10.0", "ar"),
    "refuses_dead_targets":  ("0.10.0", True,              "0.10.1", False),
    "skips_own_session":     ("0.10.1", False,             "0.10.2", True),
    "checks_active_first":     ("0.10.1", False,             "0.10.2", True),
    "fenced_writes":         ("2.0", False,                "2.1", True),
    "pipelined":             ("1.0", False,                "1.1", True),
    "offline_at_startup":    ("2.2", False,                "2.3", True),
    "outlives_log_dir":      ("0.11.0", False,             "1.0", True),
    "rejoins_at":            ("1.0", "high_watermark",     "1.1", "leader_epoch_start"),
    "fenced_fetches":        ("2.0", False,                "2.1", True),
    "controller_epoch_conflict":            ("1.0", "is logged",          "1.1", "ends the failover"),
    "elects_with_epoch":     ("2.0", False,                "2.1", True),
    "registers_with_version": ("2.1", False,               "2.2", True),
    "leaderless":            ("0.11.0", "dead leader", "1.0", "no online leader"),
    "reassigns_on_request":  ("2.3", False,                "2.4", True),
    "accepts_unassigned_partitions":        ("0.8.0", True,               "0.8.1", False),
    "deletes_topics_together":      ("2.4", False,                "2.5", True),
    "handles_metadata_responses":      ("2.4", False,                "2.5", True),
    "rebalance_requires_isr": ("2.5", False,             "2.6", True),
    "stop_replica_by_partition": ("2.5", False,            "2.6", True),
    "added_replica_is_new":  ("2.6", False,                "2.7", True),
    "alter_isr":             ("2.6", False,                "2.7", True),
    "topic_ids":             ("2.7", False,                "2.8", True),
    "metadata_on_broker_failure":          ("3.0", "if no leader was lost", "3.1", "if no request was sent"),
    "leader_recovery":       ("3.1", False,                "3.2", True),
    "isr_requires_live_broker":     ("3.2", False,                "3.3", True),
    "feature_znode":         ("3.2", 1,                    "3.3", 2),
    "controller_znode":      ("3.3", 1,                    "3.4", 2),
    "features":              ("2.6", False,                "2.7", True),
}  # fmt: skip


@pytest.mark.parametrize("rule", CHANGED)
def test_a_rule_changes_in_one_release(rule: str) -> None:
    """Up to one release a rule has its old value, from the next on its new one, as the reference dates it."""
    before, old, after, new = CHANGED[rule]
    found = {release: getattr(rules(release), rule) for release in RELEASES}
    assert RELEASES.index(after) == RELEASES.index(before) + 1
    assert found == {release: old if RELEASES.index(release) <= RELEASES.index(before) else new for release in RELEASES}


def test_a_preferred_leader_that_leads_changed_twice() -> None:
    """Nothing to do before 1.1, another election up to 2.1, left alone since 2.2 (KIP-183)."""
    found = [rules(release).preferred_already_leads for release in ("0.8.1", "1.0", "1.1", "2.1", "2.2", "3.9")]
    assert found == ["not needed", "not needed", "elected again", "elected again", "skipped", "skipped"]


def test_stops_were_grouped_for_a_while() -> None:
    """From 0.10.2 to 1.0 replicas that stay on disk are stopped by one request for each broker, before and after one by one."""
    found = [rules(release).plain_stop_replica_batched for release in ("0.10.1", "0.10.2", "1.0", "1.1")]
    assert found == [False, True, True, False]


def test_producer_ids_were_taken_at_the_start_for_a_while() -> None:
    """None before 0.11; then a broker takes its first ones when it starts, and since 3.0 when a producer needs some (KIP-730)."""
    found = [rules(release).takes_producer_ids for release in ("0.10.2", "0.11.0", "2.8", "3.0", "3.9")]
    assert found == [False, True, True, False, False]


def test_truncation_changed_twice() -> None:
    """To the high watermark before 0.11, by leader epoch from then on (KIP-101), by a common epoch since 2.0 (KIP-279)."""
    found = [rules(release).truncate_to for release in ("0.8.0", "0.10.2", "0.11.0", "1.1", "2.0", "3.9")]
    assert found == ["high_watermark", "high_watermark", "leader_epoch", "leader_epoch", "common_epoch", "common_epoch"]


def test_who_joins_an_isr_changed_in_the_middle_of_a_line() -> None:
    """In 1.1.1 a follower at the high watermark joins the ISR; 1.1.2, and so the line 1.1, requires more (KAFKA-7128)."""
    found = [rules(release).rejoins_at for release in ("1.1.1", "1.1.2", "1.1")]
    assert found == ["high_watermark", "leader_epoch_start", "leader_epoch_start"]


@pytest.mark.parametrize("release", ["0.8.0", "0.8.2", "0.11.0", "1.0", "2.1", "2.8", "3.9"])
def test_a_patch_release_plays_by_the_rules_of_its_line(release: str) -> None:
    """The third or fourth number of a patch release changes no rule."""
    patch = f"{release}.2"
    assert rules(patch).with_changes(release=release, inter_broker_protocol=release) == rules(release)


def test_some_rules_ask_for_the_protocol() -> None:
    """A newer release that speaks an older protocol between brokers has the newer rules but for those of the protocol."""
    mixed = rules("2.8", inter_broker_protocol="2.6")
    assert (mixed.fenced_writes, mixed.offline_at_startup) == (True, True)
    assert (mixed.alter_isr, mixed.topic_ids, mixed.features) == (False, False, False)
    assert rules("2.8").alter_isr


@pytest.mark.parametrize("release", ["0.7.2", "0.8", "4.0", "3.10", "3.9.1000", "40.1"])
def test_a_release_outside_the_table_is_refused(release: str) -> None:
    """Before 0.8.0 and after 3.9 there is no column, and the error says which releases there are."""
    with pytest.raises(ValueError, match=f"'{release}' is no release from 0.8.0 to 3.9, the last one with ZooKeeper"):
        rules(release)


@pytest.mark.parametrize(
    "release", ["", "2", "two", "2.8.", ".2.8", "2.8-rc1", "v2.8", "2..8", " 2.8", "2.-1", "2.8.0.0.1", "٢.٨"]
)
def test_what_is_no_release_is_refused(release: str) -> None:
    """Anything else than two to four numbers is no release, and the error shows what one looks like."""
    with pytest.raises(ValueError, match=r"is no release: it should look like 2.8 or 0.8.2"):
        rules(release)
    with pytest.raises(ValueError, match=r"is no release: it should look like 2.8 or 0.8.2"):
        rules("2.8", inter_broker_protocol=release or " ")


def test_a_world_refuses_a_release_that_it_does_not_play() -> None:
    """The rules of a release may be known before it is played: a world of it is refused with the list of those that are."""
    with pytest.raises(UserError, match=r"Kafka 2\.0 cannot be played; choose "):
        World(Settings(release="2.0"))
    assert World(Settings(release="2.8.2")).settings.rules().fenced_writes


def test_a_rule_can_be_changed_for_once() -> None:
    """`with_changes` gives another column and leaves the release's as it is; a rule that does not exist is an error."""
    assert not rules("2.8").with_changes(fenced_writes=False).fenced_writes
    assert rules("2.8").fenced_writes
    with pytest.raises(TypeError):
        rules("2.8").with_changes(no_such_rule=1)


def test_every_rule_begins_with_the_first_release() -> None:
    """Each row of the table starts at 0.8.0 and goes on in the order of the releases."""
    for rule in declared(Rules).values():
        since = [tuple(map(int, release.split("."))) for release, _ in rule.rows]
        assert (since[0], since) == ((0, 8, 0), sorted(set(since)))
