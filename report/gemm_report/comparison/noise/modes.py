"""Levels between which fresh processes of equal code change, though each keeps to its own.

On an H200 three of 39 FP32 cases ran 3, 8 and 11 % slower in two processes of six, at the same
clock and with samples within 0.3 % of each other. No variance tells this: it would either hide a
slowdown of 3 %, or call the other level one.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from gemm_report.comparison.noise.moderation import Variance

# Of logarithms. A gap is one if it is wide, and many times the scatter beside it: what a power cap
# does to medians is wide, too, but leaves no gap.
_WIDE = 0.015
_MANY_TIMES = 8.0


class Mode(NamedTuple):
    """Around which some processes are."""

    value: float
    processes: int


class Scatter(NamedTuple):
    """Of log medians: the modes, and the variance around them."""

    variance: Variance
    modes: tuple[Mode, ...]


def scatter(values: Sequence[float]) -> Scatter:
    """Of two processes or more; one level where no gap shows."""
    ordered = sorted(values)
    groups = [[ordered[0]]]
    for before, after in pairwise(ordered):
        if after - before > _WIDE:
            groups.append([])
        groups[-1].append(after)
    degrees = len(values) - len(groups)
    if len(groups) > 1 and degrees > 0:
        around = _variance(groups)
        gap = min(after[0] - before[-1] for before, after in pairwise(groups))
        if gap**2 > _MANY_TIMES**2 * around.value:
            return Scatter(around, tuple(Mode(fmean(group), len(group)) for group in groups))
    return Scatter(_variance([ordered]), (Mode(fmean(values), len(values)),))


def _variance(groups: Sequence[Sequence[float]]) -> Variance:
    degrees = sum(map(len, groups)) - len(groups)
    means = [fmean(group) for group in groups]
    squares = sum(
        (value - mean) ** 2 for group, mean in zip(groups, means, strict=True) for value in group
    )
    return Variance(squares / degrees, degrees)
