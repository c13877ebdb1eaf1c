"""Bytes of subscriptions and assignments, whole and damaged, for Kafka's own client.

Usage, in this folder and with the jars of a release of Kafka in JARS:

    python -m tests.group.client_bytes.questions | java -Dfile.encoding=UTF-8 -cp 'JARS/*' Parse.java > read_2_8_2.txt

The lines for Kafka 0.9.0.1 (`read_0_9_0_1.txt`) have the option `--version 0`: its client reads version 0 alone.
"""

from __future__ import annotations

import sys
from random import Random

from kcontrol.group.offsets_topic_records import encode

COUNT = 120
NUMBERS = (b"\xff\xff\xff\xff", b"\xff\xfe", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\0\1")


def whole(random: Random, kind: str, version: int) -> bytes:
    """Return a subscription or an assignment with up to three topics, without or with user data."""
    entries = [{"topic": f"t{n}", "partitions": list(range(random.randint(0, 3)))} for n in range(random.randint(0, 3))]
    data = random.choice([None, b"", b"\1\2"])
    if kind == "assignment":
        return encode(kind, version, {"partitions": entries, "user_data": data})
    return encode(kind, version, {"topics": [entry["topic"] for entry in entries], "user_data": data, "owned": entries[:1]})


def damaged(random: Random, data: bytes) -> bytes:
    """Return the bytes cut off, with more bytes at the end, or with another number at some place."""
    place = random.randrange(len(data) + 1)
    match random.randrange(4):
        case 0:
            return data[:place]
        case 1:
            return data + random.randbytes(3)
        case 2:
            number = random.choice(NUMBERS)
            return data[:place] + number + data[place + len(number) :]
    return data


def main() -> None:
    versions = (0,) if "--version" in sys.argv else (0, 1)
    random = Random(1)
    for kind in ("subscription", "assignment"):
        for data in (b"", b"\0", b"\xff\xff"):
            print(kind, data.hex())
        for n in range(COUNT):
            data = damaged(random, whole(random, kind, versions[n % len(versions)]))
            is_later = len(versions) == 1 and data[:2] > b"\0\0"
            print(kind, (b"\0\0" + data[2:] if is_later else data).hex())


if __name__ == "__main__":
    main()
