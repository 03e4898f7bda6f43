"""All rows of a record as a table that sorts and filters, and what each row unfolds to."""

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from gemm_report.comparison.conditions import options_of
from gemm_report.pages.markup import Html, joined, tag
from gemm_report.pages.shell import definitions
from gemm_report.pages.sparkline import sparkline
from gemm_report.pages.table import Cell, Column, Line, table
from gemm_report.record import DeviceCode, EndToEnd, Kernel, Record, Row
from gemm_report.rows import ordered_rows
from gemm_report.text import (
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
GLOSSARY: Mapping[str, str] = {
    "% of peak": "Rate over the nominal peak of the problem: the lower of the execution unit's "
    "peak and arithmetic intensity times DRAM bandwidth. It is above 100 % where the GPU runs "
    "above the clock of that peak, as GeForce GPUs do.",
    "% at clock": "Rate over the same peak at the median SM clock of the result.",
    "% of library": "Rate over that of the fastest library on the same problem.",
    "geometric mean": "Of our fastest kernel's rate over the fastest library's, over the problems "
    "that both were timed on.",
    "time": "Of one launch: the median of the samples.",
    "J": "Energy of one GEMM: median power of the board times median time.",
    "error / bound": "Largest error of an element over the rounding error bound of that element. "
    "Above 100 % the result has failed.",
    "clean": "Timed, not throttled, and measured as NVIDIA's guideline asks.",
    "throttled": "The driver reported a limit on the clocks while the result was timed.",
    "off-guideline": "Deviates from NVIDIA's guideline for benchmarking; figures mark it with a "
    "star (*). The details of the result say in what.",
    "host code": "A .so or .py file, which runs in the process that measures it and could change "
    "its checks.",
    "suspect": "The result was right, but not in the time of the work: it was faster on operands "
    "that it had seen before, or without a pause.",
    "failed": "The result was wrong, the time beat the hardware, or the kernel did not end.",
    "layout": "Of A and B: n row-major, t transposed. Without one, nn.",
    "nominal peak, measured peak": "From the data sheet or the device's clock; reached by a "
    "microbenchmark that does nothing else.",
}
STATES = {
    "clean": None,
    "failed": "bad",
    "suspect": "bad",
    "untimed": "bad",
    "skipped": None,
    "throttled": "warn",
    "off-guideline": "warn",
    "host code": "warn",
}


def row_table(record: Record) -> Html:
    """Every row, by precision, rung and problem."""
    rows = ordered_rows(record)
    prefix = prefix_for(row.flop_per_second or 0 for row in rows if row.status == "timed")
    kernels = {kernel.name: kernel for kernel in record.kernels}
    lines = []
    for row, anchor in zip(rows, anchors(rows), strict=True):
        facts = definitions(_facts(row, kernels.get(row.kernel)))
        repeat = repeating(record, row)
        code = tag("pre", tag("code", repeat), title="repeats this row") if repeat else ""
        details = tag("div", _samples(row), facts, code, class_="unfolded")
        lines.append(Line(_cells(row, prefix), details, anchor))
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


def states(row: Row) -> tuple[str, ...]:
    """In what a row is not clean; `clean` alone if in nothing."""
    if row.status != "timed":
        return ("suspect" if row.suspect else row.status,)
    marks = {
        "throttled": row.throttled,
        "off-guideline": bool(row.departures),
        "host code": row.file is not None and not row.file.name.endswith(".cu"),
    }
    return tuple(mark for mark, is_so in marks.items() if is_so) or ("clean",)


def _columns(prefix: str) -> list[Column]:
    return [
        Column("kernel"),
        Column("precision", filtered=True),
        Column("size", hint="m = n = k, or m x n x k", filtered=True),
        Column(f"{prefix}FLOP/s", True, "TOP/s for integers" if prefix == "T" else None),
        *(Column(name, True, GLOSSARY[name]) for name in ("% of peak", "% at clock")),
        *(Column(name, True, GLOSSARY[name]) for name in ("% of library", "time")),
        Column("MHz", True, "SM clock: median of the timed interval"),
        Column("W", True, "power of the board: median of the timed interval"),
        Column("J", True, GLOSSARY["J"]),
        Column("error / bound", True, GLOSSARY["error / bound"]),
        Column("state", filtered=True),
    ]


def _cells(row: Row, prefix: str) -> list[Cell | str]:
    is_timed = row.status == "timed"
    rate = row.flop_per_second if is_timed else None
    seconds = row.seconds.median if row.seconds and is_timed else None
    joule = row.joules if is_timed else None
    shares = [row.of_roof_nominal, row.of_roof_at_clock, row.of_library]
    of_bound = row.verification.of_bound if row.verification else None
    found = states(row)
    badges = [tag("span", state, class_=f"badge {STATES[state] or ''}".strip()) for state in found]
    return [
        row.label + row.ordinal,
        Cell(precision_name(row.precision), choices=(row.precision,)),
        row.size,
        _number(rate, rate and _aligned(significant(scaled(rate, prefix)))),
        *(_number(s, s and f"{100 * s:.1f}", s) for s in shares),
        _number(seconds, seconds and quantity(seconds, "s")),
        _number(row.sm_hz, row.sm_hz and f"{row.sm_hz / 1e6:.0f}"),
        _number(row.power_w, row.power_w and f"{row.power_w:.0f}"),
        _number(joule, joule and quantity(joule, "J")),
        _number(of_bound, percent(of_bound)),
        Cell("" if found == ("clean",) else joined(badges, "\N{NO-BREAK SPACE}"), choices=found),
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


def _samples(row: Row) -> Html:
    seconds, samples = row.seconds, row.samples_seconds
    if not seconds or not samples:
        return Html("")
    low, high = (100 * (value / seconds.median - 1) for value in (min(samples), max(samples)))
    spread = 100 * (seconds.q3 - seconds.q1) / seconds.median
    said = (
        f"{len(samples)} samples in order: {low:+z.2f} % to {high:+z.2f} % around the median; "
        f"interquartile range {spread:.2f} %"
    )
    line = sparkline(samples, seconds)
    return tag("div", line, tag("p", said, class_="quiet"), class_="samples")


def _facts(row: Row, kernel: Kernel | None) -> list[tuple[str, str | None]]:
    checked, versus, roof = row.verification, row.versus, row.roof
    unit = operations(row.precision)
    return [
        ("failed", row.failed),
        ("skipped", row.skipped),
        ("off-guideline", "; ".join(each.text for each in row.departures)),
        ("throttled", row.throttled and f"{percent(row.throttled_share)} of the time: "
         f"{', '.join(row.held_by) or 'reason not recorded'}"),
        ("idea", kernel and kernel.idea),
        ("source", kernel and kernel.source),
        ("nominal peak", roof and f"{roof.name}, {quantity(roof.flop_per_second, unit)}"),
        ("fastest library", row.library),
        ("compared, interleaved", versus and f"{percent(versus.ratio)} ({percent(versus.low)} to "
         f"{percent(versus.high)}) of {versus.kernel}"),
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
        ("GPU kernels", _code(row)),
    ]  # fmt: skip


def _or_dash(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.2e}"


def _transfers(parts: EndToEnd) -> str:
    seconds = parts.to_device_seconds, parts.kernel_seconds, parts.from_device_seconds
    first, second, third = (quantity(each, "s") for each in seconds)
    said = f"host to device {first}, kernel {second}, device to host {third}"
    return f"{said}; {percent(parts.hidden_share)} hidden by overlap"


def _code(row: Row) -> Html:
    """The GPU kernels that the launch runs, with what was compiled where that is known."""
    if row.device_code:
        items = [joined([tag("code", code.name), _resources(code)]) for code in row.device_code]
    else:
        items = [tag("code", name) for name in row.device_kernels]
    return joined(tag("div", item) for item in items)


def _resources(code: DeviceCode) -> str:
    facts = [
        code.registers is not None and f"{code.registers} registers",
        code.shared_bytes is not None and f"{code.shared_bytes} bytes of shared memory",
        code.local_bytes and f"{code.local_bytes} bytes of local memory",
        code.threads is not None and f"{code.threads} threads per block",
        code.blocks is not None and f"{code.blocks} blocks",
        code.occupancy is not None and f"occupancy {100 * code.occupancy:.0f} %",
        code.fingerprint and f"machine code {code.fingerprint}",
    ]
    said = ", ".join(fact for fact in facts if fact)
    return f": {said}" if said else ""
