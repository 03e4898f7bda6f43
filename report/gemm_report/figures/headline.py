"""The answer at one glance: the fastest kernel of each precision, the library and the peak."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gemm_report.figures.page import (
    LABEL_SIZE,
    NARROW,
    POINTS,
    Page,
    say_empty,
    size_in_points,
    text_width,
)
from gemm_report.figures.palette import INK, LIBRARY, ON_BAR, OURS, PALE, TRACK
from gemm_report.record import Record, rate
from gemm_report.rows import Standing, facts, standings
from gemm_report.text import operations, percent, precision_name, prefix_for, quantity, scaled

_PITCH = 0.5
_NARROWEST, _BELOW, _AIR = 2.6, 0.55, 0.08
_LARGE, _CLEAR = 10.5, 6.0
_DASHES = (0, (2, 1.2))


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
    found = standings(record)
    has_peaks = bool(found) and all(each.peak for each in found)
    measured = any(each.peak and each.peak.origin == "measured" for each in found)
    peak = "measured peak" if measured else "nominal peak"
    remarks = [] if has_peaks or not found else ["No peak is known for this device."]
    tall = max(1, len(found)) * _PITCH
    left, right = (
        max((text_width(*text) for each in found for text in texts(each)), default=0) / POINTS
        for texts in (_left, _right)
    )
    width = max(_NARROWEST, NARROW - left - right - 2 * _AIR)
    size = tall + _BELOW, left + width + right + 2 * _AIR
    legend = _legend(peak, found, has_peaks) if found else ()
    title = "fastest kernel of each precision"
    page = Page(record, title, remarks, *size, legend=legend, part=None)
    axes = page.axes(left + _AIR, 0.04, width, tall)
    if not found:
        say_empty(axes)
        return page.figure
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
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
    return page.figure


def _draw_standing(axes: Axes, y: int, each: Standing, scale: float, has_peak: bool) -> None:
    best, bar = each.best, rate(each.best) / scale
    if has_peak:
        axes.barh(y, 100, height=0.62, color=TRACK, zorder=1)
    axes.barh(y, bar, height=0.62, color=OURS, zorder=2)
    marks = []
    if each.library:
        marks.append(each.library / scale)
        axes.plot([marks[-1]] * 2, [y - 0.4, y + 0.4], color=LIBRARY, linewidth=3, zorder=4)
    if has_peak and each.peak_at_clock:
        marks.append(each.peak_at_clock / scale)
        axes.plot([marks[-1]] * 2, [y - 0.4, y + 0.4], color=PALE, linestyle=_DASHES, zorder=3)
    text = quantity(rate(best), operations(best.precision))
    x, inside = _room(axes, text, bar, marks)
    looks = {"va": "center_baseline", "clip_on": False, "zorder": 5}
    axes.text(x, y, text, size=_LARGE, weight="bold", color=ON_BAR if inside else INK, **looks)
    gap = _AIR * POINTS / size_in_points(axes)[0]
    looks["transform"] = axes.get_yaxis_transform()
    for at, align, texts in ((-gap, "right", _left(each)), (1 + gap, "left", _right(each))):
        for (said, size, bold), place in zip(texts, (y - 0.17, y + 0.22), strict=True):
            color, weight = "black" if size == _LARGE else PALE, "bold" if bold else "normal"
            axes.text(at, place, said, size=size, color=color, weight=weight, ha=align, **looks)


def _left(each: Standing) -> list[tuple[str, float, bool]]:
    """Two lines, each with its size and whether it is bold."""
    where = f"{each.best.size}, layout {each.best.layout}"
    return [(precision_name(each.best.precision), _LARGE, True), (where, LABEL_SIZE, False)]


def _right(each: Standing) -> list[tuple[str, float, bool]]:
    return [(each.name, _LARGE, False), (_said(each), LABEL_SIZE, False)]


def _said(each: Standing) -> str:
    best = each.best
    share, library = best.of_library, (best.library or "the library").partition("/")[0]
    of = f"{share:.1f}× {library}" if share and share >= 2 else f"{percent(share)} of {library}"
    facts = [of + (" (slow layout)" if each.slow_library else "") if share else "no library timed"]
    if best.throttled:
        facts.append("power-capped" if "power cap" in best.held_by else "throttled")
    return " · ".join(facts)


def _room(axes: Axes, text: str, bar: float, marks: Sequence[float]) -> tuple[float, bool]:
    """Where the rate goes so that no mark hides it, and whether that is inside the bar."""
    point = axes.get_xlim()[1] / size_in_points(axes)[0]
    length, clear = text_width(text, _LARGE, bold=True) * point, _CLEAR * point
    starts = [0, *sorted(marks), bar]

    def is_free(start: float) -> bool:
        # Just behind a mark is free, whatever rounding says.
        return not any(start - 0.9 * clear < mark < start + length + clear for mark in marks)

    for start in (each + clear for each in starts if each < bar):
        if is_free(start) and start + length + clear <= bar:
            return start, True
    outside = (each + clear for each in sorted([bar, *marks]) if each >= bar)
    return next(start for start in outside if is_free(start)), False


def _legend(peak: str, found: Sequence[Standing], has_peaks: bool) -> list[object]:
    thick = {"linestyle": "none", "marker": "|", "markersize": 11}
    entries: list[object] = [Patch(color=OURS, label="our fastest kernel")]
    if any(each.library for each in found):
        looks = {"markeredgewidth": 3, "color": LIBRARY}
        entries.append(Line2D([], [], label="fastest library", **thick, **looks))
    if has_peaks:
        if any(each.peak_at_clock for each in found):
            looks = {"linestyle": _DASHES, "color": PALE}
            entries.append(Line2D([], [], label="peak at the clock held", **looks))
        entries.append(Patch(color=TRACK, label=peak))
    return entries
