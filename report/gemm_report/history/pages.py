"""History in the browser: an overview with a line for each series, and a page for each."""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import numpy as np

from gemm_report.grouping import grouped
from gemm_report.history.changes import NOTHING, Suspect
from gemm_report.history.chart import chart, sparkline
from gemm_report.history.gone import Gone
from gemm_report.history.output import change_text, interval_text
from gemm_report.history.series import Entry, History, means
from gemm_report.history.trends import Trend, find_trends
from gemm_report.site.markup import Html, html, joined, tag
from gemm_report.site.shell import definitions, document
from gemm_report.site.table import Cell, Column, Line, table
from gemm_report.writing.names import precision_name
from gemm_report.writing.quantity import quantity

# In the overview; the pages of the series have all.
_NEWEST = 20
# Of a shorter series nothing can be said.
_FEWEST = 3


def write_pages(
    folder: Path,
    history: History,
    trends: Sequence[Trend],
    gone: Sequence[Gone],
    repository: str | None = None,
) -> Path:
    """Writes a page for each series, and the overview, whose path it gives."""
    pages = _Pages(folder, history, repository)
    (folder / "series").mkdir(parents=True, exist_ok=True)
    for trend in trends:
        path = folder / "series" / file_name(trend)
        path.write_text(pages.of_series(trend, path.parent), encoding="utf-8")
    path = folder / "index.html"
    path.write_text(pages.overview(history, trends, gone), encoding="utf-8")
    return path


