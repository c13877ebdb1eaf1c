"""A time limit for calls of mutated answers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest


class TooLong(Exception):
    """What was called has not come to an end."""


@pytest.fixture
def at_most() -> Callable[..., Any]:
    """Calls a function, and raises TooLong after that many seconds of computing."""

    def call(seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
        def stop(*_: Any) -> None:
            raise TooLong

        before = signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            return function(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)

    return call
