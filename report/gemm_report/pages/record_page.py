"""One record as a page: the answer, its figures, every row, and how all of it was measured."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from gemm_report.figures.write import FORMATS, drawings, write_figure
from gemm_report.pages.answer import answer
from gemm_report.pages.markup import Html, joined, tag
from gemm_report.pages.picture import Picture, figure, spots
from gemm_report.pages.row_table import GLOSSARY, STATES, repeating, row_table, states
from gemm_report.pages.shell import chip, definitions, document
from gemm_report.pages.table import Cell, Column, table
from gemm_report.record import Ceiling, Identity, Record, Row, rate
from gemm_report.rows import precisions, timed_rows
from gemm_report.text import (
    megahertz,
    operations,
    percent,
    precision_name,
    prefix_for,
    quantity,
    roof_name,
    scaled,
    significant,
)

_FIRST = ("headline", "roofline")
# The page has these for each precision alone, if there are several.
_OF_ONE_PRECISION = ("throughput", "of_library")
_IN_TABS = ("ladder", "throughput", "of_library", "ladder_roofline")


def write_page(record: Record, folder: Path) -> Path:
    """The page of one record, and the figures that it shows and links; the page's path."""
    pictures = _pictures(record, folder)
    names = precisions(record.rows_with("timed"))
    for name in names if len(names) > 1 else ():
        if not re.fullmatch(r"\w+", name, re.ASCII):  # somebody else's record: no folder of that
            continue
        rows = tuple(row for row in record.rows if row.precision == name)
        part = replace(record, rows=rows)
        pictures += _pictures(part, folder / name, _OF_ONE_PRECISION)
    page = folder / "index.html"
    page.write_text(record_page(record, pictures), encoding="utf-8")
    return page


def _pictures(record: Record, folder: Path, only: Collection[str] | None = None) -> list[Picture]:
    pictures = []
    for name, drawing in drawings(record).items():
        if not only or name in only:
            paths = {end: folder / f"{name}.{end}" for end in FORMATS}
            marks = spots(write_figure(drawing, record, list(paths.values())))
            where = f"{folder.name}/{name}" if only else name
            svg = paths["svg"].read_text(encoding="utf-8")
            pictures.append(Picture(where, drawing.caption, svg, marks))
    return pictures


def record_page(record: Record, pictures: Sequence[Picture]) -> str:
    """The page; the files of `pictures` are stored next to it."""
    first = [p for name in _FIRST for p in pictures if p.path == name]
    names = precisions(record.rows)
    tabs = {name: [p for p in pictures if _tab(p, names) == name] for name in names}
    for its in tabs.values():
        its.sort(key=lambda p: _IN_TABS.index(p.kind))
    shown = {p.path for each in (first, *tabs.values()) for p in each}
    shown |= {p.kind for p in pictures if "/" in p.path}  # of all precisions in one
    parts = [
        *((p.name, p.title, figure(p)) for p in first),
        ("precisions", "By precision", _tabs({k: v for k, v in tabs.items() if v})),
        ("rows", "Results", row_table(record)),
        *((p.name, p.title, figure(p)) for p in pictures if p.path not in shown),
        ("layouts", "Layouts", _layouts(record)),
        ("conditions", "Conditions", _conditions(record)),
        ("peaks", "Peaks", _peaks(record)),
        ("glossary", "Terms", definitions(GLOSSARY.items(), "glossary")),
    ]
    sections = [(name, title, content) for name, title, content in parts if content]
    links = (tag("a", title, href=f"#{name}") for name, title, _ in sections)
    body = [
        _head(record),
        tag("nav", *links, class_="contents", aria_label="Contents"),
        *(tag("section", tag("h2", title), content, id=name) for name, title, content in sections),
    ]
    return document(f"{record.device.name}: GEMM benchmark {record.date[:10]}", joined(body, "\n"))


def utc(date: str) -> str:
    """The date of a record as people write it: 2026-11-21 10:44:41 UTC."""
    return date.replace("T", " ").replace("+00:00", " UTC")


