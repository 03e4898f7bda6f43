"""The numbers in kernels/README.md, whose prose is written by hand."""

import re
from collections.abc import Sequence
from pathlib import Path

from gemm_report.document import InputError
from gemm_report.figures.marks import mark, notes
from gemm_report.figures.write import drawings
from gemm_report.readme import as_text, between_markers, caption, link, picture, read_text
from gemm_report.record import Part, Record, Row, rate
from gemm_report.rows import Rung, drawn_rows, libraries, limits, precisions, rungs
from gemm_report.text import (
    markdown_table,
    operations,
    percent,
    precision_name,
    prefix_for,
    quantity,
    scaled,
    significant,
    times,
)

_BEGIN = re.compile(r"<!-- gemm_report:begin (.*?) -->")
_RUNG = re.compile(r"rung (\w+)")
_MAIN = "f32"


def filled(readme: Path, records: Sequence[Record], pictures_folder: Path) -> tuple[str, list[str]]:
    """`readme` with everything between its markers made from the records, the first one first.

    And the kernels in it of which the records have no row.
    """
    text = read_text(readme)
    described = _described(readme, text)
    rows = [row for each in records for row in each.rows]
    there = {row.kernel for row in rows if row.part is Part.LADDER and row.is_ours}
    known = [k.name for each in records for k in each.kernels if k.name in there]
    if missing := [name for name in dict.fromkeys(known) if name not in described]:
        raise InputError(
            f"{readme}: does not mention {', '.join(missing)}: each needs the lines "
            "'<!-- gemm_report:begin rung NAME -->' and '<!-- gemm_report:end rung NAME -->'"
        )
    main = records[0]
    view = overview(main, link(readme, main.path), link(readme, pictures_folder))
    text = between_markers(readme, text, "overview", view)
    for name in described:
        text = between_markers(readme, text, f"rung {name}", figures(records, name, readme))
    return text, [name for name in described if name not in known]


def pictures(record: Record) -> list[str]:
    """The figures of the ladder that a record has."""
    return [name for name in ("ladder", "ladder_roofline") if name in drawings(record)]


def overview(record: Record, record_link: str, folder: str) -> str:
    """The ladder at one glance."""
    found = rungs(record, _MAIN) + [Rung(row, None) for row in libraries(record, _MAIN)]
    if not found:
        return "Not in the record."
    prefix = prefix_for(rate(rung.row) for rung in found)
    ideas = {kernel.name: kernel.idea for kernel in record.kernels}
    size = found[0].row.size
    head = ["kernel", "idea", f"{prefix}FLOP/s", "step", "% of peak", "% of library"]
    cells = []
    for rung in found:
        row = rung.row
        name = f"[{row.label}](#{row.kernel.lower()})" if row.is_ours else row.label
        speed = as_text(significant(scaled(rate(row), prefix)) + mark(row))
        shares = percent(row.of_roof_nominal), percent(row.of_library)
        idea = ideas.get(row.kernel, "")
        cells.append([name, idea, speed, times(rung.step), *shares, _limiter(record, row)])
    parts = [
        picture(record, folder, pictures(record)),
        markdown_table([*head, "modelled limiter"], cells),
        f"{precision_name(_MAIN)} at {size}. "
        "Step: speed-up over the fastest variant of the previous rung.",
        caption(record, record_link),
        *map(as_text, notes(rung.row for rung in found)),
    ]
    return "\n\n".join(filter(None, parts))


def figures(records: Sequence[Record], kernel: str, readme: Path) -> str:
    """A line for each variant and precision of a kernel, from the first record that has it."""
    for record in records:
        origin = f" · {record.device.name} · [record]({link(readme, record.path)})"
        lines = [
            _line(record, rung) + ("" if record is records[0] else origin)
            for precision in precisions(drawn_rows(record))
            for rung in rungs(record, precision)
            if rung.row.kernel == kernel
        ]
        if lines:
            return "\n".join(f"- {line}" for line in lines)
    return "Not timed at the ladder's size."


def _described(readme: Path, text: str) -> list[str]:
    names = []
    for part in _BEGIN.findall(text):
        rung = _RUNG.fullmatch(part)
        if rung:
            names.append(rung[1])
        elif part != "overview":
            raise InputError(
                f"{readme}: has an unknown marker 'begin {part}': it knows 'overview' and "
                "'rung NAME'"
            )
    return names


def _line(record: Record, rung: Rung) -> str:
    row = rung.row
    facts = [
        f"{precision_name(row.precision)} at {row.size}"
        f"{f', {row.settings}' if row.parameters else ''}: "
        f"**{quantity(rate(row), operations(row.precision))}**" + as_text(mark(row)),
        rung.below and f"{times(rung.step)} of {rung.below.label}",
        row.of_roof_nominal and f"{percent(row.of_roof_nominal)} of peak",
        row.of_library and f"{percent(row.of_library)} of {row.library or 'the library'}",
        _model(record, row),
    ]
    return " · ".join(fact for fact in facts if fact)


def _model(record: Record, row: Row) -> str | None:
    """Arithmetic intensity in each memory, and the lowest limit."""
    levels = [
        f"{significant(limit.flop_per_byte)} of {limit.resource}"
        for limit in sorted(limits(record, row), key=lambda limit: limit.flop_per_byte or 0)
        if limit.flop_per_byte
    ]
    said = f"modelled FLOP/byte: {', '.join(levels)}; limiter: {_limiter(record, row)}"
    return said if levels else None


def _limiter(record: Record, row: Row) -> str:
    """The lowest modelled limit, and why a kernel exceeds it where it does."""
    lowest = next(iter(limits(record, row)), None)
    if lowest is None:
        return "-"
    roof = f"{lowest.resource}, {quantity(lowest.flop_per_second, 'FLOP/s')}"
    if rate(row) <= lowest.flop_per_second:
        return roof
    cached = lowest.resource in ("L2", "DRAM")
    return f"{roof}, exceeded because " + (
        "a cache helps" if cached else "the model counts too much"
    )
