"""The answer at one glance: the fastest kernel of each precision, the library and the peak."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gemm_report.figures.bars import Line, bars
from gemm_report.figures.page import legend_above, new_figure
from gemm_report.figures.palette import LIBRARY, OURS, PALE, TRACK
from gemm_report.notes import THROTTLED, notes
from gemm_report.record import Record, rate
from gemm_report.rows import Standing, facts, standings
from gemm_report.text import operations, percent, precision_name, prefix_for, quantity, scaled

_DASHES = (0, (2, 1.2))
_HEAD = ("rate", "of library", "our kernel")


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    names = "precision", "layout", "size", "flop_per_second", "library"
    return [
        facts(each.best, *names, library_flop_per_second=each.library)
        | {"peak_flop_per_second": each.peak and each.peak.flop_per_second}
        | {"peak_at_clock_flop_per_second": each.peak_at_clock}
        | {"throttled_by": ", ".join(each.best.held_by)}
        for each in standings(record)
    ]


def draw(record: Record) -> Figure:
    """The fastest kernel of each precision, next to the fastest library and the peak."""
    found, title = standings(record), "fastest kernel of each precision"
    if not found:
        return new_figure(record, title, ["No row of this record has a time."], 0.2, part=None)
    has_peaks = all(each.peak for each in found)
    measured = any(each.peak and each.peak.origin == "measured" for each in found)
    peak = "measured peak" if measured else "nominal peak"
    remarks = [] if has_peaks else ["No peak is known for this device."]
    remarks += [said for said in notes(each.best for each in found) if said.startswith(THROTTLED)]
    if any(each.slow_library for each in found):
        remarks.append("Slow layout: the library is much faster in another one.")
    lines = [_line(each) for each in found]
    figure, (axes,) = bars(record, title, remarks, _HEAD, [lines], pitch=0.36, above=0.9, part=None)
    prefix = prefix_for(rate(each.best) for each in found)
    units = dict.fromkeys(operations(each.best.precision) for each in found)
    axes.set_xlabel(f"% of {peak}" if has_peaks else " or ".join(prefix + unit for unit in units))
    scales = [
        (each.peak.flop_per_second or 1) / 100 if has_peaks and each.peak else 1 / scaled(1, prefix)
        for each in found
    ]
    ends = [
        max(rate(each.best), each.library or 0, (has_peaks and each.peak_at_clock) or 0) / scale
        for each, scale in zip(found, scales, strict=True)
    ]
    axes.set_xlim(0, max([100] * has_peaks + [1.01 * end for end in ends]))
    for y, (each, scale) in enumerate(zip(found, scales, strict=True)):
        _draw_standing(axes, y, each, scale, has_peaks)
    legend_above(axes, _legend(peak, found, has_peaks), lines=1)
    return figure


def _draw_standing(axes: Axes, y: int, each: Standing, scale: float, has_peak: bool) -> None:
    if has_peak:
        axes.barh(y, 100, height=0.62, color=TRACK, zorder=1)
    axes.barh(y, rate(each.best) / scale, height=0.62, color=OURS, zorder=2)
    if each.library:
        at = [each.library / scale] * 2
        axes.plot(at, [y - 0.4, y + 0.4], color=LIBRARY, linewidth=3, zorder=4)
    if has_peak and each.peak_at_clock:
        at = [each.peak_at_clock / scale] * 2
        axes.plot(at, [y - 0.4, y + 0.4], color=PALE, linestyle=_DASHES, zorder=3)


def _line(each: Standing) -> Line:
    best, share, said = each.best, each.best.of_library, "not timed"
    if share:
        library = (best.library or "the library").partition("/")[0]
        said = f"{share:.1f}×" if share >= 2 else percent(share)
        said += f" {library}" + (" (slow layout)" if each.slow_library else "")
    where = f"{precision_name(best.precision)}  {best.size}, {best.layout}"
    speed = quantity(rate(best), operations(best.precision))
    return Line(where, (speed + f" {THROTTLED}" * best.throttled, said, each.name))


def _legend(peak: str, found: Sequence[Standing], has_peaks: bool) -> list[Artist]:
    entries: list[Artist] = [Patch(color=OURS, label="our fastest kernel")]
    if any(each.library for each in found):
        entries.append(Line2D([], [], linewidth=3, color=LIBRARY, label="fastest library"))
    if has_peaks:
        if any(each.peak_at_clock for each in found):
            held = "peak at the clock held"
            entries.append(Line2D([], [], linestyle=_DASHES, color=PALE, label=held))
        entries.append(Patch(color=TRACK, label=peak))
    return entries
