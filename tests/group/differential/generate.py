"""Random sequences that make sense: our coordinator plays along, so that clients know their ids and generations as clients do.

The steps have ids, generations and times. Left out are expiry and the end of a transaction while a partition is
being loaded or a write is held, because both sides would wait for each other, and commits of which some metadata are too
long and others are not, a slow loading where group.max.size may be exceeded, and a resignation of 0.9 while the write of a commit
is held, all of which `docs/omissions.md` declares.
"""

from __future__ import annotations

from random import Random
from typing import Any

from kcontrol.broker.broker_configs import LARGEST_INT
from kcontrol.group.events import OffsetsStored
from kcontrol.group.model import Group
from tests.group.differential import foreign, ids
from tests.group.differential.clients import Client, offer
from tests.group.differential.ours import Json, Ours, hash_map_order

REQUESTS = ("join", "sync", "heartbeat", "leave", "commit", "fetch", "list", "describe", "delete", "offset_delete")
PARTITIONS = ["t-0", "t-1", "u-0", "v-0"]
ERRORS = [3, 6, 7, 10, 18, 19, 20, 4, 2, 56]  # codes with which a write can fail; the last came after 0.9
MOST_IDS_0_9 = 15  # of a map of 16 buckets, so that it does not grow
LAST_WAITS_MS = (150, 400, 900, 1_500, 3_000, 100_000, 301_000)
EMOJI = "\N{GRINNING FACE}"  # two characters to Java
METADATA = ("", "", "m1", "0123456789", EMOJI * 5)
TOO_LONG = ("0123456789a", EMOJI * 6)
METADATA_MAX = 10


