"""The generated regions of README.md, docs/results.md and kernels/README.md.

Their prose is written by hand.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from gemm_report.document import InputError
from gemm_report.figures.write import drawings
from gemm_report.notes import THROTTLED, mark, method_line, missing_rows, notes, run_line
from gemm_report.record import Part, Record, Row, rate
from gemm_report.rows import (
    Rung,
    Standing,
    best_of,
    drawn_rows,
    headlines,
    libraries,
    limits,
    precisions,
    rungs,
    standings,
)
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

# Figures, where the record has them.
PICTURES, LADDER = ("headline", "roofline"), ("ladder_f32", "hierarchy")
_BEGIN = re.compile(r"<!-- gemm_report:begin (.*?) -->")
_RUNG = re.compile(r"rung (\w+)")
_MAIN = "f32"


def front_page(readme: Path, record: Record, pictures: Path) -> str:
    """The text of `readme` with its two regions, table and picture, made from `record`."""
    text = read_text(readme)
    text = between_markers(readme, text, "table", table(record, link(readme, record.path)))
    return between_markers(readme, text, "picture", picture(record, link(readme, pictures)))


def results(page: Path, record: Record) -> str:
    """The text of `page` with its region, kernels, made from `record`."""
    content = kernels_table(record, link(page, record.path))
    return between_markers(page, read_text(page), "kernels", content)


def table(record: Record, link: str) -> str:
    """A line for each precision: our fastest kernel next to the fastest library."""
    found = standings(record)
    head = ["precision", "layout", "sizes", "fastest of ours", "library there"]
    head += ["ours / library, geometric mean", "worst size"]
    remarks = [
        "Library there: the fastest library on the same problem. The mean is over all sizes that "
        "both have, with the fastest of our kernels at each.",
        " · ".join([record.device.name, run_line(record), f"[record]({link})"]),
        *(said for said in notes(each.best for each in found) if said.startswith(THROTTLED)),
        *_unfinished(record),
    ]
    return "\n\n".join([markdown_table(head, map(_standing, found)), *remarks])


def _standing(each: Standing) -> list[str]:
    best, worst = each.best, each.worst
    unit = operations(best.precision)
    held = f" {THROTTLED}" if best.throttled else ""
    sizes = list(dict.fromkeys(row.size for row in (each.rows[0], each.rows[-1])))
    library = each.library and f"{quantity(each.library, unit)}, {best.library}"
    return [
        precision_name(best.precision),
        best.layout,
        " to ".join(sizes),
        f"{quantity(rate(best), unit)}{held} at {best.size}, {each.name}",
        library or "not timed",
        percent(each.of_library),
        f"{worst.size}: {100 * (worst.of_library or 0):.0f} %" if worst else "-",
    ]


def kernels_table(record: Record, link: str) -> str:
    """Each kernel by its fastest variant at its largest cube: the ladder at one glance."""
    rows = best_of(
        headlines(drawn_rows(record)),
        lambda row: (row.precision, row.kernel),
        lambda row: (row.volume, rate(row)),
    )
    ideas = {kernel.name: kernel.idea for kernel in record.kernels}
    has_clocks = any(row.of_roof_at_clock for row in rows)
    at_clock = ["% of peak at actual clock"] if has_clocks else []
    head = ["kernel", "idea", "precision", "size", "throughput", "% of peak", *at_clock]
    cells = []
    for row in rows:
        speed = as_text(quantity(rate(row), operations(row.precision)) + mark(row))
        shares = [row.of_roof_nominal, *([row.of_roof_at_clock] if has_clocks else [])]
        what = [row.label, ideas.get(row.kernel, ""), precision_name(row.precision), row.size]
        cells.append([*what, speed, *map(percent, (*shares, row.of_library))])
    missing = missing_rows(record)
    remarks = [
        caption(record, link),
        *map(as_text, notes(rows)),
        *_unfinished(record),
        *([f"Not timed: {missing}."] if missing else []),
    ]
    return "\n\n".join([markdown_table([*head, "% of library"], cells), *remarks])


def picture(record: Record, folder: str, names: Sequence[str] = PICTURES) -> str:
    """The figures, as links."""
    found = drawings(record)
    captions = {name: found[name].caption.removesuffix(".") for name in names if name in found}
    return "\n\n".join(
        f"![{caption} ({record.device.name})]({folder}/{name}.png)"
        for name, caption in captions.items()
    )


def _unfinished(record: Record) -> list[str]:
    return [] if record.complete else ["The run was not completed."]


def caption(record: Record, link: str) -> str:
    """Where and how the numbers came about."""
    facts = [record.device.name, run_line(record), method_line(record), record.conformance]
    return " · ".join([*filter(None, facts), f"[record]({link})"])


def read_text(readme: Path) -> str:
    """What the page holds now."""
    try:
        return readme.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{readme}: cannot be read ({type(error).__name__})") from None


def between_markers(readme: Path, text: str, part: str, content: str) -> str:
    """`text` with `content` in the place that its two lines `part` mark."""
    begin, end = (f"<!-- gemm_report:{edge} {part} -->" for edge in ("begin", "end"))
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise InputError(f"{readme}: needs one line '{begin}' and after it one line '{end}'")
    before, _, rest = text.partition(begin)
    content = content.replace("<", "&lt;")  # names that look like tags stay text
    return f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"


def as_text(text: str) -> str:
    """Without what Markdown would read as emphasis."""
    return text.replace("*", "\\*")


def link(readme: Path, target: Path) -> str:
    """From one file to another."""
    path = Path(os.path.relpath(target, readme.parent)).as_posix()
    return quote(path, errors="surrogateescape")


def kernels_page(readme: Path, records: Sequence[Record], folder: Path) -> tuple[str, list[str]]:
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
    view = overview(main, link(readme, main.path), link(readme, folder))
    text = between_markers(readme, text, "overview", view)
    for name in described:
        text = between_markers(readme, text, f"rung {name}", rung_lines(records, name, readme))
    return text, [name for name in described if name not in known]


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
        picture(record, folder, LADDER),
        markdown_table([*head, "modelled limiter"], cells),
        f"{precision_name(_MAIN)} at {size}. "
        "Step: speed-up over the fastest variant of the previous rung.",
        caption(record, record_link),
        *map(as_text, notes(rung.row for rung in found)),
    ]
    return "\n\n".join(filter(None, parts))


def rung_lines(records: Sequence[Record], kernel: str, readme: Path) -> str:
    """A line for each variant and precision of a kernel, from the first record that has it."""
    for record in records:
        origin = f" · {record.device.name} · [record]({link(readme, record.path)})"
        lines = [
            _rung(record, rung) + ("" if record is records[0] else origin)
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


def _rung(record: Record, rung: Rung) -> str:
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
