"""What one simulated consumer remembers between its requests, and which protocols it offers."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.group.differential.bytes_of import subscription

PROTOCOLS = ["range", "roundrobin", "sticky", "cooperative-sticky"]
BROKEN = ("", "00", "0000", "000000")  # metadata that end too early


class Client:
    """A consumer: the member id and the generation of its last responses, and its own settings."""

    def __init__(self, name: str, group: str, instance: str | None, random: Random) -> None:
        self.name, self.group, self.instance = name, group, instance
        self.member, self.generation, self.is_leader = "", -1, False
        self.members: list[str] = []
        self.waits_for: str | None = None
        self.session_ms = random.choice([97, 503, 1009, 2003, 5003]) + random.randrange(30)
        self.rebalance_ms = random.choice([307, 701, 1301, 2503]) + random.randrange(30)
        self.requires_known_id = random.random() < 0.5
        self.protocols: list[list[str]] = []
        self.protocol = "range"

    def forget(self) -> None:
        self.member, self.generation = "", -1

    def take_join_response(self, answer: dict[str, Any], *, forgets: bool) -> None:
        """Take over the member id and the generation of a JoinGroup response."""
        if answer["error"] == 0:
            self.member, self.generation, self.protocol = answer["member"], answer["generation"], answer["protocol"]
            self.is_leader = answer["leader"] == answer["member"]
            self.members = [member[0] for member in answer["members"]]
        elif answer["error"] == MEMBER_ID_REQUIRED:
            self.member = answer["member"]
        elif answer["error"] in GONE and forgets:
            self.forget()


MEMBER_ID_REQUIRED = 79
GONE = (25, 82)  # UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID


def offer(random: Random) -> list[list[str]]:
    """Return the protocols of a client, each with its metadata as hex."""
    topics = random.choice([["t"], ["t"], ["t", "u"], ["u"], ["v"], []])
    names = random.choices(
        [["range"], ["range", "roundrobin"], ["roundrobin", "range"], random.sample(PROTOCOLS, random.randint(1, 3))],
        [7, 5, 4, 4],
    )[0]
    is_broken = random.random() < 0.03
    return [[name, random.choice(BROKEN) if is_broken else subscription(topics, random.choice([0, 0, 1, 3]))] for name in names]
