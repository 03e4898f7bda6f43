"""The ladder, rung by rung: a bar for each kernel, the peak at the right edge."""

from matplotlib.figure import Figure

from gemm_report.figures.bars import Line, bars
from gemm_report.figures.page import legend_above
from gemm_report.figures.palette import legend_text, looks
from gemm_report.figures.roofs import ROOF_COLOR, compute_roofs
from gemm_report.notes import mark, notes, roof_text
from gemm_report.record import Record, rate
from gemm_report.rows import (
    Rung,
    arithmetic_roof,
    at_size,
    facts,
    kernels_without_row,
    rungs,
)
from gemm_report.text import (
    operations,
    percent,
    precision_name,
    prefix_for,
    scaled,
    significant,
    times,
)


def table(record: Record, precision: str) -> list[dict[str, object]]:
    """The plotted data."""
    names = "family", "precision", "size", "flop_per_second"
    return [
        facts(rung.row, *names, below=rung.below and rung.below.label, step=rung.step)
        | {"of_roof": rung.row.of_roof_nominal, "of_library": rung.row.of_library}
        for rung in _all(record, precision)
    ]


def draw(record: Record, precision: str) -> Figure:
    """Throughput per rung, gain over the previous rung, share of peak and of the library."""
    found = _all(record, precision)
    prefix = prefix_for(rate(rung.row) for rung in found)
    unit = f"{prefix}{operations(precision)}"
    its = looks([rung.row for rung in found])
    # The peak that percentages are of, the measured one, and those of other units in use.
    roofs = compute_roofs(record, precision)
    units = dict.fromkeys(arithmetic_roof(record, rung.row) for rung in found)
    roofs += [each for each in units if each and each not in roofs]
    remarks = [legend_text(its), *notes(rung.row for rung in found)]
    if any(not rung.row.is_library for rung in found):
        remarks.append("Step: speed-up over the fastest variant of the previous rung.")
    if missing := kernels_without_row(record, precision):
        remarks.append(f"Not timed at this size: {', '.join(missing)}.")
    figure, (axes,) = bars(
        record,
        f"optimization ladder, {precision_name(precision)} at {found[0].row.size}",
        remarks,
        [unit, "step", "% of peak", "% of library"],
        [[_line(rung, prefix, its[rung.row.label].stands_out) for rung in found]],
        above=0.3 + 0.2 * len(roofs),
    )
    peaks = [roof.flop_per_second or 0 for roof in roofs]
    axes.set_xlim(0, scaled(max([*peaks, *(rate(rung.row) for rung in found)]), prefix))
    axes.set_xlabel(unit)
    for y, rung in enumerate(found):
        length = scaled(rate(rung.row), prefix)
        axes.barh(y, length, height=0.72, zorder=2, **its[rung.row.label].bar)
    lines = []
    for i, (roof, peak) in enumerate(zip(roofs, peaks, strict=True)):
        at, width = scaled(peak, prefix), 0.8 if i else 1.8
        line = axes.axvline(at, color=ROOF_COLOR, clip_on=False, zorder=1, linewidth=width)
        line.set_label(roof_text(roof))
        lines.append(line)
    legend_above(axes, lines, columns=1, lines=1)
    return figure


def _all(record: Record, precision: str) -> list[Rung]:
    """The rungs from the lowest to the highest, then the libraries, then other implementations."""
    beside = [row for row in at_size(record, precision) if not row.is_ours]
    beside.sort(key=lambda row: row.is_peer)
    return rungs(record, precision) + [Rung(row, None) for row in beside]


def _line(rung: Rung, prefix: str, bold: bool) -> Line:
    row = rung.row
    cells = (
        significant(scaled(rate(row), prefix)) + mark(row),
        times(rung.step),
        percent(row.of_roof_nominal),
        percent(row.of_library),
    )
    return Line(row.label, cells, bold=bold)
