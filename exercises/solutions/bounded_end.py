"""Solution: restart a running broker that has not deleted its copy, else wait for dead brokers, and forget the topic on day 4."""


def next_step(replicas, alive, day):
    """Return today's step for a topic that is not deleted yet: "wait", ("restart", broker) or "forget"."""
    for broker, state in replicas.items():
        if broker in alive and state != "ReplicaDeletionSuccessful":
            return ("restart", broker)
    return "wait" if day < 4 else "forget"
