"""The pages of several records, listed."""

from collections.abc import Iterable
from urllib.parse import quote

from gemm_report.record import Record
from gemm_report.site.markup import Html, html, tag
from gemm_report.site.shell import document
from gemm_report.site.table import Cell, Column, Line, table


def index_page(records: Iterable[Record]) -> str:
    """The page; that of each record lies in the folder named like it, below."""
    columns = [
        Column("record"),
        Column("device", filtered=True),
        Column("driver", filtered=True),
        Column("commit"),
        Column("date"),
        Column("complete"),
        Column("timed", True),
        Column("failed", True),
        Column("skipped", True),
        Column("throttled", True),
    ]
    lines = [_line(record) for record in records]
    body = [
        tag("h1", "GEMM benchmark"),
        tag("p", f"{len(lines)} records", class_="quiet"),
        tag("div", table(columns, lines, "records"), class_="card"),
    ]
    return document("GEMM benchmark: records", tag("div", *body))


def _line(record: Record) -> Line:
    name = record.path.stem
    timed = record.rows_with("timed")
    counts = [
        *(len(record.rows_with(status)) for status in ("timed", "failed", "skipped")),
        sum(row.throttled for row in timed),
    ]
    unfinished: Html = tag("span", "no", class_="badge bad")
    return Line(
        [
            Cell(tag("a", name, href=f"{quote(name)}/index.html")),
            Cell(record.device.name),
            Cell(record.device.driver or "-"),
            Cell(record.commit[:12]),
            Cell(record.date.replace("T", " ")),
            Cell(html("yes") if record.complete else unfinished),
            *(Cell(str(count), count) for count in counts),
        ]
    )
