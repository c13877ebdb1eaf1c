"""Exercise: which epoch refuses? Fill in about 5 lines, then check them with lab.check("the-epoch-check", check)."""


def check(told, mine):
    """The epoch that refuses: "broker", "controller", "leader"; or "obey".

    Both are dicts of numbers with the keys "broker", "controller" and "leader": the epochs that LeaderAndIsr names, and those
    that the broker knows. A broker epoch of -1 says nothing.
    """
    # FILL IN (about 5 lines)
