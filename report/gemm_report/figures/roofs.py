"""Peaks and bandwidths as lines of a roofline."""

import math
from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gemm_report.figures.page import size_in_points
from gemm_report.figures.palette import PALE
from gemm_report.record import Ceiling, Record

ROOF_COLOR = PALE
NOMINAL, MEASURED = "nominal peak", "measured peak"
_ROOM_FOR_TICKS = 110  # points of a decade that has ticks at 2 and 5
LINES = {NOMINAL: {"linewidth": 1.8}, MEASURED: {"linewidth": 0.7}}


def compute_roofs(record: Record, precision: str) -> list[Ceiling]:
    """The highest nominal one, and the highest measured one if that is another."""
    return _highest(record.compute_roofs(precision), record.measured_compute_roofs(precision))


def memory_roofs(record: Record) -> list[Ceiling]:
    """The same of DRAM."""
    measured = record.measured_memory_roof()
    return _highest(record.memory_roofs(), [measured] if measured else [])


def _highest(nominal: list[Ceiling], measured: list[Ceiling]) -> list[Ceiling]:
    # On a CPU the only peak that is known is a measured one.
    if nominal and kind(nominal[0]) == MEASURED:
        return nominal[:1]
    return nominal[:1] + measured[:1]


def kind(roof: Ceiling) -> str:
    """In which way it is known."""
    return MEASURED if roof.origin == "measured" else NOMINAL


def legend(roofs: Iterable[Ceiling]) -> list[Line2D]:
    """An entry for each kind of line among `roofs`."""
    used = set(map(kind, roofs))
    return [
        Line2D([], [], color=ROOF_COLOR, label=how, **LINES[how]) for how in LINES if how in used
    ]


def draw_roofs(
    axes: Axes, compute: Sequence[Ceiling], memory: Sequence[Ceiling], scale: float
) -> None:
    """Level lines from the widest slope on, and slopes up to the highest level line."""
    low, high = axes.get_xlim()
    slopes = [roof.bytes_per_second / scale for roof in memory]
    levels = [roof.flop_per_second / scale for roof in compute]
    top = max(levels, default=axes.get_ylim()[1])
    looks = {"color": ROOF_COLOR, "zorder": 1, "solid_capstyle": "butt"}
    for roof, level in zip(compute, levels, strict=True):
        start = max(low, level / max(slopes)) if slopes else low
        axes.plot([start, high], [level, level], **LINES[kind(roof)], **looks)
    for roof, slope in zip(memory, slopes, strict=True):
        axes.plot([low, top / slope], [low * slope, top], **LINES[kind(roof)], **looks)


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
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
