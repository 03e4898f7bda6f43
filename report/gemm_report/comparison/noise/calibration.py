"""How far medians of equal code were apart on a device: reads what tools/calibrate wrote."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist, variance
from typing import Annotated

from gemm_report.comparison.noise.moderation import Variance
from gemm_report.comparison.noise.modes import Scatter, scatter
from gemm_report.document import (
    Count,
    Kind,
    Meta,
    Nonnegative,
    Positive,
    RecordError,
    Text,
    check_schema,
    decoded,
    read_json,
)
from gemm_report.record import variant

CALIBRATION = Kind("calibration", "tools/calibrate")
SCHEMA = 1

# Of a range of up to a dozen values, against their standard deviation.
_EFFICIENCY_OF_RANGE = 0.88


@dataclass(frozen=True)
class Noise:
    """Of one kernel on one problem."""

    label: str
    precision: str
    m: int
    n: int
    k: int
    medians_seconds: tuple[float, ...]
    medians_cycles: tuple[float, ...]  # of the processes whose clock is known
    spread_at_clock: float | None
    throttled_share: float | None

    @property
    def name(self) -> str:
        """As the benchmark is named."""
        return f"{self.label}/{self.precision}/{self.m}x{self.n}x{self.k}"

    @property
    def volume(self) -> int:
        """Products in the problem."""
        return self.m * self.n * self.k

    @property
    def throttled(self) -> bool:
        """Whether something limited the clocks."""
        return bool(self.throttled_share)

    @property
    def scatter(self) -> Scatter:
        """Of the logarithms of medians."""
        return scatter([math.log(seconds) for seconds in self.medians_seconds])

    @property
    def variance(self) -> Variance:
        """The same, whatever levels there are."""
        return log_variance(self.medians_seconds)

    @property
    def variance_at_clock(self) -> Variance | None:
        """The same in cycles, of which earlier calibrations keep the range alone."""
        if len(self.medians_cycles) > 1:
            return log_variance(self.medians_cycles)
        if self.spread_at_clock is None:
            return None
        processes = len(self.medians_seconds)
        deviation = self.spread_at_clock / _range_of_normal(processes)
        return Variance(deviation**2, _EFFICIENCY_OF_RANGE * (processes - 1))


@dataclass(frozen=True)
class Calibration:
    """What several processes of the same program measured on one device."""

    path: Path
    device: str
    driver: str | None
    power_limit_w: float | None
    state: str | None
    commit: str
    processes: int
    rows: tuple[Noise, ...]


@dataclass(frozen=True)
class _Device:
    name: Text
    driver: Text | None
    power_limit_w: Positive | None


@dataclass(frozen=True)
class _Method:
    state: Text | None


@dataclass(frozen=True)
class _Row:
    kernel: Text
    parameters: dict[Text, str]
    precision: Text
    layout: Text
    m: Count
    n: Count
    k: Count
    medians_seconds: Annotated[tuple[Positive, ...], Meta(min_length=2)]  # of each process
    spread_at_clock: Nonnegative | None
    throttled_share: Nonnegative | None
    medians_cycles: tuple[Positive | None, ...] = ()  # earlier calibrations lack them


@dataclass(frozen=True)
class _Document:
    schema: Count
    commit: Text
    processes: Count
    device: _Device
    method: _Method
    rows: tuple[_Row, ...]


def log_variance(values: Sequence[float]) -> Variance:
    """Of the logarithms of two values or more."""
    return Variance(variance(map(math.log, values)), len(values) - 1)


def nearest(rows: Iterable[Noise], label: str, precision: str, volume: int) -> Noise | None:
    """The row that says most about a problem that was not calibrated.

    The same kernel and precision at the nearest size, and of two that are as near the noisier;
    where the kernel was not calibrated, the noisiest of the precision; None where that was not.
    """

    def noise(row: Noise) -> float:
        return row.variance.value

    def distance(row: Noise) -> tuple[float, float]:
        return abs(math.log(row.volume / volume)), -noise(row)

    same_precision = [row for row in rows if row.precision == precision]
    same_kernel = [row for row in same_precision if row.label == label]
    if same_kernel:
        return min(same_kernel, key=distance)
    return max(same_precision, key=noise, default=None)


def newest_calibration(folders: Iterable[Path], device: str | None) -> Path | None:
    """The newest file of the first of these folders' `calibration` that has one of the device.

    What cannot be read there is passed over, since nobody asked for it by name.
    """
    for folder in folders:
        for path in sorted((folder / "calibration").glob("*.json"), reverse=True):
            try:
                found = read_calibration(path)
            except RecordError:
                continue
            if found.device == device:
                return path
    return None


def read_calibration(path: Path) -> Calibration:
    """The calibration in `path`; RecordError where there is none that this version understands."""
    return calibration_of(path, read_json(path, CALIBRATION))


def calibration_of(path: Path, values: object) -> Calibration:
    """The same of JSON that is not there as a file; `path` is what errors name."""
    if not isinstance(values, dict) or not {"schema", "processes", "rows"} <= values.keys():
        raise RecordError(f"{path}: is not a calibration: give a file that tools/calibrate wrote")
    check_schema(path, CALIBRATION, values, SCHEMA)
    found = decoded(path, CALIBRATION, values, _Document)
    return Calibration(
        path=path,
        device=found.device.name,
        driver=found.device.driver,
        power_limit_w=found.device.power_limit_w,
        state=found.method.state,
        commit=found.commit,
        processes=found.processes,
        rows=tuple(_noise(row) for row in found.rows),
    )


def _noise(row: _Row) -> Noise:
    return Noise(
        label=variant(row.kernel, row.parameters.items(), row.layout),
        precision=row.precision,
        m=row.m,
        n=row.n,
        k=row.k,
        medians_seconds=row.medians_seconds,
        medians_cycles=tuple(cycles for cycles in row.medians_cycles if cycles is not None),
        spread_at_clock=row.spread_at_clock,
        throttled_share=row.throttled_share,
    )


@cache
def _range_of_normal(n: int) -> float:
    """How far the largest and the smallest of `n` standard normal values are apart on average."""
    step = 0.01
    below = [NormalDist().cdf(i * step) for i in range(-800, 801)]
    return step * sum(1 - p**n - (1 - p) ** n for p in below)
