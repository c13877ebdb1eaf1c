"""Solution: an older broker or controller epoch refuses, and so does a leader epoch that is not newer."""


def check(told, mine):
    """Return the first epoch that makes the broker refuse: "broker", "controller" or "leader"; or "obey"."""
    if 0 <= told["broker"] < mine["broker"]:
        return "broker"
    if told["controller"] < mine["controller"]:
        return "controller"
    return "leader" if told["leader"] <= mine["leader"] else "obey"
