"""The pages of several records, listed."""

from collections.abc import Mapping
from urllib.parse import quote

from gemm_report.record import Record
from gemm_report.site.markup import Html, html, tag
from gemm_report.site.record_page import utc
from gemm_report.site.shell import document
from gemm_report.site.table import Cell, Column, Line, table


def index_page(records: Mapping[str, Record]) -> str:
    """The page, which links index.html in a folder for each record, by whose name it is given."""
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
    lines = [_line(folder, record) for folder, record in records.items()]
    body = [
        tag("h1", "GEMM benchmark"),
        tag("p", f"{len(lines)} records", class_="quiet"),
        tag("div", table(columns, lines, "records"), class_="card"),
    ]
    return document("GEMM benchmark: records", tag("div", *body))


def _line(folder: str, record: Record) -> Line:
    timed = record.rows_with("timed")
    counts = [
        *(len(record.rows_with(status)) for status in ("timed", "failed", "skipped")),
        sum(row.throttled for row in timed),
    ]
    unfinished: Html = tag("span", "no", class_="badge bad")
    return Line(
        [
            Cell(tag("a", folder, href=f"{quote(folder)}/index.html")),
            Cell(record.device.name),
            Cell(record.device.driver or "-"),
            Cell(record.commit[:12]),
            Cell(utc(record.date)),
            Cell(html("yes") if record.complete else unfinished),
            *(Cell(str(count), count) for count in counts),
        ]
    )
