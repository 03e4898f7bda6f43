"""A comparison as text for a terminal, as Markdown for a pull request, and as JSON."""

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from gemm_report.comparison.conditions import differences, incomplete
from gemm_report.comparison.rule import ENOUGH, ERROR_RATE, POWER, WIDEST, Verdict
from gemm_report.comparison.run import Run
from gemm_report.comparison.verdict import Case, Comparison, Ending, common_lines
from gemm_report.grouping import grouped
from gemm_report.record import Record
from gemm_report.terminal import Tone, printable, toned
from gemm_report.text import change, columns, markdown_table, precision_name, quantity

SCHEMA = 2

# GitHub refuses a comment of 65,536 characters; some take two in its count.
_LARGEST_COMMENT = 60_000
_LONGEST_NAME = 120
_MOST_NAMED = 20

_TONES = {
    Verdict.SLOWER: Tone.BAD,
    Verdict.CLOCK: Tone.WARN,
    Verdict.FASTER: Tone.GOOD,
    Verdict.AMBIGUOUS: Tone.WARN,
    Verdict.SAME: Tone.NONE,
}
_WORDS = {
    Ending.OK: "no regression",
    Ending.REGRESSION: "REGRESSION",
    Ending.NOT_ENOUGH: "NOT ENOUGH DATA",
    Ending.WRONG: "WRONG RESULTS",
    Ending.MISSING: "CASES MISSING",
}
_HEAD = ("verdict", "case", "BASE", "NEW", "change", "interval", "in cycles", "remark")


def summary_line(comparison: Comparison) -> str:
    """The whole in one line, which a log may end with; its first words are the exit code's."""
    counts = {
        "wrong": len(comparison.failed),
        **{verdict.value: comparison.count(verdict) for verdict in Verdict},
        "missing": len(comparison.missing),
    }
    shown = ("slower", "ambiguous", "faster", "same")
    told = [f"{count} {what}" for what, count in counts.items() if count or what in shown]
    cases = len({*comparison.failed, *comparison.missing, *(c.name for c in comparison.cases)})
    return f"{_WORDS[comparison.ending]}: of {cases} cases {', '.join(told)}"


def heading(comparison: Comparison) -> str:
    """What the exit code says, as the title of a page."""
    word = _WORDS[comparison.ending].capitalize()
    return f"{word}: exit code {int(comparison.ending)}"


def conditions_lines(comparison: Comparison) -> list[str]:
    """What differs between the sides, whether or not that was asked for."""
    return [*across_lines(comparison), *differences(*_records(comparison))]


def across_lines(comparison: Comparison) -> list[str]:
    """What differs between the sides and was asked for; it comes right behind the verdict."""
    return [f"across {name}: {told}" for name, told in comparison.across.items()]


def _records(comparison: Comparison) -> list[list[Record]]:
    sides = comparison.base, comparison.new
    return [[run.record for run in side] for side in sides]


def power_line(comparison: Comparison) -> str:
    """What the comparison could have seen, and what is missing."""
    cases = comparison.cases
    if not cases:
        return "detectable: nothing, since no case has a time on both sides"
    told = (
        f"detectable: with {100 * POWER:.0f} % probability, a slowdown of "
        f"{_percent(comparison.detectable)} in any of 95 % of the cases"
    )
    if comparison.unseen:
        told += f"; {_percent(comparison.wanted)} might pass unseen in {comparison.unseen}"
    if comparison.processes < ENOUGH:
        told += f": {ENOUGH} runs per side are needed (tools/gate REF)"
    return told


def speeds_lines(comparison: Comparison) -> list[str]:
    """What two speeds leave open."""
    if not comparison.two_speeds:
        return []
    told = f"{comparison.two_speeds} cases ran at two speeds in equal processes"
    if by_chance := comparison.judgement.by_chance:
        told += (
            f": {by_chance} changed {'case' if by_chance == 1 else 'cases'} of up to "
            f"{_percent(math.expm1(WIDEST))} may be no more than that, and would be ambiguous "
            f"({comparison.settled_by} runs per side settle it)"
        )
    return [told]


def _percent(slowdown: float) -> str:
    if slowdown < 1:
        return f"{100 * max(slowdown, 0.0):.2g} %"
    return f"factor {1 + slowdown:.2g}" if slowdown < 9 else "more than factor 10"


def means(comparison: Comparison) -> list[tuple[str, int, float]]:
    """Of each precision: how many cases, and the geometric mean of their ratios."""
    of = grouped(comparison.cases, lambda case: precision_name(case.new_row.precision))
    ordered = sorted(of.items(), key=lambda group: -len(group[1]))
    return [(n, len(its), geometric_mean(case.of_means for case in its)) for n, its in ordered]


