"""Variances that are known from a handful of processes, made steadier by those of all cases.

Empirical Bayes after Smyth (2004), as limma has it for genes: the true variances of the cases of a
group scatter like s0^2 d0 / chi^2(d0). How far the observed ones scatter beyond what their degrees
of freedom explain gives d0; their level gives s0^2. A case's variance is then the mean of its own
and s0^2, weighted by degrees of freedom, and has the degrees of both: one that by chance looked
quiet in six processes no longer raises an alarm in the seventh. One that scatters more than its
group keeps its own: it may be another kind of case. s0^2 and d0 are taken from quantiles and
not, as there, from moments, so that a few wild cases do not make all others wide.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri

# Between these d0 is looked for. Groups on GPUs have 1.5 to 7; a dozen cases may look as if they
# had equal variances, and those of one comparison share what happened to its processes.
_FEWEST_DEGREES, _MOST_DEGREES = 0.5, 6.0

_LOW, _MIDDLE, _HIGH = 0.1, 0.5, 0.9


@dataclass(frozen=True)
class Variance:
    """An estimate, and its degrees of freedom."""

    value: float
    degrees: float


def pooled(variances: Sequence[Variance]) -> Variance:
    """One estimate from several independent ones of the same."""
    degrees = sum(each.degrees for each in variances)
    return Variance(sum(each.value * each.degrees for each in variances) / degrees, degrees)


def moderated(own: Variance, prior: Variance) -> Variance:
    """A case's own estimate, drawn towards that of its class where that is larger."""
    both = pooled([own, prior])
    return Variance(max(own.value, both.value), both.degrees)


def prior(variances: Sequence[Variance]) -> Variance:
    """s0^2 and d0 of a group: variances over s0^2 are like F with their degrees and d0."""
    degrees = float(np.median([each.degrees for each in variances]))
    values = np.array([each.value for each in variances])
    # Medians that a coarse timer made equal have no logarithm.
    values = np.maximum(values, max(1e-5 * float(np.median(values)), 1e-14))
    low, middle, high = np.quantile(values, [_LOW, _MIDDLE, _HIGH])

    fewest, most = _FEWEST_DEGREES, _MOST_DEGREES
    while most > 1.001 * fewest:
        d0 = (fewest * most) ** 0.5
        too_wide = fdtri(degrees, d0, _HIGH) / fdtri(degrees, d0, _LOW) > high / low
        fewest, most = (d0, most) if too_wide else (fewest, d0)
    return Variance(float(middle / fdtri(degrees, most, _MIDDLE)), most)
