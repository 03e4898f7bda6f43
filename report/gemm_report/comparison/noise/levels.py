"""Levels between which fresh processes of equal code change, though each keeps to its own.

On an H200 three of 39 FP32 cases ran 3, 8 and 11 % slower in two processes of six, at the same
clock and with samples within 0.3 % of each other. No variance tells this: it would either hide a
slowdown of 3 %, or call the other level one.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from gemm_report.comparison.noise.moderation import Variance

# Of logarithms. A gap is one if it is wide, and many times the usual scatter of such cases.
_WIDE = 0.015
_MANY_TIMES = 5.0

# How far apart two speeds of equal code may be: 12 % was seen on an H200. Of two levels each
# process takes the slow one with this chance at least.
WIDEST = math.log(1.15)
RAREST = 1 / 3


def levels(values: Sequence[float], variance: float) -> list[list[int]]:
    """Which of one side's log medians belong together, the fastest first, as their indices.

    `variance` is the usual one of such cases. More than two levels are no levels, but a case that
    scatters more than others.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    gap = max(_WIDE, _MANY_TIMES * math.sqrt(variance))
    found = [order[:1]]
    for before, after in pairwise(order):
        if values[after] - values[before] > gap:
            found.append([])
        found[-1].append(after)
    return found if len(found) <= 2 else [order]


def scatter(sides: Sequence[Sequence[float]], variance: float) -> Variance | None:
    """Around the levels of each side; None where no level has two processes."""
    groups = [
        [side[i] for i in level] for side in sides if side for level in levels(side, variance)
    ]
    degrees = sum(len(group) - 1 for group in groups)
    if not degrees:
        return None
    means = [fmean(group) for group in groups]
    squares = sum(
        (value - mean) ** 2 for group, mean in zip(groups, means, strict=True) for value in group
    )
    return Variance(squares / degrees, degrees)
