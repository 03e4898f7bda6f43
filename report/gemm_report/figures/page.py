"""What every figure shares: its head, its notes, and the column of labels beside a plot.

Sizes are in inches and known before anything is drawn, so that a page grows with its labels instead
of squeezing them.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from gemm_report.figures.palette import PEER_MARKERS
from gemm_report.figures.placement import spread
from gemm_report.record import Ceiling, Part, Record
from gemm_report.writing.quantity import megahertz, quantity

POINTS = 72  # in an inch
INK = "#333333"
ROOF_COLOR = "#8a8a8a"
LABEL_SIZE = 7.5

_LABEL_PITCH = 11.0
_GUTTER = 26.0  # points between the plot and its labels, for the leader lines
_SMALL = 8.0
_SMALL_PITCH = 12.5
_MARGIN = 0.2
LEGEND_PITCH = 13.0
_HANDLE = 18.0
_BETWEEN_HANDLES = 14.0
_TITLE = 0.36
_TITLE_SIZE = 13.0


@dataclass(frozen=True)
class Label:
    """Names what lies at (x, y): a kernel's mark, or a roof, which ends at the right edge."""

    text: str
    x: float | None
    y: float
    color: str = ROOF_COLOR
    marker: str | None = None
    thin: bool = False
    line: str = "-"


class Page:
    """A figure with a head and notes around a body that is `width` x `height` inches."""

    def __init__(
        self,
        record: Record,
        subject: str,
        notes: Sequence[str],
        width: float,
        height: float,
        part: Part = Part.LADDER,
    ) -> None:
        unfinished = "" if record.complete else " (incomplete run)"
        title = f"{subject}: {record.device.name}{unfinished}"
        width = max(width, text_width(title, _TITLE_SIZE, "bold") / POINTS)
        head = _wrapped([run_line(record), method_line(record)], width)
        if missing := missing_rows(record, part):
            notes = [*notes, f"Not drawn: {missing}; the record has the reasons."]
        notes = _wrapped([*filter(None, [record.conformance]), *notes], width)
        self._above = _MARGIN + _TITLE + len(head) * _SMALL_PITCH / POINTS + 0.1
        below = _MARGIN + len(notes) * _SMALL_PITCH / POINTS
        self._size = width + 2 * _MARGIN, self._above + height + below
        self.figure = Figure(figsize=self._size)
        self._text(0, title, size=_TITLE_SIZE, weight="bold")
        self._lines(_TITLE, head)
        self._lines(self._above - _MARGIN + height, notes)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """A plot in the body, by its distance from the body's left and upper edge."""
        page_width, page_height = self._size
        bottom = page_height - self._above - top - height
        left += _MARGIN
        return self.figure.add_axes(
            (left / page_width, bottom / page_height, width / page_width, height / page_height)
        )

    def legend(self, top: float, entries: Sequence[Line2D]) -> None:
        """What the marks mean, in lines as wide as the page, so far from the body's upper edge."""
        width, height = self._size
        room = (width - 2 * _MARGIN) * POINTS
        for i, line in enumerate(legend_lines(entries, room)):
            self.figure.legend(
                handles=line,
                loc="upper left",
                bbox_to_anchor=(
                    _MARGIN / width,
                    1 - (self._above + top + i * LEGEND_PITCH / POINTS) / height,
                ),
                ncols=len(line),
                borderpad=0,
                borderaxespad=0,
                handlelength=_HANDLE / LABEL_SIZE,
                handletextpad=0.5,
                columnspacing=_BETWEEN_HANDLES / LABEL_SIZE,
                fontsize=LABEL_SIZE,
            )

    def _lines(self, top: float, lines: Sequence[str]) -> None:
        for i, line in enumerate(lines):
            self._text(top + i * _SMALL_PITCH / POINTS, line, size=_SMALL, color="#555555")

    def _text(self, top: float, text: str, **looks: object) -> None:
        width, height = self._size
        x, y = _MARGIN / width, 1 - (_MARGIN + top) / height
        self.figure.text(x, y, text, ha="left", va="top", **looks)


def legend_lines(entries: Sequence[Line2D], room: float) -> list[list[Line2D]]:
    """Entries of a legend, broken into lines of at most `room` points."""
    lines: list[list[Line2D]] = []
    used = 0.0
    for entry in entries:
        needed = _HANDLE + 5 + text_width(str(entry.get_label())) + _BETWEEN_HANDLES
        if not lines or used + needed > room:
            lines.append([])
            used = 0.0
        lines[-1].append(entry)
        used += needed
    return lines


def write_above(axes: Axes, text: str, points: float, x: float = 0, weight: str = "normal") -> None:
    """Writes on the left above a plot, or with x = 1 on the right, so far from its edge."""
    axes.annotate(
        text,
        (x, 1),
        xytext=(0, points),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right" if x else "left",
        va="bottom",
        size=LABEL_SIZE,
        color=INK,
        weight=weight,
    )


