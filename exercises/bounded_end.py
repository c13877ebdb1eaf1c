"""Exercise: an end for every deletion, on the fourth day at the latest. Then lab.check("bounded-end", next_step)."""


def next_step(replicas, alive, day):
    """What to do today about a topic that is still there: "wait", ("restart", broker) or "forget".

    `replicas` has the state of each broker's replica in the controller's memory, such as {2: "ReplicaDeletionSuccessful",
    3: "OfflineReplica"}; `alive` is the set of brokers that run; `day` counts from 1. "forget" deletes the topic's znodes and the
    request by hand, then /controller: whoever is dead keeps its copy, and brings it back.
    """
    # FILL IN (about 4 lines)