class _Pages:
    def __init__(self, folder: Path, history: History, repository: str | None) -> None:
        self.folder = folder
        self.address = repository and web_address(repository)
        self.entries = history.entries
        commits = [entry.setting[-1] for entry in self.entries]
        numbers = {commit: i for i, commit in enumerate(dict.fromkeys(commits))}
        self.commit = np.array([numbers[commit] for commit in commits])

    def overview(self, history: History, trends: Sequence[Trend], gone: Sequence[Gone]) -> str:
        entries = self.entries
        incomplete = sum(not entry.complete for entry in entries)
        said = f"{len(entries)} records from {entries[0].date[:10]} to {entries[-1].date[:10]}"
        if incomplete:
            said += f", {incomplete} of them incomplete"
        long = [trend for trend in trends if len(trend.series.record) >= _FEWEST]
        short = [trend for trend in trends if len(trend.series.record) < _FEWEST]
        body = [
            tag("header",
                tag("p", said, class_="quiet"),
                tag("h1", "GEMM benchmark: history"),
                tag("p", _answer(long), class_="answer")),
            self._newest_changes(trends),
            self._gone(gone),
            self._means(history),
            tag("section", tag("h2", "Series"), _series_table([_line(t, entries) for t in long]))
            if long else "",
            tag("details", tag("summary", f"{len(short)} series of fewer than {_FEWEST} records"),
                tag("ul", *(tag("li", tag("a", str(t.series.case), href=f"series/{file_name(t)}"),
                                f", {t.series.device}") for t in short)))
            if short else "",
        ]  # fmt: skip
        return document("GEMM benchmark: history", tag("div", *body))

    def _means(self, history: History) -> Html:
        """A line for each device and precision, which unfolds to its chart."""
        columns = ["precision", "device", Column("trend", hint="higher is faster")]
        columns += [Column(each, True) for each in ("records", "cases", "since first")]
        lines = []
        found = [(series, n) for series, n in means(history) if len(series.record) >= _FEWEST]
        trends = find_trends(history, [series for series, _ in found])
        for i, (trend, (series, cases)) in enumerate(zip(trends, found, strict=True)):
            since = float(series.rates[-1] / series.rates[0])
            name, of = precision_name(series.case.precision), (len(series.record), cases)
            counts = [Cell(str(count), count) for count in of]
            change = Cell(f"{100 * (since - 1):+.1f} %", since)
            cells = [name, series.device, sparkline(trend), *counts, change]
            lines.append(Line(cells, self._chart(trend), f"mean-{i}"))
        if not lines:
            return Html("")
        about = "Of the rates, in % of the newest record; over the cases that a record shares with "
        about += "the newest, where these are at least half of its cases."
        grid = table(columns, lines, "geometric means", tools=False)
        return tag("section", tag("h2", "Geometric mean"), tag("p", about, class_="quiet"), grid)

    def _chart(self, trend: Trend) -> Html:
        record = trend.series.record

        def label(point: int) -> tuple[str, Html]:
            entry = self.entries[record[point]]
            return entry.date[:10], self._commit(entry)

        return tag("div", chart(trend, self.commit[record], label), class_="wide")

    def _commit(self, entry: Entry) -> Html:
        """Short; a link where the repository is known."""
        commit = entry.setting[-1] or ""
        href = f"{self.address}/commit/{quote(commit.removesuffix('-dirty'), safe='')}"
        return tag("a", commit[:8], href=href) if self.address else html(commit[:8])

    def _newest_changes(self, trends: Sequence[Trend]) -> Html:
        """By record, the newest first: what came together probably has one reason."""
        changes = [(trend.series, change) for trend in trends for change in trend.changes]
        groups = grouped(changes, lambda it: (it[0].device, int(it[0].record[it[1].at])))
        columns = ["record", "commit", "date", "device"]
        columns += [Column("slower", True), Column("faster", True)]
        columns += [Column("suspects", hint="the likeliest of each series, and of how many")]
        newest = sorted(groups, key=lambda where: -where[1])[:_NEWEST]
        lines: list[list[Cell | str]] = []
        for device, record in newest:
            those = [change for _, change in groups[device, record]]
            slower = sum(change.ratio > 1 for change in those)
            told = _counted([change.suspects[0] if change.suspects else None for change in those])
            entry = self.entries[record]
            date = tag("time", entry.date[:16].replace("T", " "))
            counts = [Cell(str(count), count) for count in (slower, len(those) - slower)]
            which = _link(entry, self.folder), self._commit(entry), date, device
            lines.append([*which, *counts, told])
        if not lines:
            return Html("")
        title = "Newest changes" if len(groups) > len(lines) else "Changes"
        return tag("section", tag("h2", title), table(columns, lines, "changes", tools=False))

    def _gone(self, gone: Sequence[Gone]) -> Html:
        if not gone:
            return Html("")
        lines: list[list[Cell | str]] = []
        for each in gone:
            ends = (_dated(self.entries[i], self.folder) for i in (each.last, each.since))
            lines.append([str(each.series.case), each.series.device, *ends, each.why])
        grid = table(["case", "device", "last timed", "gone since", "now"], lines, "gone")
        title = f"{len(gone)} cases without a time any more"
        return tag("details", tag("summary", title), grid)

    def of_series(self, trend: Trend, folder: Path) -> str:
        series = trend.series
        body = [
            tag("p", tag("a", "All series", href="../index.html")),
            tag("h1", str(series.case)),
            tag("p", series.device, class_="quiet"),
            definitions(self._facts(trend, folder), "facts"),
            self._chart(trend),
            tag("h2", "Changes"),
            self._changes(trend, folder),
        ]
        return document(f"{series.case}: history", tag("div", *body))

    def _facts(self, trend: Trend, folder: Path) -> list[tuple[str, str]]:
        series = trend.series
        newest = self.entries[trend.newest]
        state = "far from its level" if trend.strays else "unchanged"
        throttled = float(series.throttled[-1])
        return [
            ("Newest", f"{quantity(float(series.rates[-1]), 'FLOP/s')}, {state}"),
            ("Time of one launch", quantity(float(series.seconds[-1]), "s")),
            ("Record", _link(newest, folder)),
            ("Records", str(len(series.record))),
            ("Failed in", f"{len(series.failed)} records" if len(series.failed) else ""),
            ("Newest against oldest", change_text(trend.since_first) if trend.changes else ""),
            ("Throttled", f"{100 * throttled:.0f} % of the time" if throttled > 0 else ""),
        ]

    def _changes(self, trend: Trend, folder: Path) -> Html:
        if not trend.changes:
            return tag("p", "No changes detected.")
        columns = [
            *(Column("#", True), "last record before", "first record after"),
            *(Column("rate before", True), Column("rate after", True)),
            *(Column("change", True, hint="of the rate"), "95 % interval"),
            *("suspect", "differs there as well"),
        ]
        lines: list[list[Cell | str]] = []
        for number, change in enumerate(trend.changes, 1):
            ratio, before = change.ratio, trend.series.flop / change.before
            ends = (trend.series.record[i] for i in (max(change.start - 1, 0), change.at))
            line = [Cell(str(number), number), *(_dated(self.entries[i], folder) for i in ends)]
            line += (Cell(quantity(rate, "FLOP/s"), rate) for rate in (before, before / ratio))
            line += (Cell(change_text(ratio), 1 / ratio), interval_text(change), change.suspect)
            lines.append([*line, "; ".join(map(str, change.suspects[1:]))])
        return table(columns, lines, "changes", tools=False)


