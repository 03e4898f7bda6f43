"""All rows of a record as a table that sorts and filters, and what each row unfolds to."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from gemm_report.comparison.conditions import options_of
from gemm_report.guideline import sentences
from gemm_report.notes import slowed
from gemm_report.pages.matrix import BOUND
from gemm_report.pages.render import Cell, Column, Html, Line, joined, rendered, table, tag
from gemm_report.record import EndToEnd, Kernel, Record, Row
from gemm_report.rows import ordered_rows
from gemm_report.standing import bound
from gemm_report.text import (
    megahertz,
    operations,
    percent,
    precision_name,
    prefix_for,
    quantity,
    scaled,
    significant,
)

_NOTHING = "-"
_NO_SLUG = re.compile(r"[^A-Za-z0-9_.:/-]+")
_HEIGHT, _EDGE = 48, 2  # of the line of samples
# What a word on the page means.
HINTS = {
    "% of peak": "Rate over the nominal peak of the problem: the lower of the execution unit's "
    "peak and arithmetic intensity times DRAM bandwidth. It is above 100 % where the GPU runs "
    "above the clock of that peak, as GeForce GPUs do.",
    "% at clock": "Rate over the same peak at the median SM clock of the result.",
    "% of library": "Rate over that of the fastest library on the same problem.",
    "time": "Of one launch: the median of the samples.",
    "in doubt": "Its own figure is: by too few or scattered samples, a clock that changed, or "
    "others on the machine. The details say in what.",
    "throttled": "A limit held the clocks down most of the time.",
    "host code": "A .so or .py file, which runs in the process that measures it and could change "
    "its checks.",
    "suspect": "The result was right, but not in the time of the work: it was faster on operands "
    "that it had seen before, or without a pause.",
    "failed": "The result was wrong, the time beat the hardware, or the kernel did not end.",
}
STATES = {
    "verified": None,
    "failed": "bad",
    "suspect": "bad",
    "untimed": "bad",
    "in doubt": "warn",
    "throttled": None,
    "host code": "warn",
    "skipped": None,
}


def row_table(record: Record) -> Html:
    """Every row, by precision, rung and problem."""
    rows = ordered_rows(record)
    prefix = prefix_for(row.flop_per_second or 0 for row in rows if row.status == "timed")
    kernels = {kernel.name: kernel for kernel in record.kernels}
    lines = []
    for row, anchor in zip(rows, anchors(rows), strict=True):
        facts, repeat = _facts(row, kernels.get(row.kernel)), repeating(record, row)
        details = rendered("row", line=_samples(row), facts=facts, row=row, repeat=repeat)
        lines.append(Line(_cells(record, row, prefix), details, anchor))
    return table(_columns(prefix), lines, "rows")


def anchors(rows: Sequence[Row]) -> list[str]:
    """The name of each row's place on the page: bf16-4096-WgmmaStreamK."""
    names = [_NO_SLUG.sub("_", f"{row.precision}-{row.size}-{row.label}") for row in rows]
    seen = Counter[str]()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found


def states(record: Record, row: Row) -> tuple[str, ...]:
    """What is to be said of a row besides its numbers."""
    if row.status != "timed":
        return ("suspect" if row.suspect else row.status,)
    marks = {
        "verified": bool(row.verification and row.verification.passed),
        "in doubt": bool(row.doubts),
        "throttled": slowed(record, row),
        "host code": row.file is not None and not row.file.name.endswith(".cu"),
    }
    return tuple(mark for mark, is_so in marks.items() if is_so)


def _columns(prefix: str) -> list[Column]:
    numbers = ("% of peak", "% at clock", "% of library", "time")
    return [
        Column("kernel"),
        Column("precision", filtered=True),
        Column("size", hint="m = n = k, or m x n x k", filtered=True),
        Column(f"{prefix}FLOP/s", True, "TOP/s for integers" if prefix == "T" else None),
        *(Column(name, True, HINTS[name]) for name in numbers),
        Column("bound by", hint=BOUND, filtered=True),
        Column("state", filtered=True),
    ]


def _cells(record: Record, row: Row, prefix: str) -> list[Cell | str]:
    is_timed = row.status == "timed"
    rate = row.flop_per_second if is_timed else None
    seconds = row.seconds.median if row.seconds and is_timed else None
    shares = [row.of_roof_nominal, row.of_roof_at_clock, row.of_library]
    found = states(record, row)
    badges = (
        tag("span", each, class_=f"badge {STATES[each] or ''}".strip(), title=HINTS.get(each))
        for each in found
        if each != "verified"
    )
    return [
        row.label + (f" (repetition {row.repetition + 1})" if row.repetition else ""),
        Cell(precision_name(row.precision), choices=(row.precision,)),
        row.size,
        _number(rate, rate and _aligned(significant(scaled(rate, prefix)))),
        *(_number(s, s and f"{100 * s:.1f}", s) for s in shares),
        _number(seconds, seconds and quantity(seconds, "s")),
        bound(record, row),
        Cell(joined(badges, "\N{NO-BREAK SPACE}"), choices=found),
    ]


