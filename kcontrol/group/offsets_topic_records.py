"""The bytes of the offsets topic and of the consumer protocol, written and read.

LAYOUTS has a row for each record and version. A rule of `group_rules.py` says which version a
release writes; every version can be read.

Source: GroupMetadataManager.scala (0.9), OffsetCommitKey.json, OffsetCommitValue.json,
GroupMetadataKey.json, GroupMetadataValue.json (2.8), ConsumerProtocol.java, StickyAssignor.java
(2.8).
"""

# Every key and value begins with its version as an int16; all integers are big-endian. A "name" is
# a text and a "blob" is bytes, both never null. `rebalance.store_group` and
# `offsets._store_offsets` write the records.
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from kcontrol.core.model import TopicPartition
from kcontrol.group.model import Group, GroupProtocol, GroupState, Member, OffsetAndMetadata

Layout = tuple[tuple[str, Any], ...]
BYTES, NOT_NULL = ("bytes", "blob"), ("name", "blob")
NUMBERS = {"int16": ">h", "int32": ">i", "int64": ">q"}

OFFSET_KEY: Layout = (("group", "name"), ("topic", "name"), ("partition", "int32"))
GROUP_KEY: Layout = (("group", "name"),)
PARTITIONS: Layout = (("topic", "name"), ("partitions", ["int32"]))
SUBSCRIPTION: Layout = (("topics", ["name"]), ("user_data", "bytes"))
_HEAD: Layout = (("protocol_type", "name"), ("generation", "int32"), ("protocol", "string"),
                 ("leader", "string"))  # fmt: skip
_CLIENT: Layout = (("client_id", "name"), ("client_host", "name"))
_TAIL: Layout = (("session_timeout", "int32"), ("subscription", "blob"), ("assignment", "blob"))
_ID: Layout = (("member_id", "name"),)
_REBALANCE: Layout = (("rebalance_timeout", "int32"),)
_SINCE: Layout = (("current_state_timestamp", "int64"),)
_VALUE: Layout = (("metadata", "name"), ("commit_timestamp", "int64"))

# fmt: off
LAYOUTS: dict[str, dict[int, Layout]] = {
    "offset_key":   {0: OFFSET_KEY, 1: OFFSET_KEY},
    "group_key":    {2: GROUP_KEY},
    "offset_value": {0: (("offset", "int64"), *_VALUE),
                     1: (("offset", "int64"), *_VALUE, ("expire_timestamp", "int64")),
                     2: (("offset", "int64"), *_VALUE),
                     3: (("offset", "int64"), ("leader_epoch", "int32"), *_VALUE)},
    "group_value":  {0: (*_HEAD, ("members", [(*_ID, *_CLIENT, *_TAIL)])),
                     1: (*_HEAD, ("members", [(*_ID, *_CLIENT, *_REBALANCE, *_TAIL)])),
                     2: (*_HEAD, *_SINCE, ("members", [(*_ID, *_CLIENT, *_REBALANCE, *_TAIL)])),
                     3: (*_HEAD, *_SINCE, ("members", [
                         (*_ID, ("group_instance_id", "string"), *_CLIENT, *_REBALANCE, *_TAIL)]))},
    "subscription": {0: SUBSCRIPTION, 1: (*SUBSCRIPTION, ("owned", [PARTITIONS]))},
    "assignment":   dict.fromkeys((0, 1), (("partitions", [PARTITIONS]), ("user_data", "bytes"))),
}
STICKY_USER_DATA: dict[int, Layout] = {
    0: (("previous_assignment", [PARTITIONS]),),
    1: (("previous_assignment", [PARTITIONS]), ("generation", "int32")),
}
# fmt: on
OPEN_ENDED = ("subscription", "assignment")  # later versions only append fields, which are skipped
DEFAULTS: dict[str, Any] = {
    "leader_epoch": -1, "expire_timestamp": -1, "current_state_timestamp": -1,
    "group_instance_id": None,
}  # fmt: skip


def write(layout: Layout, fields: Mapping[str, Any]) -> bytes:
    """Return `fields` as bytes, in the order of `layout`, such as `(("group", "string"), ...)`.

    A missing field gets its default, such as -1 for `leader_epoch`. Raises KeyError for a missing
    field without a default.
    """
    fields = DEFAULTS | dict(fields)
    # A type is "int32" or another integer, "string", "name", "bytes", "blob", a layout, or [type]
    # for a list.
    return b"".join(_write(kind, fields[name]) for name, kind in layout)


