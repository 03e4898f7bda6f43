"""The ladder as a path under the roofs: a panel for each memory that the kernels' bytes load.

All panels have one axis of rates, so that a rung is one level line through all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import (
    ROOF_COLOR,
    Label,
    Page,
    column_height,
    column_width,
    label_column,
    roof_text,
    write_above,
)
from gemm_report.figures.palette import Look
from gemm_report.figures.roofline.levels import L2, SHARED, Level, above_notes
from gemm_report.ladder.rungs import arithmetic_roof, libraries, rate, rungs
from gemm_report.record import Ceiling, Record, Row
from gemm_report.writing.quantity import prefix_for, scaled, significant

_PLOT_HEIGHT = 4.6
_LEFT = 0.6
_BETWEEN = 0.22
_ABOVE = 0.55  # for title and roof of a panel
_BELOW = 0.6
# With fewer rungs the roofline shows the same.
_RUNGS = 6


@dataclass(frozen=True)
class Panel:
    """One memory, its measured roof, and where each row stands."""

    title: str
    axis: str
    width: float
    roof: Ceiling | None
    flop_per_byte: Mapping[str, float]


def has_model(record: Record, precision: str) -> bool:
    """Whether there is anything that throughput and roofline do not show."""
    return sum(1 for rung in rungs(record, precision) if rung.row.traffic) >= _RUNGS


def table(record: Record, precision: str) -> list[dict[str, object]]:
    """The plotted data: each row in each of the memories, and the roof there."""
    return [
        {
            "kernel": row.label,
            "precision": precision,
            "size": row.size,
            "memory": level.title,
            "flop_per_byte": level.flop_per_byte[row.label],
            "flop_per_second": rate(row),
            "roof": level.roof and level.roof.name,
            "roof_bytes_per_second": level.roof and level.roof.bytes_per_second,
        }
        for level in _levels(record, _rows(record, precision))
        for row in _rows(record, precision)
        if row.label in level.flop_per_byte
    ]


def draw(record: Record, looks: Mapping[str, Look], precision: str) -> Figure:
    """How each rung moves towards the roofs of shared memory, L2, DRAM and arithmetic."""
    rows = _rows(record, precision)
    levels = _levels(record, rows)
    prefix = prefix_for(rate(row) for row in rows)
    labels = [
        Label(
            f"{row.label}  {significant(scaled(rate(row), prefix))}{mark(row)}",
            None,
            scaled(rate(row), prefix),
            looks[row.label].color,
            looks[row.label].marker,
        )
        for row in rows
    ]
    unit = arithmetic_roof(record, rows[0])
    if unit:
        labels.append(Label(roof_text([unit]), None, scaled(unit.flop_per_second or 0, prefix)))
    tall = max(_PLOT_HEIGHT, column_height(labels))
    page = Page(
        record,
        f"GEMM ladder under its roofs, {precision} at {rows[0].size}",
        _notes(record, rows, levels),
        width=_LEFT + sum(level.width + _BETWEEN for level in levels) + column_width(labels),
        height=_ABOVE + tall + _BELOW,
    )
    left = _LEFT
    for level in levels:
        axes = page.axes(left, _ABOVE, level.width, tall)
        left += level.width + _BETWEEN
        _set_axes(axes, level, rows, unit, prefix)
        _draw_level(axes, level, rows, unit, looks, prefix)
        if level is levels[0]:
            axes.set_ylabel(f"{prefix}FLOP/s")
        else:
            axes.yaxis.set_major_formatter(NullFormatter())
    label_column(axes, labels)
    return page.figure


def _rows(record: Record, precision: str) -> list[Row]:
    best = max(libraries(record, precision), key=rate, default=None)
    return [rung.row for rung in rungs(record, precision)] + ([best] if best else [])


def _levels(record: Record, rows: Sequence[Row]) -> list[Panel]:
    def modelled(level: Level) -> dict[str, float]:
        found = {row.label: level.flop_per_byte(row) for row in rows}
        return {label: value for label, value in found.items() if value is not None}

    panels = [
        Panel(
            "Shared memory",
            "FLOP for each byte of shared memory, by model",
            3.1,
            record.measured_memory_roof(SHARED.probe),
            modelled(SHARED),
        ),
        Panel(
            "L2",
            "FLOP for each byte asked of the L2, by model",
            3.1,
            record.measured_memory_roof(L2.probe),
            modelled(L2),
        ),
        Panel(
            "DRAM, ideal",
            "… if every matrix moves once",
            2.0,
            record.measured_memory_roof() or next(iter(record.memory_roofs()), None),
            {row.label: row.flop_per_byte for row in rows},
        ),
    ]
    return [panel for panel in panels if panel.flop_per_byte]


def _set_axes(
    axes: Axes, level: Panel, rows: Sequence[Row], unit: Ceiling | None, prefix: str
) -> None:
    rates = [rate(row) for row in rows]
    peak = max([unit.flop_per_second or 0 if unit else 0, *rates])
    ridge = [peak / (level.roof.bytes_per_second or 1)] if level.roof else []
    xs = [*level.flop_per_byte.values(), *ridge]
    axes.set_title(level.title, pad=18)
    axes.set_xlabel(level.axis, size=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(xs) / 1.6, max(xs) * 1.6)
    axes.set_ylim(scaled(min(rates) / 1.5, prefix), scaled(peak * 1.25, prefix))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # Beyond two decades the ticks would touch.
    if max(xs) / min(xs) > 40:
        axes.xaxis.set_major_locator(LogLocator(numticks=20))
    axes.grid(axis="y", visible=False)


def _draw_level(
    axes: Axes,
    level: Panel,
    rows: Sequence[Row],
    unit: Ceiling | None,
    looks: Mapping[str, Look],
    prefix: str,
) -> None:
    low, high = axes.get_xlim()
    top = scaled(unit.flop_per_second or 0, prefix) if unit else axes.get_ylim()[1]
    roof = {"color": ROOF_COLOR, "linewidth": 1.8, "zorder": 1, "solid_capstyle": "butt"}
    left = low
    if level.roof:
        width = scaled(level.roof.bytes_per_second or 0, prefix)
        left = top / width
        axes.plot([low, left], [low * width, top], **roof)
        write_above(axes, roof_text([level.roof]), 5)
    if unit:
        axes.plot([left, high], [top, top], **roof)
    path = [row for row in rows if row.label in level.flop_per_byte and row.is_ours]
    xs = [level.flop_per_byte[row.label] for row in path]
    ys = [scaled(rate(row), prefix) for row in path]
    axes.plot(xs, ys, color="#b5b5b5", linewidth=1.1, zorder=2)
    for row in rows:
        y = scaled(rate(row), prefix)
        look = looks[row.label]
        axes.axhline(y, color=look.color, linewidth=0.6, alpha=0.35, zorder=1.2)
        if row.label in level.flop_per_byte:
            axes.plot(
                level.flop_per_byte[row.label],
                y,
                label=row.label,
                color=look.color,
                marker=look.marker,
                markersize=5.5,
                markeredgecolor=look.color if look.is_peer else "white",
                markeredgewidth=1.1 if look.is_peer else 0.6,
                clip_on=False,
                zorder=4,
            )


def _notes(record: Record, rows: Sequence[Row], levels: Sequence[Panel]) -> list[str]:
    remarks = [
        *notes(rows),
        "The grey path leads from rung to rung; a thin level line joins the marks of one kernel. "
        "A mark that touches a slope cannot get faster without asking less of that memory.",
    ]
    for memory in (SHARED, L2):
        remarks += above_notes(record, memory, rows)
    unmodelled = [row.label for row in rows if not row.traffic and row.is_ours]
    if unmodelled:
        remarks.append(f"Without a model of their bytes: {', '.join(unmodelled)}.")
    missing = [level.title for level in levels if not level.roof]
    if missing:
        remarks.append(f"Roof not measured: {', '.join(missing)}.")
    return remarks
