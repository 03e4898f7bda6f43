"""One record as a page: the answer, its figures, every row, and how all of it was measured."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gemm_report.figures.roofs import MEASURED, compute_roofs, kind, memory_roofs
from gemm_report.figures.write import FORMATS, MOST, drawings
from gemm_report.notes import settings
from gemm_report.pages.answer import answer
from gemm_report.pages.matrix import matrix, problems
from gemm_report.pages.picture import Picture, write_pictures
from gemm_report.pages.render import (
    Cell,
    Column,
    Html,
    chip,
    document,
    joined,
    rendered,
    table,
    tag,
)
from gemm_report.pages.row_table import STATES, anchors, repeating, row_table, states
from gemm_report.record import MEMORIES, Ceiling, Record
from gemm_report.rows import ordered_rows, precisions, timed_rows
from gemm_report.text import (
    megahertz,
    operations,
    percent,
    quantity,
    roof_name,
)


def write_page(record: Record, folder: Path) -> Path:
    """The page of one record, and the figures that it shows and links; the page's path."""
    pictures = write_pictures(record, folder, list(drawings(record))[:MOST])
    page = folder / "index.html"
    page.write_text(record_page(record, pictures), encoding="utf-8")
    return page


def record_page(record: Record, pictures: Sequence[Picture]) -> str:
    """The page; the files of `pictures` are stored next to it. The first of them is its matrix."""
    said, rest = answer(record)
    counts = Counter(state for row in record.rows for state in states(record, row))
    conditions = rendered(
        "conditions",
        record=record,
        date=utc(record.date),
        surroundings=_surroundings(record),
        settings=settings(record),
        command=repeating(record),
    )
    rows = ordered_rows(record)
    places = {row.identity: anchor for row, anchor in zip(rows, anchors(rows), strict=True)}
    files = FORMATS if any(each.name == "headline" for each in pictures) else ()
    drawn = [each for each in pictures if each.name != "headline"]
    small = [each for each in drawn if each.name.startswith("sizes")]
    every = _folded("rows", f"All {len(rows)} results", row_table(record))
    peaks = _folded("peaks", "Peaks and bandwidths", _peaks(record))
    sections = [
        ("standing", "", matrix(record, places, files)),
        ("figures", "", _figures([each for each in drawn if each not in small], "large")),
        ("sizes", "", _figures(small, "small")),
        ("problems", "Ours against the library", problems(record, places)),
        ("every", "", every),
        ("conditions", "Conditions", conditions + peaks),
    ]
    return document(
        f"{record.device.name}: GEMM benchmark {record.date[:10]}",
        "",
        "record",
        record=record,
        date=utc(record.date),
        said=said,
        rest=rest,
        chips=joined(chip(state, counts[state], "state", tone) for state, tone in STATES.items()),
        sections=sections,
    )


def _folded(name: str, title: str, content: Html) -> Html:
    """Unfolds by a click, and where a link leads into it."""
    head = tag("summary", title)
    return tag("details", head, content, id=name, class_="folded") if content else Html("")


def utc(date: str) -> str:
    """The date of a record as people write it: 2026-11-21 10:44:41 UTC."""
    return date.replace("T", " ").replace("+00:00", " UTC")


def _figures(pictures: Sequence[Picture], size: str) -> Html:
    return rendered("figures", pictures=pictures, size=size) if pictures else Html("")


def _surroundings(record: Record) -> str | None:
    """What was unusual around the run: variables, injected code, load, other processes."""
    environment, host, health = record.environment, record.host, record.health
    parts = []
    if environment:
        removed = ", ".join(f"{name}={value}" for name, value in environment.removed.items())
        parts += [environment.variables, removed and f"removed: {removed}"]
        parts += [f"injected: {', '.join(environment.injected)}" if environment.injected else ""]
    if host and any(row.disturbed for row in record.rows):
        parts.append(f"busy host: others had {percent(host.others_share)} of its CPUs")
    if others := health and (health.before.other_processes or health.after.other_processes):
        parts.append(f"other processes on the GPU: {others}")
    return "; ".join(filter(None, parts)) or None


def _peaks(record: Record) -> Html:
    """Of what the rows use: the nominal peak, and what a probe reached."""
    names = precisions(timed_rows(record))
    pairs = [compute_roofs(record, name) for name in names] + [memory_roofs(record)]
    pairs += [[r] for name in MEMORIES if name != "DRAM" and (r := record.bandwidth(name))]
    lines = {str(line[0]): line for pair in pairs if pair for line in [_peak(pair)]}
    head: list[Column | str] = [
        "peak",
        Column("nominal", True),
        Column("measured", True),
        "measured at",
        "source",
    ]
    said = dict.fromkeys(c.contradiction for c in record.ceilings if c.contradiction)
    warnings = (f"Table and probe disagree: {each}. The peak is the probe's." for each in said)
    grid = table(head, list(lines.values()), "peaks", tools=False) if lines else Html("")
    return joined([*(tag("p", each) for each in warnings), grid])


def _peak(roofs: Sequence[Ceiling]) -> list[Cell | str]:
    nominal = next((roof for roof in roofs if kind(roof) != MEASURED), None)
    measured = next((roof for roof in roofs if kind(roof) == MEASURED), None)

    def cell(roof: Ceiling | None) -> Cell | str:
        value = roof and (roof.flop_per_second or roof.bytes_per_second)
        if roof is None or not value:
            return "-"
        unit = operations(roof.precision) if roof.flop_per_second else "B/s"
        return Cell(quantity(value, unit), value)

    clock = measured and measured.clock_hz
    sources = dict.fromkeys(roof.source for roof in roofs)
    return [
        roof_name(roofs[0].name),
        cell(nominal),
        cell(measured),
        megahertz(clock) if clock else "-",
        "; ".join(sources),
    ]
