"""Numbers and names of Kafka's that a coordinator works with."""

from __future__ import annotations

import pytest

from kcontrol.group.context import GroupConfig
from kcontrol.group.error_codes import ERRORS, TRANSLATIONS
from kcontrol.group.group_machine import GROUP_TRANSITIONS

CODES = """
-1 UNKNOWN_SERVER_ERROR  0 NONE  1 OFFSET_OUT_OF_RANGE  2 CORRUPT_MESSAGE  3 UNKNOWN_TOPIC_OR_PARTITION  4 INVALID_FETCH_SIZE
6 NOT_LEADER_OR_FOLLOWER  7 REQUEST_TIMED_OUT  10 MESSAGE_TOO_LARGE  12 OFFSET_METADATA_TOO_LARGE
14 COORDINATOR_LOAD_IN_PROGRESS  15 COORDINATOR_NOT_AVAILABLE  16 NOT_COORDINATOR  18 RECORD_LIST_TOO_LARGE
19 NOT_ENOUGH_REPLICAS  20 NOT_ENOUGH_REPLICAS_AFTER_APPEND  21 INVALID_REQUIRED_ACKS  22 ILLEGAL_GENERATION
23 INCONSISTENT_GROUP_PROTOCOL
24 INVALID_GROUP_ID  25 UNKNOWN_MEMBER_ID  26 INVALID_SESSION_TIMEOUT  27 REBALANCE_IN_PROGRESS  28 INVALID_COMMIT_OFFSET_SIZE
56 KAFKA_STORAGE_ERROR  68 NON_EMPTY_GROUP  69 GROUP_ID_NOT_FOUND  79 MEMBER_ID_REQUIRED  81 GROUP_MAX_SIZE_REACHED
82 FENCED_INSTANCE_ID  86 GROUP_SUBSCRIBED_TO_TOPIC  88 UNSTABLE_OFFSET_COMMIT
"""
MINUTE_MS, LARGEST_INT = 60_000, 2**31 - 1


def test_every_error_has_kafkas_code() -> None:
    """Each name of an error goes with its number in Kafka's protocol. Source: Errors.java (2.8)."""
    words = CODES.split()
    assert dict(zip(words[1::2], map(int, words[::2]), strict=True)) == ERRORS


def test_what_the_logs_errors_become() -> None:
    """A group's record and offsets have each their own translation of the log's errors."""
    # Source: storeGroup and storeOffsets of GroupMetadataManager.scala (2.8).
    large = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_FETCH_SIZE")
    gone = {"NOT_LEADER_OR_FOLLOWER": "NOT_COORDINATOR", "KAFKA_STORAGE_ERROR": "NOT_COORDINATOR"}
    both = {"UNKNOWN_TOPIC_OR_PARTITION": "COORDINATOR_NOT_AVAILABLE", **gone}
    expected = {
        "group": {**both, "REQUEST_TIMED_OUT": "REBALANCE_IN_PROGRESS", **dict.fromkeys(large, "UNKNOWN_SERVER_ERROR")},
        "offsets": {**both, **dict.fromkeys(large, "INVALID_COMMIT_OFFSET_SIZE")},
    }
    assert expected == TRANSLATIONS


@pytest.mark.parametrize(("release", "changed"), [
    ("0.9", {"max_session_timeout_ms": 30_000, "initial_delay_ms": 0, "retention_ms": 1_440 * MINUTE_MS}),
    ("0.10.0", {"max_session_timeout_ms": 300_000, "initial_delay_ms": 0, "retention_ms": 1_440 * MINUTE_MS}),
    ("0.10.2", {"max_session_timeout_ms": 300_000, "initial_delay_ms": 0, "retention_ms": 1_440 * MINUTE_MS}),
    ("0.11.0", {"max_session_timeout_ms": 300_000, "initial_delay_ms": 3_000, "retention_ms": 1_440 * MINUTE_MS}),
    ("1.1", {"max_session_timeout_ms": 300_000, "initial_delay_ms": 3_000, "retention_ms": 1_440 * MINUTE_MS}),
    ("2.0", {"max_session_timeout_ms": 300_000, "initial_delay_ms": 3_000, "retention_ms": 10_080 * MINUTE_MS}),
    ("2.2", {"max_session_timeout_ms": 300_000, "initial_delay_ms": 3_000, "retention_ms": 10_080 * MINUTE_MS}),
    ("2.3", {"max_session_timeout_ms": 1_800_000, "initial_delay_ms": 3_000, "retention_ms": 10_080 * MINUTE_MS}),
    ("3.9", {"max_session_timeout_ms": 1_800_000, "initial_delay_ms": 3_000, "retention_ms": 10_080 * MINUTE_MS}),
])  # fmt: skip
def test_the_defaults_of_a_release(release: str, changed: dict[str, int]) -> None:
    """Settings that are not given have Kafka's defaults. Source: KafkaConfig.scala, OffsetConfig.scala (0.9 to 2.8)."""
    always = {"min_session_timeout_ms": 6_000, "max_size": LARGEST_INT, "metadata_max": 4_096, "check_interval_ms": 600_000}
    read = {"load_buffer_size": 5 * 1_024 * 1_024, "segment_bytes": 100 * 1_024 * 1_024, "compression_codec": 0}
    log = {"partitions": 50, "replication_factor": 3, "commit_timeout_ms": 5_000, "required_acks": -1, **read}
    assert GroupConfig.of(release) == GroupConfig(**always, **changed, **log)


def test_which_moves_change_a_group() -> None:
    """A move to PreparingRebalance makes all join again, one out of it ends the generation."""
    # Source: prepareRebalance and initNextGeneration of GroupMetadata.scala (2.8).
    changing = {(str(row.source), str(row.target)): row.action.__name__ for row in GROUP_TRANSITIONS}
    left = {pair: action for pair, action in changing.items() if action != "unchanged"}
    assert left == {
        ("Empty", "PreparingRebalance"): "reset_assignments",
        ("Stable", "PreparingRebalance"): "reset_assignments",
        ("CompletingRebalance", "PreparingRebalance"): "reset_assignments",
        ("PreparingRebalance", "CompletingRebalance"): "init_next_generation",
        ("PreparingRebalance", "Empty"): "init_empty_generation",
    }
