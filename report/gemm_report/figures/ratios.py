"""How speeds relative to the fastest library are distributed over many shapes."""

from collections.abc import Sequence
from itertools import groupby
from statistics import geometric_mean
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from gemm_report.figures.page import sheet
from gemm_report.figures.palette import LIGHT, PRECISIONS, Colors
from gemm_report.record import Part, Record, Row
from gemm_report.rows import facts, named, timed_rows
from gemm_report.text import columns, precision_name

BEST = "Best"
_FEWEST = 20  # shapes, without a filter
_HEIGHT = 4.2
_TICKS = (0.01, 0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50)
_HEAD = ["precision", "kernel", "shapes", "geometric mean", "10th percentile", "worst", "at"]


def groups(record: Record, pattern: str | None = None) -> list[list[Row]]:
    """Of kernels whose names match, or of Best where it has many shapes.

    Each has rows of one kernel, precision and layout, slowest relative to the library first.
    """
    timed = [row for part in (Part.LADDER, Part.TUNING) for row in timed_rows(record, part)]
    rows = [row for row in timed if row.of_library and not row.is_library]
    if pattern:
        rows = named(record, rows, "--kernels", pattern)
    else:
        rows = [row for row in rows if row.kernel == BEST]

    def kernel(row: Row) -> tuple[str, str]:
        return row.precision, row.label

    found = [sorted(its, key=_ratio) for _, its in groupby(sorted(rows, key=kernel), key=kernel)]
    return [its for its in found if pattern or len(its) >= _FEWEST]


def _ratio(row: Row) -> float:
    return row.of_library or 0


def summary(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Of one group: geometric mean, 10th percentile (interpolated between shapes) and worst."""
    values = [*map(_ratio, rows)]
    return geometric_mean(values), float(np.percentile(values, 10)), values[0]


def report(record: Record, pattern: str | None = None) -> str:
    """A line for each precision and kernel: geometric mean, 10th percentile and worst shape."""
    lines = [_HEAD]
    for rows in groups(record, pattern):
        worst = rows[0]
        cells = [precision_name(worst.precision), worst.label, str(len(rows))]
        lines.append([*cells, *(f"{value:.3f}" for value in summary(rows)), worst.shape])
    return columns(lines, left=2)


def table(record: Record, pattern: str | None = None) -> list[dict[str, object]]:
    """The plotted data."""
    names = "precision", "shape", "of_library", "library"
    return [facts(row, *names) for rows in groups(record, pattern) for row in rows]


def draw(record: Record, colors: Colors = LIGHT, pattern: str | None = None) -> Figure:
    """The share of shapes up to each speed relative to the library, a line for each precision."""
    found = groups(record, pattern)
    cycle = [PRECISIONS[i % len(PRECISIONS)] for i in range(len(found))]
    labels = (
        f"{precision_name(rows[0].precision)}, {rows[0].label}: geometric mean {mean:.3f}, "
        f"10th percentile {tenth:.3f},\nworst {worst:.3f} at {rows[0].shape}"
        for rows in found
        for mean, tenth, worst in [summary(rows)]
    )
    libraries = {row.library for rows in found for row in rows}
    other = libraries.pop() or "" if len(libraries) == 1 else "the fastest library"
    tall = _HEIGHT + 0.4 * len(found)
    subtitle = f"{record.device.name}: the share of shapes up to each speed"
    figure = sheet(record, colors, f"Speed relative to {other}", subtitle, [], tall)
    axes = figure.subplots()
    for rows, color, said in zip(found, cycle, labels, strict=True):
        values = [*map(_ratio, rows)]
        shares = [(i + 1) / len(values) for i in range(len(values))]
        axes.step([values[0], *values], [0, *shares], where="post", color=color, label=said)
    axes.axvline(1, color=colors.ink, linewidth=0.8)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xscale("log", base=2)
    ends = [_ratio(row) for rows in found for row in (rows[0], rows[-1])]
    ticks = [tick for tick in _TICKS if min(ends) / 1.3 < tick < 1.3 * max(ends)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(f"speed / {other}")
    axes.set_ylabel("share of the shapes")
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "fontsize": 8}
    axes.legend(handles=axes.lines[: len(found)], **place)
    return figure
