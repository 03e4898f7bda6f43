"""The hierarchical roofline: rows under the bandwidth of shared memory, of the L2 and of DRAM.

A panel for each memory, with one axis of rates: a kernel is one level line through all of them.
Bytes are modelled; where ncu counted them, a hollow mark stands next to the filled one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from gemm_report.document import InputError
from gemm_report.figures.bars.distribution import expression
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
from gemm_report.figures.roofline.roofs import (
    ROOF_COLOR,
    Roof,
    draw_roofs,
    nominal_and_measured,
    set_log_axes,
)
from gemm_report.ladder.rows import drawn_rows
from gemm_report.ladder.rungs import arithmetic_roof, largest_step, libraries, rate, rungs
from gemm_report.record import Ceiling, Record, Row, Traffic
from gemm_report.writing.names import operations, precision_name, roof_name
from gemm_report.writing.quantity import prefix_for, quantity, scaled, significant

_HEIGHT = 4.2
_LEFT, _BETWEEN, _ABOVE, _BELOW = 0.55, 0.2, 0.5, 0.55
# With fewer rungs the roofline shows the same.
_RUNGS = 6
_MOST = 40


@dataclass(frozen=True)
class Level:
    """A memory: how its probe begins, and why a kernel may stand above its bandwidth."""

    title: str
    axis: str
    probe: str
    why_above: str
    bytes_of: Callable[[Traffic], float]
    least_share: float = 0.0  # of the bytes of the L2

    def flop_per_byte(self, row: Row, traffic: Traffic | None) -> float | None:
        """None where the bytes are not known, or next to nothing is moved."""
        if traffic is None:
            return None
        moved = self.bytes_of(traffic)
        return row.flop / moved if moved > self.least_share * traffic.l2_bytes else None

    def modelled(self, row: Row) -> float | None:
        """Of DRAM, where each matrix is moved once, even without a model."""
        found = self.flop_per_byte(row, row.traffic)
        return row.flop_per_byte if self is DRAM else found

    def counted(self, row: Row) -> float | None:
        """By what ncu counted."""
        return self.flop_per_byte(row, row.counted)


SHARED = Level(
    "Shared memory",
    "FLOP/byte, modelled",
    "Shared",
    "the model counts too much",
    lambda traffic: traffic.shared_bytes,
    least_share=0.01,  # a kernel that sends less through it multiplies elsewhere
)
L2 = Level(
    "L2",
    "FLOP/byte, modelled",
    "L2",
    "L1 hits are counted as L2 traffic",
    lambda traffic: traffic.l2_bytes,
)
DRAM = Level(
    "DRAM",
    "FLOP/byte, moved once",
    "DRAM",
    "the L2 held some of it",
    lambda traffic: traffic.dram_bytes,
)


def has_model(record: Record, precision: str) -> bool:
    """Whether there is anything that throughput and roofline do not show."""
    return sum(1 for rung in rungs(record, precision) if rung.row.traffic) >= _RUNGS


def ladder_rows(record: Record, precision: str) -> list[Row]:
    """The rungs, and the fastest library."""
    best = max(libraries(record, precision), key=rate, default=None)
    return [rung.row for rung in rungs(record, precision)] + ([best] if best else [])


def chosen(record: Record, pattern: str | None) -> list[Row]:
    """Rows of one precision whose names match; without a pattern those with counted bytes.

    InputError where the pattern is none, or nothing matches.
    """
    rows = drawn_rows(record)
    if pattern is None:
        found = [row for row in rows if row.counted]
    else:
        wanted = expression("--hierarchy", pattern)
        found = [row for row in rows if wanted.search(str(row.identity))]
        if not found:
            raise InputError(f"--hierarchy={pattern}: matches no timed row of {record.path}")
    return [row for row in found if row.precision == found[0].precision][:_MOST]


def table_of(record: Record, rows: Sequence[Row]) -> list[dict[str, object]]:
    """The plotted data: each row in each of the memories, and the bandwidth there."""
    roofs = {level.title: _bandwidth(record, level) for level in (SHARED, L2, DRAM)}
    return [
        {
            "kernel": row.label,
            "precision": row.precision,
            "size": row.size,
            "memory": level.title,
            "bytes": by,
            "flop_per_byte": intensity,
            "flop_per_second": rate(row),
            "roof": roof and roof.ceiling.name,
            "roof_bytes_per_second": roof and roof.width,
        }
        for level in _levels(rows)
        for row in rows
        for by, intensity in (
            ("moved once" if level is DRAM else "modelled", level.modelled(row)),
            ("counted by ncu", level.counted(row)),
        )
        if intensity
        for roof in [roofs[level.title]]
    ]


def table(record: Record, pattern: str | None) -> list[dict[str, object]]:
    """The plotted data of `draw`."""
    return table_of(record, chosen(record, pattern))


def draw(record: Record, pattern: str | None) -> Figure:
    """Chosen kernels under the bandwidth of each memory, with modelled and counted bytes."""
    rows = chosen(record, pattern)
    subject = f"hierarchical roofline, {precision_name(rows[0].precision)}"
    return _draw(record, rows, subject, looks(rows), path=False)


def ladder_table(record: Record, precision: str) -> list[dict[str, object]]:
    """The plotted data of `draw_ladder`."""
    return table_of(record, ladder_rows(record, precision))


def draw_ladder(record: Record, precision: str) -> Figure:
    """Each rung under the bandwidth of shared memory, L2 and DRAM, and under its unit's peak."""
    rows = ladder_rows(record, precision)
    subject = f"optimization ladder on the roofline, {precision_name(precision)} at {rows[0].size}"
    step = largest_step(rungs(record, precision))
    return _draw(record, rows, subject, looks(rows, step and step.row), path=True)


