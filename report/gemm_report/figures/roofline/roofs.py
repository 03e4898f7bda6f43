"""Peaks and bandwidths as lines of a roofline."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from gemm_report.figures.page import size_in_points
from gemm_report.figures.palette import PALE
from gemm_report.record import Ceiling, Record

ROOF_COLOR = PALE
NOMINAL, MEASURED = "nominal peak", "measured peak"
_ROOM_FOR_TICKS = 110  # points of a decade that has ticks at 2 and 5
LINES = {NOMINAL: {"linewidth": 1.8}, MEASURED: {"linewidth": 0.7}}


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


def compute_roofs(record: Record, precision: str) -> list[Roof]:
    """The highest nominal one, and the highest measured one if that is another."""
    measured = next(iter(record.measured_compute_roofs(precision)), None)
    return nominal_and_measured(record.compute_roofs(precision)[:1], measured)


def memory_roofs(record: Record) -> list[Roof]:
    """The same of DRAM."""
    return nominal_and_measured(record.memory_roofs()[:1], record.measured_memory_roof())


def nominal_and_measured(nominal: Sequence[Ceiling], measured: Ceiling | None) -> list[Roof]:
    """Roofs of one unit; a nominal one that is a measured one already has no second."""
    # On a CPU the only peak that is known is a measured one.
    found = [Roof(roof, MEASURED if roof.origin == "measured" else NOMINAL) for roof in nominal]
    if measured and not any(roof.how == MEASURED for roof in found):
        found.append(Roof(measured, MEASURED))
    return found


def legend(roofs: Iterable[Roof]) -> list[Line2D]:
    """An entry for each kind of line among `roofs`."""
    used = {roof.how for roof in roofs}
    return [
        Line2D([], [], color=ROOF_COLOR, label=how, **LINES[how]) for how in LINES if how in used
    ]


def draw_roofs(axes: Axes, compute: Sequence[Roof], memory: Sequence[Roof], scale: float) -> None:
    """Level lines from the widest slope on, and slopes up to the highest level line."""
    low, high = axes.get_xlim()
    widest = max((roof.width for roof in memory), default=0) / scale
    top = max((roof.rate for roof in compute), default=axes.get_ylim()[1] * scale) / scale
    looks = {"color": ROOF_COLOR, "zorder": 1, "solid_capstyle": "butt"}
    for roof in compute:
        level = roof.rate / scale
        start = max(low, level / widest) if widest else low
        axes.plot([start, high], [level, level], **LINES[roof.how], **looks)
    for roof in memory:
        slope = roof.width / scale
        axes.plot([low, top / slope], [low * slope, top], **LINES[roof.how], **looks)


def set_log_axes(axes: Axes, xs: Sequence[float], ys: Sequence[float]) -> None:
    """Both logarithmic, with some room around what lies between the least and the largest."""
    axes.set(xscale="log", yscale="log")
    for axis, values, room in ((axes.xaxis, xs, 1.6), (axes.yaxis, ys, 1.4)):
        low, high = min(values) / room, max(values) * room
        (axes.set_xlim if axis is axes.xaxis else axes.set_ylim)(low, high)
        decade = size_in_points(axes)[axis is axes.yaxis] / math.log10(high / low)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
        ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if decade < _ROOM_FOR_TICKS and len(ticks) > 4:
            ticks = [tick for tick in ticks if f"{tick:e}".startswith("1")]
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