def _number(value: float | None, text: str | float | None, bar: float | None = None) -> Cell | str:
    return _NOTHING if value is None or not text else Cell(str(text), value, bar=bar)


def _aligned(number: str) -> str:
    """Its point under that of the others, by spaces of the width of a point and of digits."""
    whole, point, fraction = number.partition(".")
    number = whole + (point or "\N{PUNCTUATION SPACE}") + fraction
    return number.ljust(len(whole) + 4, "\N{FIGURE SPACE}")


def repeating(record: Record, row: Row | None = None) -> str:
    """The command that made the record, or one row of it; nothing where another program did."""
    words = options_of(record)
    if row is None or not words or words[0] != "gemm_bench":
        return "" if row else shlex.join(record.command)
    kept = [word for word in words if not word.startswith("--benchmark_filter")]
    one = f"--benchmark_filter=^{re.escape(str(row.identity))}/"
    return shlex.join([*kept, one])


def _samples(row: Row) -> dict[str, object] | None:
    """The samples in their order as a line, with median and quartiles behind it."""
    seconds, samples = row.seconds, row.samples_seconds
    if not seconds or not samples:
        return None
    low, high = min(samples), max(samples)

    def y(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * min(max(share, 0), 1))

    width, heights = max(len(samples) - 1, 1), [y(sample) for sample in samples]
    steps = " ".join(f"1 {b - a}" for a, b in pairwise(heights)) or f"{width} 0"
    away = [100 * (value / seconds.median - 1) for value in (low, high)]
    spread = 100 * (seconds.q3 - seconds.q1) / seconds.median
    return {
        **{"width": width, "height": _HEIGHT, "top": y(seconds.q3), "bottom": y(seconds.q1)},
        **{"median": y(seconds.median), "path": f"M0 {heights[0]}l{steps}"},
        "said": f"{len(samples)} samples in order: {away[0]:+z.2f} % to {away[1]:+z.2f} % around "
        f"the median; interquartile range {spread:.2f} %",
    }


def _facts(row: Row, kernel: Kernel | None) -> list[tuple[str, object]]:
    checked, versus, roof = row.verification, row.versus, row.roof
    unit, energy = operations(row.precision), versus and versus.energy_ratio
    return [
        ("failed", row.failed),
        ("skipped", row.skipped),
        ("in doubt", "; ".join(sentences(row.doubts))),
        ("clock and power", ", ".join(filter(None, (
            megahertz(row.sm_hz) if row.sm_hz else "",
            f"{row.power_w:.0f} W" if row.power_w else "",
            f"{quantity(row.joules, 'J')} per GEMM" if row.joules else "",
        )))),
        ("throttled", row.throttled and f"{percent(row.throttled_share)} of the time: "
         f"{', '.join(row.held_by) or 'reason not recorded'}"),
        ("idea", kernel and kernel.idea),
        ("source", kernel and kernel.source),
        ("nominal peak", roof and f"{roof.name}, {quantity(roof.flop_per_second, unit)}"),
        ("fastest library", row.library),
        ("compared, interleaved", versus and f"{percent(versus.ratio)} ({percent(versus.low)} to "
         f"{percent(versus.high)}) of {versus.kernel}"),
        ("energy, compared", energy and f"{percent(energy.value)} ({percent(energy.low)} to "
         f"{percent(energy.high)})"),
        ("arithmetic intensity", f"{significant(row.flop_per_byte)} FLOP/byte"),
        ("traffic (modelled)", row.traffic and ", ".join(
            f"{name} {quantity(moved, 'B')}" for name, moved in row.traffic.levels.items() if moved
        )),
        ("transfers", row.end_to_end and _transfers(row.end_to_end)),
        ("verification", "not verified" if checked is None else
         f"{'passed' if checked.passed else 'did not pass'}: largest error "
         f"{_or_dash(checked.max_error)}; worst element: {percent(checked.of_bound)} of the error "
         f"bound {_or_dash(checked.bound)}"),
        ("machine code", row.fingerprint),
    ]  # fmt: skip


def _or_dash(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.2e}"


def _transfers(parts: EndToEnd) -> str:
    seconds = parts.to_device_seconds, parts.kernel_seconds, parts.from_device_seconds
    first, second, third = (quantity(each, "s") for each in seconds)
    said = f"host to device {first}, kernel {second}, device to host {third}"
    return f"{said}; {percent(parts.hidden_share)} hidden by overlap"
