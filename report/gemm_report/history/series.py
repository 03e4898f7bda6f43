"""The records of a folder in the order of their commits, and each case on each model of device.

The GPUs of a model are in one series. Results of other operands or caches, or from an idle GPU, are
not: a device is a model in one state.
"""

import os
import subprocess
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gemm_report.collection import Refusals, record_paths
from gemm_report.document import RecordError
from gemm_report.grouping import grouped
from gemm_report.history.changes import Floats
from gemm_report.record import Identity, Record, Row, read_record

# In which order a change is put down to them.
SETTINGS = ("toolkit", "driver", "power limit", "build", "GPU", "commit")
# Of the method; times are compared only where these are the same.
STATE = ("test", "state", "fill", "cache")
# Parameters of Best in records without plans, and those of the same today.
_OF_BEST: Mapping[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {
    (): (("pick", "model"),),
    (("pick", "tried"),): (),
}


class Timing(NamedTuple):
    """One case of a record; without seconds it has failed, or was skipped for a reason."""

    case: Identity
    flop: float
    seconds: float | None
    sm_hz: float | None
    fingerprint: str | None
    skipped: str | None


@dataclass(frozen=True)
class Entry:
    """A record. `date` is UTC and sorts as text; `device` is its name and what is unusual in it."""

    path: Path
    date: str
    device: str
    setting: tuple[str | None, ...]  # the texts of SETTINGS
    gpu: str | None  # hash of its identity
    state: tuple[str | None, ...]  # the texts of STATE
    model: tuple[str | None, ...]
    libraries: Mapping[str, str]  # releases by name, which is that of their kernels


@dataclass(frozen=True)
class Series:
    """One case on one device. `record` has the entries of its points; the clock may be NaN."""

    device: str
    case: Identity
    flop: float
    record: Sequence[int]
    seconds: Floats
    sm_hz: Floats
    fingerprint: Sequence[str | None]
    failed: Sequence[int]  # entries
    skipped: Mapping[int, str]  # entries, with the reason

    @property
    def ended(self) -> str | None:
        """What became of it in a later record, if that has no time of it."""
        last = max([*self.failed, *self.skipped], default=-1)
        if last < self.record[-1]:
            return None
        return f"skipped: {self.skipped[last]}" if last in self.skipped else "failed"


@dataclass(frozen=True)
class History:
    """All records of a folder, and the series that have a time in one of them."""

    entries: tuple[Entry, ...]
    series: tuple[Series, ...]
    by_commit: bool  # else in the order of dates


def read_history(folder: Path, refusals: Refusals) -> History:
    """What cannot be read is told; a copy counts once. RecordError where no file can be one."""
    found: dict[tuple[str, str], list[tuple[Entry, list[Timing]]]] = defaultdict(list)
    for path in record_paths(folder):
        with refusals:
            entry, timings = read(path)
            same_time = found[entry.date, entry.device]
            if all(timings != others for _, others in same_time):
                same_time.append((entry, timings))
    commits, dates = _commits(folder)

    def place(each: tuple[Entry, list[Timing]]) -> tuple[int, str, Path]:
        """An unknown commit is where the repository was at that date."""
        entry, commit = each[0], each[0].setting[-1] or ""
        at = commits.get(commit.removesuffix("-dirty")[:12])
        return (bisect_right(dates, entry.date) - 1 if at is None else at), entry.date, entry.path

    ordered = sorted(chain(*found.values()), key=place)
    entries = _told_apart([entry for entry, _ in ordered])
    points = [(i, timing) for i, (_, timings) in enumerate(ordered) for timing in timings]
    cases = grouped(points, lambda point: (entries[point[0]].device, point[1].case))
    series = [
        _series(device, case, its)
        for (device, case), its in cases.items()
        if any(timing.seconds is not None for _, timing in its)
    ]

    def name(series: Series) -> tuple[object, ...]:
        case = series.case
        return series.device, case.kernel, case.precision, case.m * case.n * case.k, str(case)

    return History(tuple(entries), tuple(sorted(series, key=name)), bool(commits))


def _commits(folder: Path) -> tuple[dict[str, int], list[str]]:
    """The place of each commit of the repository around `folder`, and their dates, oldest first."""
    options = ["--topo-order", "--reverse", "--format=%H %cd", "--date=iso-strict-local"]
    command = ["git", "-C", str(folder), "-c", "log.showSignature=false", "log", *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept["TZ"] = "UTC"
    try:
        done = subprocess.run(command, env=kept, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}, []
    lines = [line.split() for line in done.stdout.splitlines()]
    latest, dates = "", []
    for _, date in lines:
        latest = max(latest, date[:19])
        dates.append(latest)
    return {name[:12]: i for i, (name, _) in enumerate(lines)}, dates


def read(path: Path) -> tuple[Entry, list[Timing]]:
    """What history needs of a record. RecordError where there is none that it can use."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RecordError(f"{path}: its name is no UTF-8: rename it") from None
    record = read_record(path)
    entry = Entry(
        path=path,
        date=record.utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        device=record.device.name,
        setting=_setting(record),
        gpu=record.device.uuid_hash,
        state=tuple(getattr(record.method, name) for name in STATE),
        model=tuple(record.device.model.values()),
        libraries=record.releases,
    )
    told = (row for row in record.rows if row.status != "untimed")
    planned = any(row.plan for row in record.rows)
    cases = grouped(told, lambda row: _named_as_today(row.identity, planned))
    return entry, [_timing(case, rows) for case, rows in cases.items()]


def _named_as_today(case: Identity, planned: bool) -> Identity:
    """Until records had plans, `Best` was the model's choice and its trial Best/pick:tried."""
    if case.kernel != "Best" or planned:
        return case
    return case._replace(parameters=_OF_BEST.get(case.parameters, case.parameters))


def _setting(record: Record) -> tuple[str | None, ...]:
    device, build, power = record.device, record.build, record.device.power_limit_w
    toolkit = (device.runtime and f"CUDA {device.runtime}", build.cuda_compiler, build.compiler)
    # Earlier records have CUDA's version in place of the driver's.
    driver = None if (device.driver or "").startswith("CUDA ") else device.driver
    return (
        ", ".join(filter(None, toolkit)) or None,
        driver,
        f"{power:.0f} W" if power else None,
        build.type,
        device.uuid_hash and device.uuid_hash[:8],
        record.commit,
    )


# The same for all records: their cases are much the same.
_shared = lru_cache(maxsize=4096)(lambda case: case)


def _timing(case: Identity, rows: Sequence[Row]) -> Timing:
    """Of several repetitions the median, the faster of two: with its clock, as it took place."""
    timed = [(row.seconds.median, row) for row in rows if row.status == "timed" and row.seconds]
    timed.sort(key=lambda each: each[0])
    seconds, row = timed[(len(timed) - 1) // 2] if timed else (None, rows[0])
    clock = row.sm_hz if timed else None
    return Timing(_shared(case), row.flop, seconds, clock, row.fingerprint, row.skipped)


def _told_apart(entries: Sequence[Entry]) -> list[Entry]:
    """Each with a device of its own where several models or states have one name."""
    found: dict[Path, Entry] = {}
    for name, its in grouped(entries, lambda entry: entry.device).items():
        columns = [*zip(*(entry.state + entry.model for entry in its), strict=True)]
        usual = [Counter(column).most_common(1)[0][0] for column in columns]
        for entry in its:
            said = zip(entry.state + entry.model, usual, strict=True)
            names = (*STATE, *[None] * len(entry.model))  # an unknown part of a model fits any
            parts = [
                part or f"{what} unknown"
                for what, (part, most) in zip(names, said, strict=True)
                if part != most and (part or what)
            ]
            found[entry.path] = replace(entry, device=", ".join([name, *parts]))
    return [found[entry.path] for entry in entries]


def _series(device: str, case: Identity, points: Sequence[tuple[int, Timing]]) -> Series:
    timed = [(i, timing) for i, timing in points if timing.seconds is not None]
    return Series(
        device=device,
        case=case,
        flop=timed[0][1].flop,
        record=[i for i, _ in timed],
        seconds=np.array([timing.seconds for _, timing in timed], float),
        sm_hz=np.array([timing.sm_hz for _, timing in timed], float),
        fingerprint=[timing.fingerprint for _, timing in timed],
        failed=[i for i, t in points if t.seconds is None and not t.skipped],
        skipped={i: timing.skipped for i, timing in points if timing.skipped},
    )
