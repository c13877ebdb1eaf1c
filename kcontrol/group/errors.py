"""Kafka's error codes as far as a coordinator answers with them, and what the log's errors become on their way to a client."""

from __future__ import annotations

# Source: Errors.java (2.8); 0.9: 14 GROUP_LOAD_IN_PROGRESS, 15 GROUP_COORDINATOR_NOT_AVAILABLE, 16 NOT_COORDINATOR_FOR_GROUP.
ERRORS: dict[str, int] = {
    "UNKNOWN_SERVER_ERROR": -1,
    "NONE": 0,
    "OFFSET_OUT_OF_RANGE": 1,
    "CORRUPT_MESSAGE": 2,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "INVALID_FETCH_SIZE": 4,
    "NOT_LEADER_OR_FOLLOWER": 6,
    "REQUEST_TIMED_OUT": 7,
    "MESSAGE_TOO_LARGE": 10,
    "OFFSET_METADATA_TOO_LARGE": 12,
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "NOT_COORDINATOR": 16,
    "RECORD_LIST_TOO_LARGE": 18,
    "NOT_ENOUGH_REPLICAS": 19,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 20,
    "ILLEGAL_GENERATION": 22,
    "INCONSISTENT_GROUP_PROTOCOL": 23,
    "INVALID_GROUP_ID": 24,
    "UNKNOWN_MEMBER_ID": 25,
    "INVALID_SESSION_TIMEOUT": 26,
    "REBALANCE_IN_PROGRESS": 27,
    "INVALID_COMMIT_OFFSET_SIZE": 28,
    "KAFKA_STORAGE_ERROR": 56,
    "NON_EMPTY_GROUP": 68,
    "GROUP_ID_NOT_FOUND": 69,
    "MEMBER_ID_REQUIRED": 79,
    "GROUP_MAX_SIZE_REACHED": 81,
    "FENCED_INSTANCE_ID": 82,
    "GROUP_SUBSCRIBED_TO_TOPIC": 86,
    "UNSTABLE_OFFSET_COMMIT": 88,
}

TOO_LARGE = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_FETCH_SIZE")
UNAVAILABLE = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
TO_EVERYBODY = {
    "UNKNOWN_TOPIC_OR_PARTITION": "COORDINATOR_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER": "NOT_COORDINATOR",
    "KAFKA_STORAGE_ERROR": "NOT_COORDINATOR",
}
# By what was written, a group's record or offsets. Source: storeGroup and storeOffsets of GroupMetadataManager.scala (2.8).
TRANSLATED: dict[str, dict[str, str]] = {
    "group": TO_EVERYBODY | {"REQUEST_TIMED_OUT": "REBALANCE_IN_PROGRESS"} | dict.fromkeys(TOO_LARGE, "UNKNOWN_SERVER_ERROR"),
    "offsets": TO_EVERYBODY | dict.fromkeys(TOO_LARGE, "INVALID_COMMIT_OFFSET_SIZE"),
}


def translated(what: str, error: str, which: str) -> str:
    """What a client hears of an error of the log. `which` is the rule `append_errors`: "few" passes a lack of replicas on."""
    if error in UNAVAILABLE:
        return "COORDINATOR_NOT_AVAILABLE" if which == "all" else error
    return TRANSLATED[what].get(error, error)
