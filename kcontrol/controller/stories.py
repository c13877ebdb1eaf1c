"""How stories are put together where Kafka has a `finally`.

A plain `finally` must not ask for anything: a suspended handler whose process dies is closed, and may then no longer yield.
"""

from __future__ import annotations

from kcontrol.effects import Handler


def afterwards(story: Handler, ending: Handler) -> Handler:
    """Tell `story`, then `ending`, even if the story fails; then its error goes on. Return what the story returns."""
    try:
        result = yield from story
    except Exception:
        yield from ending
        raise
    yield from ending
    return result
