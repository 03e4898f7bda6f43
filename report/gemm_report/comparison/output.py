"""A comparison as text for a terminal, as Markdown for a pull request, and as JSON."""

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, geometric_mean, median, pstdev
from typing import Any

from gemm_report.comparison.conditions import CONDITIONS, MACHINE, differences, incomplete
from gemm_report.comparison.noise.between import GUESSED
from gemm_report.comparison.noise.levels import WIDEST
from gemm_report.comparison.run import Run
from gemm_report.comparison.verdict import (
    ENOUGH_PROCESSES,
    ERROR_RATE,
    POWER,
    Case,
    Comparison,
    Verdict,
    detectable,
    processes_for,
)
from gemm_report.grouping import grouped
from gemm_report.record import Record
from gemm_report.terminal import Tone, printable, toned
from gemm_report.writing.names import precision_name
from gemm_report.writing.quantity import change, quantity
from gemm_report.writing.tables import columns, markdown_table

SCHEMA = 1

# GitHub refuses a comment of 65,536 characters; some take two in its count.
_LARGEST_COMMENT = 60_000
_LONGEST_NAME = 120
_MOST_NAMED = 20

_TONES = {
    Verdict.SLOWER: Tone.BAD,
    Verdict.FASTER: Tone.GOOD,
    Verdict.AMBIGUOUS: Tone.WARN,
    Verdict.SAME: Tone.NONE,
}
_HEAD = ("verdict", "case", "BASE", "NEW", "change", "interval", "in cycles", "remark")


def summary_line(comparison: Comparison) -> str:
    """The whole in one line, which a log may end with."""
    missing = comparison.missing
    counts = [
        f"{len(comparison.failed)} wrong" if comparison.failed else "",
        *(f"{comparison.count(verdict)} {verdict.value}" for verdict in Verdict),
        f"{len(missing)} missing" if missing else "",
    ]
    doubt = missing or comparison.count(Verdict.AMBIGUOUS)
    verdict = "no regression seen" if doubt else "no regression"
    verdict = "REGRESSION" if comparison.regressed else verdict
    cases = len(comparison.cases) + len(comparison.failed) + len(missing)
    return f"{verdict}: of {cases} cases {', '.join(filter(None, counts))}"


def library_lines(comparison: Comparison) -> list[str]:
    """What comes before everything else: libraries of other releases, a line for each."""
    return [f"{name}: {told}" for name, told in comparison.changed_libraries.items()]


def machine_lines(comparison: Comparison) -> list[str]:
    """What comes right behind the verdict: another GPU, driver or power limit."""
    return differences(*_records(comparison), MACHINE)


def _records(comparison: Comparison) -> list[list[Record]]:
    sides = comparison.base, comparison.new
    return [[run.record for run in side if run.record] for side in sides]


def power_line(comparison: Comparison) -> str:
    """What the comparison could have seen, and what it excludes."""
    cases = comparison.cases
    if not cases:
        return "detectable: nothing, since no case has a time on both sides"
    groups = _by_precision(cases)
    each = ", ".join(f"{name} {_percent(detectable(of))}" for name, of in groups.items())
    highs = sorted(case.excluded for case in cases)
    share = f"{100 * POWER:.0f} %"
    most = highs[math.ceil(POWER * len(highs)) - 1]
    return (
        f"detectable: slowdowns of {_percent(comparison.detectable)} with {share} probability"
        f"{f' ({each})' if len(groups) > 1 else ''}; excluded: more than {_percent(most)} in "
        f"{share} of the cases, more than {_percent(highs[-1])} in all"
    )


def _percent(slowdown: float) -> str:
    return f"{100 * max(slowdown, 0.0):.2g} %" if slowdown < 1 else f"factor {1 + slowdown:.3g}"


def _by_precision(cases: Iterable[Case]) -> dict[str, list[Case]]:
    return grouped(
        cases, lambda c: precision_name(c.new_row.precision) if c.new_row else "all cases"
    )


def means(comparison: Comparison) -> list[tuple[str, int, float]]:
    """Of each precision: how many cases, and the geometric mean of their ratios."""
    ordered = sorted(_by_precision(comparison.cases).items(), key=lambda group: -len(group[1]))
    return [(name, len(its), geometric_mean(case.ratio for case in its)) for name, its in ordered]


def _other_library(comparison: Comparison) -> list[str]:
    names = comparison.other_library
    told = f"not compared, since the library is another (--across-libraries): {len(names)} cases"
    return [told] if names else []


