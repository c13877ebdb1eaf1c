"""Random runs for the tables: clusters of several releases whose brokers, topics and consumer groups meet faults."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from kcontrol import Lab
from kcontrol.core.errors import UserError

RELEASES = ("0.8.1", "0.9", "0.11.0", "1.1", "2.4", "2.8", "3.9")


def random_run(seed: int) -> Lab:
    """Return a cluster of four brokers to which about twenty random actions of operators, clients and faults have happened."""
    choose = random.Random(seed)
    release = RELEASES[seed % len(RELEASES)]
    groups = {"anna": "billing", "bert": "billing"} if seed % 2 and release != "0.8.1" else None
    topics = {"t": [[1, 2], [2, 3], [3, 4, 1]]} | ({"__consumer_offsets": [[1, 2, 3]]} if groups else {})
    lab = Lab(brokers=4, release=release, seed=seed, topics=topics, consumers=groups, data=choose.random() < 0.5, runs=None)
    lab.run()
    for number in range(20):
        try:
            lab.step(choose.choice(list(_possible(lab, choose, number))))
            if choose.random() < 0.75:
                lab.run()
        except UserError:
            continue
    return lab


def _possible(lab: Lab, choose: random.Random, number: int) -> Iterator[tuple[Any, ...]]:
    """Yield one action of each sort that the cluster can be asked for."""
    broker = choose.randint(1, 4)
    yield from ((kind, broker) for kind in ("kill", "start", "start", "terminate", "freeze", "thaw", "thaw", "expire_session"))
    yield ("create_topic", f"n{number}", ((1, 2), (broker,)))
    yield ("delete_topic", choose.choice(["t", f"n{number - 3}"]))
    targets = tuple(choose.sample(range(1, 5), 2))
    yield ("reassign", choose.randint(1, 4), {f"t-{choose.randint(0, 2)}": targets})
    request = f'{{"version":1,"partitions":[{{"topic":"t","partition":0,"replicas":{list(targets)}}}]}}'
    yield ("create", "/admin/reassign_partitions", request)
    yield ("delete", "/controller")
    yield ("set", "/controller", "nonsense" if not choose.randint(0, 9) else f'{{"version":1,"brokerid":{broker}}}')
    state = f'{{"controller_epoch":1,"leader":{broker},"version":1,"leader_epoch":7,"isr":[{broker}]}}'
    yield ("set", "/brokers/topics/t/partitions/0/state", state)
    yield ("produce", broker, f"t-{choose.randint(0, 2)}", f"v{number}", choose.choice([1, "all"]))
    consumer = choose.choice(["anna", "bert"])
    yield from ((request, consumer) for request in ("join", "join", "sync", "heartbeat", "leave"))
    yield ("commit", consumer, "t-0", number)
    fires = [tuple(action) for action in lab.actions() if action[0] == "fire_timer"]
    yield from choose.sample(fires, min(2, len(fires)))
