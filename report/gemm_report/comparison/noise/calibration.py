"""How far medians of equal code were apart on a device: reads what tools/calibrate wrote."""

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gemm_report.document import (
    Count,
    Kind,
    Meta,
    Positive,
    RecordError,
    Text,
    check_schema,
    decoded,
    read_json,
)
from gemm_report.record import Identity

CALIBRATION = Kind("calibration", "tools/calibrate")
SCHEMA = 1


@dataclass(frozen=True)
class Noise:
    """Of one kernel on one problem."""

    kernel: Text
    parameters: dict[Text, str]
    precision: Text
    layout: Text
    m: Count
    n: Count
    k: Count
    medians_seconds: Annotated[tuple[Positive, ...], Meta(min_length=2)]  # of each process
    throttled_share: Annotated[float, Meta(ge=0)] | None
    medians_cycles: tuple[Positive | None, ...] = ()  # earlier calibrations lack them

    @property
    def name(self) -> str:
        """As the benchmark is named."""
        problem = self.precision, self.layout, self.m, self.n, self.k, None
        return str(Identity(self.kernel, tuple(self.parameters.items()), *problem))

    @property
    def volume(self) -> int:
        """Products in the problem."""
        return self.m * self.n * self.k

    @property
    def throttled(self) -> bool:
        """Whether something limited the clocks."""
        return bool(self.throttled_share)

    def logs(self, at_clock: bool) -> list[float]:
        """Logarithms of the medians, in seconds or in cycles of those whose clock is known."""
        medians = self.medians_cycles if at_clock else self.medians_seconds
        return [math.log(each) for each in medians if each is not None]


@dataclass(frozen=True)
class Device:
    """On which it was measured."""

    name: Text
    driver: Text | None
    power_limit_w: Positive | None


@dataclass(frozen=True)
class Method:
    """How it was measured."""

    state: Text | None


@dataclass(frozen=True)
class Calibration:
    """What several processes of the same program measured on one device."""

    schema: Count
    commit: Text
    processes: Count
    device: Device
    method: Method
    rows: tuple[Noise, ...]
    path: str = ""  # for messages


def newest_calibration(folders: Iterable[Path], device: str | None) -> Calibration | None:
    """The newest one of the device that can be read, in the first of these folders that has any."""
    for folder in folders:
        for path in sorted((folder / "calibration").glob("*.json"), reverse=True):
            with suppress(RecordError):
                found = read_calibration(path)
                if found.device.name == device:
                    return found
    return None


def read_calibration(path: Path) -> Calibration:
    """The calibration in `path`; RecordError where there is none that this version understands."""
    return calibration_of(path, read_json(path, CALIBRATION))


def calibration_of(path: Path, values: object) -> Calibration:
    """The same of JSON that is not there as a file; `path` is what errors name."""
    if not isinstance(values, dict) or not {"schema", "processes", "rows"} <= values.keys():
        raise RecordError(f"{path}: is not a calibration: give a file that tools/calibrate wrote")
    check_schema(path, CALIBRATION, values, SCHEMA)
    return decoded(path, CALIBRATION, {**values, "path": str(path)}, Calibration)
