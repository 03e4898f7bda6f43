"""A comparison as a page: the verdict, the intervals of all cases, and what differs."""

import math
from collections.abc import Sequence

from gemm_report.comparison.output import (
    conditions_lines,
    heading,
    hidden_lines,
    means,
    power_line,
    remarks,
    shown_cases,
    side,
    summary_line,
)
from gemm_report.comparison.rule import Verdict
from gemm_report.comparison.verdict import Case, Comparison
from gemm_report.pages.render import Cell, Column, Html, Line, chip, document, joined, table, tag
from gemm_report.text import change, precision_name, quantity

_WIDTH, _HEIGHT, _EDGE = 240, 16, 6
_SIGNIFICANT = (Verdict.SLOWER, Verdict.FASTER)
_TONES = {"slower": "bad", "clock": "warn", "ambiguous": "warn"}


def page(comparison: Comparison) -> str:
    """One file, which loads nothing."""
    said, power = summary_line(comparison), power_line(comparison)
    counts = [(verdict.value, comparison.count(verdict)) for verdict in Verdict]
    significant = sum(comparison.count(verdict) for verdict in _SIGNIFICANT)
    counts.insert(0, ("significant only", significant))
    chips = [chip(name, n, "verdict", _TONES.get(name)) for name, n in counts]
    wrong = [tag("li", tag("code", name), ": ", why) for name, why in comparison.failed.items()]
    averages = [f"{name}: {change(mean)} ({n} cases)" for name, n, mean in means(comparison)]
    told = [f"geometric mean of the times, {line}" for line in averages]
    told += remarks(comparison, conditions=False)
    changed = shown_cases(comparison, every=False)
    rest = [case for case in comparison.cases if case not in changed]
    hidden = "; ".join(hidden_lines(comparison, changed))
    folded = tag("details", tag("summary", hidden), _cases(comparison, rest), class_="folded")
    parts = [
        ("wrong", "Wrong now", tag("ul", *wrong) if wrong else Html("")),
        ("rows", "Changed", _cases(comparison, changed) if changed else Html("")),
        ("others", "Others", folded if rest else Html("")),
        ("remarks", "Remarks", tag("ul", *(tag("li", line) for line in told))),
    ]
    body = [
        tag(
            "header",
            tag("p", f"{side(comparison.base)} → {side(comparison.new)}", class_="quiet"),
            tag("h1", heading(comparison)),
            *(tag("p", line, class_="badge warn differs") for line in conditions_lines(comparison)),
            tag("p", f"{said[0].upper()}{said[1:]}.", class_="answer"),
            tag("p", f"{power[0].upper()}{power[1:]}.", class_="quiet"),
            tag("nav", *chips, class_="chips", aria_label="Cases by verdict"),
        ),
        *(tag("section", tag("h2", title), it, id=name) for name, title, it in parts if it),
    ]
    title = f"{heading(comparison)}: GEMM benchmark"
    return document(title, joined(body, "\n"))


def _cases(comparison: Comparison, of: Sequence[Case]) -> Html:
    """Ids are those of all cases, of which there are two tables."""
    cases = sorted(of, key=lambda case: -case.change.d)
    places = {case.name: i for i, case in enumerate(comparison.cases)}
    limit = _limit(cases, comparison.threshold)
    columns = [
        Column("case"),
        Column("precision", filtered=True),
        Column("verdict", filtered=True),
        Column(f"±{100 * math.expm1(limit):.3g} %", hint="change of the time with its interval"),
        Column("change", True, "time of NEW over that of BASE"),
        Column("interval", True, "of all cases together with 95 %"),
        Column("in cycles", True, "change that is left when the SM clock is taken out"),
        *(Column("BASE", True), Column("NEW", True)),
    ]
    lines: list[Line] = []
    for case in cases:
        name, cycles = case.verdict.value, case.cycles
        significant = ("significant only",) if case.verdict in _SIGNIFICANT else ()
        row = case.new_row
        needs = case.needs and f"needs {case.needs}"
        cells = [
            case.name,
            Cell(precision_name(row.precision), choices=(row.precision,)),
            Cell(tag("span", name, class_=f"badge {_TONES.get(name, '')}".strip()),
                 choices=(name, *significant)),
            _interval(case, limit, comparison.threshold),
            Cell(change(case.ratio), case.ratio),
            " to ".join(map(change, case.interval)),
            Cell(change(cycles), cycles) if cycles else "-",
            *(Cell(quantity(s, "s"), s) for s in (case.base_seconds, case.new_seconds)),
        ]  # fmt: skip
        remarks = [tag("p", remark) for remark in (case.suspect, needs) if remark]
        lines.append(
            Line(cells, joined(remarks) if remarks else None, f"case-{places[case.name]}", name)
        )
    return table(columns, lines, "cases")


def _limit(cases: Sequence[Case], threshold: float) -> float:
    """The largest logarithm that is drawn: of most intervals, and of every change."""
    reaches = sorted(max(abs(math.log(end)) for end in case.interval) for case in cases)
    most = max((abs(case.change.d) for case in cases), default=0.0)
    usual = reaches[len(reaches) // 2] if reaches else 0.0
    return min(max(3 * math.log1p(threshold), usual, 1.2 * most), math.log(10))


def _interval(case: Case, limit: float, threshold: float) -> Html:
    def x(ratio: float) -> float:
        share = max(-1.0, min(1.0, math.log(ratio) / limit))
        return round(_WIDTH / 2 + share * (_WIDTH / 2 - _EDGE), 1)

    within, middle = x(1 + threshold), _HEIGHT // 2
    low, high = map(x, case.interval)
    line = f"M{_WIDTH // 2} 0v{_HEIGHT}M{low} {middle}H{high}"
    box = tag("rect", x=_WIDTH - within, width=round(2 * within - _WIDTH, 1), height=_HEIGHT)
    parts = (box, tag("path", d=line), tag("circle", cx=x(case.ratio), cy=middle, r=3))
    size = f"0 0 {_WIDTH} {_HEIGHT}"
    return tag("svg", *parts, class_="forest", viewBox=size, aria_hidden="true")
