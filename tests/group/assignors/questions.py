"""Random questions for Kafka's assignors: partitions, and members with their topics, owned partitions and generations.

Usage, in this folder and with the jars of Kafka 2.8.2 in JARS:

    python -m tests.group.assignors.questions | java -Dfile.encoding=UTF-8 -cp 'JARS/*' Assign.java > assigned_2_8_2.txt
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from kcontrol.core.model import TopicPartition
from kcontrol.group.assignors import sticky_user_data

COUNTS = {"range": 25, "roundrobin": 25, "sticky": 150, "cooperative-sticky": 100}


def question(random: Random, assignor: str) -> dict[str, Any]:
    """Return one question: up to four topics, up to five members; in half of them all members subscribe alike."""
    partitions = {f"t{n}": random.randint(1, 5) for n in range(random.randint(1, 4))}
    topics, is_sticky = list(partitions), "sticky" in assignor
    alike = random.sample(topics, random.randint(1, len(topics))) if random.random() < 0.5 else None
    free = [f"{topic}-{p}" for topic, count in partitions.items() for p in range(count)]
    random.shuffle(free)
    members = {}
    for name in sorted(random.sample("abcdefgh", random.randint(1, 5))):  # the order in which a HashMap of Java has them
        owned = sorted(free[: random.randint(0, 5)]) if is_sticky and random.random() < 0.8 else []
        free = free if random.random() < 0.15 else [text for text in free if text not in owned]
        generation = random.choice([3, 3, 3, 3, 2]) if owned else None
        mine = alike or random.sample(topics, random.randint(1, len(topics)))
        members[name] = {"topics": mine, "owned": owned, "generation": generation}
    return {"assignor": assignor, "partitions": partitions, "members": members}


def beyond_ascii() -> Iterator[dict[str, Any]]:
    """Yield one question per assignor whose two members have another order by UTF-16 code units than by code points."""
    members = {name: {"topics": ["t0"], "owned": [], "generation": None} for name in ("\U0001f600", "\uff5e")}
    for assignor in COUNTS:
        yield {"assignor": assignor, "partitions": {"t0": 3}, "members": copy.deepcopy(members)}


def user_data(assignor: str, member: dict[str, Any]) -> str:
    """Return the hexadecimal user data of a member: its last assignment and generation, or its generation alone."""
    if member["generation"] is None or "sticky" not in assignor:
        return ""
    if assignor == "cooperative-sticky":
        generation: int = member["generation"]
        return generation.to_bytes(4, "big").hex()
    runs: dict[str, list[int]] = {}
    for owned in map(TopicPartition.parse, member["owned"]):
        runs.setdefault(owned.topic, []).append(owned.partition)
    previous: list[dict[str, object]] = [{"topic": topic, "partitions": numbers} for topic, numbers in runs.items()]
    return sticky_user_data(previous, member["generation"]).hex()


def main() -> None:
    random = Random(1)
    drawn = (question(random, assignor) for assignor, count in COUNTS.items() for _ in range(count))
    for asked in (*drawn, *beyond_ascii()):
        for member in asked["members"].values():
            member["user_data"] = user_data(asked["assignor"], member)
        print(json.dumps(asked))


if __name__ == "__main__":
    main()
