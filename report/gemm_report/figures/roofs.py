"""Peaks and bandwidths as lines of a roofline."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from gemm_report.figures.palette import LIGHT
from gemm_report.record import Ceiling, Record

ROOF_COLOR = LIGHT.soft
NOMINAL, MEASURED = "nominal peak", "measured peak"
LINES = {NOMINAL: 1.8, MEASURED: 0.7}  # points of width


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


def draw_roofs(
    axes: Axes, compute: Sequence[Ceiling], memory: Sequence[Ceiling], scale: float
) -> None:
    """Level lines from the widest slope on, and slopes up to the highest level line."""
    low, high = axes.get_xlim()
    slopes = [(roof.bytes_per_second or 0) / scale for roof in memory]
    levels = [(roof.flop_per_second or 0) / scale for roof in compute]
    top = max(levels, default=axes.get_ylim()[1])
    looks: dict[str, Any] = {"color": ROOF_COLOR, "zorder": 1, "solid_capstyle": "butt"}
    for roof, level in zip(compute, levels, strict=True):
        start = max(low, level / max(slopes)) if slopes else low
        axes.plot([start, high], [level, level], linewidth=LINES[kind(roof)], **looks)
    for roof, slope in zip(memory, slopes, strict=True):
        width = LINES[kind(roof)]
        axes.plot([low, top / slope], [low * slope, top], linewidth=width, **looks)


def set_log_axes(axes: Axes, xs: Sequence[float], ys: Sequence[float]) -> None:
    """Both logarithmic, with some room around what lies between the least and the largest."""
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(min(xs) / 1.6, max(xs) * 1.6)
    axes.set_ylim(min(ys) / 1.4, max(ys) * 1.4)
    set_log_ticks(axes.xaxis, (1,))
    set_log_ticks(axes.yaxis, (1, 2, 5) if max(ys) < 300 * min(ys) else (1,))


def set_log_ticks(axis: Axis, digits: Sequence[int]) -> None:
    """At these times each power of ten."""
    axis.set_major_locator(LogLocator(subs=digits, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
