"""The index of a folder of records: devices and precisions, with the trend over all records."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from gemm_report.collection import Refusals, record_paths, records_given
from gemm_report.document import RecordError
from gemm_report.grouping import grouped
from gemm_report.history.pages import write_pages
from gemm_report.history.series import read_history
from gemm_report.history.trends import find_trends
from gemm_report.pages.record_page import write_page
from gemm_report.pages.render import Html, document, tag
from gemm_report.record import Record, rate
from gemm_report.standing import Standing, standings
from gemm_report.text import operations, percent, quantity

_WIDTH, _HEIGHT = 180, 36
_TITLE = "GEMM benchmark: all devices"
Point = tuple[Record, Standing]


def write_site(source: Path, folder: Path, refusals: Refusals) -> Path:
    """Pages of the newest record of each device that has most precisions, history, the index."""
    records = list(records_given(record_paths(source), refusals))
    devices = grouped(
        (each for each in records if each.rows_with("timed")), lambda each: each.device.name
    )
    if not devices:
        raise RecordError(f"{source}: no record has a time: run tools/bench first")
    parts, used = [], set[str]()
    for device, its in sorted(devices.items()):
        found = [(record, standings(record)) for record in sorted(its, key=lambda each: each.date)]
        newest = max(found, key=lambda each: (len(each[1]), each[0].date))
        slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")[:60] or "device"
        while slug in used:
            slug += "-"
        used.add(slug)
        write_page(newest[0], folder / slug)
        head = tag("h2", tag("a", device, href=f"{slug}/index.html"))
        said = f"{len(its)} records; the newest suite: {newest[0].date[:10]}, "
        said += f"commit {newest[0].commit_name}"
        points = [(record, each) for record, all_ in found for each in all_]
        parts += [head, tag("p", said, class_="quiet"), _table(newest[1], points)]
    history = read_history(source, refusals)
    write_pages(folder / "history", history, find_trends(history))
    link = tag("p", tag("a", "History of every case, by kernel", href="history/index.html"))
    index = folder / "index.html"
    body = tag("div", tag("h1", _TITLE), link, *parts)
    index.write_text(document(_TITLE, body), encoding="utf-8")
    return index


def _table(newest: Sequence[Standing], points: Sequence[Point]) -> Html:
    names = "precision", "newest rate", "share of the peak", "ratio to the library", "all records"
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in names)))
    lines = []
    for each in newest:
        row, lead = each.lead.ours, each.lead
        speed = f"{quantity(rate(row), operations(row.precision))} at {row.size}, {row.label}"
        ratio = f"{lead.ratio:.2f}" if lead.ratio and each.compared else each.why_not
        cells = (speed, percent(row.of_roof_nominal), ratio, _trend(each, points))
        name = tag("th", each.name, scope="row")
        lines.append(tag("tr", name, *(tag("td", cell) for cell in cells)))
    grid = tag("table", head, tag("tbody", *lines), class_="site")
    return tag("div", grid, class_="wide", tabindex="0", role="region", aria_label="precisions")


def _trend(newest: Standing, points: Sequence[Point]) -> Html | str:
    """The ratio at the same problem in every record, pooled over the GPUs of the model."""
    problem = newest.precision, newest.lead.ours.size
    ratios = [
        (record, each.lead.ratio)
        for record, each in points
        if each.compared and each.lead.ratio
        if (each.precision, each.lead.ours.size) == problem
    ]
    if len(ratios) < 2:
        return "-"
    values = [ratio for _, ratio in ratios]
    low, high = min([*values, 1.0]), max([*values, 1.0])
    span = high - low or 1.0

    def y(value: float) -> float:
        return round(4 + (_HEIGHT - 8) * (high - value) / span, 1)

    apart = _WIDTH / len(values)
    dots = [
        tag("circle", tag("title", f"{record.date[:10]}, {record.commit_name[:8]}: {ratio:.3f}"),
            cx=round((i + 0.5) * apart, 1), cy=y(ratio), r=2.5)
        for i, (record, ratio) in enumerate(ratios)
    ]  # fmt: skip
    middle = median(values)
    lines = tag("path", d=f"M0 {y(1.0)}H{_WIDTH}", class_="library")
    lines += tag("path", d=f"M0 {y(middle)}H{_WIDTH}", class_="level")
    said = f"{min(values):.2f} to {max(values):.2f}, median {middle:.2f} of {len(values)}"
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    picture = tag("svg", lines, *dots, viewBox=box, class_="pooled", role="img", aria_label=said)
    return tag("div", picture, tag("small", said))
