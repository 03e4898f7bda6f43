"""Lines over the size of the problem: what answers the question in colour, the rest in grey."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import (
    WIDTH,
    Label,
    Page,
    column_height,
    column_width,
    in_points,
    label_column,
    say_empty,
    text_width,
)
from gemm_report.figures.palette import INK, Look, legend_text, looks
from gemm_report.record import Record, Row
from gemm_report.rows import headlines, ladder_sizes, natural

_ALIGNED = 64
_HEIGHT, _LEFT, _ABOVE, _BELOW, _BETWEEN = 2.3, 0.5, 0.36, 0.5, 0.22


@dataclass(frozen=True)
class Panel:
    """Rows of one precision: the height of each on the axis, its text, and where the axis ends."""

    title: str
    rows: Sequence[Row]
    height: Callable[[Row], float]
    said: Callable[[Row], str]
    top: float
    level: Label | None = None  # with which all are compared
    dotted: Mapping[int, float] = field(default_factory=dict)


def draw_panels(
    record: Record, subject: str, panels: Sequence[Panel], remarks: Sequence[str]
) -> Figure:
    """In two columns; without any panel, a page that says why it is empty."""
    shown = [looks(headlines(panel.rows)) for panel in panels]
    labels = [_labels(panel, its) for panel, its in zip(panels, shown, strict=True)]
    named = [
        row
        for panel, its in zip(panels, shown, strict=True)
        for row in headlines(panel.rows)
        if its[row.label].stands_out
    ]
    hollow = _hollow_note([row for panel in panels for row in panel.rows])
    explained = [legend_text(*shown), *notes(named), *hollow] if panels else []
    lines = range(0, len(panels), 2)
    heights = [max(_HEIGHT, *map(column_height, labels[i : i + 2])) for i in lines] or [_HEIGHT]
    tall = sum(heights) + len(heights) * (_ABOVE + _BELOW)
    page = Page(record, subject, [*explained, *remarks], tall)
    columns = min(2, max(1, len(panels)))
    room = (WIDTH - _BETWEEN * (columns - 1)) / columns
    for i, (panel, its) in enumerate(zip(panels, shown, strict=True)):
        line, column = divmod(i, 2)
        left = _LEFT + column * (room + _BETWEEN)
        top = _ABOVE + sum(heights[:line]) + line * (_ABOVE + _BELOW)
        beside = max(map(column_width, labels[column::2]))
        axes = page.axes(left, top, max(1.0, room - _LEFT - beside), heights[line])
        _draw_panel(axes, panel, its)
        label_column(axes, labels[i])
    if not panels:
        say_empty(page.axes(_LEFT, _ABOVE, WIDTH - _LEFT, _HEIGHT))
    return page.figure


def place(row: Row) -> float:
    """Of a row on the axis."""
    return row.m if row.is_cube else row.volume ** (1 / 3)


def _is_unaligned(row: Row) -> bool:
    """Whether some tile of every kernel is not full."""
    return any(size % _ALIGNED for size in (row.m, row.n, row.k))


def _draw_panel(axes: Axes, panel: Panel, its: Mapping[str, Look]) -> None:
    """A line joins the cubes of a kernel, hollow marks are the rest."""
    sizes = ladder_sizes(panel.rows)
    axes.set_title(panel.title)
    axes.set_ylim(0, panel.top)
    if panel.level:
        looks_of_level = {"color": panel.level.color, "clip_on": False, "zorder": 1}
        axes.axhline(panel.level.y, linewidth=1.8, **looks_of_level)
    if panel.dotted:
        looks_of_bound = {"color": INK, "linewidth": 1, "linestyle": ":", "zorder": 1}
        axes.plot(*zip(*sorted(panel.dotted.items()), strict=True), **looks_of_bound)
    _set_size_axis(axes, panel.rows)
    for label in sorted({row.label for row in panel.rows}, key=natural):
        look = its[label]
        rows = sorted((row for row in panel.rows if row.label == label), key=place)
        line = [row for row in rows if row.is_cube and row.m in sizes]
        marks = {
            **{"label": label, "color": look.color, "marker": look.marker, "clip_on": False},
            "markersize": 5 if look.stands_out else 2.5,
            "zorder": 3 if look.stands_out else 2,
        }
        xs, ys = [*map(place, line)], [*map(panel.height, line)]
        axes.plot(xs, ys, linestyle=look.line, linewidth=2 if look.stands_out else 0.8, **marks)
        hollow = [row for row in rows if row not in line or _is_unaligned(row)]
        marks |= {"linestyle": "none", "markerfacecolor": "white"}
        axes.plot([*map(place, hollow)], [*map(panel.height, hollow)], **marks)


def _labels(panel: Panel, its: Mapping[str, Look]) -> list[Label]:
    """Of what is highlighted: its kernel, its text, and its size if not the largest."""
    largest = max(row.volume for row in panel.rows)
    found = []
    for row in headlines(panel.rows):
        look = its[row.label]
        if look.stands_out:
            text = f"{row.kernel if row.is_library else row.label}  {panel.said(row)}"
            text += ("" if row.volume == largest else f" at {row.size}") + mark(row)
            found.append(Label(text, panel.height(row), place(row), look.color, look.marker))
    return [*found, *([panel.level] if panel.level else [])]


def _hollow_note(rows: Sequence[Row]) -> list[str]:
    """What hollow marks are, if there are any."""
    sizes = ladder_sizes(rows)
    others = sorted({row.shape for row in rows if not row.is_cube or row.m not in sizes})
    kinds = [f"{', '.join(others)} (at the cube root of m·n·k)"] if others else []
    if any(map(_is_unaligned, rows)):
        kinds.insert(0, f"sizes in parentheses, no multiples of {_ALIGNED}")
    return [f"Hollow: {'; '.join(kinds)}."] if kinds else []


def _set_size_axis(axes: Axes, rows: Sequence[Row]) -> None:
    """A tick at each size that was measured, with its name where there is room."""
    places = [place(row) for row in rows]
    axes.set_xscale("log", base=2)
    axes.set_xlabel("m = n = k")
    axes.set_xlim(min(places) / 1.12, max(places) * 1.12)
    cubes = {place(row): _is_unaligned(row) for row in rows if row.is_cube}
    ticks = sorted(cubes or dict.fromkeys(places, False), reverse=True)
    names, free = [], float("inf")
    for tick in ticks:
        middle, _ = in_points(axes, tick, axes.get_ylim()[0])
        name = f"({tick:.0f})" if cubes.get(tick) else f"{tick:.0f}"
        half = text_width(name) / 2
        fits = middle + half < free
        names.append(name if fits else "")
        free = middle - half - 2 if fits else free
    axes.set_xticks(ticks, names)
    axes.set_xticks([], minor=True)
