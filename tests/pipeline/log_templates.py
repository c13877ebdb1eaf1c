"""Kafka's log messages, made from the templates of the shared reference: each `<name>` is filled with a generated value."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KIND, TEMPLATE, HOLE = re.compile(r"\*\*`(\w+)`\*\*"), re.compile(r"- (\S.*?) · (?:.*? · )?`(.*)`$"), re.compile(r"<([^<>]+)>")
TOPIC = "orders.eu-west_1"
OLD = {  # The words before a message up to 0.11, by kind; the controller's own where a kind is not named.
    "controller_elected": "", "controller_lost_election": "", "controller_new_leader_seen": "",
    "controller_epoch_read": "[ControllerEpochListener on 1]: ", "zk_session_expired": "[SessionExpirationListener on 1], ",
    "brokers_changed": "[BrokerChangeListener on Controller 1]: ", "topics_changed": "[TopicChangeListener on Controller 1]: ",
    "partitions_added": "[AddPartitionsListener on 1]: ", "deletion_requested": "[DeleteTopicsListener on 1]: ",
    "leader_moved_on_shutdown": "[ControlledShutdownLeaderSelector]: ",
    "preferred_not_leader": "[PreferredReplicaPartitionLeaderSelector]: ",
    "reassign_progress": "[ReassignedPartitionsIsrChangeListener on controller 1]: ",
}  # fmt: skip
MACHINES = ("state_change_invoked", "state_machine_started", "leader_cache_updated", "leader_isr_initialized")
SELECTOR = ("unclean_election_candidates", "unclean_election", "clean_election", "leader_selected")
CHANNEL = ("controller_connected", "controller_connection_failed", "controller_send_failed")
ASSIGNMENT = "ReplicaAssignment(replicas=1,2, addingReplicas=, removingReplicas=)"
LEADER = "(Leader:2,ISR:2,1,LeaderEpoch:4,ControllerEpoch:5)"
FOR_KIND = {  # A value that depends on the kind.
    ("partition_transition", "targetState"): "OfflinePartition", ("partition_transition", "currState"): "OnlinePartition",
    ("partition_transition", "partitionState"): "OnlinePartition",
    ("kraft_partition_created", "topicId"): "mCkL0pXyQ5aJv2b1cZ8T9w",
}  # fmt: skip
NAMES = {
    "assignedReplicas": "1,2",
    "api": "UPDATE_METADATA",
    "deletePartitions": "false",
    "liveAssignedReplicasToThisPartition,…": "1,2",
    "partitionState": "PartitionState(controllerEpoch=5, leader=2, leaderEpoch=4, isr=[2, 1], "
    "zkVersion=6, replicas=[2, 1], offlineReplicas=[])",
    "group": "billing (eu) 7",
    "topic": TOPIC,
    "currentState": "PreparingRebalance",
    "typeOfRequest": "become-leader",
    "currState": "NewReplica",
    "targetState": "OnlineReplica",
    "topicId": "Some(mCkL0pXyQ5aJv2b1cZ8T9w)",
    "deletePartition": "true",
    "logTopicId": "mCkL0pXyQ5aJv2b1cZ8T9w",
    "requestTopicId": "nDkL0pXyQ5aJv2b1cZ8T9w",
    "electionType": "PREFERRED",
    "electionTrigger": "AutoTriggered",
    "imbalanceRatio": "0.25",
    "assignment": ASSIGNMENT,
    "newLeaderAndIsr": '{"leader":2,"leader_epoch":4,"isr":[2,1]}',
    "partitionLeadershipInfo": LEADER,
    "leaderIsrAndControllerEpoch": LEADER,
    "updatedLeaderIsrAndControllerEpoch": LEADER,
    "info": "(LeaderAndIsrInfo:(Leader:2,ISR:2,1,LeaderEpoch:4,ControllerEpoch:5),ReplicationFactor:2),AllReplicas:2,1)",
    "leaderAndIsr": "LeaderAndIsr(leader=2, leaderEpoch=4, isr=List(2, 1), zkVersion=6)",
    "OfflineReplica": "OfflineReplica",
    "liveBrokerIds": "Set(1, 2)",
    "shuttingDownBrokerIds": "Set(3)",
    "updateMetadataRequestBrokerSet": "Set(1, 2)",
    "newTopics": f"Set({TOPIC})",
    "deletedTopics": "Set()",
    "addedPartitionReplicaAssignment": f"Map({TOPIC}-3 -> Vector(1, 2))",
    "partitionsToBeAdded": f"Map({TOPIC}-3 -> Vector(1, 2))",
    "isr": "List(2, 1)",
    "response": "{error_code=0}",
    "useClassicProtocol": "classic",
    "preferredReplicasForTopicsByBrokers": f"Map(1 -> Map({TOPIC}-3 -> List(1, 2)))",
    "isUnderMinIsr": "(under-min-isr)",
    "topicsNotInPreferredReplica": f"Map({TOPIC}-3 -> List(1, 2))",
    "partitionsBeingReassigned": f"Map({TOPIC}-3 -> ReassignedPartitionsContext(List(1)))",
    "currentAssignment": ASSIGNMENT,
    "deadBrokersThatWereShuttingDown": "Set(3)",
    "reassignment": ASSIGNMENT,
    "operation": "JoinGroup",
    "targetReplicas": "ArrayBuffer(1, 2)",
    "liveBrokerIdAndEpochs": "Map(1 -> 25, 2 -> 31)",
    "l": f"Map([{TOPIC},3] -> (Leader:2,ISR:2))",
    "partitionsToBeRemoved": f"Set({TOPIC}-3)",
    "allTopics": f"Set({TOPIC})",
    "controllerEvent": "BrokerChange",
    "topicsToBeDeleted,…": TOPIC,
    "newTopicsToHaltDeletion,…": TOPIC,
    "topicsQueuedForDeletion,…": TOPIC,
    "request": "{controller_id=1}",
    "replica": "2",
    "toBroker": "2",
    "leaderReplicaIdOpt": "Some(1)",
    "inSyncReplicas,…": "1,2",
    "groupInstanceId": "Some(till-7)",
    "successfullyDeletedReplicas,…": f"[Topic={TOPIC},Partition=3,Replica=1]",
    "outOfSyncReplicas …": "(brokerId: 2, endOffset: 7)",
    "currentAssignmentSummary": "Assigned()",
    "replicasForDeletionRetry,…": f"[Topic={TOPIC},Partition=3,Replica=1]",
    "partitionsUndergoingPreferredReplicaElection,…": f"{TOPIC}-3",
    "error": "NONE",
}
NUMBERS = re.compile(
    r"^(?:n|p|id|_2|ms|controller|epoch|correlation|broker|\w*[Bb]rokerId|replicaId|partition|leader|preferredReplica|coordinatorEpoch"
    r"|\w*[lL]eader|\w*Epoch|\w*Version|generation|\w*Ms|num\w+|\w*[oO]ffsets?|\w*Removed|\w*Count|highWatermark|leaderId|\w*ControllerId"
    r"|memberEpoch|offsetTopicPartitionId|messageOffset|leaderBroker|elapsedMs|\w*EndOffset|\w*Watermark)$"
)


class Filled(NamedTuple):
    """A message with its kind, its releases as the reference has them, and the values that were filled in, by placeholder."""

    kind: str
    releases: str
    message: str
    values: dict[str, str]


def templates(reference: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield section (A to E), kind, releases and template of each message that carries facts."""
    text = reference.read_text()
    section = kind = ""
    for line in text[text.index("\n## 3. ") : text.index("\n## 4. ")].splitlines():
        if line.startswith("### 3."):
            section = line[6]
        elif found := KIND.match(line):
            kind = found[1]
        elif (found := TEMPLATE.match(line)) and not found[2].startswith("kafka.common."):
            yield section, kind, found[1], found[2].strip("` ").replace("[<tp>,<_2>]", "<tp>")


