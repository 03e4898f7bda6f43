"""Processes whose truth is known: simulated, or drawn from records of equal code.

A trial is two sides of processes, in the order A B B A, of cases that are equal but for a planted
slowdown. A planted case has other machine code.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gemm_report.comparison.noise.within import LogMedian
from gemm_report.comparison.run import Run, Timed
from gemm_report.comparison.verdict import Process
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
class Trial:
    """Two sides; `samples` are log seconds by side, process and case, in the order of `names`."""

    base: Sequence[Process]
    new: Sequence[Process]
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
        timed = {name: Timed(name, (1.0,) * SAMPLES, row) for name, row in self.rows.items()}
        like = Run(Path("simulated.json"), record.device.name, {}, {}, record)
        self._runs = [_run(timed, like, code) for code in ("code", "other code")]

    def trial(self, processes: int, slowdown: float = 0.0) -> Trial:
        """A new draw, in which every case of NEW is slower, and has a variance of its own."""
        rng, n, count = self.rng, len(self.rows), 2 * processes
        new = np.arange(count) % 4 % 3 > 0  # A B B A
        medians = self._medians(count) + np.log1p(slowdown) * new[:, None]
        phi = _CORRELATION if self.kind == "autocorrelated" else 0.0
        samples = medians[:, :, None] + _SD_SAMPLES * _series(rng, (count, n, SAMPLES), phi)
        effective = SAMPLES * (1 - phi) / (1 + phi)
        known = np.median(samples, axis=2), np.var(samples, axis=2) * math.pi / 2 / effective
        sides: list[list[Process]] = [[], []]
        for i, side in enumerate(new):
            cases = zip(self.rows, known[0][i].tolist(), known[1][i].tolist(), strict=True)
            seconds = {name: LogMedian(*about, effective) for name, *about in cases}
            run = self._runs[bool(side and slowdown)]
            sides[int(side)].append(Process(run, seconds, {}))
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

    def __init__(self, processes: Sequence[Process], seed: int) -> None:
        self.rng = np.random.default_rng([seed, len(KINDS)])
        self._medians = [[p.seconds for p in processes], [p.cycles for p in processes]]
        shared = set.intersection(*(set(each.seconds) for each in processes))
        first = processes[0].run.timed
        self.rows = {name: each.row for name, each in first.items() if name in shared and each.row}
        self._runs = [
            [_run(each.run.timed, each.run, code) for each in processes]
            for code in ("code", "other code")
        ]
        self._logs = [
            {name: np.log(each.run.timed[name].samples_seconds) for name in self.rows}
            for each in processes
        ]

    def trial(self, processes: int, slowdown: float = 0.0) -> Trial:
        """A new draw; a process is drawn twice only where there are too few."""
        count, of, shift = 2 * processes, len(self._logs), math.log1p(slowdown)
        picks = [self.rng.choice(of, count, replace=count > of) for _ in self.rows]
        sides: list[list[Process]] = [[], []]
        samples: list[list[list[Floats]]] = [[], []]
        for i in range(count):
            new = i >= processes
            runs = self._runs[bool(new and slowdown)]
            chosen = [(name, pick[i]) for name, pick in zip(self.rows, picks, strict=True)]
            run = replace(runs[0], timed={name: runs[j].timed[name] for name, j in chosen})
            known = [
                {name: medians[j][name] for name, j in chosen if name in medians[j]}
                for medians in self._medians
            ]
            moved = [
                {name: replace(m, value=m.value + shift * new) for name, m in each.items()}
                for each in known
            ]
            sides[new].append(Process(run, *moved))
            samples[new].append([self._logs[j][name] + shift * new for name, j in chosen])
        return Trial(*sides, tuple(samples), list(self.rows))


def _series(rng: np.random.Generator, shape: tuple[int, ...], phi: float) -> Floats:
    noise = rng.normal(size=shape)
    for i in range(1, shape[-1] if phi else 0):
        noise[..., i] = phi * noise[..., i - 1] + noise[..., i] * (1 - phi**2) ** 0.5
    return noise


def _run(cases: Mapping[str, Timed], like: Run, code: str) -> Run:
    """Of these cases, all with this machine code."""
    timed = {
        name: replace(each, row=each.row and replace(each.row, fingerprint=code, device_code=()))
        for name, each in cases.items()
    }
    return replace(like, timed=timed)
