"""The records of a folder in the order of time, and each case on each device over them.

A device is a GPU in one state: results of two GPUs of a name, of two fills, or from an idle and
from a warm GPU are never in one series.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from numpy.typing import NDArray

from gemm_report.collection import Refusals, record_paths
from gemm_report.document import InputError, RecordError
from gemm_report.history.reading import STATE, Reading, Timing, identity_of, read
from gemm_report.record import Identity

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Entry:
    """A record, and the file that has it.

    `device` has what tells it from the others: the GPU, where a name has several, and the state.
    """

    path: Path
    date: str
    device: str
    complete: bool
    setting: tuple[str | None, ...]


@dataclass(frozen=True)
class Series:
    """One case on one device. Its points are in the order of time; `record` has their entries.

    What is not known of a point is NaN or None. `failed` has the entries in which it failed,
    `skipped` those in which it was skipped, with the reason.
    """

    device: str
    case: Identity
    key: str
    flop: float
    record: NDArray[np.int64]
    seconds: Floats
    sm_hz: Floats
    throttled: Floats
    fingerprint: Sequence[str | None]
    failed: NDArray[np.int64]
    skipped: Mapping[int, str]
    unit: str = "FLOP/s"

    @cached_property
    def rates(self) -> Floats:
        """FLOP/s of every point."""
        return self.flop / self.seconds


@dataclass(frozen=True)
class History:
    """All records of a folder, the oldest first, and the series that have a time in one of them."""

    entries: tuple[Entry, ...]
    series: tuple[Series, ...]


def read_history(folder: Path, refusals: Refusals) -> History:
    """What cannot be read is told; a copy counts once. RecordError where no file can be one."""
    found: dict[tuple[str, str], list[tuple[Path, Reading]]] = defaultdict(list)
    for path in record_paths(folder):
        try:
            _check_name(path)
            reading = read(path)
        except InputError as error:
            refusals.add(error)
            continue
        same_time = found[reading.date, reading.device]
        if all(reading.timings != other.timings for _, other in same_time):
            same_time.append((path, reading))
    ordered = sorted(chain(*found.values()), key=lambda each: (each[1].date, each[0]))
    devices = _devices([reading for _, reading in ordered])
    entries = [
        Entry(path, reading.date, device, reading.complete, reading.setting)
        for (path, reading), device in zip(ordered, devices, strict=True)
    ]
    points: dict[tuple[str, str], list[tuple[int, Timing]]] = {}
    for i, (device, (_, reading)) in enumerate(zip(devices, ordered, strict=True)):
        for timing in reading.timings:
            points.setdefault((device, timing.case), []).append((i, timing))
    series = [
        _series(device, key, points)
        for (device, key), points in points.items()
        if any(timing.seconds is not None for _, timing in points)
    ]
    series.sort(key=lambda each: (each.device, *_order(each.case)))
    return History(tuple(entries), tuple(series))


def means(history: History) -> list[tuple[Series, int]]:
    """For each device and precision the geometric mean of the rates, in % of the newest record's.

    In each record over the cases that it shares with the newest, at least half of these; and how
    many these are.
    """
    groups: dict[tuple[str, str], list[Series]] = {}
    for series in history.series:
        groups.setdefault((series.device, series.case.precision), []).append(series)
    found = []
    for (device, precision), its in groups.items():
        newest = max(int(series.record[-1]) for series in its)
        shares: dict[int, list[float]] = {}
        for series in its:
            if series.record[-1] == newest:
                for record, rate in zip(series.record.tolist(), series.rates, strict=True):
                    shares.setdefault(record, []).append(float(rate / series.rates[-1]))
        least = len(shares[newest]) / 2
        kept = {r: geometric_mean(s) for r, s in sorted(shares.items()) if len(s) >= least}
        unknown = np.full(len(kept), np.nan)
        case = Identity("geometric mean", (), precision, "nn", 0, 0, 0, None)
        mean = Series(
            *(device, case, f"mean {precision}", 100.0, np.array(list(kept))),
            *(1 / np.array(list(kept.values())), unknown, unknown, [None] * len(kept)),
            *(np.array([], int), {}, "%"),
        )
        found.append((mean, len(shares[newest])))
    return found


def _devices(readings: Sequence[Reading]) -> list[str]:
    """Of each its device, with what tells it from others of that name."""
    groups: dict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        groups[reading.device].append(reading)
    labels = {}
    for name, those in groups.items():
        several = len({reading.gpu for reading in those} - {None}) > 1
        usual = [
            Counter(column).most_common(1)[0][0]
            for column in zip(*(r.state for r in those), strict=True)
        ]
        for gpu, state in {(reading.gpu, reading.state) for reading in those}:
            parts = zip(STATE, state, usual, strict=True)
            differing = [part or f"{what} unknown" for what, part, most in parts if part != most]
            which = [f"GPU {gpu[:8] if gpu else 'unknown'}"] if several else []
            labels[name, gpu, state] = ", ".join([name, *which, *differing])
    return [labels[reading.device, reading.gpu, reading.state] for reading in readings]


def _check_name(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RecordError(f"{path}: its name is no UTF-8: rename it") from None


def _series(device: str, key: str, points: Sequence[tuple[int, Timing]]) -> Series:
    timed = [(i, timing) for i, timing in points if timing.seconds is not None]
    return Series(
        device=device,
        case=identity_of(key),
        key=key,
        flop=timed[0][1].flop,
        record=np.array([i for i, _ in timed]),
        seconds=np.array([timing.seconds for _, timing in timed], float),
        sm_hz=np.array([timing.sm_hz for _, timing in timed], float),
        throttled=np.array([timing.throttled_share for _, timing in timed], float),
        fingerprint=[timing.fingerprint for _, timing in timed],
        failed=np.array([i for i, t in points if t.seconds is None and not t.skipped], int),
        skipped={i: timing.skipped for i, timing in points if timing.skipped},
    )


def _order(case: Identity) -> tuple[str, str, int, str]:
    return case.kernel, case.precision, case.m * case.n * case.k, str(case)
