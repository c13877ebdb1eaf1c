"""Check that every deletion ends in time, that the right copies remain on disks, and that no broker restarts needlessly."""

from kcontrol.core.errors import UserError
from kcontrol.lab.exercises.check_kinds import A_FUNCTION
from kcontrol.lab.exercises.checks import Case, CheckedAnswer, CheckKind, UnusableAnswer, ask, do, play, short

TOPIC = "/brokers/topics/t"
DAYS = 4


def prepare(entry):
    """Play every scenario of the exercise's table `entry` once, and return a function that checks an answer.

    It forks each run and calls the answer as the operator, once a day for four days.
    """
    runs = [(scenario, play(_beginning(scenario))) for scenario in entry["scenario"]]
    return lambda mine: CheckedAnswer([case for scenario, lab in runs for case in _cases(scenario, lab, mine)])


def _beginning(scenario):
    return {key: value for key, value in scenario.items() if key not in ("happens", "left", "restarts")}


def _cases(scenario, begun, mine):
    happens = {day: act for day, *act in scenario["happens"]}
    with begun.branch() as lab:
        steps = [_live(lab, 1, happens, mine)]
        if steps[0] is None:
            yield Case(f"{scenario['title']}: on day 1 your function returns None.", None, True)
            return
        steps += [_live(lab, day, happens, mine) for day in range(2, DAYS + 1)]
        gone, left = TOPIC not in lab.tables.znodes().index, _copies(lab)
    title, restarts = scenario["title"], sum(step == "restart" for step in steps)
    yield Case(f"{title}: after day {DAYS} the topic is still there.", gone, True)
    yield Case(f"{title}: copies remain on the disks of {left}; {scenario['left']} is right.", left, scenario["left"])
    yield Case(
        f"{title}: your function restarts {restarts} times; {scenario['restarts']} is right.", restarts, scenario["restarts"]
    )


def _live(lab, day, happens, mine):
    """Play one day: the step of the learner's function `mine` while the topic exists, then the day's action in `happens`, if any.

    Return the kind of the step, such as "wait"; "done" if the topic no longer exists, None if `mine` returns None on day 1.
    """
    kind = "done"
    if TOPIC in lab.tables.znodes().index:
        kind = _step(lab, day, mine)
    if day in happens:
        do(lab, happens[day])
    lab.run()
    return kind


def _step(lab, day, mine):
    alive = set(lab.brokers().query("alive").index.tolist())
    replicas = {int(replica.split("@")[1]): state for replica, state in lab.tables.ongoing_deletions().state.items()}
    answer = ask(mine, replicas, alive, day, about=f", when called with {short(replicas)}, {sorted(alive)}, {day}")
    match answer:
        case "wait":
            return answer
        case None if day == 1:
            return None
        case "forget":
            _forget(lab)
        case ("restart", int(broker)) if broker in alive:
            lab.kill(broker).run().start(broker)
        case _:
            raise UnusableAnswer(
                f'On day {day} your function returns {short(answer)}; it must be "wait", "forget" or ("restart", broker) with a '
                "running broker."
            )
    lab.run()
    return answer if isinstance(answer, str) else answer[0]


def _forget(lab):
    below = [path for path in lab.tables.znodes().index if f"{path}/".startswith(f"{TOPIC}/")]
    for path in [*sorted(below, reverse=True), "/config/topics/t", "/admin/delete_topics/t", "/controller"]:
        lab.zk.delete(path)


def _copies(lab):
    try:
        return lab.tables.replica_log("t-0").index.tolist()
    except UserError:
        return []


KIND = CheckKind(prepare, A_FUNCTION, callable)
