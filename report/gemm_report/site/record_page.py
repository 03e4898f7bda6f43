"""One record as a page: its conditions, what went wrong, what is best, its figures, every row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from gemm_report.ladder.layouts import TITLE, Comparison, comparisons, layout_table
from gemm_report.ladder.rows import drawn_rows, headlines, ordered_rows, precisions
from gemm_report.ladder.rungs import libraries, rate, rungs
from gemm_report.record import UNCERTAIN, Ceiling, Record, Row
from gemm_report.site.markup import Html, joined, tag
from gemm_report.site.picture import Picture, figure
from gemm_report.site.row_table import anchors, held_down_by, row_table
from gemm_report.site.shell import document
from gemm_report.site.table import Cell, Column, table
from gemm_report.writing.quantity import megahertz, percent, quantity


@dataclass(frozen=True)
class Highlight:
    """The fastest kernel of a precision, and the library that it is held against."""

    precision: str
    best: Row | None
    library: Row | None


def record_page(record: Record, pictures: Sequence[Picture]) -> str:
    """The page; `pictures` lie beside it."""
    found = comparisons(record)
    sections = [
        *(_section(p.name, p.title, figure(p)) for p in pictures),
        *([_section("layouts", "Layouts", _layouts(found))] if found else []),
        _section("rows", "All rows", tag("div", row_table(record), class_="card")),
        _section("roofs", "Roofs", tag("div", _roofs(record), class_="card")),
    ]
    names = [
        *((p.name, p.title) for p in pictures),
        *([("layouts", "Layouts")] if found else []),
        *(("rows", "All rows"), ("roofs", "Roofs")),
    ]
    links = (tag("a", title, href=f"#{name}") for name, title in names)
    body = joined(
        [
            _head(record),
            _attention(record),
            _highlights(record),
            tag("nav", *links, class_="contents", aria_label="Contents"),
            *sections,
        ],
        "\n",
    )
    return document(f"{record.device.name}: GEMM benchmark {record.date[:10]}", body)


def highlights(record: Record) -> list[Highlight]:
    """Of each precision the fastest at the ladder's size, or the fastest library if it has none."""
    found = []
    for precision in precisions(drawn_rows(record)):
        best = max((rung.row for rung in rungs(record, precision)), key=rate, default=None)
        beside = libraries(record, precision)
        if best is None:
            rows = [row for row in drawn_rows(record) if row.precision == precision]
            beside = [row for row in headlines(rows) if row.is_library]
        if best or beside:
            found.append(Highlight(precision, best, max(beside, key=rate, default=None)))
    return found


def utc(date: str) -> str:
    """The date of a record as people write it: 2026-11-21 10:44:41 UTC."""
    return date.replace("T", " ").replace("+00:00", " UTC")


def _section(name: str, title: str, content: Html) -> Html:
    return tag("section", tag("h2", title), content, id=name)


def _head(record: Record) -> Html:
    facts = (tag("div", tag("dt", name), tag("dd", said)) for name, said in _facts(record) if said)
    unfinished = tag(
        "p",
        tag("span", "incomplete", class_="badge bad"),
        " The run was interrupted or still goes on: rows are missing.",
    )
    return tag(
        "header",
        tag("h1", record.device.name),
        tag("p", "GEMM benchmark, record ", tag("code", record.path.name), class_="quiet"),
        Html("") if record.complete else unfinished,
        tag(
            "div",
            tag("dl", *facts, class_="facts"),
            tag("p", record.conformance, class_="conformance") if record.conformance else "",
            class_="card",
        ),
    )


def _facts(record: Record) -> list[tuple[str, str | None]]:
    device, method, time = record.device, record.method, record.time
    departing = sum(_departs(row) for row in record.rows)
    return [
        ("Driver", device.driver),
        ("CUDA runtime", device.runtime),
        ("Compute capability", device.compute_capability),
        ("Power limit", f"{device.power_limit_w:.0f} W" if device.power_limit_w else None),
        ("Clock", megahertz(device.clock_hz) if device.clock_hz else None),
        ("Commit", record.commit[:12]),
        ("Build", record.build.type),
        ("Date", utc(record.date)),
        ("Complete", "yes" if record.complete else "no"),
        ("Timer", method.timer),
        ("Fill", method.fill),
        ("Test", ", ".join(filter(None, (method.test, method.state))) or None),
        ("Cache", method.cache),
        ("Rows with a time", f"{len(record.rows_with('timed'))} of {len(record.rows)}"),
        ("Rows that depart", f"{departing} of {len(record.rows_with('timed'))}"),
        ("Run time", time and f"{time.wall_seconds:.0f} s, {time.kernel_seconds:.0f} s in kernels"),
    ]


