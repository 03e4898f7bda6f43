"""The hierarchical roofline: rows under the bandwidth of shared memory, of the L2 and of DRAM.

A panel for each memory, with one axis of rates: a kernel is one level line through all of them.
Bytes are modelled; where ncu counted them, a hollow mark stands next to the filled one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import (
    WIDTH,
    Label,
    Page,
    column_height,
    column_width,
    label_column,
    write_above,
)
from gemm_report.figures.palette import PALE, Look, legend_text, looks
from gemm_report.figures.roofs import ROOF_COLOR, draw_roofs, set_log_axes
from gemm_report.record import Ceiling, Record, Row, Traffic, rate
from gemm_report.rows import (
    arithmetic_roof,
    drawn_rows,
    facts,
    largest_step,
    libraries,
    named,
    rungs,
)
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
_LEFT, _BETWEEN, _ABOVE, _BELOW = 0.55, 0.2, 0.5, 0.55
# With fewer rungs the roofline shows the same.
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


def has_model(record: Record, precision: str) -> bool:
    """Whether there is anything that throughput and roofline do not show."""
    return sum(1 for rung in rungs(record, precision) if rung.row.traffic) >= _RUNGS


def chosen(record: Record, pattern: str | None) -> list[Row]:
    """Rows of one precision whose names match; without a pattern those with counted bytes."""
    rows = drawn_rows(record)
    if pattern is None:
        found = [row for row in rows if row.counted]
    else:
        found = named(record, rows, "--hierarchy", pattern)
    return [row for row in found if row.precision == found[0].precision][:_MOST]


@dataclass(frozen=True)
class Chart:
    """What is drawn: `path` joins the rungs of a ladder."""

    record: Record
    rows: Sequence[Row]
    looks: Mapping[str, Look]
    path: bool = False

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
        return [*map(rate, self.rows), *(unit.flop_per_second for unit in self.units)]

    @property
    def prefix(self) -> str:
        """Of all rates."""
        return prefix_for(self.rates)


def draw(record: Record, pattern: str | None) -> Figure:
    """Chosen kernels under the bandwidth of each memory, with modelled and counted bytes."""
    chart = _chart(record, pattern)
    precision = precision_name(chart.rows[0].precision)
    return _draw(chart, f"hierarchical roofline, {precision}")


def draw_ladder(record: Record, precision: str) -> Figure:
    """Each rung under the bandwidth of shared memory, L2 and DRAM, and under its unit's peak."""
    chart = _chart(record, None, precision)
    name, size = precision_name(precision), chart.rows[0].size
    return _draw(chart, f"optimization ladder on the roofline, {name} at {size}")


def _chart(record: Record, pattern: str | None, precision: str | None = None) -> Chart:
    """Of chosen rows, or of a ladder: the rungs, and the fastest library."""
    if precision is None:
        rows = chosen(record, pattern)
        return Chart(record, rows, looks(rows))
    found = rungs(record, precision)
    best = sorted(libraries(record, precision), key=rate)[-1:]
    rows = [rung.row for rung in found] + best
    step = largest_step(found)
    return Chart(record, rows, looks(rows, step and step.row), path=True)


def table(
    record: Record, pattern: str | None = None, precision: str | None = None
) -> list[dict[str, object]]:
    """The plotted data of chosen rows, or of a ladder: each row in each of the memories."""
    chart = _chart(record, pattern, precision)
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


def _draw(chart: Chart, subject: str) -> Figure:
    labels = _labels(chart)
    tall = max(_HEIGHT, column_height(labels))
    remarks = [legend_text(chart.looks), *_notes(chart)]
    legend = _legend() if any(row.counted for row in chart.rows) else ()
    page = Page(chart.record, subject, remarks, _ABOVE + tall + _BELOW, legend=legend)
    room = (WIDTH - _LEFT - column_width(labels) + _BETWEEN) / len(chart.memories)
    for i, memory in enumerate(chart.memories):
        axes = page.axes(_LEFT + i * room, _ABOVE, room - _BETWEEN, tall)
        _draw_panel(axes, chart, memory)
        if i:
            axes.set_yticklabels([])
        else:
            axes.set_ylabel(chart.prefix + operations(chart.rows[0].precision))
    label_column(axes, labels)
    return page.figure


def _labels(chart: Chart) -> list[Label]:
    sizes = {row.size for row in chart.rows}
    found = []
    for row in chart.rows:
        look, y = chart.looks[row.label], scaled(rate(row), chart.prefix)
        name = f"{row.label} {row.size}" if len(sizes) > 1 else row.label
        bold = chart.path and look.stands_out
        text = f"{name}  {significant(y)}{mark(row)}"
        found.append(Label(text, y, None, look.color, look.marker, bold))
    for unit in chart.units:
        y = scaled(unit.flop_per_second, chart.prefix)
        text = f"{roof_name(unit.name)}  {significant(y)}"
        found.append(Label(text, y, color=ROOF_COLOR, bold=True))
    return found


def _draw_panel(axes: Axes, chart: Chart, memory: str) -> None:
    roof, scale, rates = chart.record.bandwidth(memory), 1 / scaled(1, chart.prefix), chart.rates
    ridge = [max(rates) / roof.bytes_per_second] if roof else []
    xs = [x for row in chart.rows for x in (modelled(row, memory), counted(row, memory)) if x]
    axes.set_title(_TITLES[memory], pad=18)
    axes.set_xlabel(f"FLOP/byte, {'moved once' if memory == DRAM else 'modelled'}")
    set_log_axes(axes, [*xs, *ridge], [each / scale for each in rates])
    axes.grid(axis="y", visible=False)
    draw_roofs(axes, chart.units, [roof] if roof else [], scale)
    if roof:
        write_above(axes, f"{quantity(roof.bytes_per_second, 'B/s')}, {roof.origin}", 5)
    steps = [(modelled(row, memory), rate(row) / scale) for row in chart.rows if row.is_ours]
    if chart.path and (steps := [step for step in steps if step[0]]):
        axes.plot(*zip(*steps, strict=True), color="#B5B5B5", linewidth=1.1, zorder=2)
    for row in chart.rows:
        y, look = rate(row) / scale, chart.looks[row.label]
        axes.axhline(y, color=look.color, linewidth=0.6, alpha=0.3, zorder=1.2)
        marks = {
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
    grey = {"linestyle": "none", "marker": "o", "color": PALE}
    return [
        Line2D([], [], label="bytes modelled; of DRAM: each matrix moved once", **grey),
        Line2D([], [], label="bytes counted by ncu", markerfacecolor="white", **grey),
    ]


def _notes(chart: Chart) -> list[str]:
    remarks, bandwidth = notes(chart.rows), chart.record.bandwidth
    if chart.path:
        remarks.append(
            "The grey path leads from rung to rung; a level line joins the marks of one kernel. A "
            "kernel on a slope is bound by that memory: it needs fewer bytes per FLOP to go faster."
        )
    for memory, why in _WHY_ABOVE.items():
        roof = bandwidth(memory)
        above = [
            row.label
            for row in chart.rows
            if roof and (x := modelled(row, memory)) and rate(row) > x * roof.bytes_per_second
        ]
        if above:
            names = ", ".join(dict.fromkeys(above))
            remarks.append(f"Above the {_TITLES[memory]} roof because {why}: {names}.")
    if without := [row.label for row in chart.rows if not row.traffic]:
        remarks.append(f"No traffic model: {', '.join(dict.fromkeys(without))}.")
    if missing := [_TITLES[each] for each in chart.memories if not bandwidth(each)]:
        remarks.append(f"Bandwidth not measured: {', '.join(missing)}.")
    return remarks
