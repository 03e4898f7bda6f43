"""Rate against size in one precision: a line for each kernel, the peak on top."""

from matplotlib.figure import Figure

from gemm_report.figures.page import Label, column_height, label_column, new_figure
from gemm_report.figures.palette import legend_text, looks
from gemm_report.figures.roofs import ROOF_COLOR
from gemm_report.notes import mark, notes, unknown_roofs
from gemm_report.record import Record, Row, rate
from gemm_report.rows import drawn_rows, facts, headlines, ladder_sizes, natural
from gemm_report.text import (
    operations,
    percent,
    precision_name,
    prefix_for,
    scaled,
    significant,
)

_HEIGHT = 3.2


def rows_of(record: Record, precision: str) -> list[Row]:
    """What is drawn."""
    return [row for row in drawn_rows(record) if row.precision == precision]


def place(row: Row) -> float:
    """Of a row on the axis: its size, or that of the cube with as many products."""
    return row.m if row.is_cube else row.volume ** (1 / 3)


def table(record: Record, precision: str) -> list[dict[str, object]]:
    """The plotted data."""
    sizes = ladder_sizes(drawn_rows(record))
    names = "precision", "m", "n", "k", "flop_per_second", "of_library", "library"
    return [
        facts(row, *names, size=place(row), on_line=row.is_cube and row.m in sizes)
        | {"roof_flop_per_second": row.roof and row.roof.flop_per_second}
        for row in rows_of(record, precision)
    ]


def draw(record: Record, precision: str) -> Figure:
    """Throughput against problem size, with the device's peak and shares of the library."""
    rows = rows_of(record, precision)
    roofs, sizes, named = record.compute_roofs(precision), ladder_sizes(rows), headlines(rows)
    peak = (roofs[0].flop_per_second or 0) if roofs else 0
    fastest = max(map(rate, rows))
    prefix, its = prefix_for([fastest, peak]), looks(named)
    labels, largest = [], max(row.volume for row in rows)
    for row in named:
        if its[row.label].stands_out:
            text = f"{row.label}  {significant(scaled(rate(row), prefix))}{mark(row)}"
            if row.of_library and not row.is_library:
                text += f"  {percent(row.of_library)} of the library"
            text += "" if row.volume == largest else f", at {row.size}"
            labels.append(Label(text, scaled(rate(row), prefix), its[row.label].color))
    top = scaled(max(peak, 1.08 * fastest if fastest > 0.98 * peak else 0), prefix)
    if peak:
        level = scaled(peak, prefix)
        labels.append(Label(f"peak  {significant(level)}", level, ROOF_COLOR, bold=True))
    seen = notes(row for row in named if its[row.label].stands_out)
    remarks = [legend_text(its), *seen, *unknown_roofs(record, [precision])]
    subject = f"throughput, {precision_name(precision)}"
    figure = new_figure(record, subject, remarks, 1 + max(_HEIGHT, column_height(labels)))
    axes = figure.subplots()
    axes.set_ylabel(prefix + operations(precision))
    axes.set_ylim(0, top)
    if peak:
        axes.axhline(scaled(peak, prefix), linewidth=1.8, color=ROOF_COLOR, clip_on=False)
    for label in sorted({row.label for row in rows}, key=natural):
        look = its[label]
        points = sorted((row for row in rows if row.label == label), key=place)
        line = [row for row in points if row.is_cube and row.m in sizes]
        apart = [row for row in points if row not in line]
        width, size, order = (2, 5, 3) if look.stands_out else (0.8, 2.5, 2)
        for its_rows, style in ((line, look.line), (apart, "none")):
            if its_rows:
                axes.plot(
                    [*map(place, its_rows)],
                    [scaled(rate(row), prefix) for row in its_rows],
                    label=label,
                    color=look.color,
                    linestyle=style,
                    linewidth=width,
                    marker=look.marker,
                    markersize=size,
                    zorder=order,
                    clip_on=False,
                )
    axes.set_xscale("log", base=2)
    axes.set_xlabel("m = n = k, or the cube root of m·n·k" if len(sizes) < 2 else "m = n = k")
    if len(sizes) > 1:
        axes.set_xticks(sorted(sizes))
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xticks([], minor=True)
    label_column(axes, labels)
    return figure
