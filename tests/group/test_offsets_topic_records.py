"""The value of an offset's record: which version is written, and what stands in it.

Source: GroupMetadataManager.offsetCommitValue (0.9, 2.8), OffsetCommitValue.json (2.8).
"""

from __future__ import annotations

import pytest

from kcontrol.group.model import OffsetAndMetadata
from kcontrol.group.offsets_topic_records import decode, offset_value, read_offset_value

COMMITTED = OffsetAndMetadata(7, "m", 100)


@pytest.mark.parametrize("expire_timestamp", [0, 1, 5_000])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_offset_with_an_expiry_time_is_written_in_version_1(expire_timestamp: int, version: int) -> None:
    """Only version 1 has the field, so a value with an expiry time, 0 too, is of version 1 whatever the release writes."""
    data = offset_value(COMMITTED._replace(expire_timestamp=expire_timestamp), version)
    assert decode("offset_value", data)[0] == 1
    assert read_offset_value(data) == COMMITTED._replace(expire_timestamp=expire_timestamp)


def test_version_1_says_minus_1_for_no_expiry_time() -> None:
    """A value without an expiry time has -1 in that field of version 1, and is read as one without."""
    data = offset_value(COMMITTED, 1)
    assert (decode("offset_value", data)[1]["expire_timestamp"], read_offset_value(data)) == (-1, COMMITTED)


@pytest.mark.parametrize("version", [0, 2, 3])
def test_an_offset_without_an_expiry_time_is_written_in_the_release_s_version(version: int) -> None:
    """Without an expiry time the value is of the version that the release writes."""
    assert decode("offset_value", offset_value(COMMITTED, version))[0] == version


MEMBER_OF = "0000 000161 00000001 ffff ffff 00000001 "  # type a, generation 1, neither protocol nor leader, 1 member


@pytest.mark.parametrize(("record", "data"), [
    ("group_key", "0002 ffff"),
    ("offset_key", "0001 000161 ffff 00000000"),
    ("offset_value", "0003 0000000000000005 ffffffff ffff 0000000000000001"),
    ("group_value", "0000 ffff 00000001 ffff ffff 00000000"),
    ("group_value", MEMBER_OF + "000161 ffff 000163 00000001 00000000 00000000"),
    ("group_value", MEMBER_OF + "000161 000162 000163 00000001 ffffffff 00000000"),
    ("group_value", MEMBER_OF + "000161 000162 000163 00000001 00000000 ffffffff"),
], ids=["group", "topic", "metadata", "protocol type", "client id", "subscription", "assignment"])  # fmt: skip
def test_a_field_that_cannot_be_null_is_not_read_as_null(record: str, data: str) -> None:
    """Only protocol, leader and instance id can be null: another null is an error, as in the generated classes of 2.8.2."""
    with pytest.raises(ValueError, match="-1 bytes should follow"):
        decode(record, bytes.fromhex(data))