def web_address(remote: str) -> str | None:
    """Of a git remote: git@host:owner/name.git is https://host/owner/name. None if it is none."""
    found = re.fullmatch(r"(?:https?://|ssh://)?(?:[^@/]*@)?([\w.-]+)[:/](.+?)(?:\.git)?/?", remote)
    return f"https://{found[1]}/{quote(found[2])}" if found else None


def _answer(trends: Sequence[Trend]) -> str:
    """What changed, in a sentence."""
    turning = [trend for trend in trends if trend.changes]
    of = f"{len(trends)} series of {_FEWEST} records or more"
    if not turning:
        return f"No changes detected in {of}."
    last = [trend.changes[-1].ratio for trend in turning]
    slower = sum(ratio > 1 for ratio in last)
    return (
        f"{len(turning)} of {of} changed; by their newest changes {slower} became slower and "
        f"{len(turning) - slower} faster."
    )


# Series change at the same records.
@lru_cache(maxsize=4096)
def _dated(entry: Entry, folder: Path) -> Html:
    return joined([tag("time", entry.date[:10]), _link(entry, folder)], " ")


@lru_cache(maxsize=4096)
def _link(entry: Entry, folder: Path) -> Html:
    href = quote(os.path.relpath(entry.path, folder))
    name = entry.path.name.removesuffix(".gz").removesuffix(".json")
    mark = Html("") if entry.complete else tag("span", "incomplete", class_="badge warn")
    return joined([tag("a", name, href=href), mark], " " if mark else "")


def file_name(trend: Trend) -> str:
    """Stays the same when other series come or go; of the name only what is safe everywhere."""
    series = trend.series
    readable = re.sub(r"[^A-Za-z0-9]+", "-", str(series.case)).strip("-")[:60]
    key = json.dumps(series.case, separators=(",", ":"))
    digest = hashlib.sha256(f"{series.device}\0{key}".encode()).hexdigest()[:10]
    return f"{readable}-{digest}.html"


def _counted(suspects: Sequence[Suspect | None]) -> str:
    """How many of each kind; in full where all of a kind are the same."""
    kinds = grouped(suspects, lambda suspect: suspect.what if suspect else NOTHING)
    said = []
    for what, its in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        texts = {str(each or NOTHING) for each in its}
        said.append(f"{texts.pop() if len(texts) == 1 else what} ({len(its)})")
    return "; ".join(said)


def _series_table(lines: Sequence[Sequence[Cell | str]]) -> Html:
    columns = [
        Column("kernel", filtered=True),
        Column("precision", filtered=True),
        "shape",
        Column("device", filtered=True),
        Column("trend", hint="rate over time, higher is faster; the line is the level"),
        Column("newest", True, hint="FLOP/s"),
        Column("since first", True, hint="rate of the newest level over that of the first"),
        Column("changes", True),
        Column("newest change", True),
        "since",
        Column("suspect", filtered=True, hint="what differs at the newest change"),
    ]
    return table(columns, lines, "series")


def _line(trend: Trend, entries: Sequence[Entry]) -> list[Cell | str]:
    series, case = trend.series, trend.series.case
    newest = trend.changes[-1] if trend.changes else None
    strays = tag("span", "stray", class_="badge warn", title="the newest is far off its level")
    rate = quantity(float(series.rates[-1]), "FLOP/s")
    what = "no change"
    if newest:
        what = newest.suspects[0].what if newest.suspects else NOTHING
    return [
        Cell(tag("a", case.label, href=f"series/{file_name(trend)}"), choices=(case.kernel,)),
        Cell(precision_name(case.precision), choices=(case.precision,)),
        f"{case.m}x{case.n}x{case.k}",
        series.device,
        sparkline(trend),
        Cell(joined([strays, " ", rate]) if trend.strays else rate, float(series.rates[-1])),
        Cell(change_text(trend.since_first) if trend.changes else "", 1 / trend.since_first),
        Cell(str(len(trend.changes)), len(trend.changes)),
        Cell(change_text(newest.ratio), 1 / newest.ratio) if newest else "",
        tag("time", entries[series.record[newest.at]].date[:10]) if newest else "",
        Cell(newest.suspect if newest else "", choices=(what,)),
    ]