class Generator:
    def __init__(self, seed: int, release: str, votes: dict[str, int]) -> None:
        random = self.random = Random(seed)
        self.release, self.votes, self.is_new = release, votes, not release.startswith("0.9")
        self.partitions = random.choice([1, 2, 3])
        self.config = self.settings()
        self.ranks: dict[str, int] = {}
        self.ids = self.count = self.now = 0
        self.steps: list[Json] = []
        self.seen: list[Json] = []
        self.groups = ["g", "h", "k"][: random.choice([1, 1, 1, 2, 3])]
        self.clients = [self.client(index) for index in range(random.choice([1, 2, 3, 3, 4, 5, 6]))]
        self.epochs = dict.fromkeys(range(self.partitions), 1)
        self.waiting: dict[str, Client] = {}
        self.has_transactions = self.is_new and random.random() < 0.35
        self.has_moves, self.has_failures, self.has_types = (random.random() < share for share in (0.45, 0.5, 0.2))
        self.wildness = random.choice([0.02, 0.1, 0.25])
        self.ours = Ours(release, self.config)

    def settings(self) -> Json:
        random = self.random
        owned = (
            [p for p in range(self.partitions) if random.random() < 0.6] if random.random() < 0.1 else [*range(self.partitions)]
        )
        config: Json = {"partitions": self.partitions, "min_session": 10, "max_session": 100_000, "metadata_max": METADATA_MAX}
        config |= {"retention_ms": random.choice([1_500, 4_000, 604_800_000]), "owned": owned}
        if self.is_new:
            config["initial_delay"] = random.choice([0, 0, 0, 100, 450, 3_000])
            config["max_size"] = random.choice([LARGEST_INT, LARGEST_INT, LARGEST_INT, 2, 3, 4])
        return config

    def client(self, index: int) -> Client:
        random = self.random
        instance = f"i{random.randrange(3)}" if self.is_new and random.random() < 0.3 else None
        return Client(f"c{index}", random.choice(self.groups), instance, random)

    def run(self) -> Json:
        """Return the sequence; `seen` then has what our coordinator did in each step."""
        with hash_map_order(self.ranks, self.votes):
            length = self.random.randint(10, 40)
            while len(self.steps) < length:
                self.pass_time()
                client = self.random.choice(self.clients)
                weights = self.weights(client)
                getattr(self, self.random.choices(list(weights), list(weights.values()))[0])(client)
            self.finish()
        return {"config": self.config, "ranks": self.ranks, "steps": self.steps}

    def finish(self) -> None:
        """Look at everything, then let every timer fire."""
        if self.ours.stage.is_slow:
            self.emit(do="finish")
        for group in self.groups:
            self.emit(do="describe", group=group)
            self.emit(do="fetch", group=group, partitions=None if self.is_new else PARTITIONS, require_stable=self.is_new)
        for wait_ms in LAST_WAITS_MS:
            self.now += wait_ms
            self.emit(do="tick")
        if self.ours.stage.held:
            self.emit(do="append", mode="release", error=0)
        self.emit(do="cleanup")
        self.emit(do="list")

    def weights(self, client: Client) -> dict[str, float]:
        """Return how likely each action of a client is, by what its group does."""
        stage, group = self.ours.stage, self.group(client.group)
        state, is_inside = str(group.state) if group else "", bool(group and client.member in group.members)
        found = {
            "join": 3.0, "sync": 2.0, "heartbeat": 2.0, "leave": 0.6, "commit": 2.0, "fetch": 0.9, "look": 0.7, "delete": 0.5,
            "append": 1.0 * self.has_failures, "end_transaction": 0.8 * self.has_transactions, "move": 0.7 * self.has_moves,
            "clean_up": 0.5,
        }  # fmt: skip
        if client.waits_for:
            found["join"] = 0.6
        elif not is_inside:
            found |= {"join": 9, "heartbeat": 0.3, "sync": 0.3, "commit": 1}
        elif state == "PreparingRebalance":
            found["join"] = 6
        if is_inside and state == "CompletingRebalance":
            found["sync"] = 12 if client.is_leader else 6
        if is_inside and state == "Stable":
            found |= {"heartbeat": 3, "sync": 1.5, "join": 2, "commit": 3}
        if stage.is_slow:
            found["move"] = 4
        if stage.mode != "ok":
            found["append"] = 2.5
        return found

    def group(self, name: str) -> Group | None:
        return self.ours.stage.context.groups.get(name)

    # ---- steps

    def emit(self, **fields: Any) -> None:
        """Take a step at the present time, and give its answers to the clients."""
        step = {key: value for key, value in fields.items() if value is not None} | {"at": self.now}
        if step["do"] in REQUESTS:
            step["as"] = self.label(step["do"])
        self.count += 1
        self.steps.append(step)
        self.seen.append(self.ours.play(step))
        for label, answer in self.seen[-1]["ans"].items():
            self.take_answer(label, answer)

    def label(self, verb: str) -> str:
        return f"{verb[0]}{self.count}"

    def emit_for(self, waiting: Client, /, **fields: Any) -> None:
        """Take a step whose answer the client takes in."""
        self.waiting[self.label(fields["do"])] = waiting
        if fields["do"] == "join":
            waiting.waits_for = self.label("join")
        self.emit(**fields)

    def take_answer(self, label: str, answer: Json) -> None:
        client = self.waiting.pop(label, None)
        if client is None:
            return
        forgets = self.random.random() < 0.8
        if label == client.waits_for:
            client.waits_for = None
        if label[0] == "j":
            client.take_join_response(answer, forgets=forgets)
        elif answer["error"] in (25, 82) and forgets:
            client.forget()

    def pass_time(self) -> None:
        random, kind = self.random, self.random.random()
        if kind < 0.55:
            self.now += random.choice([0, 0, 1, 3, 7])
        elif kind < 0.8:
            self.now += random.randrange(10, 120)
        elif kind < 0.9:
            self.now += random.randrange(100, 900)
        elif kind < 0.985:  # just before, at or just after a timer
            if due := sorted(timer.at_ms for timer in self.ours.stage.driver.timers.values()):
                self.now = max(self.now, random.choice(due[:2]) + random.choice([-1, 0, 0, 1]))
        else:
            self.now += random.randrange(1_000, 6_000)

    def new_id(self, prefix: str) -> str:
        """Return what the next member id with this prefix ends with."""
        number, self.ids = self.ids, self.ids + 1
        suffix = ids.suffix(self.release, f"{prefix}-", number)
        self.ranks[f"{prefix}-{suffix}"] = number
        return suffix

    def identity(self, client: Client) -> tuple[str, str, int, str | None]:
        """Return who this client says it is: (group, member id, generation, instance id), now and then something else."""
        random = self.random
        group, member, generation, instance = client.group, client.member, client.generation, client.instance
        if random.random() < self.wildness:
            kind = random.randrange(7)
            if kind == 0:
                member = "unknown-x"
            elif kind == 1:
                member = random.choice(self.clients).member
            elif kind == 2:
                generation = random.choice([generation - 1, generation + 1, -1, 0, 1])
            elif kind == 3 and self.is_new:
                instance = random.choice(["i0", "i1", "i2", "i9", None])
            elif kind == 4:
                group = random.choice([*self.groups, "zz", ""])
            elif kind == 5:
                member = ""
            else:
                generation, member = -1, ""
        return group, member, generation, instance

    # ---- what members do

    def join(self, client: Client) -> None:
        random = self.random
        group, member, _, instance = self.identity(client)
        if not self.is_new and not member and self.ids >= MOST_IDS_0_9:
            return
        if instance and random.random() < 0.2:
            member = ""
        kind = random.choice(["connect", "", "consumer"]) if self.has_types and random.random() < 0.25 else "consumer"
        is_odd = random.random() < self.wildness * 0.3
        self.emit_for(
            client, do="join", group=group, member=member, rebalance=client.rebalance_ms, type=kind, instance=instance,
            session=random.choice([9, 10, 100_000, 100_001]) if is_odd else client.session_ms,
            protocols=self.protocols(client), client=client.name, host=f"/{client.name}",
            uuid=None if member else self.new_id(instance or client.name),
            require_known=client.requires_known_id and not instance if self.is_new else None,
        )  # fmt: skip

    def protocols(self, client: Client) -> list[list[str]]:
        """Return what a client offers, now and then something else than before; nothing at all makes 0.9 throw."""
        if not client.protocols or self.random.random() < 0.12:
            client.protocols = offer(self.random)
        return [] if self.is_new and self.random.random() < self.wildness * 0.15 else client.protocols

    def sync(self, client: Client) -> None:
        random = self.random
        name, member, generation, instance = self.identity(client)
        group, assignment = self.group(name), {}
        if client.is_leader or random.random() < 0.1:
            for other in group.members if group else client.members:
                if random.random() < 0.93:
                    assignment[other] = bytes([self.count % 256, len(assignment)]).hex() if random.random() < 0.95 else ""
            if random.random() < 0.05:
                assignment["no-member"] = "ff"
        kind = protocol = None
        if self.is_new and random.random() < 0.5:
            kind, protocol = "consumer", client.protocol or "range"
            if random.random() < self.wildness:
                kind, protocol = random.choice([("connect", protocol), (kind, "sticky"), (kind, None)])
        self.emit_for(
            client, do="sync", group=name, member=member, gen=generation, assignment=assignment, instance=instance, type=kind,
            protocol=protocol,
        )  # fmt: skip

    def heartbeat(self, client: Client) -> None:
        group, member, generation, instance = self.identity(client)
        self.emit_for(client, do="heartbeat", group=group, member=member, gen=generation, instance=instance)

    def leave(self, client: Client) -> None:
        leaving = [client]
        if self.is_new:
            leaving += [self.random.choice(self.clients) for _ in range(self.random.choice([0, 0, 1, 2]))]
        self.emit(do="leave", group=self.identity(client)[0], members=[self.leaver(other) for other in leaving])
        if self.random.random() < 0.8:
            client.forget()

    def leaver(self, client: Client) -> Json:
        """Return how a member that leaves names itself: by member id, instance id or both."""
        _, member, _, instance = self.identity(client)
        kind = self.random.random()
        if self.is_new and instance and kind < 0.4:
            return {"instance": instance}
        return {"member": member, "instance": instance} if self.is_new and instance and kind < 0.7 else {"member": member}

    # ---- offsets

    def commit(self, client: Client) -> None:
        random = self.random
        group, member, generation, instance = self.identity(client)
        producer = retention = None
        if random.random() < 0.25:
            member, generation, instance = "", -1, None
        if self.has_transactions and random.random() < 0.5:
            producer = random.choice([7, 8])
            if random.random() < 0.5:
                member, generation, instance = "", -1, None
        elif random.random() < 0.12:
            retention = random.choice([50, 400, 3_000])
        offsets = self.offsets()
        if retention is None and random.random() < 0.08:
            for offset in offsets:
                offset["commit"] = max(0, self.now - random.randrange(2_000))
        self.emit(
            do="commit", group=group, member=member, gen=generation, instance=instance, offsets=offsets, producer=producer,
            retention=retention,
        )  # fmt: skip

    def offsets(self) -> list[Json]:
        """Return one offset or several, seldom with metadata that are too long."""
        random = self.random
        metadata = TOO_LONG if random.random() < 0.06 else METADATA
        found: list[Json] = []
        for partition in random.sample(PARTITIONS, random.choice([1, 1, 2, 3])):
            offset: Json = {"tp": partition, "offset": self.count, "metadata": random.choice(metadata)}
            if self.is_new and random.random() < 0.4:
                offset["epoch"] = random.randrange(5)
            found.append(offset)
        return found

    def fetch(self, client: Client) -> None:
        random = self.random
        asks_for_all = self.is_new and random.random() < 0.4
        asked = None if asks_for_all else random.sample([*PARTITIONS, "w-0"], random.randrange(4))
        is_stable = self.is_new and random.random() < 0.5
        self.emit(do="fetch", group=self.identity(client)[0], partitions=asked, require_stable=is_stable)

    def look(self, client: Client) -> None:
        random = self.random
        if random.random() < 0.5:
            self.emit(do="describe", group=random.choice([*self.groups, "zz", ""]))
            return
        wanted = [None, ["Stable"], ["Empty", "PreparingRebalance"], ["CompletingRebalance"], ["nonsense"]]
        self.emit(do="list", states=random.choice(wanted) if self.is_new else None)

    def delete(self, client: Client) -> None:
        random = self.random
        if not self.is_new:
            self.look(client)
        elif random.random() < 0.4:
            self.emit(do="delete", groups=random.sample([*self.groups, "zz", ""], random.choice([1, 1, 2])))
        else:
            partitions = random.sample(PARTITIONS, random.choice([1, 2, 3]))
            self.emit(do="offset_delete", group=self.identity(client)[0], partitions=partitions)

    # ---- what the world does

    def append(self, client: Client) -> None:
        """Change how writes end, or end some."""
        random, stage = self.random, self.ours.stage
        errors = ERRORS if self.is_new else ERRORS[:-1]
        if stage.mode == "ok" and not stage.held:
            is_held = random.random() < 0.65
            self.emit(do="append", mode="hold" if is_held else "fail", error=None if is_held else random.choice(errors))
            return
        if not stage.held and random.random() < 0.4:
            self.emit(do="append", mode="ok")
            return
        error = 0 if random.random() < 0.55 else random.choice(errors)
        is_first_alone = len(stage.held) > 1 and random.random() < 0.25
        self.emit(do="append", mode="release", error=error, only=1 if is_first_alone else None)

    def end_transaction(self, client: Client) -> None:
        if not self.ours.stage.held and not self.ours.stage.is_slow:
            producer, partition = self.random.choice([7, 8]), self.random.randrange(self.partitions)
            self.emit(do="end_txn", producer=producer, partition=partition, commit=self.random.random() < 0.6)

    def clean_up(self, client: Client) -> None:
        if not self.ours.stage.is_slow:
            self.emit(do="cleanup")

    def move(self, client: Client) -> None:
        """Let this broker gain or lose a partition, seldom by an election or a resignation that is out of date."""
        random, stage, partition = self.random, self.ours.stage, self.random.randrange(self.partitions)
        if stage.is_slow:
            if random.random() < 0.7:
                self.emit(do="finish")
            return
        is_owned, is_stale = partition in stage.context.owned, random.random() < 0.1 and self.is_new
        if is_owned and random.random() < 0.12:
            self.elect(partition, 1)
            return
        if not self.is_new and any(isinstance(written, OffsetsStored) for written, *_ in stage.held):
            return
        if is_owned and not (is_stale and random.random() < 0.5):
            epoch = None if random.random() < 0.15 else max(0, self.epochs[partition] - is_stale)
            self.emit(do="resign", partition=partition, epoch=epoch)
            if random.random() < 0.5:
                return
            self.now += random.choice([0, 5, 50, 400])
        is_owned = partition in stage.context.owned
        if is_owned and not is_stale:
            return
        if not is_owned and random.random() < 0.3 and (batches := foreign.batches(self, partition)):
            self.emit(do="extend", partition=partition, batches=batches)
        self.elect(partition, -1 if is_stale else 1, is_slow=self.config.get("max_size") == LARGEST_INT and random.random() < 0.3)

    def elect(self, partition: int, by: int, *, is_slow: bool = False) -> None:
        self.epochs[partition] += max(by, 0)
        epoch = self.epochs[partition] + min(by, 0)
        self.emit(do="elect", partition=partition, epoch=epoch, slow=is_slow or None)