def _head(record: Record) -> Html:
    said, rest = answer(record)
    facts = [
        utc(record.date),
        record.device.driver and f"driver {record.device.driver}",
        f"commit {record.commit_name}",
    ]
    badge = tag("span", "incomplete", class_="badge bad")
    why = " The run was interrupted or is still going on: rows are missing."
    counts = Counter(state for row in record.rows for state in states(row))
    chips = (
        chip(state, counts[state], "state", tone)
        for state, tone in STATES.items()
        if state != "untimed" or counts[state]
    )
    return tag(
        "header",
        tag("p", f"GEMM benchmark · {' · '.join(filter(None, facts))}", class_="quiet"),
        tag("h1", record.device.name),
        tag("p", said, class_="answer"),
        tag("p", rest, class_="quiet") if rest else "",
        "" if record.complete else tag("p", badge, why),
        tag("nav", *chips, class_="chips", aria_label="Rows by state"),
    )


def _tab(picture: Picture, names: Sequence[str]) -> str | None:
    """The precision that it is of, where it is of one."""
    folder, _, name = picture.path.rpartition("/")
    if picture.kind not in _IN_TABS:
        return None
    if picture.kind.startswith("ladder"):
        return name.removeprefix(picture.kind).removeprefix("_") or "f32"
    return folder or (names[0] if len(names) == 1 else None)


def _tabs(tabs: dict[str, Sequence[Picture]]) -> Html:
    """Without JavaScript one below the other."""
    if not tabs:
        return Html("")
    buttons = (
        tag("button", precision_name(p), type="button", role="tab", id=f"tab-{p}", data_tab=p,
            aria_controls=f"panel-{p}")
        for p in tabs
    )  # fmt: skip
    panels = (
        tag("div", tag("h3", precision_name(p)), *map(figure, pictures), id=f"panel-{p}",
            role="tabpanel", aria_labelledby=f"tab-{p}", class_="panel")
        for p, pictures in tabs.items()
    )  # fmt: skip
    bar = tag("div", *buttons, role="tablist", aria_label="Precision", class_="tabs js-only")
    return joined([bar, *panels])


def _conditions(record: Record) -> Html:
    device, method, time = record.device, record.method, record.time
    build = record.build
    facts = [
        ("Record", record.path.name),
        ("Date", utc(record.date)),
        ("Commit", record.commit),
        ("Complete", "yes" if record.complete else "no"),
        ("Driver", device.driver),
        ("CUDA runtime", device.runtime),
        ("Libraries", ", ".join(map(str, record.libraries))),
        ("Environment", _surroundings(record)),
        ("Build", ", ".join(filter(None, (build.type, build.compiler, build.cuda_compiler)))),
        ("Compiler flags", build.flags),
        ("nvcc flags", build.cuda_flags),
        ("Compute capability", device.compute_capability),
        ("Clock", device.clock_hz and megahertz(device.clock_hz)),
        ("Power limit", device.power_limit_w and f"{device.power_limit_w:.0f} W"),
        ("Timer", method.timer),
        ("Input data", method.fill),
        ("Operands", {"rotate": "rotated past the L2", "hot": "cached"}.get(method.cache or "")),
        ("State", {"settled": "steady state", "burst": "burst"}.get(method.state or "")),
        ("Clocks", {"fixed power": "default, by the power limit", "fixed frequency": "locked"}
         .get(method.test or "")),
        ("Run time", time and f"{time.wall_seconds:.0f} s, {time.kernel_seconds:.0f} s in kernels"),
    ]  # fmt: skip
    command = tag("pre", tag("code", repeating(record)), tabindex=0, aria_label="command")
    parts = [
        definitions(facts, "facts"),
        tag("p", record.conformance, class_="quiet") if record.conformance else "",
        tag("h3", "Command that made this record"),
        command,
        tag("p", "The details of each row have the command that repeats it.", class_="quiet"),
    ]
    return joined(parts)


