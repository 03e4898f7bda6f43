"""The pages of several records, listed."""

from collections.abc import Mapping
from urllib.parse import quote

from gemm_report.record import Record
from gemm_report.site.markup import tag
from gemm_report.site.record_page import utc
from gemm_report.site.shell import document
from gemm_report.site.table import Cell, Column, table


def index_page(records: Mapping[str, Record]) -> str:
    """The page, which links index.html in a folder for each record, by whose name it is given."""
    columns = ["record", Column("device", filtered=True), Column("driver", filtered=True)]
    columns += ["commit", "date", "complete"]
    columns += [Column(each, True) for each in ("timed", "failed", "skipped", "throttled")]
    lines = [_line(folder, record) for folder, record in records.items()]
    body = [
        tag("h1", "GEMM benchmark"),
        tag("p", f"{len(lines)} records", class_="quiet"),
        table(columns, lines, "records"),
    ]
    return document("GEMM benchmark: records", tag("div", *body))


def _line(folder: str, record: Record) -> list[Cell | str]:
    timed = record.rows_with("timed")
    counts = [
        *(len(record.rows_with(status)) for status in ("timed", "failed", "skipped")),
        sum(row.throttled for row in timed),
    ]
    device = record.device
    return [
        tag("a", folder, href=f"{quote(folder)}/index.html"),
        *(device.name, device.driver or "-", record.commit[:12], utc(record.date)),
        "yes" if record.complete else tag("span", "no", class_="badge bad"),
        *(Cell(str(count), count) for count in counts),
    ]
