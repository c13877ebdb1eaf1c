"""Exercise: which epoch refuses? Fill in about 5 lines, then check them with exercises.check("the-epoch-check", check)."""


def check(request, mine):
    """Return the first epoch that makes the broker refuse: "broker", "controller" or "leader"; or "obey".

    Both arguments are dicts of numbers with the keys "broker", "controller" and "leader": the epochs in LeaderAndIsr, and those
    in the broker's memory. A broker epoch of -1 is not checked.
    """
    # FILL IN (about 5 lines)
