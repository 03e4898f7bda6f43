"""Lines over the size of the problem: one for each variant of a kernel, hollow marks beside it."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from gemm_report.figures.marks import mark
from gemm_report.figures.page import Label
from gemm_report.figures.palette import Look
from gemm_report.figures.panels import Plot
from gemm_report.ladder.rows import ladder_sizes, natural
from gemm_report.record import Row

PLOT = Plot(width=3.5, height=2.9, left=0.55, above=0.42, below=0.55)


def place(row: Row) -> float:
    """Where a row stands on the axis."""
    return row.m if row.is_cube else row.volume ** (1 / 3)


def draw_lines(
    axes: Axes,
    rows: Sequence[Row],
    sizes: set[int],
    looks: Mapping[str, Look],
    height: Callable[[Row], float],
) -> None:
    """What `height` says of each row; a line joins the cubes in `sizes`."""
    _set_size_axis(axes, [place(row) for row in rows])
    for label in sorted({row.label for row in rows}, key=natural):
        look = looks[label]
        its_rows = sorted((row for row in rows if row.label == label), key=place)
        line = [row for row in its_rows if row.is_cube and row.m in sizes]
        rest = [row for row in its_rows if row not in line]
        marks = {
            "label": label,
            "color": look.color,
            "marker": look.marker,
            "clip_on": False,
            "zorder": 3,
        }
        axes.plot([*map(place, line)], [*map(height, line)], linestyle=look.line, **marks)
        looks_of_rest = {"linestyle": "none", "markerfacecolor": "white", **marks}
        axes.plot([*map(place, rest)], [*map(height, rest)], **looks_of_rest)


def kernel_labels(
    rows: Sequence[Row],
    looks: Mapping[str, Look],
    said: Callable[[Row], str],
    height: Callable[[Row], float],
) -> list[Label]:
    """One for each row: its kernel, what is `said` of it, and its size if not the largest."""
    largest = max(row.volume for row in rows)
    return [
        Label(
            f"{row.label}  {said(row)}"
            + ("" if row.volume == largest else f" at {row.size}")
            + mark(row),
            place(row),
            height(row),
            looks[row.label].color,
            looks[row.label].marker,
        )
        for row in rows
    ]


def hollow_note(rows: Sequence[Row]) -> list[str]:
    """Which problems are no points of a line, if any are there."""
    sizes = ladder_sizes(rows)
    others = sorted(
        {(row.m, row.n, row.k) for row in rows if not row.is_cube or row.m not in sizes}
    )
    names = ", ".join("x".join(map(str, shape)) for shape in others)
    note = f"Hollow: {names}; what is not a cube stands at the cube root of m·n·k."
    return [note] if others else []


def _set_size_axis(axes: Axes, sizes: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlabel("m = n = k")
    low, high = min(sizes) / 1.12, max(sizes) * 1.12
    powers = [2.0**i for i in range(64) if low <= 2**i <= high]
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(powers if len(powers) > 1 else sorted(set(sizes))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:.0f}"))