def remarks(comparison: Comparison) -> list[str]:
    """What a reader has to know besides the cases, a line for each."""
    return [
        *([comparison.common_shift] if comparison.common_shift else []),
        *_few(comparison),
        *_noise(comparison),
        *_spreads(comparison),
        *_other_library(comparison),
        *differences(*_records(comparison), set(CONDITIONS).difference(MACHINE)),
        *incomplete(*_records(comparison)),
        *_named("wrong in NEW, and not timed in BASE", comparison.otherwise_failed),
        *_named("no longer timed", comparison.no_longer_timed),
        *_named("timed now, and not before", comparison.newly_timed),
        *_named("only in BASE", comparison.only_base),
        *_named("only in NEW", comparison.only_new),
    ]


def console(comparison: Comparison, every: bool = False, width: int = 80) -> str:
    """The verdict, then the worst; cases that are the same are counted, or all told."""
    shown = _shown(comparison, every)
    if not every:  # those that may be nothing end the list
        sure = [case for case in shown if case.verdict is not Verdict.AMBIGUOUS]
        shown = sure + [case for case in shown if case not in sure][:_MOST_NAMED]
    top = [line for told in library_lines(comparison) for line in _wrapped(told, width)]
    first, *lines = _wrapped(summary_line(comparison), width)
    verdict, colon, counts = first.partition(":")
    doubt = Tone.WARN if verdict.endswith("seen") else Tone.GOOD
    tone = Tone.BAD if comparison.regressed else doubt
    lines = [
        *(toned(line, Tone.WARN) for line in top),
        f"{toned(verdict, tone)}{colon}{counts}",
        *lines,
    ]
    for line in (*machine_lines(comparison), power_line(comparison)):
        lines += _wrapped(line, width)
    told = [f"{name} {change(mean)} ({count} cases)" for name, count, mean in means(comparison)]
    sides = (f"BASE  {_side(comparison.base)}", f"NEW   {_side(comparison.new)}")
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
    for line in (*(f"{line} (--all names them)" for line in _hidden(comparison, shown)), ""):
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
                *(f"**{_markup(line)}**  " for line in library_lines(comparison)),
            ]
        ),
        *(_markup(line) for line in (*machine_lines(comparison), power_line(comparison))),
        f"BASE {_markup(_side(comparison.base))}  \nNEW {_markup(_side(comparison.new))}",
    ]
    if comparison.failed:
        items = [f"- {_code(name)}: {_code(why)}" for name, why in comparison.failed.items()]
        shown, more = items[:_MOST_NAMED], _more(len(items) - _MOST_NAMED)
        parts += ["**The result is wrong now:**", "\n".join(shown + more)]
    after = "\n".join(f"- {_markup(line)}" for line in remarks(comparison))
    room = _LARGEST_COMMENT - sum(map(_size, parts)) - _size(after)
    shown = _shown(comparison, every=False)
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
    counted = [*_hidden(comparison, shown), *_more(len(shown) - len(rows))]
    parts.append("\n".join(f"- {_markup(line)}" for line in counted))
    return "\n\n".join(filter(None, [*parts, after])) + "\n"


def as_json(comparison: Comparison, ending: int = 0) -> str:
    """All of it. SI units; ratios are NEW over BASE; what is not known is null."""
    untimed = {
        key: [{"name": name, "reason": why} for name, why in getattr(comparison, key).items()]
        for key in ("failed", "otherwise_failed", "no_longer_timed")
    }
    document = {
        "schema": SCHEMA,
        "ending": ending,
        "detectable": comparison.detectable if comparison.cases else None,
        "excluded": max((case.excluded for case in comparison.cases), default=None),
        "regression": comparison.regressed,
        "threshold": comparison.threshold,
        "confidence": 1 - ERROR_RATE,
        "calibration": comparison.calibration and comparison.calibration.path,
        "base": [_run(run) for run in comparison.base],
        "new": [_run(run) for run in comparison.new],
        "counts": {verdict.value: comparison.count(verdict) for verdict in Verdict},
        "cases": [_case(case) for case in comparison.cases],
        **untimed,
        **{key: getattr(comparison, key) for key in ("newly_timed", "only_base", "only_new")},
        "libraries": comparison.changed_libraries,
        "other_library": list(comparison.other_library),
        "remarks": [*library_lines(comparison), *machine_lines(comparison), *remarks(comparison)],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _shown(comparison: Comparison, every: bool) -> Sequence[Case]:
    """Not those that are the same, nor those that only might be other than that."""
    if every:
        return comparison.cases
    least = math.log1p(comparison.threshold)
    differing = (case for case in comparison.cases if case.verdict is not Verdict.SAME)
    return [case for case in differing if abs(math.log(case.time.ratio)) > least]


def _hidden(comparison: Comparison, shown: Sequence[Case]) -> list[str]:
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
        change(case.time.ratio),
        f"{change(case.time.low)} to {change(case.time.high)}",
        change(case.cycles.ratio) if case.cycles else "-",
        remark,
    ]