def _write(kind: Any, value: Any) -> bytes:
    match kind:
        case "string" | "name" | "bytes" | "blob":
            raw = value if kind in BYTES or value is None else value.encode()
            length = struct.pack(">i" if kind in BYTES else ">h", -1 if raw is None else len(raw))
            return length + (raw or b"")
        case str():
            return struct.pack(NUMBERS[kind], value)
        case [element]:
            return struct.pack(">i", len(value)) + b"".join(_write(element, item) for item in value)
    return write(kind, value)


def read(layout: Layout, data: bytes, start: int = 0) -> tuple[dict[str, Any], int]:
    """(the fields by name, the index after them). Raises ValueError for damaged data."""
    fields = {}
    for name, kind in layout:
        fields[name], start = _read(kind, data, start)
    return fields, start


def _read(kind: Any, data: bytes, start: int) -> tuple[Any, int]:
    match kind:
        case "string" | "name" | "bytes" | "blob":
            length, start = _number(">i" if kind in BYTES else ">h", data, start)
            if length < 0 and kind not in NOT_NULL:
                return None, start
            if not 0 <= length <= len(data) - start:
                raise ValueError(f"{length} bytes should follow, but {len(data) - start} do")
            raw, start = data[start : start + length], start + length
            return (raw if kind in BYTES else raw.decode(errors="replace")), start
        case str():
            return _number(NUMBERS[kind], data, start)
        case [element]:
            count, start = _number(">i", data, start)
            if not 0 <= count <= len(data) - start:
                raise ValueError(f"{count} entries should follow, in {len(data) - start} bytes")
            items = []
            for _ in range(count):
                item, start = _read(element, data, start)
                items.append(item)
            return items, start
    return read(kind, data, start)


def _number(form: str, data: bytes, start: int) -> tuple[int, int]:
    end = start + struct.calcsize(form)
    if end > len(data):
        raise ValueError(f"a number should follow, but {max(len(data) - start, 0)} bytes do")
    return struct.unpack_from(form, data, start)[0], end


def encode(record: str, version: int, fields: Mapping[str, Any]) -> bytes:
    """`record` is a kind of LAYOUTS. Raises ValueError for an unknown version."""
    return struct.pack(">h", version) + write(_layout(record, version), fields)


