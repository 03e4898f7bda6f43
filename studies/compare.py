"""What the rule of `tools/report compare` finds in processes whose differences are known.

    PYTHONPATH=report python studies/compare.py [--seed 2026] [--runs 500]

The constants of the rule were chosen on seeds 1 and 2; the tables in docs/comparing.md are of seed
2026. A comparison has three processes a side in the order A B B A, 100 cases (24 at the power
limit) and 50 samples of each. The rule beside it is that of nvbench-compare-robust on the same
samples: the interval from the minimum to the upper quartile is apart by more than 0.5 %.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gemm_report.collection import record_paths
from gemm_report.comparison.rule import Verdict, judge
from gemm_report.comparison.run import run_of
from gemm_report.grouping import grouped
from gemm_report.record import read_record
from gemm_report.writing.tables import markdown_table

Floats = np.ndarray
Random = np.random.Generator
RESULTS = Path(__file__).resolve().parents[1] / "results"
CASES, SAMPLES, POWER_LIMITED = 100, 50, 24
KINDS = ["throttled"] * POWER_LIMITED + ["GPU"] * (CASES - POWER_LIMITED)
LIMITED = np.array([kind == "throttled" for kind in KINDS])


class Sides(NamedTuple):
    """Log seconds of samples [process, case, sample] of BASE and of NEW, and the kinds."""

    base: Floats
    new: Floats
    kinds: Sequence[str]


def series(random: Random, shape: Sequence[int], correlation: float) -> Floats:
    """Normal noise of which neighbours along the last axis are alike."""
    noise = random.normal(size=shape)
    for i in range(1, shape[-1] if correlation else 0):
        new = noise[..., i] * math.sqrt(1 - correlation**2)
        noise[..., i] = correlation * noise[..., i - 1] + new
    return noise


def scattered(random: Random) -> Floats:
    """Standard deviations of cases: 0.1 %, at the power limit 0.4 %, over chi^2 of 3 degrees."""
    usual = np.where(LIMITED, 0.004, 0.001)
    return usual / np.sqrt(random.chisquare(3, CASES) / 3)


def at_speeds(random: Random, count: int, cases: int, speeds: Callable[[], Floats]) -> Floats:
    """Some cases take one of several speeds in each process."""
    values = np.zeros((count, CASES))
    for i in random.permutation(CASES)[:cases]:
        values[:, i] = random.choice(speeds(), count)
    return values


def usual(random: Random, count: int) -> Floats:
    """Medians of processes."""
    return random.normal(size=(count, CASES)) * scattered(random)


def two_speeds(random: Random, count: int) -> Floats:
    """A third of the processes is slow."""
    return usual(random, count) + at_speeds(
        random, count, 5, lambda: np.array([0, 0, np.log1p(random.uniform(0.03, 0.12))])
    )


def three_speeds(random: Random, count: int) -> Floats:
    """0, 3 and 6 %."""
    speeds = np.log1p([0, 0.03, 0.06])
    return usual(random, count) + at_speeds(random, count, 8, lambda: speeds)


def drift(random: Random, count: int) -> Floats:
    """The clock at the power limit: a walk of 1 % and a trend of 0.5 % a process."""
    clock = np.cumsum(random.normal(0.005, 0.01, count))
    return usual(random, count) + clock[:, None] * LIMITED


def hundredfold(random: Random, count: int) -> Floats:
    """Standard deviations from 0.02 to 2 %."""
    return random.normal(size=(count, CASES)) * np.geomspace(0.0002, 0.02, CASES)


MEDIANS: dict[str, Callable[[Random, int], Floats]] = {
    "independent samples": lambda random, count: np.zeros((count, CASES)),
    "processes differ by 0.3 %": lambda r, count: 0.003 * r.normal(size=(count, CASES)),
    "autocorrelated samples, 0.9": lambda random, count: np.zeros((count, CASES)),
    "heavy tails (t, 2 degrees)": lambda r, n: r.standard_t(2, (n, CASES)) * scattered(r),
    "two speeds, 3 to 12 %": two_speeds,
    "two speeds within processes": usual,
    "drift at the power limit": drift,
    "whole process, 1 %": lambda r, n: usual(r, n) + 0.01 * r.normal(size=(n, 1)),
    "deviations 100-fold apart": hundredfold,
    "three speeds, 0, 3, 6 %": three_speeds,
    "one process in 12 8 % slow": lambda r, n: usual(r, n) + 0.077 * (r.random((n, CASES)) < 1 / 12),
    "one process in ten wholly 6 % slow": lambda r, n: usual(r, n)
    + 0.058 * (r.random((n, 1)) < 0.1),
}


def simulated(kind: str, random: Random, processes: int, planted: Floats) -> Sides:
    """Two sides of which NEW has these log slowdowns of its cases."""
    count = 2 * processes
    new = np.arange(count) % 4 % 3 > 0  # A B B A
    medians = MEDIANS[kind](random, count) + planted * new[:, None]
    correlated = "autocorrelated" in kind
    noise = series(random, (count, CASES, SAMPLES), 0.9 if correlated else 0.0)
    samples = medians[:, :, None] + noise * (0.01 if correlated else 0.003)
    if "within" in kind:
        for i in random.permutation(CASES)[:8]:
            share = random.random((count, 1))
            slow = random.random((count, SAMPLES)) < share
            samples[:, i] += slow * np.log1p(random.uniform(0.03, 0.12))
    return Sides(samples[~new], samples[new], KINDS)


class Real:
    """Processes of one program on one GPU; samples are few quantiles of each case's."""

    def __init__(self, paths: Sequence[Path]) -> None:
        runs = [run_of(read_record(path)) for path in paths]
        names = [name for name in runs[0].timed if all(name in run.timed for run in runs)]
        rows = [[run.timed[name].row for run in runs] for name in names]
        self.kinds = ["throttled" if any(r and r.throttled for r in of) else "GPU" for of in rows]
        quantiles = np.linspace(0, 1, SAMPLES)
        self.samples = np.array(
            [
                [np.quantile(np.log(run.timed[name].samples_seconds), quantiles) for name in names]
                for run in runs
            ]
        )

    def whole(self, random: Random, processes: int, planted: Floats) -> Sides:
        """Whole processes, none twice."""
        picked = self.samples[random.permutation(len(self.samples))[: 2 * processes]]
        return Sides(picked[:processes], picked[processes:] + planted[:, None], self.kinds)

    def drawn(self, random: Random, processes: int, planted: Floats) -> Sides:
        """Each case draws its own processes, and may draw one twice."""
        n = len(self.samples)
        picked = random.integers(n, size=(2 * processes, len(self.kinds)))
        samples = self.samples[picked, np.arange(len(self.kinds))]
        return Sides(samples[:processes], samples[processes:] + planted[:, None], self.kinds)


def ours(sides: Sides) -> tuple[Floats, bool]:
    """Which cases are slower, and whether the comparison is green."""
    judged = judge(np.median(sides.base, 2), np.median(sides.new, 2), sides.kinds)
    slower = np.array([case.verdict is Verdict.SLOWER for case in judged.cases])
    return slower, not (slower.any() or judged.doubtful or judged.unseen(0.1) > 0.05 * len(sides.kinds))


def robust(sides: Sides) -> tuple[Floats, bool]:
    """nvbench-compare-robust: [minimum, upper quartile] apart by 0.5 %."""
    pooled = [np.concatenate(list(side), axis=-1) for side in (sides.base, sides.new)]
    slower = pooled[1].min(1) > np.quantile(pooled[0], 0.75, axis=1) + math.log(1.005)
    return slower, not slower.any()
