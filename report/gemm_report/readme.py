"""The generated regions of README.md, docs/results.md and kernels/README.md.

Their prose is written by hand.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from gemm_report.document import InputError
from gemm_report.figures.write import drawings
from gemm_report.notes import THROTTLED, mark, method_line, missing_rows, notes, run_line
from gemm_report.record import Record, Row, rate
from gemm_report.rows import (
    Rung,
    Standing,
    best_of,
    drawn_rows,
    headlines,
    libraries,
    limits,
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


def kernels_page(readme: Path, record: Record, folder: Path) -> str:
    """`readme` with the overview between its markers made from the record."""
    view = overview(record, link(readme, record.path), link(readme, folder))
    return between_markers(readme, read_text(readme), "overview", view)


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
