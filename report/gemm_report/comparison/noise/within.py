"""How well the samples of one process know their median.

Samples of a power-capped GPU are autocorrelated for a fifth of a second, so that neighbours are
drawn together: a bootstrap of circular blocks. A block is almost twice as long as what is worth one
independent sample (their number over the effective count of bench/timing/timing.hpp): one of that
length would cut half of the correlated samples. Only the variance is taken from the draws: the
tails that a correction for hundreds of cases needs are far beyond what a thousand draws can show.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gemm_report.comparison.noise.moderation import Variance, pooled

_DRAWS = 256
_SEED = 1

# Fewer samples hardly tell how they scatter: then that of single samples is assumed, too.
_FEW, _ASSUMED = 5, Variance(0.02**2, 4)


@dataclass(frozen=True)
class LogMedian:
    """The logarithm of a median, its variance, and the degrees of freedom of that variance."""

    value: float
    variance: float
    degrees: float


def log_median(samples: Sequence[float]) -> LogMedian:
    """Of one process."""
    values = np.log(np.asarray(samples, dtype=float))
    value, n = float(np.median(values)), len(values)
    if n < _FEW:
        own = [Variance(float(np.var(values, ddof=1)), n - 1)] if n > 1 else []
        one = pooled([*own, _ASSUMED])
        return LogMedian(value, one.value * math.pi / 2 / n, one.degrees)
    count = effective_count(values)
    block = int(np.clip(np.ceil(2 * len(values) / count) - 1, 1, max(1, len(values) // 2)))
    medians = np.median(values[_picks(len(values), block)], axis=1)
    return LogMedian(value, float(np.var(medians, ddof=1)), max(1.0, count - 1))


def effective_count(samples: NDArray[np.float64]) -> float:
    """How many independent samples are worth as much as these, as bench/timing/timing.hpp has."""
    n = len(samples)
    centred = samples - samples.mean()
    covariance = np.correlate(centred, centred, "full")[n - 1 :]
    if not covariance[0] > 1e-20 * n:  # they differ by rounding at most
        return float(n)
    correlation = covariance[1 : max(1, n // 2)] / covariance[0]
    ends = np.flatnonzero(correlation <= 0)
    time = 1 + 2 * correlation[: ends[0] if len(ends) else None].sum()
    return max(1.0, n / time)


@lru_cache(maxsize=512)
def _picks(n: int, block: int) -> NDArray[np.int32]:
    """Which samples each draw takes."""
    starts = np.random.default_rng(_SEED).integers(n, size=(_DRAWS, -(-n // block)), dtype=np.int32)
    runs = starts[:, :, None] + np.arange(block, dtype=np.int32)
    return (runs % n).reshape(_DRAWS, -1)[:, :n]