def _draw(
    record: Record, rows: Sequence[Row], subject: str, its: Mapping[str, Look], path: bool
) -> Figure:
    levels = _levels(rows)
    units = list(dict.fromkeys(filter(None, (arithmetic_roof(record, row) for row in rows))))
    prefix = prefix_for([*map(rate, rows), *(unit.flop_per_second or 0 for unit in units)])
    many = len({row.size for row in rows}) > 1
    labels = [
        Label(
            f"{row.label}{f' {row.size}' if many else ''}  "
            f"{significant(scaled(rate(row), prefix))}{mark(row)}",
            scaled(rate(row), prefix),
            None,
            its[row.label].color,
            its[row.label].marker,
            bold=path and its[row.label].stands_out,
        )
        for row in rows
    ]
    for unit in units:
        value = scaled(unit.flop_per_second or 0, prefix)
        text = f"{roof_name(unit.name)}  {significant(value)}"
        labels.append(Label(text, value, color=ROOF_COLOR, bold=True))
    tall = max(_HEIGHT, column_height(labels))
    counted = any(row.counted for row in rows)
    page = Page(
        record,
        subject,
        [legend_text(its), *_notes(record, rows, levels, path)],
        _ABOVE + tall + _BELOW,
        legend=_legend() if counted else (),
    )
    room = WIDTH - _LEFT - column_width(labels) + _BETWEEN
    for i, level in enumerate(levels):
        left = _LEFT + i * room / len(levels)
        axes = page.axes(left, _ABOVE, room / len(levels) - _BETWEEN, tall)
        _draw_level(axes, level, rows, its, record, units, prefix, path)
        if i:
            axes.yaxis.set_major_formatter(NullFormatter())
        else:
            axes.set_ylabel(prefix + operations(rows[0].precision))
    label_column(axes, labels)
    return page.figure


def _levels(rows: Sequence[Row]) -> list[Level]:
    return [level for level in (SHARED, L2, DRAM) if any(map(level.modelled, rows))]


