"""Rate against arithmetic intensity, under the roofs of the device."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import (
    INK,
    ROOF_COLOR,
    Label,
    Page,
    column_height,
    column_width,
    is_measured,
    label_column,
    roof_text,
    size_in_points,
    unknown_roof_text,
)
from gemm_report.figures.palette import Look
from gemm_report.ladder import drawn_rows, headlines, precisions
from gemm_report.quantity import percent, quantity
from gemm_report.record import PRECISIONS, Ceiling, Record, Row

_MARKERS = dict(zip(PRECISIONS, ("o", "s", "D", "^", "P", "v"), strict=True))
_PLOT_WIDTH = 6.2
_PLOT_HEIGHT = 4.6
_LEFT = 0.75
_ABOVE = 0.3  # for the legend
_BELOW = 0.55


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data: kernels, then roofs."""
    rows = drawn_rows(record)
    labelled = headlines(rows)
    points = [
        {
            "kind": "kernel",
            "name": row.label,
            "precision": row.precision,
            "shape": row.shape,
            "flop_per_byte": row.flop_per_byte,
            "flop_per_second": row.flop_per_second,
            "of_roof": row.of_roof_nominal,
            "labelled": row in labelled,
        }
        for row in rows
    ]
    roofs = [
        {
            "kind": "roof",
            "name": ceiling.name,
            "precision": ceiling.precision,
            "flop_per_second": ceiling.flop_per_second,
            "bytes_per_second": ceiling.bytes_per_second,
            "origin": ceiling.origin,
        }
        for ceiling in _roofs(record, rows) + _measured_roofs(record, rows)
    ]
    return points + roofs


def draw(record: Record, looks: Mapping[str, Look]) -> Figure:
    """Every kernel at its largest cube, named, and its other problems as faint dots."""
    rows = drawn_rows(record)
    roofs = _roofs(record, rows)
    measured = _measured_roofs(record, rows)
    named = headlines(rows)
    labels = [_kernel_label(row, named, looks) for row in named]
    labels += _roof_labels(roofs) + _roof_labels(measured, thin=True)
    height = max(_PLOT_HEIGHT, column_height(labels))
    remarks = notes(named) + [unknown_roof_text(c) for c in record.unknown_roofs()]
    if any(row.of_roof_nominal for row in named):
        remarks.append(
            "Percentages are of the roof over the point: the lower of arithmetic and memory."
        )
    if measured and roofs:
        remarks.append("Thin roofs were measured, thick ones are what percentages are of.")
    page = Page(
        record,
        "GEMM roofline",
        [*remarks, *([] if rows else ["No row of this record has a time."])],
        width=_LEFT + _PLOT_WIDTH + column_width(labels),
        height=_ABOVE + height + _BELOW,
    )
    axes = page.axes(_LEFT, _ABOVE, _PLOT_WIDTH, height)
    _set_axes(axes, rows, roofs + measured)
    _draw_roofs(axes, roofs, beside=measured)
    _draw_roofs(axes, measured, beside=roofs, thin=True)
    _label_memory(axes, roofs, thin=measured)
    for row in rows:
        look = looks[row.label]
        is_named = row in named
        axes.plot(
            row.flop_per_byte,
            row.flop_per_second,
            label=row.label,
            color=look.color,
            marker=_MARKERS[row.precision],
            markersize=6.5 if is_named else 3.2,
            markeredgecolor="white" if is_named else "none",
            markeredgewidth=0.7,
            alpha=1 if is_named else 0.35,
            clip_on=False,
            zorder=4 if is_named else 3,
        )
    _draw_legend(axes, rows)
    label_column(axes, labels)
    return page.figure


def _roofs(record: Record, rows: Sequence[Row]) -> list[Ceiling]:
    # Without any row the roofs are all there is to see.
    shown = precisions(rows) or PRECISIONS
    return [c for p in shown for c in record.compute_roofs(p)] + record.memory_roofs()


def _measured_roofs(record: Record, rows: Sequence[Row]) -> list[Ceiling]:
    """Beside those that are computed; a measured one needs no second of its kind."""
    found = [
        record.measured_compute_roof(p)
        for p in precisions(rows) or PRECISIONS
        if not any(is_measured(roof) for roof in record.compute_roofs(p))
    ]
    if not any(is_measured(roof) for roof in record.memory_roofs()):
        found.append(record.measured_memory_roof())
    return [roof for roof in found if roof]


def _compute(roofs: Sequence[Ceiling]) -> list[float]:
    return [roof.flop_per_second for roof in roofs if roof.flop_per_second]


def _memory(roofs: Sequence[Ceiling]) -> list[float]:
    return [roof.bytes_per_second for roof in roofs if roof.bytes_per_second]


