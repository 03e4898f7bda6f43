"""Which roofs count for rows of one precision, and how each is drawn and named."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median

from gemm_report.figures.page import Label, is_measured, roof_text
from gemm_report.ladder.rungs import arithmetic_roof
from gemm_report.record import Ceiling, Record, Row
from gemm_report.writing.quantity import megahertz, quantity

# Below this the dashed roof would lie on the solid one.
_VISIBLE = 0.02

NOMINAL, UNIT, MEASURED, SEEN = "nominal", "unit", "measured", "seen"
LINES = {
    NOMINAL: {"linewidth": 1.8, "linestyle": "-"},
    UNIT: {"linewidth": 1.2, "linestyle": (0, (1, 1))},
    MEASURED: {"linewidth": 0.8, "linestyle": "-"},
    SEEN: {"linewidth": 1.2, "linestyle": (0, (4, 2))},
}


@dataclass(frozen=True)
class Roof:
    """A ceiling, and in which way it is known."""

    ceiling: Ceiling
    how: str

    @property
    def rate(self) -> float:
        """FLOP/s; 0 for a memory."""
        return self.ceiling.flop_per_second or 0

    @property
    def width(self) -> float:
        """Bytes/s; 0 for a unit that computes."""
        return self.ceiling.bytes_per_second or 0

    @property
    def text(self) -> str:
        """Name, value, origin and clock."""
        if self.how != SEEN:
            return roof_text([self.ceiling])
        clock = megahertz(self.ceiling.clock_hz or 0)
        value = quantity(self.rate, "FLOP/s")
        return f"{self.ceiling.name}: {value} (seen at {clock})"


def compute_roofs(record: Record, rows: Sequence[Row]) -> list[Roof]:
    """Of the precision of `rows`, and of the units that they compute with; of all without rows."""
    shown = dict.fromkeys(row.precision for row in rows) or record.precision_names
    nominal = [roof for precision in shown for roof in record.compute_roofs(precision)]
    used = dict.fromkeys(filter(None, (arithmetic_roof(record, row) for row in rows)))
    units = [roof for roof in used if roof not in nominal]
    known = [precision for precision in shown if any(map(is_measured, _of(nominal, precision)))]
    measured = [
        roof
        for precision in shown
        if precision not in known
        for roof in record.measured_compute_roofs(precision)
    ]
    seen = [_seen(record, roof, rows) for roof in (*nominal, *units)]
    return [
        *(Roof(roof, NOMINAL) for roof in nominal),
        *(Roof(roof, UNIT) for roof in units),
        *(Roof(roof, SEEN) for roof in seen if roof),
        *(Roof(roof, MEASURED) for roof in measured),
    ]


def memory_roofs(record: Record) -> list[Roof]:
    """Of the DRAM, the L2 and the shared memory; a measured one needs no second of its kind."""
    nominal = record.memory_roofs()
    seen = {roof.name for roof in nominal if is_measured(roof)}
    measured = [
        record.measured_memory_roof(probe)
        for probe in ("DRAM", "L2", "Shared")
        if not any(name.startswith(probe) for name in seen)
    ]
    return [
        *(Roof(roof, NOMINAL) for roof in nominal),
        *(Roof(roof, MEASURED) for roof in measured if roof),
    ]


def roof_labels(roofs: Iterable[Roof]) -> list[Label]:
    """For the column beside the plot: those of one value and origin share a line."""

    def value(roof: Roof) -> tuple[float, str, float]:
        return roof.rate, roof.how, roof.ceiling.clock_hz or 0

    found = []
    for (rate, how, _), group in groupby(sorted(roofs, key=value), key=value):
        first, *others = group
        names = ", ".join(dict.fromkeys(roof.ceiling.name for roof in (first, *others)))
        text = replace(first, ceiling=replace(first.ceiling, name=names)).text
        line = LINES[how]["linestyle"]
        found.append(Label(text, None, rate, thin=how != NOMINAL, line=line))
    return found


def _of(roofs: Iterable[Ceiling], precision: str) -> list[Ceiling]:
    return [roof for roof in roofs if roof.precision == precision]


def _seen(record: Record, roof: Ceiling, rows: Iterable[Row]) -> Ceiling | None:
    """At the median clock of the rows that compute with this unit, if that makes a difference."""
    clocks = [row.sm_hz for row in rows if row.sm_hz and arithmetic_roof(record, row) == roof]
    if not clocks or not roof.clock_hz or is_measured(roof):
        return None
    ratio = median(clocks) / roof.clock_hz
    if abs(ratio - 1) < _VISIBLE:
        return None
    rate = (roof.flop_per_second or 0) * ratio
    return replace(roof, flop_per_second=rate, clock_hz=median(clocks), origin=SEEN)