def sorted_subscription(version: int, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a subscription's fields: in version 1 with sorted topics and sorted owned partitions.

    Clients since 2.8.1 write version 1 in this order. For version 0, return `fields` unchanged.

    Source: serializeSubscription of ConsumerProtocol.java (2.8.1).
    """
    # Each topic has one entry in `owned`, such as {"topic": "t", "partitions": [1, 0]}.
    owned = [{**entry, "partitions": sorted(entry["partitions"])} for entry in fields["owned"]]
    owned.sort(key=lambda entry: str(entry["topic"]))
    return {**fields, "topics": sorted(fields["topics"]), "owned": owned} if version else fields


def decode(record: str, data: bytes) -> tuple[int, dict[str, Any]]:
    """(version, fields). Raises ValueError for an unknown version or damaged data."""
    version, start = _number(">h", data, 0)
    newest = max(LAYOUTS[record])
    # A subscription or assignment of a later version is read by the newest known layout.
    known = min(version, newest) if record in OPEN_ENDED else version
    return version, read(_layout(record, known), data, start)[0]


def _layout(record: str, version: int) -> Layout:
    """Raises ValueError, which lists the known versions, for an unknown one."""
    if version not in LAYOUTS[record]:
        known = ", ".join(map(str, LAYOUTS[record]))
        raise ValueError(f"there is no version {version} of {record}; there are {known}")
    return LAYOUTS[record][version]


def topics_of(subscription: bytes) -> frozenset[str] | None:
    """Return the topics of a subscription of any version, None if the bytes cannot be read."""
    try:
        return frozenset(read(SUBSCRIPTION, subscription, 2)[0]["topics"])
    except ValueError:
        return None


# ---------------------------------------------------------------- records of a partition's log


class OffsetsTopicRecord(NamedTuple):
    """One record of the offsets topic in the log of a replica.

    `data` are the bytes of the record's value, None for a tombstone.
    """

    offset: int
    leader_epoch: int
    key: bytes
    data: bytes | None
    # The offset at which the record's batch begins.
    base_offset: int
    # The producer of a TxnOffsetCommit, else None.
    producer_id: int | None = None
    # The codec of the batch, a number of `CODECS` in `batches/record_batch.py`.
    codec: int = 0

    @property
    def value(self) -> str:
        """Return the record's content as a short text, such as "offset 5 of t-0 in my-group".

        Other examples are "generation 2 of my-group, 3 members" and "tombstone of my-group".
        """
        fields = decode("group_key" if self.key[:2] == b"\0\2" else "offset_key", self.key)[1]
        tp = "topic" in fields and TopicPartition(fields["topic"], fields["partition"])
        subject = f"{tp} in {fields['group']}" if tp else fields["group"]
        if self.data is None:
            return f"tombstone of {subject}"
        if tp:
            return f"offset {decode('offset_value', self.data)[1]['offset']} of {subject}"
        count = len((group := decode("group_value", self.data)[1])["members"])
        return f"generation {group['generation']} of {subject}, {count} member{'s' * (count != 1)}"

    def to_json(self) -> dict[str, Any]:
        """For the journal: bytes as hexadecimal text, the value as a short one."""
        # `producer_id` is left out, and so is the codec of a batch that is not compressed.
        data = None if self.data is None else self.data.hex()
        said = {"offset": self.offset, "leader_epoch": self.leader_epoch, "value": self.value}
        said |= {"codec": self.codec} if self.codec else {}
        return said | {"key": self.key.hex(), "data": data, "base_offset": self.base_offset}


# ---------------------------------------------------------------- keys and values of a group


def offset_key(group_id: str, tp: TopicPartition) -> bytes:
    """Return the bytes of the key of a record with the group's committed offset for `tp`."""
    return encode("offset_key", 1, {"group": group_id, **tp._asdict()})


def group_key(group_id: str) -> bytes:
    """Return the bytes of the key of a group's record in the offsets topic."""
    return encode("group_key", 2, {"group": group_id})


def offset_value(value: OffsetAndMetadata, version: int) -> bytes:
    """Return the value of a committed offset's record as bytes, in this version of the layout.

    An offset with an `expire_timestamp` always gets version 1.

    Source: offsetCommitValue of GroupMetadataManager.scala (2.8).
    """
    expire = -1 if value.expire_timestamp is None else value.expire_timestamp
    fields = {**value._asdict(), "expire_timestamp": expire}
    return encode("offset_value", version if expire < 0 else 1, fields)


def read_offset_value(data: bytes) -> OffsetAndMetadata:
    """Return the offset in `data`, the value of an offset's record."""
    fields = decode("offset_value", data)[1]
    expire = fields.pop("expire_timestamp", -1)
    return OffsetAndMetadata(**fields, expire_timestamp=None if expire < 0 else expire)


def group_value(group: Group, assignment: Mapping[str, bytes], version: int) -> bytes:
    """Return the value of a group's record as bytes, in this version of the layout.

    The record has `assignment` (member id to bytes) in place of the assignments of the members in
    `group`.

    Source: groupMetadataValue of GroupMetadataManager.scala (0.9, 2.8).
    """
    members = [
        {
            "member_id": member.member_id, "group_instance_id": member.instance_id,
            "client_id": member.client_id, "client_host": member.client_host,
            "rebalance_timeout": member.rebalance_timeout_ms,
            "session_timeout": member.session_timeout_ms,
            "subscription": member.metadata(group.protocol),
            "assignment": assignment.get(member.member_id, b""),
        }
        for member in group.members.values()
    ]  # fmt: skip
    chosen = {"protocol_type": group.protocol_type or "", "protocol": group.protocol}
    chosen |= {"leader": group.leader}
    head = {"generation": group.generation, "current_state_timestamp": group.state_timestamp_ms}
    return encode("group_value", version, {**chosen, **head, "members": members})


def read_group_value(group_id: str, data: bytes) -> Group:
    """Return the group in `data`, the value of a group's record.

    The group is Stable, or Empty if it has no members; each member offers only the chosen protocol.
    Source: readGroupMessageValue (0.9, 2.8).
    """
    fields = decode("group_value", data)[1]
    protocol = fields["protocol"]
    members = [
        Member(
            m["member_id"], m["client_id"], m["client_host"], m["session_timeout"],
            m.get("rebalance_timeout", m["session_timeout"]),
            (GroupProtocol(protocol or "", m["subscription"] or b""),),
            m.get("group_instance_id"), m["assignment"] or b"",
        )
        for m in fields["members"]
    ]  # fmt: skip
    state = GroupState.STABLE if members else GroupState.EMPTY
    since = fields.get("current_state_timestamp", -1)
    chosen = fields["protocol_type"] or None, protocol, fields["generation"], fields["leader"]
    return Group(group_id, state, since, *chosen).with_members(members)
