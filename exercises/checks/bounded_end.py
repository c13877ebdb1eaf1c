"""Whether every deletion ends in time, which copies are left on disks, and how many brokers were restarted for it."""

from kcontrol.errors import UserError
from kcontrol.lab.checks import Broken, Case, Kind, Marked, ask, do, play, short
from kcontrol.lab.kinds import A_FUNCTION

TOPIC = "/brokers/topics/t"
DAYS = 4


def prepare(entry):
    """Every scenario is played once; each answer is the operator in a fork of it, for four days."""
    runs = [(scenario, play(_beginning(scenario))) for scenario in entry["scenario"]]
    return lambda mine: Marked([case for scenario, lab in runs for case in _cases(scenario, lab, mine)])


def _beginning(scenario):
    return {key: value for key, value in scenario.items() if key not in ("happens", "left", "restarts")}


def _cases(scenario, begun, mine):
    happens = {day: act for day, *act in scenario["happens"]}
    with begun.fork() as lab:
        steps = [_live(lab, 1, happens, mine)]
        if steps[0] is None:
            yield Case(f"{scenario['title']}: on day 1 you say nothing.", None, True)
            return
        steps += [_live(lab, day, happens, mine) for day in range(2, DAYS + 1)]
        gone, left = TOPIC not in lab.znodes().index, _copies(lab)
    title, restarts = scenario["title"], sum(step == "restart" for step in steps)
    yield Case(f"{title}: after day {DAYS} the topic is still there.", gone, True)
    yield Case(f"{title}: copies are left on the disks of {left}; {scenario['left']} is right.", left, scenario["left"])
    yield Case(f"{title}: you restart {restarts} times; {scenario['restarts']} is right.", restarts, scenario["restarts"])


def _live(lab, day, happens, mine):
    """One day: the operator's step while the topic is there, then what happens by itself. Returns the kind of the step."""
    kind = "done"
    if TOPIC in lab.znodes().index:
        kind = _step(lab, day, mine)
    if day in happens:
        do(lab, happens[day])
    lab.run()
    return kind


def _step(lab, day, mine):
    alive = set(lab.brokers().query("alive").index.tolist())
    replicas = {int(replica.split("@")[1]): state for replica, state in lab.deletions().state.items()}
    answer = ask(mine, replicas, alive, day, about=f", when asked about {short(replicas)}, alive {sorted(alive)}, day {day}")
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
            raise Broken(f'On day {day} you say {short(answer)}; say "wait", "forget" or ("restart", broker) of one that runs.')
    lab.run()
    return answer if isinstance(answer, str) else answer[0]


def _forget(lab):
    below = [path for path in lab.znodes().index if f"{path}/".startswith(f"{TOPIC}/")]
    for path in [*sorted(below, reverse=True), "/config/topics/t", "/admin/delete_topics/t", "/controller"]:
        lab.delete(path)


def _copies(lab):
    try:
        return lab.log("t-0").index.tolist()
    except UserError:
        return []


KIND = Kind(prepare, A_FUNCTION, callable)
