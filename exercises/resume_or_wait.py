"""Exercise: which steps of a deletion are due? Fill in about 5 lines, then exercises.check("resume-or-wait", due)."""


def due(states, ineligible):
    """Return the due steps of a queued topic's deletion, in order: a list of "complete", "retry" and "start", or [] to wait.

    `states` has one state per replica: "Online", "Offline", "Started", "Successful" or "Ineligible". `ineligible` is True while
    the topic is ineligible for deletion. "complete" deletes its znodes. "retry" makes Ineligible replicas Offline again, and is
    due only with an Ineligible replica. "start" sends StopReplica to live brokers for the copies that are not deleted yet.
    """
    # FILL IN (about 5 lines)
