"""What every figure shares: its head, its notes, and the column of labels next to a plot.

Sizes are in inches and known before anything is drawn: a page is as wide as a browser's column, and
grows downwards with its labels.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from gemm_report.figures.palette import INK, PALE, REST
from gemm_report.record import Ceiling, Part, Record
from gemm_report.text import megahertz, operations, precision_name, quantity, roof_name

POINTS = 72  # in an inch
WIDTH = 8.4
NARROW = 7.2  # of one plot, whose text is then larger in a page
LABEL_SIZE = 9.0

_PITCH = 13.0  # of labels
_GUTTER = 20.0  # points between the plot and its labels, for the leader lines
_MARGIN = 0.2
_HANDLE = 18.0
_BETWEEN_HANDLES = 14.0
_TITLE_SIZE = 14.0
_TITLE_PITCH = 0.27
_ORIGINS = {"table": "spec", "queried": "from device"}


@dataclass(frozen=True)
class Label:
    """Names what lies at (x, y), or at the right edge."""

    text: str
    y: float
    x: float | None = None
    color: str = REST
    marker: str = ""
    bold: bool = False


class Page:
    """A figure with a head and notes around a body that is `width` x `height` inches."""

    def __init__(
        self,
        record: Record,
        subject: str,
        notes: Sequence[str],
        height: float,
        width: float = WIDTH,
        legend: Sequence[object] = (),
        part: Part | None = Part.LADDER,
    ) -> None:
        unfinished = "" if record.complete else " (incomplete run)"
        title = f"{record.device.name}: {subject}{unfinished}"
        titles = _wrapped([title], width, _TITLE_SIZE * 1.15)
        head = _wrapped([run_line(record)], width)
        missing = part and missing_rows(record, part)
        said = [*notes, f"Not shown: {missing} (the record has the reasons)."] if missing else notes
        conditions = " · ".join(filter(None, [method_line(record), record.conformance]))
        lines = _wrapped([*said, conditions[0].upper() + conditions[1:]], width)
        entries = _lines_of(legend, width * POINTS)
        below = [_TITLE_PITCH * len(titles) + 0.04]
        below.append(below[0] + len(head) * _PITCH / POINTS + 0.1)
        top = below[1] + len(entries) * _PITCH / POINTS
        self._above = _MARGIN + top
        foot = top + height
        self._size = width + 2 * _MARGIN, foot + len(lines) * _PITCH / POINTS + 2 * _MARGIN
        self.figure = Figure(figsize=self._size)
        self._lines(0, titles, _TITLE_PITCH * POINTS, size=_TITLE_SIZE, weight="bold")
        self._lines(below[0], head, color=PALE)
        self._lines(foot, lines, color=PALE)
        room = {"borderpad": 0, "borderaxespad": 0, "handlelength": _HANDLE / LABEL_SIZE}
        room |= {"handletextpad": 0.5, "columnspacing": _BETWEEN_HANDLES / LABEL_SIZE}
        for i, line in enumerate(entries):
            at = self._place(below[1] + i * _PITCH / POINTS)
            place = {"loc": "upper left", "bbox_to_anchor": at, "ncols": len(line)}
            self.figure.legend(handles=line, fontsize=LABEL_SIZE, **place, **room)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """A plot in the body, by its distance from the body's left and upper edge."""
        page_width, page_height = self._size
        bottom = page_height - self._above - top - height
        left += _MARGIN
        return self.figure.add_axes(
            (left / page_width, bottom / page_height, width / page_width, height / page_height)
        )

    def _lines(
        self, top: float, lines: Sequence[str], pitch: float = _PITCH, **looks: object
    ) -> None:
        looks = {"size": LABEL_SIZE, "ha": "left", "va": "top", **looks}
        for i, line in enumerate(lines):
            self.figure.text(*self._place(top + i * pitch / POINTS), line, **looks)

    def _place(self, top: float) -> tuple[float, float]:
        width, height = self._size
        return _MARGIN / width, 1 - (_MARGIN + top) / height


def say_empty(axes: Axes) -> None:
    """Instead of a plot."""
    axes.set_axis_off()
    axes.text(0, 0.5, "No row of this record has a time.", transform=axes.transAxes)


def _lines_of(entries: Sequence[object], room: float) -> list[list[object]]:
    """Entries of a legend, broken into lines of at most `room` points."""
    lines: list[list[object]] = []
    used = 0.0
    for entry in entries:
        needed = _HANDLE + 8 + text_width(str(entry.get_label())) + _BETWEEN_HANDLES
        if not lines or used + needed > room:
            lines.append([])
            used = 0.0
        lines[-1].append(entry)
        used += needed
    return lines


def write_above(axes: Axes, text: str, points: float, x: float = 0, weight: str = "normal") -> None:
    """Writes on the left above a plot, or with x = 1 on the right, so far from its edge."""
    place = {"xytext": (0, points), "xycoords": "axes fraction", "textcoords": "offset points"}
    looks = {"size": LABEL_SIZE, "color": INK, "weight": weight}
    axes.annotate(text, (x, 1), ha="right" if x else "left", va="bottom", **place, **looks)


def run_line(record: Record) -> str:
    """What ran, and when."""
    device = record.device
    facts = [
        device.driver and f"driver {device.driver}",
        device.runtime and f"CUDA runtime {device.runtime}",
        *(f"{each.name} {each.version}" for each in record.libraries),
        device.power_limit_w and f"power limit {device.power_limit_w:.0f} W",
        f"commit {record.commit_name}",
        None if record.build.type == "Release" else f"build type {record.build.type}",
        record.date[:16].replace("T", " "),
    ]
    return " · ".join(fact for fact in facts if fact)


