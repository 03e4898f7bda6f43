"""The generated regions of README.md and kernels/README.md.

Their prose is written by hand.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from gemm_report.document import InputError
from gemm_report.figures.write import Drawing, drawings
from gemm_report.notes import IN_DOUBT, mark, notes, run_line
from gemm_report.record import Record, Row, rate
from gemm_report.rows import Rung, libraries, limits, rungs
from gemm_report.standing import Standing, standings
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

# Figures of kernels/README.md, where the record has them.
LADDER = ("ladder_f32", "hierarchy")
# Of a page of docs/: what the names of figures over tokens begin with.
_TOKENS = ("grouped", "batched", "rows")
_MAIN = "f32"


def renewed(
    page: Path, records: Sequence[Record], pictures: Path
) -> tuple[str, list[tuple[Record, str]]]:
    """The text of `page` with its regions made from `records`, and the figures that these show.

    A figure is of the first record that has it.
    """
    text, main, drawn = read_text(page), records[0], dict[str, tuple[Record, Drawing]]()
    for record in records:
        for name, drawing in drawings(record).items():
            drawn.setdefault(name, (record, drawing))
    ladders = [name for name in drawn if name.startswith("ladder")]
    front = [*ladders[:1], *(name for name in ("headline", "roofline") if name in drawn)]
    regions: dict[str, tuple[Sequence[str], list[str]]] = {
        "picture": (front[:1], []),
        "table": (front[1:], table(page, records)),
        "overview": (LADDER, overview(main, link(page, main.path))),
    }
    for part in _TOKENS:
        if of_part := [name for name in drawn if name.startswith(f"{part}_")]:
            sources = dict.fromkeys(_source(page, drawn[name][0]) for name in of_part)
            regions[part] = (of_part, list(sources))
    there = [part for part in regions if f" {part} -->" in text]
    if not there:
        begin = "' or '".join(f"<!-- gemm_report:begin {part} -->" for part in regions)
        raise InputError(f"{page}: has no region to renew: give it a line '{begin}'")
    shown: list[tuple[Record, str]] = []
    folder = link(page, pictures)
    for part in there:
        names, paragraphs = regions[part]
        its = {name: drawn[name] for name in names if name in drawn}
        found = [picture(of, folder, name, each.caption) for name, (of, each) in its.items()]
        text = between_markers(page, text, part, [*found, *paragraphs])
        shown += [(record, name) for name, (record, _) in its.items()]
    return text, shown


def _source(page: Path, record: Record, beside: str = "") -> str:
    """Where figures are from, without what is told beside it."""
    facts = [record.device.name, *run_line(record).split(" · ")]
    facts = [fact for fact in facts if fact not in beside.split(" · ")]
    return " · ".join([*facts, f"[record]({link(page, record.path)})"])


def table(page: Path, records: Sequence[Record]) -> list[str]:
    """A line for each precision and kind: our fastest kernel next to the fastest library."""
    by_record = [standings(record) for record in records]
    found = [each for its in by_record for each in its]
    head = ["precision", "layout", "size", "fastest of ours", "library there", "ours / library"]
    head += ["over all shapes", "lowest"]
    pairs = [pair for each in found for pair in (each.lead, each.worst) if pair]
    shown = [row for pair in pairs for row in (pair.ours, pair.library) if row]
    source = _source(page, records[0])
    others = [
        f"{', '.join(each.name for each in its)} ({_source(page, record, source)})"
        for record, its in zip(records[1:], by_record[1:], strict=True)
    ]
    remarks = [
        source + "".join(f"; {other}" for other in others),
        *map(as_text, notes(shown)),
    ]
    return [markdown_table(head, map(_standing, found)), *remarks]


def _standing(each: Standing) -> list[str]:
    """Ratios with as many digits as their intervals allow."""
    lead, worst = each.lead, each.worst
    row, library, unit = lead.ours, lead.library, operations(each.precision)
    speed = f"{quantity(rate(row), unit)}{mark(row)}, {row.label}"
    of_library = f"{mark(library)}, {library.label}" if library else f", {lead.opponent}"
    there = quantity(lead.library_rate, unit) + of_library if lead.library_rate else "-"
    low, high = lead.interval
    ratio = f"{lead.ratio:.2f} ({low:.2f} to {high:.2f})" if lead.ratio and each.compared else "-"
    mean = f"{each.mean:.2f}" if each.mean else each.why_not
    lowest = "-"
    if worst and worst.ratio:
        doubt = f" {IN_DOUBT}" if worst.in_doubt else ""
        lowest = f"{worst.ratio:.2f}{doubt} at {worst.ours.size}"
    cells = [
        each.name,
        each.layout,
        row.size,
        speed,
        there,
        ratio,
        mean,
        lowest,
    ]
    return [*map(as_text, cells)]


def picture(record: Record, folder: str, name: str, caption: str) -> Markup:
    """A figure of the record, on the paper that a reader's browser prefers."""
    return Markup(
        '<picture><source media="(prefers-color-scheme: dark)" srcset="{0}/{1}_dark.png">'
        '<img alt="{2} ({3})" src="{0}/{1}.png"></picture>'
    ).format(folder, name, caption.removesuffix("."), record.device.name)


def read_text(readme: Path) -> str:
    """What the page holds now."""
    try:
        return readme.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{readme}: cannot be read ({type(error).__name__})") from None


def between_markers(readme: Path, text: str, part: str, parts: Sequence[str]) -> str:
    """`text` with paragraphs in the place that its two lines `part` mark; only Markup has tags."""
    begin, end = (f"<!-- gemm_report:{edge} {part} -->" for edge in ("begin", "end"))
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise InputError(f"{readme}: needs one line '{begin}' and after it one line '{end}'")
    before, _, rest = text.partition(begin)
    # Names that look like tags stay text.
    escaped = (p if isinstance(p, Markup) else p.replace("<", "&lt;") for p in parts)
    content = "\n\n".join(filter(None, escaped))
    return f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"


def as_text(text: str) -> str:
    """Without what Markdown would read as emphasis."""
    return text.replace("*", "\\*")


def link(readme: Path, target: Path) -> str:
    """From one file to another."""
    path = Path(os.path.relpath(target, readme.parent)).as_posix()
    return quote(path, errors="surrogateescape")


def overview(record: Record, link: str) -> list[str]:
    """The ladder at one glance."""
    found = rungs(record, _MAIN) + [Rung(row, None) for row in libraries(record, _MAIN)]
    if not found:
        return ["Not in the record."]
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
    facts = [record.device.name, run_line(record), f"timed with {record.method.timer}"]
    return [
        markdown_table([*head, "modelled limiter"], cells),
        f"{precision_name(_MAIN)} at {size}. "
        "Step: speed-up over the fastest variant of the previous rung.",
        " · ".join([*facts, *filter(None, [record.conformance]), f"[record]({link})"]),
        *map(as_text, notes(rung.row for rung in found)),
    ]


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
