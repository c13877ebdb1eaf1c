"""The reference."""


def check(told, mine):
    """The epoch that refuses: "broker", "controller", "leader"; or "obey"."""
    if 0 <= told["broker"] < mine["broker"]:
        return "broker"
    if told["controller"] < mine["controller"]:
        return "controller"
    return "leader" if told["leader"] <= mine["leader"] else "obey"