def _bandwidth(record: Record, level: Level) -> Roof | None:
    measured = record.measured_memory_roof(level.probe)
    nominal = record.memory_roofs()[:1] if level is DRAM else []
    return next(iter(nominal_and_measured([] if measured else nominal, measured)), None)


def _draw_level(
    axes: Axes,
    level: Level,
    rows: Sequence[Row],
    its: Mapping[str, Look],
    record: Record,
    units: Sequence[Ceiling],
    prefix: str,
    path: bool,
) -> None:
    roof = _bandwidth(record, level)
    peaks = [unit.flop_per_second or 0 for unit in units]
    top = max([*peaks, *map(rate, rows)])
    ridge = [top / roof.width] if roof else []
    xs = [x for row in rows for x in (level.modelled(row), level.counted(row)) if x]
    scale = 1 / scaled(1, prefix)
    axes.set_title(level.title, pad=18)
    axes.set_xlabel(level.axis)
    set_log_axes(axes, [*xs, *ridge], [each / scale for each in (*map(rate, rows), *peaks)])
    axes.grid(axis="y", visible=False)
    draw_roofs(axes, [Roof(unit, "nominal peak") for unit in units], [roof] if roof else [], scale)
    if roof:
        write_above(axes, f"{quantity(roof.width, 'B/s')}, {roof.ceiling.origin}", 5)
    placed = [(row, level.modelled(row)) for row in rows]
    steps = [(x, rate(row) / scale) for row, x in placed if x and row.is_ours]
    if path:
        axes.plot(*zip(*steps, strict=True), color="#B5B5B5", linewidth=1.1, zorder=2)
    for row, x in placed:
        y, look = rate(row) / scale, its[row.label]
        axes.axhline(y, color=look.color, linewidth=0.6, alpha=0.3, zorder=1.2)
        if x:
            _draw_mark(axes, x, y, look, row.label)
        if counted := level.counted(row):
            axes.plot([x or counted, counted], [y, y], color=look.color, linewidth=0.8, zorder=2)
            _draw_mark(axes, counted, y, look, row.label, hollow=True)


def _draw_mark(
    axes: Axes, x: float, y: float, look: Look, label: str, hollow: bool = False
) -> None:
    axes.plot(
        x,
        y,
        label=label,
        color=look.color,
        marker=look.marker,
        markersize=6 if look.stands_out else 4.5,
        markerfacecolor="white" if hollow else look.color,
        markeredgecolor=look.color,
        clip_on=False,
        zorder=5 if look.stands_out else 4,
    )


def _legend() -> list[Line2D]:
    grey = {"linestyle": "none", "marker": "o", "color": PALE}
    return [
        Line2D([], [], label="bytes modelled; of DRAM: each matrix moved once", **grey),
        Line2D([], [], label="bytes counted by ncu", markerfacecolor="white", **grey),
    ]


def _notes(record: Record, rows: Sequence[Row], levels: Sequence[Level], path: bool) -> list[str]:
    remarks = notes(rows)
    if path:
        remarks.append(
            "The grey path leads from rung to rung; a level line joins the marks of one kernel. A "
            "kernel on a slope is bound by that memory: it needs fewer bytes per FLOP to go faster."
        )
    for level in levels:
        roof = _bandwidth(record, level)
        above = [
            row.label
            for row in rows
            if roof and rate(row) > (level.modelled(row) or 1e300) * roof.width
        ]
        if above and level is not DRAM:
            names = ", ".join(dict.fromkeys(above))
            remarks.append(f"Above the {level.title} roof because {level.why_above}: {names}.")
    if without := [row.label for row in rows if not row.traffic]:
        remarks.append(f"No traffic model: {', '.join(dict.fromkeys(without))}.")
    if missing := [level.title for level in levels if not _bandwidth(record, level)]:
        remarks.append(f"Bandwidth not measured: {', '.join(missing)}.")
    return remarks