def remarks(comparison: Comparison, conditions: bool = True) -> list[str]:
    """What a reader has to know besides the cases, a line for each; without what came before."""
    return [
        *common_lines(comparison),
        *speeds_lines(comparison),
        *(differences(*_records(comparison)) if conditions else []),
        *incomplete(*_records(comparison)),
        *_named("no longer timed", comparison.missing),
        *_named("only in NEW", comparison.added),
    ]


def console(comparison: Comparison, every: bool = False, width: int = 80) -> str:
    """The verdict, then the worst; cases that are the same are counted, or all told."""
    shown = shown_cases(comparison, every)
    if not every:  # those that may be nothing end the list
        sure = [case for case in shown if case.verdict is not Verdict.AMBIGUOUS]
        shown = sure + [case for case in shown if case not in sure][:_MOST_NAMED]
    first, *lines = _wrapped(summary_line(comparison), width)
    verdict, colon, counts = first.partition(":")
    tone = {Ending.OK: Tone.GOOD, Ending.NOT_ENOUGH: Tone.WARN}.get(comparison.ending, Tone.BAD)
    lines = [f"{toned(verdict, tone)}{colon}{counts}", *lines]
    for line in (*across_lines(comparison), power_line(comparison)):
        lines += _wrapped(line, width)
    told = [f"{name} {change(mean)} ({count} cases)" for name, count, mean in means(comparison)]
    sides = (f"BASE  {side(comparison.base)}", f"NEW   {side(comparison.new)}")
    for line in (*sides, f"Geometric mean of the times: {', '.join(told)}" if told else ""):
        lines += _wrapped(line, width, 6)
    lines.append("")
    rows = [_cells(case) for case in shown]
    if rows:
        # What a narrow terminal has no room for is in --json.
        order = [0, 4, 5, *((6, 2, 3) if width >= 120 else ())]
        cells = [[printable(row[i]) for i in order] for row in (_HEAD, *rows)]
        table = columns(cells, left=1).splitlines()
        room = max(20, width - len(table[0]) - 2)
        names = [_fitted(printable(row[1]), room) for row in (_HEAD, *rows)]
        lines.append(f"{table[0]}  {names[0]}")
        for case, line, name in zip(shown, table[1:], names[1:], strict=True):
            word = case.verdict.value
            lines.append(f"{toned(word, _TONES[case.verdict])}{line[len(word) :]}  {name}")
            if case.suspect:
                lines.append(f"           {_fitted(printable(case.suspect), width - 11)}")
        for needs, count in Counter(case.needs for case in shown if case.needs).most_common(3):
            lines += _wrapped(f"{count} of these need {needs}", width)
    for name, why in comparison.failed.items():
        lines += _wrapped(f"wrong now  {name}: {why}", width, 11)
    for line in (*(f"{line} (--all names them)" for line in hidden_lines(comparison, shown)), ""):
        lines += _wrapped(line, width)
    for line in remarks(comparison):
        lines += _wrapped(line, width)
    return "\n".join(lines).rstrip()


def _wrapped(text: str, width: int, indent: int = 2) -> list[str]:
    return textwrap.wrap(printable(text), width, subsequent_indent=" " * indent) or [""]


def _fitted(text: str, width: int) -> str:
    """Its beginning and its end."""
    left = (width - 1) // 2
    return text if len(text) <= width else f"{text[:left]}…{text[left + 1 - width :]}"


def markdown(comparison: Comparison) -> str:
    """A comment that GitHub takes, whatever the number of cases and whatever they are called."""
    parts = [
        "\n".join(
            [
                f"### {_markup(summary_line(comparison))}",
                *(f"**{_markup(line)}**  " for line in conditions_lines(comparison)),
            ]
        ),
        _markup(power_line(comparison)),
        f"BASE {_markup(side(comparison.base))}  \nNEW {_markup(side(comparison.new))}",
    ]
    if comparison.failed:
        items = [f"- {_code(name)}: {_code(why)}" for name, why in comparison.failed.items()]
        more = _more(len(items) - _MOST_NAMED)
        parts += ["**The result is wrong now:**", "\n".join(items[:_MOST_NAMED] + more)]
    after = "\n".join(f"- {_markup(line)}" for line in remarks(comparison, conditions=False))
    room = _LARGEST_COMMENT - sum(map(_size, parts)) - _size(after)
    shown = shown_cases(comparison, every=False)
    rows = []
    for case in shown:
        cells = _cells(case)
        row = [*cells[:1], _code(cells[1]), *map(_markup, cells[2:])]
        room -= _size(markdown_table(row, []))
        if room < 0:
            break
        rows.append(row)
    if rows:
        parts.append(markdown_table(_HEAD, rows))
    counted = [*hidden_lines(comparison, shown), *_more(len(shown) - len(rows))]
    parts.append("\n".join(f"- {_markup(line)}" for line in counted))
    return "\n\n".join(filter(None, [*parts, after])) + "\n"


