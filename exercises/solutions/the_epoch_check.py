"""Solution: an older broker or controller epoch refuses, and so does a leader epoch that is not newer."""


def check(request, mine):
    """Return the first epoch that makes the broker refuse: "broker", "controller" or "leader"; or "obey"."""
    if 0 <= request["broker"] < mine["broker"]:
        return "broker"
    if request["controller"] < mine["controller"]:
        return "controller"
    return "leader" if request["leader"] <= mine["leader"] else "obey"
