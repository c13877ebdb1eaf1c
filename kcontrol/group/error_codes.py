"""Translates an error of an append to the log into the error that a client of the coordinator gets.

Source: Errors.java (0.9, 2.8); storeGroup and storeOffsets of GroupMetadataManager.scala (0.9,
2.8).
"""

from kcontrol.group.group_rules import AppendErrors

# Source: Errors.java (2.8). In 0.9: 14 GROUP_LOAD_IN_PROGRESS,
# 15 GROUP_COORDINATOR_NOT_AVAILABLE, 16 NOT_COORDINATOR_FOR_GROUP.
ERRORS: dict[str, int] = {
    "UNKNOWN_SERVER_ERROR": -1, "NONE": 0, "OFFSET_OUT_OF_RANGE": 1, "CORRUPT_MESSAGE": 2,
    "UNKNOWN_TOPIC_OR_PARTITION": 3, "INVALID_FETCH_SIZE": 4, "NOT_LEADER_OR_FOLLOWER": 6,
    "REQUEST_TIMED_OUT": 7, "MESSAGE_TOO_LARGE": 10, "OFFSET_METADATA_TOO_LARGE": 12,
    "COORDINATOR_LOAD_IN_PROGRESS": 14, "COORDINATOR_NOT_AVAILABLE": 15, "NOT_COORDINATOR": 16,
    "RECORD_LIST_TOO_LARGE": 18, "NOT_ENOUGH_REPLICAS": 19, "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 20,
    "INVALID_REQUIRED_ACKS": 21, "ILLEGAL_GENERATION": 22, "INCONSISTENT_GROUP_PROTOCOL": 23,
    "INVALID_GROUP_ID": 24, "UNKNOWN_MEMBER_ID": 25, "INVALID_SESSION_TIMEOUT": 26,
    "REBALANCE_IN_PROGRESS": 27,
    "INVALID_COMMIT_OFFSET_SIZE": 28, "KAFKA_STORAGE_ERROR": 56, "NON_EMPTY_GROUP": 68,
    "GROUP_ID_NOT_FOUND": 69, "MEMBER_ID_REQUIRED": 79, "GROUP_MAX_SIZE_REACHED": 81,
    "FENCED_INSTANCE_ID": 82, "GROUP_SUBSCRIBED_TO_TOPIC": 86, "UNSTABLE_OFFSET_COMMIT": 88,
}  # fmt: skip

TOO_LARGE = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_FETCH_SIZE")
UNAVAILABLE = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
TIMED_OUT = {"REQUEST_TIMED_OUT": "REBALANCE_IN_PROGRESS"}
COMMON = {
    "UNKNOWN_TOPIC_OR_PARTITION": "COORDINATOR_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER": "NOT_COORDINATOR",
    "KAFKA_STORAGE_ERROR": "NOT_COORDINATOR",
}
# By the kind of the record. Source: storeGroup, storeOffsets of GroupMetadataManager.scala (2.8).
TRANSLATIONS: dict[str, dict[str, str]] = {
    "group": COMMON | TIMED_OUT | dict.fromkeys(TOO_LARGE, "UNKNOWN_SERVER_ERROR"),
    "offsets": COMMON | dict.fromkeys(TOO_LARGE, "INVALID_COMMIT_OFFSET_SIZE"),
}


def translate_append_error(record_kind: str, error: str, append_errors: AppendErrors) -> str:
    """Return the client's error for an append to the offsets topic that has ended with `error`.

    `record_kind` is "group" or "offsets". An error without a translation is returned unchanged;
    with `append_errors` "few" (before 0.10.1) the errors of too few replicas have no translation.
    """
    # Source: KAFKA-4086.
    if error in UNAVAILABLE:
        return "COORDINATOR_NOT_AVAILABLE" if append_errors == "all" else error
    return TRANSLATIONS[record_kind].get(error, error)