def _surroundings(record: Record) -> str | None:
    """What was unusual around the run: variables, injected code, load, other processes."""
    environment, host, health = record.environment, record.host, record.health
    parts = []
    if environment:
        removed = ", ".join(f"{name}={value}" for name, value in environment.removed.items())
        parts += [environment.variables, removed and f"removed: {removed}"]
        parts += [environment.injected and f"injected: {', '.join(environment.injected)}"]
    if host and any(row.disturbed for row in record.rows):
        parts.append(f"busy host: others had {percent(host.others_share)} of its CPUs")
    if others := health and (health.before.other_processes or health.after.other_processes):
        parts.append(f"other processes on the GPU: {others}")
    return "; ".join(filter(None, parts)) or None


def _layouts(record: Record) -> Html:
    """What a transposed A or B costs, where a case was run in nn and in another layout."""
    cases: dict[Identity, dict[str, Row]] = {}
    for row in timed_rows(record):
        cases.setdefault(row.identity._replace(layout="nn"), {})[row.layout] = row
    found = [rows for rows in cases.values() if "nn" in rows and len(rows) > 1]
    if not found:
        return Html("")
    prefix = prefix_for(rate(row) for rows in found for row in rows.values())
    numbers = [f"nn, {prefix}FLOP/s", "nt", "tn", "tt", "slowest / fastest"]
    lines = []
    for rows in found:
        plain, rates = rows["nn"], {layout: rate(row) for layout, row in rows.items()}
        shares = [rates[other] / rates["nn"] if other in rates else None for other in numbers[1:4]]
        shares.append(min(rates.values()) / max(rates.values()))
        speed = Cell(significant(scaled(rate(plain), prefix)), rate(plain))
        cells = [speed, *(Cell(percent(share), share) for share in shares)]
        lines.append([plain.label, plain.precision, plain.shape, *cells])
    columns = ["kernel", "precision", "shape", *(Column(name, True) for name in numbers)]
    said = "Speed on a transposed A (t first) or B over that on layout nn."
    grid = table(columns, lines, "layouts", tools=False)
    return joined([tag("p", said, class_="quiet"), grid])


def _peaks(record: Record) -> Html:
    origin = Column("origin", hint="queried from the device, from a table, or measured")
    numbers = [Column(each, True) for each in ("value", "clock", "power")]
    lines = [
        *(_peak(c, c.clock_hz, None, c.source) for c in record.ceilings),
        *(
            _peak(_limit(c), c.clock_hz, None, c.source)
            for c in record.ceilings
            if c.limit_flop_per_second
        ),
        *(
            _peak(c.roof, c.sm_hz, c.power_w, ", ".join(filter(None, (c.what, c.fill))))
            for c in record.measured_ceilings
        ),
    ]
    grid = table(["peak", *numbers, origin, "how"], lines, "peaks", tools=False)
    said = dict.fromkeys(c.contradiction for c in record.ceilings if c.contradiction)
    warnings = (f"Table and probe disagree: {each}. The peak is the probe's." for each in said)
    return joined([*(tag("p", each) for each in warnings), grid])


def _limit(roof: Ceiling) -> Ceiling:
    """What is possible beyond the peak."""
    what = "limit" if roof.contradiction else "block-scaled"
    return replace(
        roof,
        name=f"{roof.name}, {what}",
        flop_per_second=roof.limit_flop_per_second,
        origin="table",
    )


def _peak(roof: Ceiling, hertz: float | None, watts: float | None, source: str) -> list[Cell | str]:
    value = roof.flop_per_second or roof.bytes_per_second
    unit = operations(roof.precision) if roof.flop_per_second else "B/s"
    return [
        roof_name(roof.name),
        Cell(quantity(value, unit), value) if value else "not known",
        Cell(megahertz(hertz), hertz) if hertz else "-",
        Cell(f"{watts:.0f} W", watts) if watts else "-",
        *(roof.origin, source),
    ]
