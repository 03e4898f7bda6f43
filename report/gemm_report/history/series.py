"""The records of a folder in the order of time, and each case on each device over them.

A device is a GPU in one state: results of two GPUs of a name, of two fills, or from an idle and
from a warm GPU are never in one series.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gemm_report.collection import Refusals, record_paths
from gemm_report.document import RecordError
from gemm_report.grouping import grouped
from gemm_report.record import Identity, Record, Row, read_record

Floats = NDArray[np.float64]

# In which order a change is put down to them.
SETTINGS = ("toolkit", "driver", "power limit", "build", "commit")
# Of the method; times are compared only where these are the same.
STATE = ("test", "state", "fill", "cache")


class Timing(NamedTuple):
    """One case of a record. Seconds are None without a time, the rest where it is not known.

    `skipped` is the reason of a case that was skipped; one without that and without a time failed.
    """

    case: Identity
    flop: float
    seconds: float | None
    sm_hz: float | None
    throttled_share: float | None
    fingerprint: str | None
    skipped: str | None


@dataclass(frozen=True)
class Entry:
    """A record. `date` is UTC and sorts as text; `gpu` is the hash of the device's identity.

    `device` has what tells it from the others: the GPU, where a name has several, and the state.
    `state` has the texts of STATE, `setting` those of SETTINGS.
    """

    path: Path
    date: str
    device: str
    complete: bool
    setting: tuple[str | None, ...]
    gpu: str | None
    state: tuple[str | None, ...]
    model: tuple[str | None, ...]  # of the device
    libraries: tuple[tuple[str, str], ...] = ()  # names, which their kernels have too, and releases


@dataclass(frozen=True)
class Series:
    """One case on one device. Its points are in the order of time; `record` has their entries.

    What is not known of a point is NaN or None. `failed` has the entries in which it failed,
    `skipped` those in which it was skipped, with the reason.
    """

    device: str
    case: Identity
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
    found: dict[tuple[str, str], list[tuple[Entry, list[Timing]]]] = defaultdict(list)
    for path in record_paths(folder):
        with refusals:
            entry, timings = read(path)
            same_time = found[entry.date, entry.device]
            if all(timings != others for _, others in same_time):
                same_time.append((entry, timings))
    ordered = sorted(chain(*found.values()), key=lambda each: (each[0].date, each[0].path))
    entries = _told_apart([entry for entry, _ in ordered])
    points = [(i, timing) for i, (_, timings) in enumerate(ordered) for timing in timings]
    cases = grouped(points, lambda point: (entries[point[0]].device, point[1].case))
    series = [
        _series(device, case, its)
        for (device, case), its in cases.items()
        if any(timing.seconds is not None for _, timing in its)
    ]
    series.sort(key=_place)
    return History(tuple(entries), tuple(series))


def _place(series: Series) -> tuple[object, ...]:
    case = series.case
    return series.device, case.kernel, case.precision, case.m * case.n * case.k, str(case)


def read(path: Path) -> tuple[Entry, list[Timing]]:
    """What history needs of a record, and nothing else: thousands of them are kept at once.

    RecordError where there is none that history can use.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RecordError(f"{path}: its name is no UTF-8: rename it") from None
    record = read_record(path)
    entry = Entry(
        path=path,
        date=record.utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        device=record.device.name,
        complete=record.complete,
        setting=_setting(record),
        gpu=record.device.uuid_hash,
        state=tuple(getattr(record.method, name) for name in STATE),
        model=tuple(record.device.model.values()),
        libraries=tuple(record.releases.items()),
    )
    told = (row for row in record.rows if row.status != "untimed")
    return entry, [_timing(rows) for rows in grouped(told, lambda row: row.identity).values()]


def _setting(record: Record) -> tuple[str | None, ...]:
    device, build, power = record.device, record.build, record.device.power_limit_w
    toolkit = (device.runtime and f"CUDA {device.runtime}", build.cuda_compiler, build.compiler)
    return (
        ", ".join(filter(None, toolkit)) or None,
        device.driver,
        power and f"{power:.0f} W",
        build.type,
        record.commit,
    )


# The same for all records: their cases are much the same.
_shared = lru_cache(maxsize=4096)(lambda case: case)


def _timing(rows: Sequence[Row]) -> Timing:
    """Of several repetitions the median, the faster of two: with its clock, as it took place."""
    timed = [(row.seconds.median, row) for row in rows if row.status == "timed" and row.seconds]
    timed.sort(key=lambda each: each[0])
    seconds, row = timed[(len(timed) - 1) // 2] if timed else (None, rows[0])
    clock = (row.sm_hz, row.throttled_share) if timed else (None, None)
    case = _shared(row.identity)
    return Timing(case, row.flop, seconds, *clock, row.fingerprint, row.skipped)


def means(history: History) -> list[tuple[Series, int]]:
    """For each device and precision the geometric mean of the rates, in % of the newest record's.

    In each record over the cases that it shares with the newest, at least half of these; and how
    many these are.
    """
    groups = grouped(history.series, lambda series: (series.device, series.case.precision))
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
            *(device, case, 100.0, np.array(list(kept))),
            *(1 / np.array(list(kept.values())), unknown, unknown, [None] * len(kept)),
            *(np.array([], int), {}, "%"),
        )
        found.append((mean, len(shares[newest])))
    return found


def _told_apart(entries: Sequence[Entry]) -> list[Entry]:
    """Each with a device of its own where several GPUs or states have one name."""
    labels = {}
    for name, its in grouped(entries, lambda entry: entry.device).items():
        several = len({entry.gpu for entry in its} - {None}) > 1
        columns = zip(*(entry.state for entry in its), strict=True)
        usual = [Counter(column).most_common(1)[0][0] for column in columns]
        known = (filter(None, column) for column in zip(*(e.model for e in its), strict=True))
        models = [next(iter(Counter(column).most_common(1)), (None,))[0] for column in known]
        for entry in its:
            parts = zip(STATE, entry.state, usual, strict=True)
            differing = [part or f"{what} unknown" for what, part, most in parts if part != most]
            pairs = zip(entry.model, models, strict=True)
            differing += [part for part, most in pairs if part and part != most]
            which = [f"GPU {(entry.gpu or 'unknown')[:8]}"] if several else []
            labels[entry.path] = ", ".join([name, *which, *differing])
    return [replace(entry, device=labels[entry.path]) for entry in entries]


def _series(device: str, case: Identity, points: Sequence[tuple[int, Timing]]) -> Series:
    timed = [(i, timing) for i, timing in points if timing.seconds is not None]
    return Series(
        device=device,
        case=case,
        flop=timed[0][1].flop,
        record=np.array([i for i, _ in timed]),
        seconds=np.array([timing.seconds for _, timing in timed], float),
        sm_hz=np.array([timing.sm_hz for _, timing in timed], float),
        throttled=np.array([timing.throttled_share for _, timing in timed], float),
        fingerprint=[timing.fingerprint for _, timing in timed],
        failed=np.array([i for i, t in points if t.seconds is None and not t.skipped], int),
        skipped={i: timing.skipped for i, timing in points if timing.skipped},
    )
