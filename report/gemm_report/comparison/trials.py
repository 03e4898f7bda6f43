"""Processes whose truth is known: simulated, or drawn from records of equal code.

A trial is two sides of processes, in the order A B B A, of cases that are equal but for a planted
slowdown. A planted case has other machine code.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gemm_report.comparison.noise.within import LogMedian
from gemm_report.comparison.run import Run, Timed
from gemm_report.record import Record

Floats = NDArray[np.float64]

KINDS = ("independent", "autocorrelated", "heavy tails", "two speeds", "throttling drift")

CASES, SAMPLES = 100, 50
# Of log medians of fresh processes, at the power cap and not; of samples inside a process.
_SD, _SD_THROTTLED, _SD_SAMPLES = 0.001, 0.004, 0.003
# Variances of cases scatter like those of the six processes on an H200.
_DEGREES = 3
_CORRELATION = 0.8
# Of 100 cases at two speeds, their distances, and the share of slow processes.
_TWO_SPEEDS, _APART, _SLOW = 5, (0.03, 0.12), 1 / 3
# Of the clock at the power cap: a walk, and a trend, for each process.
_WALK, _TREND = 0.01, 0.005


@dataclass(frozen=True)
class Known(Timed):
    """A case whose medians are given, whatever its samples."""

    medians: tuple[LogMedian, LogMedian | None] | None = None


@dataclass(frozen=True)
class Trial:
    """Two sides; `samples` are log seconds by side, process and case, in the order of `names`."""

    base: Sequence[Run]
    new: Sequence[Run]
    samples: tuple[Sequence[Sequence[Floats]], ...]
    names: Sequence[str]


class Simulated:
    """Cases of a record, with the noise of one kind."""

    def __init__(self, record: Record, kind: str, seed: int) -> None:
        self.kind = kind
        self.rng = np.random.default_rng([seed, KINDS.index(kind)])
        rows = {str(row.identity): row for row in record.rows if row.status == "timed"}
        picked = sorted(self.rng.permutation(len(rows))[:CASES])
        self.rows = {name: rows[name] for name in (list(rows)[i] for i in picked)}
        self._throttled = np.array([row.throttled for row in self.rows.values()])
        timed = {name: Known(name, (1.0,) * SAMPLES, row) for name, row in self.rows.items()}
        run = Run(Path("simulated.json"), record.device.name, timed, {}, record)
        self._runs = [_of_code(run, code) for code in ("code", "other code")]

    def trial(self, processes: int, slowdown: float = 0.0) -> Trial:
        """A new draw, in which every case of NEW is slower, and has a variance of its own."""
        rng, n, count = self.rng, len(self.rows), 2 * processes
        new = np.arange(count) % 4 % 3 > 0  # A B B A
        medians = self._medians(count) + np.log1p(slowdown) * new[:, None]
        phi = _CORRELATION if self.kind == "autocorrelated" else 0.0
        samples = medians[:, :, None] + _SD_SAMPLES * _series(rng, (count, n, SAMPLES), phi)
        effective = SAMPLES * (1 - phi) / (1 + phi)
        known = np.median(samples, axis=2), np.var(samples, axis=2) * math.pi / 2 / effective
        sides: list[list[Run]] = [[], []]
        for i, side in enumerate(new):
            run = self._runs[bool(side and slowdown)]
            cases = zip(run.timed.values(), *(each[i].tolist() for each in known), strict=True)
            timed = {
                case.name: replace(case, medians=(LogMedian(*about, effective), None))
                for case, *about in cases
            }
            sides[int(side)].append(replace(run, timed=timed))
        return Trial(*sides, (list(samples[~new]), list(samples[new])), list(self.rows))

    def _medians(self, count: int) -> Floats:
        """Logarithms, by process and case."""
        rng, n = self.rng, len(self.rows)
        usual = np.where(self._throttled, _SD_THROTTLED, _SD)
        noise = _series(rng, (n, count), _CORRELATION * (self.kind == "autocorrelated")).T
        if self.kind == "heavy tails":
            noise = rng.standard_t(2, size=(count, n))
        medians = noise * usual / np.sqrt(rng.chisquare(_DEGREES, n) / _DEGREES)
        if self.kind == "two speeds":
            chosen = rng.permutation(n)[:_TWO_SPEEDS]
            slow = rng.random((count, len(chosen))) < _SLOW
            medians[:, chosen] += slow * np.log1p(rng.uniform(*_APART, len(chosen)))
        if self.kind == "throttling drift":
            clock = np.cumsum(rng.normal(_TREND, _WALK, count))
            medians += clock[:, None] * self._throttled
        return medians


class Resampled:
    """Processes of equal code: each case draws its own, so that few give many trials."""

    def __init__(self, runs: Sequence[Run], seed: int) -> None:
        self.rng = np.random.default_rng([seed, len(KINDS)])
        shared = set.intersection(*(set(run.timed) for run in runs))
        first = runs[0].timed
        self.rows = {name: each.row for name, each in first.items() if name in shared and each.row}
        self._runs = [[_of_code(run, code) for run in runs] for code in ("code", "other code")]
        self._logs = [
            {name: np.log(run.timed[name].samples_seconds) for name in self.rows} for run in runs
        ]

    def trial(self, processes: int, slowdown: float = 0.0) -> Trial:
        """A new draw; a process is drawn twice only where there are too few."""
        count, of, shift = 2 * processes, len(self._logs), math.log1p(slowdown)
        picks = [self.rng.choice(of, count, replace=count > of) for _ in self.rows]
        sides: list[list[Run]] = [[], []]
        samples: list[list[list[Floats]]] = [[], []]
        for i in range(count):
            new = i >= processes
            runs = self._runs[bool(new and slowdown)]
            chosen = [(name, pick[i]) for name, pick in zip(self.rows, picks, strict=True)]
            timed = {name: _moved(runs[j].timed[name], shift * new) for name, j in chosen}
            sides[new].append(replace(runs[0], timed=timed))
            samples[new].append([self._logs[j][name] + shift * new for name, j in chosen])
        return Trial(*sides, tuple(samples), list(self.rows))


def _series(rng: np.random.Generator, shape: tuple[int, ...], phi: float) -> Floats:
    noise = rng.normal(size=shape)
    for i in range(1, shape[-1] if phi else 0):
        noise[..., i] = phi * noise[..., i - 1] + noise[..., i] * (1 - phi**2) ** 0.5
    return noise


def _of_code(run: Run, code: str) -> Run:
    """The same with this machine code in all cases."""
    timed = {
        name: replace(each, row=each.row and replace(each.row, fingerprint=code, device_code=()))
        for name, each in run.timed.items()
    }
    return replace(run, timed=timed)


def _moved(case: Timed, shift: float) -> Known:
    """The same with other log medians."""
    medians = tuple(each and replace(each, value=each.value + shift) for each in case.medians)
    return Known(case.name, case.samples_seconds, case.row, medians=medians)