def as_json(comparison: Comparison, ending: int | None = None) -> str:
    """All of it. SI units; ratios are NEW over BASE; what is not known is null."""
    found = comparison.detectable
    untimed = {
        key: [{"name": name, "reason": why} for name, why in getattr(comparison, key).items()]
        for key in ("failed", "missing")
    }
    document = {
        "schema": SCHEMA,
        "ending": comparison.ending if ending is None else ending,
        "regression": comparison.regressed,
        "threshold": comparison.threshold,
        "confidence": 1 - ERROR_RATE,
        "detectable": found if comparison.cases else None,
        "unseen": comparison.unseen,
        "base": [_run(run) for run in comparison.base],
        "new": [_run(run) for run in comparison.new],
        "counts": {verdict.value: comparison.count(verdict) for verdict in Verdict},
        "cases": [_case(case) for case in comparison.cases],
        **untimed,
        "added": list(comparison.added),
        "across": dict(comparison.across),
        "remarks": remarks(comparison),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def shown_cases(comparison: Comparison, every: bool) -> Sequence[Case]:
    """Not those that are the same, nor those that only might be other than that."""
    if every:
        return comparison.cases
    least = math.log1p(comparison.threshold)
    differing = (case for case in comparison.cases if case.verdict is not Verdict.SAME)
    return [case for case in differing if abs(case.change.d) > least]


def hidden_lines(comparison: Comparison, shown: Sequence[Case]) -> list[str]:
    """How many are not told by name; a line for each verdict."""
    small = f"that changed by less than {100 * comparison.threshold:g} % so far"
    told = {Verdict.AMBIGUOUS: f"ambiguous cases {small}", Verdict.SAME: "cases are the same"}
    left = Counter(c.verdict for c in comparison.cases) - Counter(c.verdict for c in shown)
    return [f"{left[verdict]} {words}" for verdict, words in told.items() if left[verdict]]


def _cells(case: Case) -> list[str]:
    needs = case.needs and f"needs {case.needs}"
    remark = "; ".join(filter(None, (case.suspect, needs)))
    return [
        case.verdict.value,
        _short(case.name),
        quantity(case.base_seconds, "s"),
        quantity(case.new_seconds, "s"),
        change(case.ratio),
        " to ".join(map(change, case.interval)),
        change(case.cycles) if case.cycles else "-",
        remark,
    ]


def side(runs: Sequence[Run]) -> str:
    """Which run, or how many of them."""
    first = runs[0].record
    what = first.path.name if len(runs) == 1 else f"{len(runs)} processes"
    commits = ", ".join(dict.fromkeys(run.record.commit for run in runs))
    return printable(f"{what}, commit {commits}, {first.device.name}")


def _named(what: str, cases: Sequence[str] | Mapping[str, str]) -> list[str]:
    """One line for all of them, with why where that is known."""
    names = [
        f"{_short(name)} ({_short(cases[name])})" if isinstance(cases, Mapping) else _short(name)
        for name in cases
    ]
    rest = len(names) - _MOST_NAMED
    told = f"{what}: {', '.join(names[:_MOST_NAMED])}{f' and {rest} more' if rest > 0 else ''}"
    return [told] if names else []


def _more(count: int) -> list[str]:
    return [f"and {count} more: the JSON has all of them"] if count > 0 else []


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _code(text: str) -> str:
    """As code, in which GitHub notifies no user."""
    return f"<code>{_entities(printable(_short(text)))}</code>"


def _markup(text: str) -> str:
    """As text. A mention is found after entities are read: what follows its sign must not join."""
    return _entities(printable(text)).replace("&#64;", "@\u200b")


def _entities(text: str) -> str:
    """Neither HTML nor Markdown nor the end of a table's cell is left in it."""
    return re.sub(r"[^\w /:.,;()+=%×…-]|_", lambda found: f"&#{ord(found[0])};", text)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace")) + 2


def _run(run: Run) -> dict[str, Any]:
    record = run.record
    return {
        "path": str(record.path),
        "device": record.device.name,
        "commit": record.commit,
        "date": record.date,
        "driver": record.device.driver,
    }


def _case(case: Case) -> dict[str, Any]:
    row = case.new_row
    of_row = ("kernel", "parameters", "precision", "layout", "m", "n", "k", "throttled_share")
    low, high = case.interval
    return {
        "name": case.name,
        "verdict": case.verdict.value,
        **{key: getattr(case, key) for key in ("base_seconds", "new_seconds", "cycles")},
        "ratio": case.of_means,
        "time": {"ratio": case.ratio, "low": low, "high": high},
        "sd": case.change.sd,
        **{key: getattr(case, key) for key in ("detectable", "suspect", "needs")},
        **{key: getattr(row, key) for key in of_row},
    }
