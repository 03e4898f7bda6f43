"""The benchmark of the comparison: what it calls slower, in equal code and in code that is slower.

    python -m gemm_report.comparison.power [RECORD...] [--figure FILE]

Simulated processes have the cases of the last record, and noise of five kinds; real ones are drawn
from the records, which are of fresh processes of one program (default: those of equal code in
results). A run is one comparison of all cases, without a calibration. Beside it stand the rules of
other tools, on the same samples.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gemm_report.comparison.run import run_of
from gemm_report.comparison.trials import KINDS, Resampled, Simulated, Trial
from gemm_report.comparison.verdict import Comparison, Process, Verdict, compare, process
from gemm_report.record import Record, Row, read_record
from gemm_report.writing.tables import columns

RESULTS = Path(__file__).parents[3] / "results"
PROCESSES = (1, 3, 5)
SLOWDOWNS = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20)

Rule = Callable[[Trial], list[bool]]
Source = Simulated | Resampled


def ours(trial: Trial) -> list[bool]:
    """Which cases are called slower, in the order of names."""
    slower = {c.name for c in compare(trial.base, trial.new).cases if c.verdict is Verdict.SLOWER}
    return [name in slower for name in trial.names]


def mann_whitney(trial: Trial) -> list[bool]:
    """As in Google Benchmark's compare.py: p < 5 %, of all samples of a side."""
    from scipy.stats import mannwhitneyu

    old, new = ([np.concatenate(case) for case in zip(*side)] for side in trial.samples)
    return [
        bool(mannwhitneyu(b, a).pvalue < 0.05 and np.median(b) > np.median(a))
        for a, b in zip(old, new, strict=True)
    ]


def nvbench(trial: Trial) -> list[bool]:
    """As in nvbench_compare.py: the change exceeds the smaller relative deviation of samples."""
    old, new = ([np.exp(np.concatenate(case)) for case in zip(*side)] for side in trial.samples)
    return [
        bool(b.mean() / a.mean() - 1 > min(a.std() / a.mean(), b.std() / b.mean()))
        for a, b in zip(old, new, strict=True)
    ]


def five_percent(trial: Trial) -> list[bool]:
    """The medians are more than 5 % apart."""
    old, new = ([np.median(np.concatenate(case)) for case in zip(*side)] for side in trial.samples)
    return [bool(b - a > math.log(1.05)) for a, b in zip(old, new, strict=True)]


RULES: Mapping[str, Rule] = {
    "gemm-report": ours,
    "Mann-Whitney (compare.py)": mann_whitney,
    "nvbench_compare": nvbench,
    "5 % threshold": five_percent,
}
