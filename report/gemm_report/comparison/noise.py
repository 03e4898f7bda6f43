"""The noise model: how far medians of equal code were apart, from a calibration."""

import math
from dataclasses import dataclass
from pathlib import Path

from gemm_report.document import Kind, Object, RecordError, read_json
from gemm_report.record import PRECISIONS, Row, variant

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
    processes: int
    spread: float
    spread_at_clock: float | None

    @property
    def volume(self) -> int:
        """Products in the problem."""
        return self.m * self.n * self.k


@dataclass(frozen=True)
class Calibration:
    """What several processes of the same program measured on one card."""

    path: Path
    device: str
    driver: str | None
    commit: str
    processes: int
    rows: tuple[Noise, ...]

    def relative_noise(self, row: Row) -> float | None:
        """How far medians of `row` may be apart though nothing changed, over the median.

        The largest minus the smallest median of the calibrated processes: of the same problem;
        where that was not calibrated, of the same kernel and precision at the nearest size, and of
        two that are as near the larger; where the kernel was not, the worst of the precision; and
        None where the precision was not either.
        """
        same_precision = [noise for noise in self.rows if noise.precision == row.precision]
        same_kernel = [noise for noise in same_precision if noise.label == row.label]
        for noise in same_kernel:
            if (noise.m, noise.n, noise.k) == (row.m, row.n, row.k):
                return noise.spread

        def distance(noise: Noise) -> tuple[float, float]:
            return abs(math.log(noise.volume / row.volume)), -noise.spread

        if same_kernel:
            return min(same_kernel, key=distance).spread
        return max((noise.spread for noise in same_precision), default=None)


def read_calibration(path: Path) -> Calibration:
    """The calibration in `path`; RecordError where there is none that this version understands."""
    values = read_json(path, CALIBRATION)
    if not isinstance(values, dict) or not {"schema", "processes", "rows"} <= values.keys():
        raise RecordError(f"{path}: is not a calibration: give a file that tools/calibrate wrote")
    document = Object(path, CALIBRATION, "calibration", values)
    document.check_schema(SCHEMA)
    device = document.child("device")
    return Calibration(
        path=path,
        device=device.take("name", str),
        driver=device.take("driver", str, type(None)),
        commit=document.take("commit", str),
        processes=document.count("processes"),
        rows=tuple(_noise(row) for row in document.children("rows")),
    )


def _noise(row: Object) -> Noise:
    parameters = row.child("parameters")
    return Noise(
        label=variant(
            row.take("kernel", str),
            [(name, parameters.take(name, str)) for name in parameters.values],
            row.take("layout", str),
        ),
        precision=row.one_of("precision", PRECISIONS),
        m=row.count("m"),
        n=row.count("n"),
        k=row.count("k"),
        processes=row.count("processes"),
        spread=row.nonnegative("spread"),
        spread_at_clock=row.nonnegative_or_none("spread_at_clock"),
    )
