"""LABELS: each kind of action in words, as buttons and sentences of the journal show it; {0} is the first argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LABELS: dict[str, str] = {
    "advance": "broker {0} continues",
    "begin": "broker {0} begins",
    "deliver_notification": "broker {0} receives a notification",
    "renew": "broker {0} finds that its session expired",
    "reconnect": "broker {0} opens a new session",
    "deliver_request": "broker {1} receives from broker {0}",
    "send_delayed_response": "broker {0} sends its delayed response",
    "send_to_controller": "broker {0} sends a request to the controller",
    "exit": "broker {0} exits",
    "fetch": "broker {0} catches up with {1}",
    "checkpoint": "broker {0} writes high watermarks to disk",
    "expire_session": "the session of broker {0} expires",
    "expire_sessions": "ZooKeeper ends sessions without heartbeats: {0}",
    "reopen": "the {0} outside the brokers open a new session",
    "fire_timer": "the timer {1} of broker {0} fires",
    "time_out_request": "broker {0} ends its connection to frozen broker {1}",
    "start": "start broker {0}",
    "kill": "kill broker {0}",
    "terminate": "stop broker {0} by SIGTERM",
    "freeze": "freeze broker {0}",
    "thaw": "thaw broker {0}",
    "shrink_isr": "broker {2} falls behind in {1}",
    "time_out_fetch": "the fetch of broker {0} from a frozen leader times out",
    "drop_request": "lose a request from {0} to {1}",
    "duplicate_request": "repeat a request from {0} to {1}",
    "produce": "produce {2} to {1} at broker {0}, acks={3}",
    "join": "consumer {0}: join",
    "sync": "consumer {0}: sync",
    "heartbeat": "consumer {0}: heartbeat",
    "leave": "consumer {0}: leave",
    "restart": "consumer {0}: restart",
    "expire_poll_interval": "consumer {0}: poll timeout",
    "commit": "consumer {0} commits offset {2} of {1}",
    "find_coordinator": "consumer {0}: FindCoordinator to broker {1}",
    "freeze_consumer": "freeze consumer {0}",
    "thaw_consumer": "thaw consumer {0}",
    "stop_polling": "consumer {0} stops polling",
    "start_polling": "consumer {0} polls again",
    "wait": "{0} ms pass",
    "coordinator_request": "client {0} sends {1}",
    "expire_offsets": "broker {0} looks for expired offsets",
    "list_groups": "send ListGroups about {1} to broker {0}",
    "describe_group": "send DescribeGroups about {1} to broker {0}",
    "delete_groups": "send DeleteGroups about {1} to broker {0}",
    "delete_offsets": "send OffsetDelete about {1} to broker {0}",
    "clean_log": "the log cleaner of broker {0} cleans {1}",
    "lose_tail": "the disk of broker {0} loses {1} from offset {2} on",
    "fail_log_dir": "the directory with {1} on broker {0} fails",
    "create_topic": "create topic {0}",
    "alter_topic": "alter topic {0}: {1}",
    "delete_topic": "delete topic {0}",
    "delete": "delete {0}",
    "set": "rewrite {0}",
    "create": "create {0}",
    "reassign": "ask broker {0} to reassign {1}",
    "list_reassignments": "ask broker {0} what is being reassigned",
    "scenario": "step {0} of the scenario",
}


def label(words: Sequence[Any]) -> str:
    """For an unknown action, or one with too few arguments, the words themselves."""
    try:
        return LABELS[words[0]].format(*words[1:])
    except (IndexError, KeyError):
        return " ".join(map(str, words))