def method_line(record: Record) -> str:
    """Under which conditions the numbers hold, as far as the conformance line does not say it."""
    method = record.method
    timer = f"timed with {method.timer}"
    if record.conformance:
        return timer
    clocks = ", ".join(filter(None, (method.test, method.state))) or "clock policy not known"
    return f"fill {method.fill} · {timer} · {clocks}"


def missing_rows(record: Record, part: Part = Part.LADDER) -> str | None:
    """What of one part of the record a figure cannot show."""
    counts = {s: len(record.rows_with(s, part)) for s in ("skipped", "failed", "untimed")}
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or None


def roof_text(roof: Ceiling) -> str:
    """Name, value, origin, and the clock for which that holds, of a compute roof."""
    value = quantity(roof.flop_per_second, operations(roof.precision))
    origin = _ORIGINS.get(roof.origin, roof.origin)
    clock = f", {megahertz(roof.clock_hz)}" if roof.clock_hz else ""
    return f"{roof_name(roof.name)}: {value} ({origin}{clock})"


def unknown_roofs(record: Record, precisions: Sequence[str]) -> list[str]:
    """Says which peaks are missing, and why."""
    return [
        f"Peak not known: {roof_name(c.name)}"
        f"{f' ({precision_name(c.precision)})' if c.precision else ''}: {c.source}"
        for c in record.unknown_roofs()
        if c.precision in (*precisions, None)
    ]


def column_width(labels: Sequence[Label]) -> float:
    """Inches that `labels` need next to a plot."""
    widths = (_GUTTER + text_width(label.text, bold=label.bold) for label in labels)
    return max(widths, default=0) / POINTS


def column_height(labels: Sequence[Label]) -> float:
    """Inches that a plot must have for `labels` next to it."""
    return (len(labels) + 0.5) * _PITCH / POINTS


def label_column(axes: Axes, labels: Sequence[Label]) -> None:
    """Writes `labels` to the right of a plot whose limits are final, with leader lines."""
    width, height = size_in_points(axes)
    right = axes.get_xlim()[1]
    anchors = [in_points(axes, right if label.x is None else label.x, label.y) for label in labels]
    places = spread([y for _, y in anchors], _PITCH, height)
    for label, (x, y), place in zip(labels, anchors, places, strict=True):
        # Level to the edge of the plot, then slanted: leaders cannot cross in the gutter.
        end = _GUTTER - (11 if label.marker else 3)
        looks = {"color": label.color, "clip_on": False, "transform": axes.transAxes}
        bends = [(x, y), (width + 3, y), (width + end, place)]
        xs, ys = zip(*((a / width, b / height) for a, b in bends), strict=True)
        axes.add_line(Line2D(xs, ys, linewidth=0.7, alpha=0.7, zorder=1.5, **looks))
        if label.marker:
            at = [(width + _GUTTER - 7) / width], [place / height]
            axes.add_line(Line2D(*at, marker=label.marker, markersize=5, **looks))
        looks = {"size": LABEL_SIZE, "color": INK, "weight": "bold" if label.bold else "normal"}
        looks |= {"ha": "left", "va": "center_baseline", "transform": axes.transAxes}
        axes.text((width + _GUTTER) / width, place / height, label.text, **looks)


def spread(wanted: Sequence[float], gap: float, high: float) -> list[float]:
    """Positions in [0, high], at least `gap` apart and in the order of `wanted`.

    Of all such positions these have the least sum of squared distances to `wanted`: without the
    room that the labels below need, isotonic regression.
    """
    count = len(wanted)
    room = high - gap * (count - 1)
    if room < 0:
        raise ValueError(f"{count} labels need {-room:.1f} more than there is")
    order = sorted(range(count), key=lambda i: wanted[i])
    goals = [wanted[i] - rank * gap for rank, i in enumerate(order)]
    places = [0.0] * count
    for rank, i in enumerate(order):
        # The min-max formula: from the best beginning, the least mean of what surrounds the rank.
        nearest = max(
            min(fmean(goals[begin:end]) for end in range(rank + 1, count + 1))
            for begin in range(rank + 1)
        )
        places[i] = min(max(nearest, 0), room) + rank * gap
    return places


def in_points(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """From the corner of a plot whose limits are final."""
    across, up = (axes.transScale + axes.transLimits).transform((x, y))
    width, height = size_in_points(axes)
    return across * width, up * height


def size_in_points(axes: Axes) -> tuple[float, float]:
    """Width and height of a plot."""
    box = axes.get_position()
    page_width, page_height = axes.get_figure().get_size_inches() * POINTS
    return box.width * page_width, box.height * page_height


def text_width(text: str, size: float = LABEL_SIZE, bold: bool = False) -> float:
    """Points that a line of text needs."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(printable(text), font, ismath=False)
    # Hinting differs a little between this and what is drawn.
    return width * 1.03 + 2


def printable(text: str) -> str:
    """With a question mark for what has no place in an SVG, such as the end of a line."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _wrapped(lines: Sequence[str], inches: float, size: float = LABEL_SIZE) -> list[str]:
    characters = int(inches * POINTS / (0.56 * size))
    return [part for line in lines for part in textwrap.wrap(line, characters)]
