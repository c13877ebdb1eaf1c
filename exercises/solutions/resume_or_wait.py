"""Solution: complete a topic without copies; wait while a broker deletes; then retry failed replicas, and start if eligible."""


def due(states, ineligible):
    """Return the due steps of a queued topic's deletion, in order: a list of "complete", "retry" and "start", or [] to wait."""
    if all(state == "Successful" for state in states):
        return ["complete"]
    if "Started" in states:
        return []
    again = ["retry"] if "Ineligible" in states else []
    return again if ineligible else [*again, "start"]
