"""Variances that are known from a handful of processes, made steadier by those of all rows.

Empirical Bayes after Smyth (2004), as limma has it for genes: the true variances of the rows of a
group scatter like s0^2 d0 / chi^2(d0). How far the observed ones scatter beyond what their degrees
of freedom explain gives d0; their level gives s0^2. A row's variance is then the mean of its own
and s0^2, weighted by degrees of freedom, and has the degrees of both: a row that by chance looked
quiet in six processes no longer raises an alarm in the seventh.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Rows of equal noise leave d0 infinite; quantiles do not change any more beyond this.
_MOST_DEGREES = 200.0


@dataclass(frozen=True)
class Variance:
    """An estimate, and its degrees of freedom."""

    value: float
    degrees: float

    @property
    def sum_of_squares(self) -> float:
        """What it was divided from."""
        return self.value * self.degrees


def pooled(variances: Sequence[Variance]) -> Variance:
    """One estimate from several independent ones of the same."""
    degrees = sum(each.degrees for each in variances)
    return Variance(sum(each.sum_of_squares for each in variances) / degrees, degrees)


def moderated(own: Variance | None, prior: Variance) -> Variance:
    """A row's own estimate drawn towards that of its group; the group's where it has none."""
    if own is None:
        return prior
    return pooled([own, prior])


def prior(variances: Sequence[Variance]) -> Variance:
    """s0^2 and d0 of a group, by the moments of the logarithms."""
    from scipy.special import digamma, polygamma

    values = np.array([each.value for each in variances])
    half = np.array([each.degrees for each in variances]) / 2
    # Medians that a coarse timer made equal have no logarithm.
    values = np.maximum(values, max(1e-5 * float(np.median(values)), 1e-14))
    residual = np.log(values) - digamma(half) + np.log(half)
    level = float(residual.mean())
    excess = -1.0
    if len(values) > 1:
        excess = float(residual.var(ddof=1) - polygamma(1, half).mean())
    if excess <= float(polygamma(1, _MOST_DEGREES / 2)):
        return Variance(math.exp(level), _MOST_DEGREES)
    half0 = _inverse_trigamma(excess)
    return Variance(math.exp(level + float(digamma(half0)) - math.log(half0)), 2 * half0)


def _inverse_trigamma(value: float) -> float:
    """By Newton's method on the reciprocal, which is nearly linear (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-9 * x:
            break
    return x
