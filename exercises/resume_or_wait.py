"""Exercise: which steps of a deletion are due? Fill in about 5 lines, then lab.check("resume-or-wait", due)."""


def due(states, ineligible):
    """The steps that are due for a queued topic, in order: a list of "complete", "retry" and "start", or [] to wait.

    `states` has one state per replica: "Online", "Offline", "Started", "Successful" or "Ineligible". `ineligible` is True while
    the topic is halted. "complete" takes its znodes away. "retry" makes what is Ineligible Offline again, which is only due where
    there is something Ineligible. "start" tells living brokers to delete what they have not yet deleted.
    """
    # FILL IN (about 5 lines)