def filled(reference: Path, seed: int) -> Iterator[Filled]:
    """Yield each message with generated values, and with the words that its release prints before it."""
    chance = random.Random(seed)
    for section, kind, releases, template in templates(reference):
        old = releases.startswith("0.")
        names = dict.fromkeys(HOLE.findall(template))
        values = {name: FOR_KIND.get((kind, name)) or _value(name, old and section != "E", chance) for name in names}
        if section == "E" and "tp" in values:
            values["tp"] = f"{TOPIC}-3"  # the partition that stands before the message
        message = template
        for name, value in values.items():
            message = message.replace(f"<{name}>", value)
        yield Filled(kind, releases, _speaker(section, kind, old, template) + message, values)


def _value(name: str, old: bool, chance: random.Random) -> str:
    if name == "tp":
        return f"[{TOPIC},{chance.randrange(50)}]" if old else f"{TOPIC}-{chance.randrange(50)}"
    if name in NAMES:
        return NAMES[name]
    if NUMBERS.match(name):
        return str(chance.randrange(1, 2000))
    if name.endswith(",…"):
        if "artition" in name:
            return f"[{TOPIC},3],[{TOPIC},4]" if old else f"{TOPIC}-3,{TOPIC}-4"
        return ",".join(str(chance.randrange(1, 9)) for _ in range(3))
    if "ember" in name or "nstance" in name:
        return f"consumer-{chance.randrange(99)}-1f2e3d4c"
    return f"{name}-text"


def _speaker(section: str, kind: str, old: bool, template: str) -> str:
    """Return what a release prints before a message of this kind."""
    if template.startswith(("[GroupId", "[Group <")) or (section == "D" and kind != "member_loaded"):
        return "[GroupCoordinator 1]: "
    if section == "E":
        return f"Partition [{TOPIC},3] on broker 1: " if old else f"[Partition {TOPIC}-3 broker=1] "
    if section in "AB":
        if kind == "response_error":
            return "[Controller id=1 epoch=5] "
        if old:
            return ""
        return "[Controller id=1 epoch=5] " if section == "A" else "[Broker id=1] "
    if kind in SELECTOR:
        return "[OfflinePartitionLeaderSelector]: "
    if kind in MACHINES:
        what = "Replica" if " replica" in template else "Partition"
        small = "c" if what == "Replica" else "C"
        return f"[{what} state machine on {small}ontroller 1]: " if old else f"[{what}StateMachine controllerId=1] "
    if kind in CHANNEL:
        return "[Controller-1-to-broker-2-send-thread], " if old else "[RequestSendThread controllerId=1] "
    if kind.startswith("deletion_") and kind != "deletion_requested":
        return "[Topic Deletion Manager 1], " if old else "[Topic Deletion Manager 1] "
    if kind in ("leader_moved_on_shutdown", "preferred_not_leader"):
        return OLD[kind]
    return (
        OLD.get(kind, "[Controller 1]: ") if old else "[Controller id=1] " if section == "C" and kind != "member_loaded" else ""
    )
