"""History in the browser: what changed, and a page for each kernel."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
from markupsafe import escape

from gemm_report.grouping import grouped
from gemm_report.history.changes import ENOUGH, Floats
from gemm_report.history.output import change_text, device_lines, interval_text
from gemm_report.history.series import Entry, History
from gemm_report.history.trends import NOTHING, Trend
from gemm_report.pages.render import Cell, Column, Html, Line, document, joined, table, tag
from gemm_report.text import precision_name, quantity

_WIDTH, _HEIGHT, _LEFT, _TOP, _FLOOR = 1200.0, 260.0, 90.0, 24.0, 220.0
_DATES = 7
_TITLE = "GEMM benchmark: history"


def write_pages(folder: Path, history: History, trends: Sequence[Trend]) -> Path:
    """Writes a page for each kernel and the overview, whose path it gives."""
    (folder / "kernels").mkdir(parents=True, exist_ok=True)
    kernels, names, lines = grouped(trends, lambda trend: trend.series.case.kernel), set(), []
    for kernel, its in sorted(kernels.items()):
        name = re.sub(r"[^A-Za-z0-9]+", "-", kernel).strip("-")[:60].lower() or "kernel"
        while name in names:
            name += "-"
        names.add(name)
        rows = [_line(i, trend, history.entries) for i, trend in enumerate(its)]
        head = tag("p", tag("a", "All kernels", href="../index.html")), tag("h1", kernel)
        grid = table(_SERIES, rows, "series")
        path = folder / "kernels" / f"{name}.html"
        path.write_text(document(f"{kernel}: history", tag("div", *head, grid)), encoding="utf-8")
        changed = [trend for trend in its if trend.changes]
        slower = sum(trend.since_first > 1 for trend in changed)
        counts = len(its), len(changed) - slower, slower, sum(trend.strays for trend in its)
        link = Cell(tag("a", kernel, href=f"kernels/{name}.html"))
        lines.append([link, *(Cell(str(count), count) for count in counts)])
    entries = history.entries
    said = f"{len(entries)} records, in the order of {'commits' if history.by_commit else 'dates'}"
    of_kernels = [Column("kernel"), *(Column(name, True) for name in _COUNTS)]
    body = (
        tag("header", tag("p", said, class_="quiet"), tag("h1", _TITLE)),
        tag("ul", *(tag("li", line) for line in device_lines(history, trends)), class_="answer"),
        _changes(history, trends, folder),
        tag("h2", "Kernels"),
        tag("p", f"Series of {ENOUGH} records or more.", class_="quiet"),
        table(of_kernels, lines, "kernels", tools=False),
    )
    path = folder / "index.html"
    path.write_text(document(_TITLE, tag("div", *body)), encoding="utf-8")
    return path


_COUNTS = ("series", "faster than at first", "slower", "newest far from its level")
_SERIES: list[Column | str] = [
    Column("case"),
    Column("precision", filtered=True),
    "shape",
    Column("device", filtered=True),
    Column("records", True),
    Column("trend", hint="rate over the records, higher is faster; the line is the level"),
    Column("newest", True),
    Column("since first", True, hint="rate of the newest level over that of the first"),
    Column("could show", True, hint="the smallest of the tried steps that would be seen"),
    Column("suspect", hint="of the newest change"),
]


def _line(number: int, trend: Trend, entries: Sequence[Entry]) -> Line:
    series, case = trend.series, trend.series.case
    rate = float(series.flop / series.seconds[-1])
    said = escape(quantity(rate, "FLOP/s"))
    for text, why in (("stray", trend.strays and "far from its level"), ("ended", series.ended)):
        if why:
            said = joined([tag("span", text, class_="badge warn", title=why), said], " ")
    newest, step = trend.changes[-1:], min(trend.shows, default=None)
    cells: list[Cell | str] = [
        Cell(case.label),
        Cell(precision_name(case.precision), choices=(case.precision,)),
        case.shape,
        series.device,
        Cell(str(len(series.record)), len(series.record)),
        _picture(trend, 144.0, 24.0, 0.0, 2.0, 22.0),
        Cell(said, rate),
        Cell(change_text(trend.since_first), 1 / trend.since_first) if trend.changes else "",
        Cell(f"{100 * step:.0f} %", step) if step else "",
        newest[0].suspect if newest else "",
    ]
    return Line(cells, _details(trend, entries), f"series-{number}")


def _details(trend: Trend, entries: Sequence[Entry]) -> Html:
    here = [entries[i] for i in trend.series.record]
    lines = [
        f"{i}: {here[each.change.at].date[:10]}, rate {change_text(each.change.ratio)} "
        f"({interval_text(each.change)}): {'; '.join(map(str, each.suspects)) or NOTHING}"
        for i, each in enumerate(trend.changes, 1)
    ]
    chart = _picture(trend, _WIDTH, _HEIGHT, _LEFT, _TOP, _FLOOR, here)
    return tag("div", tag("div", chart, class_="wide"), *(tag("p", line) for line in lines))


def _picture(
    trend: Trend,
    width: float,
    height: float,
    left: float,
    top: float,
    floor: float,
    entries: Sequence[Entry] = (),
) -> Html:
    """The rate of every record at even distances, and the levels; with axes where entries are."""
    rates = trend.series.flop / trend.seconds
    ends = trend.series.flop / np.array([(s.first, s.last) for s in trend.segments])
    low, high = np.quantile(np.concatenate([rates, ends.ravel()]), [0.005, 0.995]).tolist()
    if entries and trend.shows:
        low, high = (
            min(low, ends[-1, 1] / (1 + min(trend.shows))),
            max(high, ends[-1, 1] * (1 + min(trend.shows))),
        )
    # Noise of a tenth of a percent should look like what it is.
    margin = max(0.08 * (high - low), 0.01 * high)
    low, high = low - margin, high + margin
    apart = (width - left) / len(rates)

    def heights(values: Floats) -> Floats:
        share: Floats = np.clip((values - low) / (high - low), 0, 1)
        return floor - share * (floor - top)

    x = left + (np.arange(len(rates)) + 0.5) * apart
    points = list(zip(x.tolist(), heights(rates).tolist(), strict=True))
    levels = "".join(
        f"M{left + s.start * apart:.1f} {a:.1f}L{left + s.end * apart:.1f} {b:.1f}"
        for s, (a, b) in zip(trend.segments, heights(ends).tolist(), strict=True)
    )
    level, box = tag("path", d=levels, class_="level"), f"0 0 {width:g} {height:g}"
    if not entries:
        line = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        trace = tag("path", d=line, class_="trace")
        return tag("svg", trace, level, class_="spark", viewBox=box, aria_hidden="true")
    dots = tag("path", d="".join(f"M{a:.1f} {b:.1f}h0" for a, b in points), class_="points")
    rungs = [
        tag("text", quantity(rate, "FLOP/s"), x=left - 6, y=f"{heights(np.array(rate)) + 4:.1f}")
        for rate in np.linspace(low + margin, high - margin, 3).tolist()
    ]
    ticks: list[Html] = []
    for i in np.unique(np.linspace(0, len(x) - 1, min(len(x), _DATES)).round().astype(int)):
        edge = "first" if i == 0 else "last" if i == len(x) - 1 else None
        for y, said in ((floor + 20, entries[i].date[:10]), (floor + 34, _commit(entries[i]))):
            ticks.append(tag("text", said, x=f"{x[i]:.1f}", y=y, class_=edge))
    marks = []
    for number, each in enumerate(trend.changes, 1):
        at = (x[max(each.change.start - 1, 0)] + x[each.change.at]) / 2
        label = tag("text", str(number), x=f"{at:.1f}", y=top - 6)
        tone = "slower" if each.change.ratio > 1 else "faster"
        line = tag("path", d=f"M{at:.1f} {top:g}V{floor:g}")
        marks.append(tag("g", line, label, class_=f"change {tone}"))
    # What a step from the newest level must pass to be seen.
    step, last = min(trend.shows, default=None), float(ends[-1, 1])
    at = [] if step is None else heights(np.array([last / (1 + step), last * (1 + step)])).tolist()
    band = "".join(f"M{left + trend.segments[-1].start * apart:.1f} {y:.1f}H{width:g}" for y in at)
    shows = tag(
        "path", tag("title", "the smallest step that would be seen"), d=band, class_="shows"
    )
    parts = *rungs, tag("g", *ticks, class_="dates"), shows, dots, level, *marks
    name = f"{trend.series.case}: rate over the records"
    return tag("svg", *parts, class_="history", viewBox=box, role="group", aria_label=name)


def _changes(history: History, trends: Sequence[Trend], folder: Path) -> Html:
    """By record, the newest first: what came together probably has one reason."""
    changes = [(trend.series, each) for trend in trends for each in trend.changes]
    groups = grouped(changes, lambda it: (it[0].device, it[0].record[it[1].change.at]))
    columns = [*map(Column, ("record", "commit", "date", "device"))]
    columns += [Column("slower", True), Column("faster", True)]
    columns += [Column("cases"), Column("suspects")]
    lines: list[list[Cell | str]] = []
    for (device, record), its in sorted(groups.items(), key=lambda item: -item[0][1]):
        entry = history.entries[record]
        slower = sum(each.change.ratio > 1 for _, each in its)
        counts = (Cell(str(count), count) for count in (slower, len(its) - slower))
        kinds = grouped(its, lambda it: it[1].suspects[0].what if it[1].suspects else NOTHING)
        told = "; ".join(f"{what} ({len(those)})" for what, those in kinds.items())
        link = tag("a", entry.path.name, href=quote(os.path.relpath(entry.path, folder)))
        cases = ", ".join(str(series.case) for series, _ in its[:3])
        more = f" and {len(its) - 3} more" if len(its) > 3 else ""
        lines.append([link, _commit(entry), entry.date[:10], device, *counts, cases + more, told])
    if not lines:
        return tag("p", "No change was found.")
    return joined([tag("h2", "Changes"), table(columns, lines, "changes", False)])


def _commit(entry: Entry) -> str:
    """Short."""
    return (entry.setting[-1] or "")[:8]