def run_line(record: Record) -> str:
    """What ran, and when."""
    device = record.device
    facts = [
        device.driver and f"driver {device.driver}",
        device.runtime and f"CUDA runtime {device.runtime}",
        device.power_limit_w and f"power limit {device.power_limit_w:.0f} W",
        f"commit {record.commit[:12]}",
        None if record.build.type == "Release" else f"build type {record.build.type}",
        record.date.replace("T", " "),
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
    counts = [
        (len(record.rows_with(status, part)), status) for status in ("skipped", "failed", "untimed")
    ]
    return ", ".join(f"{count} {status}" for count, status in counts if count) or None


def roof_text(ceilings: Sequence[Ceiling]) -> str:
    """Names roofs of one value: name, value, origin, and the clock for which that holds."""
    first = ceilings[0]
    value = (
        quantity(first.flop_per_second, "FLOP/s")
        if first.flop_per_second
        else quantity(first.bytes_per_second or 0, "B/s")
    )
    at_clock = f" at {megahertz(first.clock_hz)}" if first.clock_hz else ""
    return f"{', '.join(c.name for c in ceilings)}: {value} ({first.origin}{at_clock})"


def is_measured(ceiling: Ceiling) -> bool:
    """Whether a roof was seen, not computed."""
    return ceiling.origin == "measured"


def unknown_roof_text(ceiling: Ceiling) -> str:
    """Says that a roof is missing, and why."""
    what = ceiling.name if ceiling.precision is None else f"{ceiling.name} ({ceiling.precision})"
    return f"Roof not known: {what}: {ceiling.source}"


def column_width(labels: Sequence[Label]) -> float:
    """Inches that `labels` need beside a plot."""
    widths = [text_width(label.text, LABEL_SIZE, _weight(label)) for label in labels]
    return (_GUTTER + max(widths, default=0)) / POINTS


def column_height(labels: Sequence[Label]) -> float:
    """Inches that a plot must have for `labels` beside it."""
    return (len(labels) + 0.5) * _LABEL_PITCH / POINTS


def label_column(axes: Axes, labels: Sequence[Label]) -> None:
    """Writes `labels` to the right of a plot whose limits are final, with leader lines."""
    width, height = size_in_points(axes)
    to_axes = axes.transScale + axes.transLimits
    anchors = [to_axes.transform((label.x or axes.get_xlim()[1], label.y)) for label in labels]
    places = spread([y * height for _, y in anchors], _LABEL_PITCH, 0, height)
    for label, (x, y), place in zip(labels, anchors, places, strict=True):
        target = place / height
        # Level to the edge of the plot, then slanted: leaders cannot cross in the gutter.
        end = _GUTTER - (10 if label.marker else 2)
        bends = [(x, y), (1 + 4 / width, y), (1 + end / width, target)]
        looks = {"transform": axes.transAxes, "color": label.color, "clip_on": False}
        thread = {"linewidth": 0.6, "alpha": 0.6, "zorder": 1.5, "linestyle": label.line}
        leader = Line2D(*zip(*bends, strict=True), **thread, **looks)
        axes.add_line(leader)
        if label.marker:
            at = [1 + (_GUTTER - 6) / width], [target]
            axes.add_line(Line2D(*at, marker=label.marker, markeredgecolor=_edge(label), **looks))
        axes.text(
            1 + _GUTTER / width,
            target,
            label.text,
            transform=axes.transAxes,
            ha="left",
            va="center_baseline",
            size=LABEL_SIZE,
            # Dark ink: the paler colours of the cycle are for marks, not for reading.
            color=INK,
            weight=_weight(label),
        )


def size_in_points(axes: Axes) -> tuple[float, float]:
    """Width and height of a plot."""
    box = axes.get_position()
    page_width, page_height = axes.get_figure().get_size_inches() * POINTS
    return box.width * page_width, box.height * page_height


def _edge(label: Label) -> str:
    return label.color if label.marker in PEER_MARKERS else "none"


def _weight(label: Label) -> str:
    return "normal" if label.marker or label.thin else "bold"


def text_width(text: str, size: float = LABEL_SIZE, weight: str = "normal") -> float:
    """Points that a line of text needs."""
    font = FontProperties(size=size, weight=weight)
    width, _, _ = text_to_path.get_text_width_height_descent(printable(text), font, ismath=False)
    # Hinting differs a little between this and what is drawn.
    return width * 1.03 + 2


def printable(text: str) -> str:
    """With a question mark for what has no place in an SVG, such as the end of a line."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _wrapped(lines: Sequence[str], inches: float) -> list[str]:
    characters = int(inches * POINTS / (0.56 * _SMALL))
    return [part for line in lines for part in textwrap.wrap(line, characters)]
