"""Make random scenarios: 6 to 12 steps that the model allows, the words of which are spread over many scenarios."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

from tests.oracle.model import WORDS, Model, Step

FEWEST, MOST = 6, 12
TRIES = 40
NEVER_MS = 3_600_000
SESSION_MS = 3_000
COLD_SESSION_MS = 110_000  # longer than a scenario keeps a broker frozen
WEIGHTS = {
    "create": 5, "freeze": 6, "expand": 2, "kill": 3, "start": 6, "resume": 5, "reassign": 3, "api-reassign": 2,
    "delete-topic": 2,
}  # fmt: skip
UNCLEAN_SINCE = (0, 8, 2)
NEW_CONTROLLER = ("kill", "term", "pause")


def numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def words_of(release: str) -> tuple[str, ...]:
    """Return the step words that brokers of a release know, in a fixed order."""
    known = numbers(release)
    missing = {"api-reassign"} if known < (2, 4) else set()
    return tuple(word for word in WORDS if word not in missing | ({"delete-topic"} if known < (0, 8, 1) else set()))


def scenario(release: str, seed: int, number: int) -> dict[str, Any]:
    """The scenario with this number of this seed."""
    # Two words of each are due by its number, so each word comes in a tenth of many; two of three lose their first controller.
    drawn = (_draw(release, f"{release}/{seed}/{number}/{again}", number) for again in count())
    return {"name": f"random-{seed}-{number}", **next(made for made in drawn if len(made["steps"]) >= FEWEST)}


def _draw(release: str, seed: str, number: int) -> dict[str, Any]:
    """Return a scenario without a name; it may have come to an early end."""
    chance = Random(seed)
    brokers = list(range(1, chance.randint(3, 6) + 1))
    may_be_unclean = chance.random() < 0.5
    unclean = may_be_unclean if numbers(release) >= UNCLEAN_SINCE else None
    order = chance.sample(brokers, len(brokers))
    cold = order[-1]
    model = Model(numbers(release), brokers, unclean is not False, cold)
    words = words_of(release)
    due = [words[number % len(words)], words[(number * 5 + 7) % len(words)]]
    steps = [{"start": order}]
    model.do(steps[0])
    takes = order[0] if number % 3 < 2 else None
    length = chance.randint(FEWEST, MOST)
    while len(steps) < length:
        step = _next(model, chance, due, first=len(steps) == 1, takes=takes if len(steps) >= 3 else None)
        if step is None:
            break
        due = [word for word in due if word not in step]
        takes = None if any(step.get(word) == takes for word in NEW_CONTROLLER) else takes
        model.do(step)
        steps.append(step)
    for word in ("resume", "znode-delete"):  # the end shows what a thaw, or a controller, makes of it
        if (word == "resume" and model.frozen) or (word == "znode-delete" and model.overwritten):
            steps += [step for step in [model.possible(word, chance)] if step]
            model.do(steps[-1])
    return {"brokers": brokers, "unclean": unclean, "session_timeout_ms": SESSION_MS,
            "settings": settings(release, brokers, cold), "steps": steps}  # fmt: skip


def _next(model: Model, chance: Random, due: list[str], *, first: bool, takes: int | None) -> Step | None:
    """Return the next step: a topic first, the loss of the first controller where it is time, what is due, or anything."""
    if first:
        return model.possible("create", chance)
    if takes is not None and takes in model._may_leave() and model.is_calm and not model.paused:
        return {chance.choice(NEW_CONTROLLER): takes}
    for word in due if chance.random() < 0.6 else ():
        if step := model.possible(word, chance):
            return step
    words = list(words_of(".".join(map(str, model.release))))
    for _ in range(TRIES):
        word = chance.choices(words, [WEIGHTS.get(word, 1) for word in words])[0]
        if model.frozen and chance.random() < 0.4:
            word = "resume"
        if step := model.possible(word, chance):
            return step
    return None


def settings(release: str, brokers: list[int], cold: int) -> dict[int, dict[str, Any]]:
    """Return settings of brokers under which no timer falls into a step, and one broker keeps its session while it is frozen."""
    never = {"replica.lag.time.max.ms": NEVER_MS, "replica.socket.timeout.ms": NEVER_MS, "controller.socket.timeout.ms": NEVER_MS}
    if numbers(release) < (0, 9):
        never["replica.lag.max.messages"] = 1_000_000
    return {b: {**never, **({"zookeeper.session.timeout.ms": COLD_SESSION_MS} if b == cold else {})} for b in brokers}


def is_possible(release: str, made: dict[str, Any], steps: list[Step]) -> bool:
    """Return whether the model allows some of a scenario's steps alone: what a step is about is there, and none fails."""
    if not steps or "start" not in steps[0]:
        return False
    model = Model(numbers(release), made["brokers"], made["unclean"] is not False, steps[0]["start"][-1])
    for step in steps:
        if not _fits(model, step):
            return False
        model.do(step)
    return True


def _fits(model: Model, step: Step) -> bool:
    word = next(iter(step))
    argument = step[word]
    if word == "start":
        return isinstance(argument, list) or argument in model.dead
    if word in ("kill", "term", "pause"):
        return argument in model._may_leave() and (word != "term" or model.is_calm)
    if word == "resume":
        return argument in model.paused | model.frozen
    if word == "expand":
        return all(t in model.topics and t not in model.deleted for t in argument)
    if word == "delete-topic":
        return argument in model.topics and argument not in model.deleted
    if word in ("reassign", "api-reassign", "prefer"):
        led = {f"{t}-{n}": p for t, n, p in model.partitions() if (p.was_led if word == "prefer" else p.leader in model.awake)}
        members = set() if word == "prefer" else {b for target in argument.values() for b in target}
        return model.is_calm and all(name in led for name in argument) and members <= set(model.brokers)
    return model.possible(word, Random(0)) is not None
