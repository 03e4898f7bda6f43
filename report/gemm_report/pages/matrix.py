"""The front of a page: share of the peak and speed relative to the library, and every problem."""

from collections.abc import Mapping, Sequence

from gemm_report.figures.headline import cells, clock_text, sizes
from gemm_report.pages.render import Cell, Column, Html, rendered, table, tag
from gemm_report.record import Identity, Record, Row, rate
from gemm_report.standing import Pair, Standing, bound, standings
from gemm_report.text import operations, precision_name, prefix_for, quantity, scaled, significant

BOUND = (
    "launch: shorter than 10 µs. DRAM: over 60 % of its bandwidth where that is the roof. "
    "tiles: fewer blocks than SMs. A limit on the clocks. Else the lowest modelled limit: "
    "L2, shared memory, issue slots or tensor cores."
)
_FULL = 0.35  # a ratio so far from 1 has the full colour
_MOST = 0.45  # of the colour, on which letters are legible
Anchors = Mapping[Identity, str]


def matrix(record: Record, anchors: Anchors, files: Sequence[str] = ()) -> Html:
    """A line for each precision; nothing where nothing of ours was timed.

    `files` are the endings of headline's, next to the page.
    """
    found = standings(record)
    if not found:
        return Html("")
    columns = sizes(found)
    heads = [head for head, _, _ in cells(found[0], columns)]
    lines = [_line(record, each, columns, anchors) for each in found]
    compared = any(each.compared for each in found)
    return rendered("matrix", heads=heads, lines=lines, compared=compared, files=files)


def _line(
    record: Record, each: Standing, columns: list[str], anchors: Anchors
) -> dict[str, object]:
    row, library = each.lead.ours, each.lead.library
    peak = (each.peak.flop_per_second or 0) if each.peak else 0
    scale = peak or max(rate(row), rate(library) if library else 0)
    mark = rate(library) / scale if library and each.compared else None
    held = each.peak_at_clock / scale if peak and each.peak_at_clock else 0
    speed = quantity(rate(row), operations(row.precision))
    title = f"{row.label}, {row.size}: {speed}"
    unit = operations(row.precision)
    title += f", {100 * rate(row) / peak:.1f} % of {quantity(peak, unit)}" if peak else ""
    title += f"; {library.label}: {quantity(rate(library), unit)}" if mark and library else ""
    return {
        **{"name": each.name, "size": row.size, "layout": each.layout},
        **{"share": rate(row) / scale, "held": min(held, 1), "mark": mark, "speed": speed},
        **{"title": title, "clock": clock_text(record, each.lead), "why_not": each.why_not},
        "cells": [_cell(*it, anchors) for it in cells(each, columns)] if each.compared else [],
    }


def _cell(head: str, pair: Pair | None, ratio: float | None, anchors: Anchors) -> dict[str, object]:
    found: dict[str, object] = {"head": head, "said": "-", "title": "", "link": None}
    if ratio is None:
        return found | {"verdict": "none", "strength": 0}
    strength = _MOST * (0.35 + 0.65 * min(abs(ratio - 1) / _FULL, 1))
    found |= {"said": f"{ratio:.2f}", "strength": f"{100 * strength:.0f}"}
    if pair is None:
        return found | {"verdict": "tie", "title": "geometric mean over all problems"}
    low, high = pair.interval
    title = f"{pair.ours.label}, {pair.ours.size}: {ratio:.3f} ({low:.3f} to {high:.3f}) of "
    title += pair.library.label if pair.library else pair.opponent
    title += ", in doubt" if pair.in_doubt else ""
    link = anchors.get(pair.ours.identity)
    return found | {"verdict": pair.verdict, "title": title, "link": link}


def problems(record: Record, anchors: Anchors) -> Html:
    """Our fastest kernel against the fastest library on every problem, by precision and size."""
    found = standings(record)
    pairs = [pair for each in found for pair in each.pairs]
    prefix = prefix_for(rate(pair.ours) for pair in pairs)
    slow = {each.precision for each in found if each.slow_library}
    columns = [
        Column("problem"),
        Column("precision", filtered=True),
        Column(f"ours, {prefix}FLOP/s", True, "The fastest of our kernels on this problem."),
        Column("our kernel"),
        Column(f"library, {prefix}FLOP/s", True, "The fastest library on this problem."),
        Column("library"),
        Column("ratio", True, "Our speed over that of the library, with its interval."),
        Column("% of peak", True, "The nominal peak: the lower of arithmetic and DRAM."),
        Column("bound by", filtered=True, hint=BOUND),
    ]
    lines: list[list[Cell | str]] = []
    for pair in pairs:
        row, library, ratio, theirs = pair.ours, pair.library, pair.ratio, pair.library_rate
        low, high = pair.interval
        suffix = " (slow layout)" if row.precision in slow else ""
        link = tag("a", row.label, href=f"#{anchors[row.identity]}")
        about = f"{ratio:.2f}" + ("" if suffix else f" ({low:.2f}-{high:.2f})") if ratio else "-"
        of_peak = row.of_roof_nominal
        lines.append(
            [
                row.size,
                Cell(precision_name(row.precision), choices=(row.precision,)),
                _rate(row, rate(row), prefix),
                Cell(link),
                _rate(library, theirs, prefix),
                (library.label if library else pair.opponent or "-") + suffix,
                Cell(about, ratio),
                Cell(f"{100 * of_peak:.1f}", of_peak, bar=of_peak) if of_peak else "-",
                bound(record, row),
            ]
        )
    return table(columns, lines, "problems") if lines else Html("")


def _rate(row: Row | None, value: float | None, prefix: str) -> Cell:
    star = " *" if row and bool(row.doubts) else ""
    return Cell(significant(scaled(value, prefix)) + star, value) if value else Cell("-")