def _few(comparison: Comparison) -> list[str]:
    """What the number of processes leaves open."""
    processes = min(len(comparison.base), len(comparison.new))
    guessed = sum(case.noise in GUESSED for case in comparison.cases)
    several = sum(case.levels > 1 for case in comparison.cases)
    lines = []
    if processes == 2:
        lines.append("2 processes of a side do not show which of them is unusual: give 3")
    elif processes < ENOUGH_PROCESSES and guessed:
        lines.append(
            f"not calibrated: {guessed} of {len(comparison.cases)} cases, where two speeds of "
            f"equal code may explain up to {_percent(math.expm1(WIDEST))}: run tools/gate or give "
            "3 runs per side, or tools/calibrate with the options of the runs"
        )
    if several:
        lines.append(f"{several} cases ran at several speeds in equal processes")
        if processes < processes_for(several):
            lines[-1] += (
                f": where the machine code is the same, slowdowns of up to "
                f"{_percent(math.expm1(WIDEST))} need {processes_for(several)} runs per side"
            )
    return lines


def _spreads(comparison: Comparison) -> list[str]:
    """Of other tools' files: what they tell of the spread of a case."""
    lines = []
    for run in (*comparison.base, *comparison.new):
        if run.record or not run.timed:
            continue
        samples = [case.samples_seconds for case in run.timed.values()]
        known = [pstdev(each) / fmean(each) for each in samples if len(each) > 1]
        spread = f", with a spread of {100 * median(known):.2g} % at median" if known else ""
        told = f"{run.path.name}: {len(known)} of {len(samples)} cases have samples{spread}"
        single = len(samples) - len(known)
        lines.append(told + (f"; of {single} the spread is not known" if single else ""))
    return lines


def _noise(comparison: Comparison) -> list[str]:
    calibration, cases = comparison.calibration, comparison.cases
    if not cases:
        return []
    sources = Counter(case.noise for case in cases)
    told = ", ".join(f"{source} ({count} cases)" for source, count in sources.items())
    lines = [f"noise between processes is from: {told}"]
    if calibration is None:
        return lines
    lines[0] += f"; the calibration is {calibration.path}, of {calibration.processes} processes"
    if record := comparison.new[-1].record:
        for what in ("driver", "power limit", "state"):
            its, ours = map(CONDITIONS[what], (calibration, record))
            if its != ours:
                lines.append(f"the calibration's {what} is {its}, that of NEW is {ours}")
    return lines


def _side(runs: Sequence[Run]) -> str:
    """Which run, or how many of them."""
    first = runs[0]
    commits = dict.fromkeys(run.record.commit for run in runs if run.record)
    what = [first.path.name if len(runs) == 1 else f"{len(runs)} processes"]
    what += [f"commit {', '.join(commits)}"] if commits else []
    what += [first.device] if first.device else []
    return printable(", ".join(what))


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
        "path": str(run.path),
        "device": run.device,
        "commit": record and record.commit,
        "date": record and record.date,
        "driver": record and record.device.driver,
    }


def _case(case: Case) -> dict[str, Any]:
    row = case.new_row
    of_row = ("kernel", "parameters", "precision", "layout", "m", "n", "k", "throttled_share")
    return {
        "name": case.name,
        "verdict": case.verdict.value,
        **{key: getattr(case, key) for key in ("base_seconds", "new_seconds", "ratio")},
        "detectable": case.detectable,
        "time": case.time._asdict(),
        "cycles": case.cycles and case.cycles._asdict(),
        "sd_within": math.sqrt(case.estimate.within),
        "sd_between": math.sqrt(case.estimate.between),
        **{key: getattr(case, key) for key in ("noise", "suspect", "needs")},
        **{key: row and getattr(row, key) for key in of_row},
    }
