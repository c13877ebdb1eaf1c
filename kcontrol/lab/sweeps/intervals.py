"""Confidence intervals of 95 % for a proportion and for a median, by closed formulas.

The interval of a median assumes only that the values are independent.

Source: Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927; Newcombe, Two-sided confidence
intervals for the single proportion, 1998, method 3. Conover, Practical Nonparametric Statistics, 3.2 (order statistics).
"""

from collections.abc import Sequence
from math import comb, sqrt
from statistics import NormalDist, median
from typing import NamedTuple

LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
TAIL = 40
"""At most one of 40 samples has an interval that ends below the median, and at most one of 40 has one that begins above it."""


class Estimate(NamedTuple):
    """An estimated value with the lower and the upper end of its 95 % confidence interval; an unknown number is None."""

    value: float | None
    low: float | None
    high: float | None


def proportion(hits: int, number: int) -> Estimate:
    """Return the proportion of `hits` in `number` runs with Wilson's score interval; (None, None, None) for no run."""
    if not number:
        return Estimate(None, None, None)
    share, spread = hits / number, Z * Z / number
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * sqrt(share * (1 - share) / number + spread / (4 * number))
    return Estimate(share, 0.0 if hits == 0 else middle - half, 1.0 if hits == number else middle + half)


def middle_value(values: Sequence[float]) -> Estimate:
    """The median and its 95 % interval; None for the ends of fewer than six values."""
    if not values:
        return Estimate(None, None, None)
    # Fewer than six values are too few for a level of 95 %.
    ordered, rank = sorted(values), lower_rank(len(values))
    ends = (ordered[rank - 1], ordered[len(ordered) - rank]) if rank else (None, None)
    return Estimate(float(median(ordered)), *ends)


def lower_rank(number: int) -> int:
    """The rank, from 1, at which the median's 95 % interval begins; 0 for too small a sample."""
    # The interval ends at the value with this rank from the end. The terms are whole numbers, since 2 ** 1024 is above the
    # largest float; from the middle down there are fewest.
    rank, allowed = (number - 1) // 2, 2**number // TAIL
    term = comb(number, rank)
    below = (2**number - (0 if number % 2 else comb(number, number // 2))) // 2
    while below - term > allowed:
        below, term, rank = below - term, term * rank // (number - rank + 1), rank - 1
    return rank