def _kernel_label(row: Row, named: Sequence[Row], looks: Mapping[str, Look]) -> Label:
    largest = max(other.volume for other in named)
    facts = [
        f"{row.label}  {row.precision}  {quantity(row.flop_per_second or 0, 'FLOP/s')}",
        "" if row.of_roof_nominal is None else f", {percent(row.of_roof_nominal)}",
        "" if row.volume == largest else f", at {row.size}",
        mark(row),
    ]
    return Label(
        "".join(facts),
        row.flop_per_byte,
        row.flop_per_second or 0,
        looks[row.label].color,
        _MARKERS[row.precision],
    )


def _roof_labels(roofs: Sequence[Ceiling], thin: bool = False) -> list[Label]:
    def line(roof: Ceiling) -> tuple[float, str]:
        return roof.flop_per_second or 0, roof.origin

    same = groupby(sorted((r for r in roofs if r.flop_per_second), key=line), key=line)
    return [Label(roof_text(list(group)), None, key[0], thin=thin) for key, group in same]


def _set_axes(axes: Axes, rows: Sequence[Row], roofs: Sequence[Ceiling]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arithmetic intensity [FLOP/byte], A and B read once and C written once")
    axes.set_ylabel("FLOP/s")
    peaks, widths = _compute(roofs), _memory(roofs)
    ridges = [peak / width for peak in peaks for width in widths]
    rates = [row.flop_per_second or 0 for row in rows]
    xs = [row.flop_per_byte for row in rows] + ridges or [1.0, 100.0]
    # The slope of the memory roof should be seen, even if every kernel stands right of it.
    low, high = min(xs) / 3, max(xs) * 1.6
    slopes = [low * width for width in widths]
    bottom = min(rates + slopes or peaks or [1e9]) / 2
    top = max(rates + peaks or [high * width for width in widths] or [1e12]) * 1.7
    axes.set_xlim(low, high)
    axes.set_ylim(bottom, top)
    for axis, limits in ((axes.xaxis, (low, high)), (axes.yaxis, (bottom, top))):
        ticks = (1.0,) if _decades(limits) > 2.5 else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=ticks, numticks=20))
        axis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _tick(y)))


def _draw_roofs(
    axes: Axes, roofs: Sequence[Ceiling], beside: Sequence[Ceiling], thin: bool = False
) -> None:
    """Thick or thin; where there is no roof of one kind, it ends at those `beside`."""
    low, high = axes.get_xlim()
    looks = {"color": ROOF_COLOR, "linewidth": 0.8 if thin else 1.8, "zorder": 1}
    looks["solid_capstyle"] = "butt"
    peaks, widths = _compute(roofs), _memory(roofs)
    widest = max(widths or _memory(beside), default=0)
    for peak in peaks:
        axes.plot([peak / widest if widest else low, high], [peak, peak], **looks)
    top = max(peaks or _compute(beside), default=axes.get_ylim()[1])
    for width in widths:
        axes.plot([low, top / width], [low * width, top], **looks)


def _label_memory(axes: Axes, roofs: Sequence[Ceiling], thin: Sequence[Ceiling]) -> None:
    """Names of the memory roofs along the highest of them, in the order of the lines."""
    named = sorted(
        (roof for roof in [*roofs, *thin] if roof.bytes_per_second),
        key=lambda roof: roof.bytes_per_second or 0,
    )
    width, height = size_in_points(axes)
    angle = math.atan2(
        height / _decades(axes.get_ylim()),
        width / _decades(axes.get_xlim()),
    )
    start = 1.15 * axes.get_xlim()[0]
    for i, roof in enumerate(named):
        axes.annotate(
            roof_text([roof]),
            (start, start * max(_memory(named))),
            xytext=(0, (4 + 10 * i) / math.cos(angle)),
            textcoords="offset points",
            rotation=math.degrees(angle),
            rotation_mode="anchor",
            ha="left",
            va="bottom",
            size=7.5,
            weight="normal" if roof in thin else "bold",
            color=INK,
        )


def _draw_legend(axes: Axes, rows: Sequence[Row]) -> None:
    looks = {"linestyle": "none", "color": "#555555", "markeredgecolor": "none"}
    entries = [
        Line2D([], [], marker=_MARKERS[p], markersize=6, label=p, **looks) for p in precisions(rows)
    ]
    named = {row.m for row in headlines(rows) if row.is_cube}
    if rows:
        size = f" ({max(named)})" if named else ""
        entries += [
            Line2D([], [], marker="o", markersize=6.5, label=f"large: largest cube{size}", **looks),
            Line2D(
                [],
                [],
                marker="o",
                markersize=3.2,
                alpha=0.5,
                label="small: other problems",
                **looks,
            ),
        ]
    axes.legend(
        handles=entries,
        loc="lower right",  # a steep memory roof has its name in the other corner
        bbox_to_anchor=(1, 1.0),
        ncols=max(1, len(entries)),
        borderaxespad=0.2,
        handletextpad=0.2,
        columnspacing=1.4,
    )


def _decades(limits: tuple[float, float]) -> float:
    return math.log10(limits[1] / limits[0])


def _tick(value: float) -> str:
    text = quantity(value, "")
    number, _, prefix = text.partition(" ")
    return f"{float(number):g} {prefix}".strip()