def _attention(record: Record) -> Html:
    """What a reader must know before believing the rest: never behind a click."""
    groups: list[tuple[str, str, Callable[[Row], bool], Callable[[Row], str]]] = [
        ("failed", "bad", _has("failed"), lambda row: row.failed or ""),
        ("skipped", "warn", _has("skipped"), lambda row: row.skipped or ""),
        ("throttled", "warn", lambda row: _has("timed")(row) and row.throttled, held_down_by),
        ("depart from the guideline", "warn", _departs, _departure),
        ("without a time", "bad", _has("untimed"), lambda row: "no reason recorded"),
    ]
    ordered, places = ordered_rows(record), anchors(record)
    told = [
        _told(title, tone, [row for row in ordered if belongs(row)], reason, places)
        for title, tone, belongs, reason in groups
    ]
    return tag(
        "section", *told, class_="card told", id="attention", aria_label="What to know first"
    )


def _has(status: str) -> Callable[[Row], bool]:
    return lambda row: row.status == status


def _departs(row: Row) -> bool:
    return row.status == "timed" and bool(row.departures)


def _departure(row: Row) -> str:
    """Without the figure, which differs from row to row and stands in its details."""
    known = {UNCERTAIN: "median not known as well as was asked"}
    return "; ".join(known.get(each.code, each.text) for each in row.departures)


def _told(
    title: str,
    tone: str,
    rows: Sequence[Row],
    reason: Callable[[Row], str],
    places: Mapping[int, str],
) -> Html:
    """How many rows there are of one kind, and each of them under its reason."""
    if not rows:
        absent = tag("h3", tag("span", "0", class_="badge"), f" {title}")
        # That nothing failed is worth a line; that every row has a time goes without saying.
        return Html("") if title == "without a time" else tag("div", absent)
    reasons = dict.fromkeys(reason(row) for row in rows)
    groups = (
        tag("li", why, ": ", _links([row for row in rows if reason(row) == why], places))
        for why in reasons
    )
    head = tag("h3", tag("span", str(len(rows)), class_=f"badge {tone}"), f" {title}")
    return tag("div", head, tag("ul", *groups))


def _links(rows: Sequence[Row], places: Mapping[int, str]) -> Html:
    """The rows by kernel, each with links by size."""
    kernels = [
        joined(
            [
                f"{label} {precision} ",
                joined((tag("a", r.size, href=f"#{places[id(r)]}") for r in its_rows), ", "),
            ]
        )
        for (label, precision), its_rows in groupby(rows, key=lambda r: (r.label, r.precision))
    ]
    return joined(kernels, "; ")


def _highlights(record: Record) -> Html:
    found = highlights(record)
    if not found:
        return tag("p", "No row has a time.", class_="card")
    return tag("section", *(_highlight(each) for each in found), class_="highlights")


def _highlight(found: Highlight) -> Html:
    row = found.best or found.library
    assert row is not None  # highlights() leaves out what has neither
    if found.best is None:
        said = "library alone"
    elif found.library is None:
        said = "no library beside it"
    else:
        beside = found.library
        share = percent(rate(row) / rate(beside))
        said = f"{share} of {beside.label}"
    roof = f"{percent(row.of_roof_nominal)} of roof" if row.of_roof_nominal else "roof not known"
    return tag(
        "div",
        tag("p", f"{row.precision}, {row.size}", class_="quiet"),
        tag("p", quantity(rate(row), "FLOP/s"), class_="value"),
        tag("p", row.label),
        tag("p", said, class_="quiet"),
        tag("p", roof, class_="quiet"),
        class_="card",
    )


def _layouts(found: Sequence[Comparison]) -> Html:
    head, lines = layout_table(found)
    columns = [Column(name, i >= len(lines[0][0])) for i, name in enumerate(head)]
    cells = [[*case, *(Cell(*number) for number in numbers)] for case, numbers in lines]
    grid = table(columns, cells, "layouts", tools=False)
    return tag("div", tag("p", TITLE, class_="quiet"), grid, class_="card")


def _roofs(record: Record) -> Html:
    origin = Column("origin", hint="queried from the device, from a table, or measured")
    numbers = [Column(each, True) for each in ("value", "clock", "power")]
    lines = [
        *(_roof_line(c, c.precision, c.clock_hz, None, c.source) for c in record.ceilings),
        *(
            _roof_line(
                c.roof, c.arithmetic, c.sm_hz, c.power_w, ", ".join(filter(None, (c.what, c.fill)))
            )
            for c in record.measured_ceilings
        ),
    ]
    return table(["roof", "of", *numbers, origin, "source"], lines, "roofs", tools=False)


def _roof_line(
    roof: Ceiling, of: str | None, hertz: float | None, watts: float | None, source: str
) -> list[Cell | str]:
    value = roof.flop_per_second or roof.bytes_per_second
    unit = "FLOP/s" if roof.flop_per_second else "B/s"
    return [
        *(roof.name, of or "memory"),
        Cell(quantity(value, unit), value) if value else "not known",
        Cell(megahertz(hertz), hertz) if hertz else "-",
        Cell(f"{watts:.0f} W", watts) if watts else "-",
        *(roof.origin, source),
    ]
