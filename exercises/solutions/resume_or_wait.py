"""Solution: complete what is gone everywhere; wait while somebody works; then retry what failed, and start what may start."""


def due(states, ineligible):
    """The steps that are due for a queued topic, in order: a list of "complete", "retry" and "start", or [] to wait."""
    if all(state == "Successful" for state in states):
        return ["complete"]
    if "Started" in states:
        return []
    again = ["retry"] if "Ineligible" in states else []
    return again if ineligible else [*again, "start"]
