"""What the fast tier has of a test with many cases. The tier `--all` has every case."""

from collections.abc import Iterable
from typing import Any

import pytest

DESIGNS = ("0.8.2", "1.0", "2.8")
"""A release of each of the controller's three designs."""


def slow_but(values: Iterable[Any], *fast: Any) -> list[Any]:
    """The values as parameters, all of them slow but those in `fast`, which must be among them."""
    every = list(values)
    assert set(fast) <= set(every), f"{set(fast) - set(every)} are no cases"
    return [value if value in fast else pytest.param(value, marks=pytest.mark.slow) for value in every]
