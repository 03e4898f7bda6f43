"""Lines over the size of the problem: what answers the question in colour, the rest in grey."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from gemm_report.figures.marks import mark
from gemm_report.figures.page import Label, in_points, text_width
from gemm_report.figures.palette import Look
from gemm_report.ladder.rows import ladder_sizes, natural
from gemm_report.record import Row

HEIGHT = 2.3
_ALIGNED = 64


def place(row: Row) -> float:
    """Where a row stands on the axis."""
    return row.m if row.is_cube else row.volume ** (1 / 3)


def is_unaligned(row: Row) -> bool:
    """Whether some tile of every kernel is not full."""
    return any(size % _ALIGNED for size in (row.m, row.n, row.k))


def draw_lines(
    axes: Axes, rows: Sequence[Row], looks: Mapping[str, Look], height: Callable[[Row], float]
) -> None:
    """What `height` says of each row; a line joins the cubes, hollow marks are the rest."""
    sizes = ladder_sizes(rows)
    _set_size_axis(axes, rows)
    for label in sorted({row.label for row in rows}, key=natural):
        look = looks[label]
        its_rows = sorted((row for row in rows if row.label == label), key=place)
        line = [row for row in its_rows if row.is_cube and row.m in sizes]
        marks = _marks(look) | {"label": label}
        xs, ys = [*map(place, line)], [*map(height, line)]
        axes.plot(xs, ys, linestyle=look.line, linewidth=2 if look.stands_out else 0.8, **marks)
        hollow = [row for row in its_rows if row not in line or is_unaligned(row)]
        marks |= {"linestyle": "none", "markerfacecolor": "white"}
        axes.plot([*map(place, hollow)], [*map(height, hollow)], **marks)


def kernel_labels(
    rows: Sequence[Row],
    looks: Mapping[str, Look],
    said: Callable[[Row], str],
    height: Callable[[Row], float],
) -> list[Label]:
    """One for each row that stands out: its kernel, what is `said` of it, and its size if small."""
    largest = max(row.volume for row in rows)
    return [
        Label(
            f"{row.kernel if row.is_library else row.label}  {said(row)}"
            + ("" if row.volume == largest else f" at {row.size}")
            + mark(row),
            height(row),
            place(row),
            looks[row.label].color,
            looks[row.label].marker,
        )
        for row in rows
        if looks[row.label].stands_out
    ]


def standouts(named: Sequence[Sequence[Row]], shown: Sequence[Mapping[str, Look]]) -> list[Row]:
    """The rows of all panels that have a label."""
    panels = zip(named, shown, strict=True)
    return [row for rows, looks in panels for row in rows if looks[row.label].stands_out]


def hollow_note(rows: Sequence[Row]) -> list[str]:
    """What hollow marks are, if there are any."""
    sizes = ladder_sizes(rows)
    unaligned = any(is_unaligned(row) for row in rows)
    others = sorted({row.shape for row in rows if not row.is_cube or row.m not in sizes})
    kinds = [f"sizes in parentheses, no multiples of {_ALIGNED}"] if unaligned else []
    kinds += [f"{', '.join(others)} (at the cube root of m·n·k)"] if others else []
    return [f"Hollow: {'; '.join(kinds)}."] if kinds else []


def _marks(look: Look) -> dict[str, object]:
    size = 5 if look.stands_out else 2.5
    order = 3 if look.stands_out else 2
    colors = {"color": look.color, "markeredgecolor": look.color}
    return {**colors, "marker": look.marker, "markersize": size, "clip_on": False, "zorder": order}


def _set_size_axis(axes: Axes, rows: Sequence[Row]) -> None:
    """A tick at each size that was measured, with its name where there is room."""
    places = [place(row) for row in rows]
    axes.set_xscale("log", base=2)
    axes.set_xlabel("m = n = k")
    axes.set_xlim(min(places) / 1.12, max(places) * 1.12)
    cubes = {place(row): is_unaligned(row) for row in rows if row.is_cube}
    ticks = sorted(cubes or dict.fromkeys(places, False), reverse=True)
    names, free = [], float("inf")
    for tick in ticks:
        middle, _ = in_points(axes, tick, axes.get_ylim()[0])
        name = f"({tick:.0f})" if cubes.get(tick) else f"{tick:.0f}"
        half = text_width(name) / 2
        fits = middle + half < free
        names.append(name if fits else "")
        free = middle - half - 2 if fits else free
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FixedFormatter(names))
