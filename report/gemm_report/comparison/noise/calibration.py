"""How far medians of equal code were apart on a device: reads what tools/calibrate wrote."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

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

    def logs(self, at_clock: bool) -> list[float]:
        """Logarithms of the medians, in seconds or in cycles."""
        return [
            math.log(each) for each in (self.medians_cycles if at_clock else self.medians_seconds)
        ]


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
        throttled_share=row.throttled_share,
    )
