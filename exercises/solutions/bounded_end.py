"""Solution: restart whoever runs and has not deleted its copy, wait for the dead, and forget the topic when time is up."""


def next_step(replicas, alive, day):
    """What to do today about a topic that is still there: "wait", ("restart", broker) or "forget"."""
    for broker, state in replicas.items():
        if broker in alive and state != "ReplicaDeletionSuccessful":
            return ("restart", broker)
    return "wait" if day < 4 else "forget"
