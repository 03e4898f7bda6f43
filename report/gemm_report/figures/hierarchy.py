"""The hierarchical roofline: rows under the bandwidth of shared memory, of the L2 and of DRAM.

A panel for each memory, with one axis of rates: a kernel is one level line through all of them.
Bytes are modelled; where ncu counted them, a hollow mark stands next to the filled one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import Label, column_height, label_column, legend_above, new_figure
from gemm_report.figures.palette import PALE, Look, legend_text, looks
from gemm_report.figures.roofs import ROOF_COLOR, draw_roofs, set_log_axes
from gemm_report.record import Ceiling, Record, Row, Traffic, rate
from gemm_report.rows import arithmetic_roof, drawn_rows, facts, libraries, named, rungs
from gemm_report.text import (
    operations,
    precision_name,
    prefix_for,
    quantity,
    roof_name,
    scaled,
    significant,
)

_HEIGHT = 4.2
# Of a ladder; with fewer rungs the roofline shows the same.
_RUNGS = 6
_MOST = 40

# The panels from the left, by names of MEMORIES.
SHARED, L2, DRAM = "shared memory", "L2", "DRAM"
_TITLES = {SHARED: "Shared memory", L2: "L2", DRAM: "DRAM"}
_WHY_ABOVE = {SHARED: "the model counts too much", L2: "L1 hits are counted as L2 traffic"}
# Of the bytes of the L2: a kernel that sends less through shared memory multiplies elsewhere.
_LEAST_SHARED = 0.01


def _intensity(row: Row, memory: str, traffic: Traffic | None) -> float | None:
    """FLOP/byte; None where the bytes are not known, or next to nothing is moved."""
    if traffic is None:
        return None
    moved, least = traffic.levels[memory], _LEAST_SHARED * traffic.l2_bytes
    return row.flop / moved if moved > (least if memory == SHARED else 0) else None


def modelled(row: Row, memory: str) -> float | None:
    """FLOP/byte; of DRAM, where each matrix is moved once, even without a model."""
    return row.flop_per_byte if memory == DRAM else _intensity(row, memory, row.traffic)


def counted(row: Row, memory: str) -> float | None:
    """FLOP/byte by what ncu counted."""
    return _intensity(row, memory, row.counted)


def chosen(record: Record, pattern: str | None) -> list[Row]:
    """Rows of one precision whose names match; without a pattern those with counted bytes.

    Where none were counted, the rungs of the FP32 ladder and the fastest library.
    """
    rows = drawn_rows(record)
    if pattern is None:
        found = [row for row in rows if row.counted] or _ladder(record)
    else:
        found = named(record, rows, "--hierarchy", pattern)
    return [row for row in found if row.precision == found[0].precision][:_MOST]


def _ladder(record: Record) -> list[Row]:
    found = [rung.row for rung in rungs(record, "f32")]
    if sum(1 for row in found if row.traffic) < _RUNGS:
        return []
    return found + sorted(libraries(record, "f32"), key=rate)[-1:]


@dataclass(frozen=True)
class Chart:
    """What is drawn."""

    record: Record
    rows: Sequence[Row]
    looks: Mapping[str, Look]

    @property
    def memories(self) -> list[str]:
        """Those that the rows use."""
        return [each for each in _TITLES if any(modelled(row, each) for row in self.rows)]

    @property
    def units(self) -> list[Ceiling]:
        """The peaks of all units that the rows compute with."""
        found = dict.fromkeys(arithmetic_roof(self.record, row) for row in self.rows)
        return [unit for unit in found if unit]

    @property
    def rates(self) -> list[float]:
        """Of the rows and of these peaks."""
        return [*map(rate, self.rows), *(unit.flop_per_second or 0 for unit in self.units)]

    @property
    def prefix(self) -> str:
        """Of all rates."""
        return prefix_for(self.rates)


def _chart(record: Record, pattern: str | None) -> Chart:
    rows = chosen(record, pattern)
    return Chart(record, rows, looks(rows))


def table(record: Record, pattern: str | None = None) -> list[dict[str, object]]:
    """The plotted data: each row in each of the memories."""
    chart = _chart(record, pattern)
    return [
        facts(row, "precision", "size", "flop_per_second", memory=_TITLES[memory], bytes=by)
        | {"flop_per_byte": intensity, "roof": roof and roof.name}
        | {"roof_bytes_per_second": roof and roof.bytes_per_second}
        for memory in chart.memories
        for roof in [record.bandwidth(memory)]
        for row in chart.rows
        for by, intensity in (
            ("moved once" if memory == DRAM else "modelled", modelled(row, memory)),
            ("counted by ncu", counted(row, memory)),
        )
        if intensity
    ]


def draw(record: Record, pattern: str | None = None) -> Figure:
    """Kernels under the bandwidth of each memory, and under the peak of the unit that computes."""
    chart = _chart(record, pattern)
    labels = _labels(chart)
    remarks, its = [legend_text(dict(chart.looks)), *_notes(chart)], chart.rows[0]
    sizes = {row.size for row in chart.rows}
    subject = f"hierarchical roofline, {precision_name(its.precision)}"
    subject += f" at {its.size}" if len(sizes) == 1 else ""
    tall = 1.2 + max(_HEIGHT, column_height(labels))
    figure = new_figure(record, subject, remarks, tall)
    plots = figure.subplots(1, len(chart.memories), squeeze=False, sharey=True)[0]
    for axes, memory in zip(plots, chart.memories, strict=True):
        _draw_panel(axes, chart, memory)
    plots[0].set_ylabel(chart.prefix + operations(its.precision))
    if any(row.counted for row in chart.rows):
        legend_above(plots[0], _legend(), columns=1, lines=3)
    label_column(plots[-1], labels)
    return figure


def _labels(chart: Chart) -> list[Label]:
    sizes = {row.size for row in chart.rows}
    found = []
    for row in chart.rows:
        look, y = chart.looks[row.label], scaled(rate(row), chart.prefix)
        name = f"{row.label} {row.size}" if len(sizes) > 1 else row.label
        text = f"{name}  {significant(y)}{mark(row)}"
        found.append(Label(text, y, look.color, look.stands_out))
    for unit in chart.units:
        y = scaled(unit.flop_per_second or 0, chart.prefix)
        found.append(Label(f"{roof_name(unit.name)}  {significant(y)}", y, ROOF_COLOR, True))
    return found


def _draw_panel(axes: Axes, chart: Chart, memory: str) -> None:
    roof, scale, rates = chart.record.bandwidth(memory), 1 / scaled(1, chart.prefix), chart.rates
    slope = (roof.bytes_per_second or 0) if roof else 0
    xs = [x for row in chart.rows for x in (modelled(row, memory), counted(row, memory)) if x]
    moved = "moved once" if memory == DRAM else "modelled"
    speed = f"{quantity(slope, 'B/s')}, {roof.origin}" if roof else "not measured"
    axes.set_title(f"{_TITLES[memory]}\n{speed}", size=9.5)
    axes.set_xlabel(f"FLOP/byte, {moved}")
    set_log_axes(axes, [*xs, *([max(rates) / slope] if roof else [])], [r / scale for r in rates])
    axes.grid(axis="y", visible=False)
    draw_roofs(axes, chart.units, [roof] if roof else [], scale)
    for row in chart.rows:
        y, look = rate(row) / scale, chart.looks[row.label]
        axes.axhline(y, color=look.color, linewidth=0.6, alpha=0.3, zorder=1.2)
        marks: dict[str, Any] = {
            **{"label": row.label, "color": look.color, "marker": look.marker, "clip_on": False},
            "markersize": 6 if look.stands_out else 4.5,
            "zorder": 5 if look.stands_out else 4,
        }
        by_model, by_ncu = modelled(row, memory), counted(row, memory)
        if by_ncu:
            axes.plot([by_model or by_ncu, by_ncu], [y, y], color=look.color, linewidth=0.8)
            axes.plot(by_ncu, y, markerfacecolor="white", **marks)
        if by_model:
            axes.plot(by_model, y, **marks)


def _legend() -> list[Line2D]:
    grey: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": PALE}
    return [
        Line2D([], [], label="bytes modelled; of DRAM: each matrix moved once", **grey),
        Line2D([], [], label="bytes counted by ncu", markerfacecolor="white", **grey),
    ]


def _notes(chart: Chart) -> list[str]:
    remarks, bandwidth = notes(chart.rows), chart.record.bandwidth
    for memory, why in _WHY_ABOVE.items():
        roof = bandwidth(memory)
        above = [
            row.label
            for row in chart.rows
            if roof
            and (x := modelled(row, memory))
            and rate(row) > x * (roof.bytes_per_second or 0)
        ]
        if above:
            names = ", ".join(dict.fromkeys(above))
            remarks.append(f"Above the {_TITLES[memory]} roof because {why}: {names}.")
    if without := [row.label for row in chart.rows if not row.traffic]:
        remarks.append(f"No traffic model: {', '.join(dict.fromkeys(without))}.")
    if missing := [_TITLES[each] for each in chart.memories if not bandwidth(each)]:
        remarks.append(f"Bandwidth not measured: {', '.join(missing)}.")
    return remarks
