"""A record as a page of Markdown: every row is on it, with its time or with its reason."""

from collections.abc import Callable, Sequence

from gemm_report.figures.bars.end_to_end import transfer_cells
from gemm_report.figures.page import method_line, run_line
from gemm_report.ladder.layouts import TITLE, comparisons, layout_table
from gemm_report.ladder.rows import ordered_rows, precisions
from gemm_report.ladder.rungs import rate
from gemm_report.record import Ceiling, MeasuredCeiling, Part, Record, Row, RunTime, Versus
from gemm_report.terminal import printable
from gemm_report.writing.names import operations, precision_name
from gemm_report.writing.quantity import (
    megahertz,
    percent,
    prefix_for,
    quantity,
    scaled,
    significant,
)
from gemm_report.writing.tables import markdown_table

# A precision whose results are to be as exact as another's, and are compared with its libraries.
_REPLACES = {"tf32x3": "f32", "f64emulated": "f64"}


def summary(record: Record) -> str:
    """The whole page."""
    rows = ordered_rows(record)
    timed = [row for row in rows if row.status == "timed"]
    parts = [f"# GEMM benchmark: {record.device.name}"]
    if not record.complete:
        parts.append("**This record is incomplete:** the run was interrupted or still goes on.")
    conditions = [
        run_line(record),
        method_line(record),
        record.conformance,
        record.time and _time(record.time),
        f"record `{printable(record.path.name)}`",
    ]
    parts += [
        "  \n".join(filter(None, conditions)),
        "## Peaks",
        markdown_table(
            ["peak", "precision", "value", "origin", "source"],
            [
                [c.name, c.precision or "", _roof_value(c), c.origin, c.source]
                for c in record.ceilings
            ],
        ),
        *_measured(record.measured_ceilings),
        "## Results",
        "Time is the median of the samples, spread their interquartile range over it. Error is the "
        "largest difference to the reference, bound what rounding allows where it came closest. "
        "Peak is the roofline bound of the problem. Clock and power are medians of the timed "
        "interval; throttled is the share of it in which the clocks were limited.",
    ]
    of_part = {part: [row for row in timed if row.part is part] for part in Part}
    parts += _by_precision(of_part[Part.LADDER])
    if found := comparisons(record):
        head, lines = layout_table(found)
        cells = [[*case, *(text for text, _ in numbers)] for case, numbers in lines]
        parts += ["## Layouts", TITLE, markdown_table(head, cells)]
    if of_part[Part.TUNING]:
        parts += ["## Parameter grids", *_by_precision(of_part[Part.TUNING])]
    if of_part[Part.END_TO_END]:
        parts += [
            "## End to end",
            "Host-to-device copy, kernel and device-to-host copy in one time, next to each of them "
            "alone. Hidden is the transfer time that overlap hides.",
            _end_to_end(record, of_part[Part.END_TO_END]),
        ]
    if not timed:
        parts.append("No row has a time.")
    if record.aggregates:
        parts.append(
            f"Google Benchmark's {record.aggregates} aggregate rows are left out: "
            "the repetitions that they aggregate are above."
        )
    deviating = [row for row in timed if row.departures]
    parts += _list(
        "Deviations from the measurement guideline",
        deviating,
        lambda row: "; ".join(map(str, row.departures)),
    )
    for status in ("skipped", "failed", "untimed"):
        its_rows = [row for row in rows if row.status == status]
        parts += _list(status.capitalize(), its_rows, _reason)
    return without_html("\n\n".join(parts)) + "\n"


def without_html(text: str) -> str:
    """Markdown in which names that look like tags, or like comments, stay text."""
    return text.replace("<", "&lt;")


def _by_precision(rows: Sequence[Row]) -> list[str]:
    tables = {p: [row for row in rows if row.precision == p] for p in precisions(rows)}
    parts = []
    for precision, its_rows in tables.items():
        others = [row for row in its_rows if row.is_peer]
        ours = [row for row in its_rows if not row.is_peer]
        parts.append(f"### {precision_name(precision)}")
        parts += [_results(ours)] if ours else []
        if others:
            parts += [f"Other implementations in {precision_name(precision)}:", _results(others)]
        if replaced := _REPLACES.get(precision):
            parts += _compared(replaced, its_rows, tables.get(replaced, []))
    return parts


def _compared(replaced: str, rows: Sequence[Row], others: Sequence[Row]) -> list[str]:
    """Rate and error over those of the fastest library of the precision that `rows` replace."""
    libraries = [row for row in others if row.is_library]
    best = {_problem(row): row for row in sorted(libraries, key=rate)}
    pairs = [(row, best[_problem(row)]) for row in _by_shape(rows) if _problem(row) in best]
    if not pairs:
        return []
    head = ["shape", "kernel", f"{precision_name(replaced)} library"]
    head += ["times as fast", "its error / bound", "times its error"]
    lines = [
        [
            row.shape,
            row.label + row.ordinal,
            library.label,
            f"{rate(row) / rate(library):.2f}",
            _error(library),
            _times(_max_error(row), _max_error(library)),
        ]
        for row, library in pairs
    ]
    return [
        f"Compared with the fastest {precision_name(replaced)} library:",
        markdown_table(head, lines),
    ]


def _problem(row: Row) -> tuple[str, int, int, int]:
    return row.layout, row.m, row.n, row.k


def _max_error(row: Row) -> float | None:
    return row.verification and row.verification.max_error


def _times(value: float | None, of: float | None) -> str:
    return "-" if value is None or not of else f"{value / of:.2f}"


def _end_to_end(record: Record, rows: Sequence[Row]) -> str:
    head = [
        *("shape", "kernel", "precision", "transfer", "time", "to device", "kernel alone"),
        *("from device", "to device, of PCIe", "from device, of PCIe", "hidden", "error / bound"),
    ]
    return markdown_table(head, [_transfer(record, row) for row in _by_shape(rows)])


def _transfer(record: Record, row: Row) -> list[str]:
    parts = row.end_to_end
    alone = parts and (parts.to_device_seconds, parts.kernel_seconds, parts.from_device_seconds)
    return [
        row.shape,
        row.kernel_label + row.ordinal,
        row.precision,
        row.transfer or "-",
        quantity(row.seconds.median, "s") if row.seconds else "-",
        *([quantity(seconds, "s") for seconds in alone] if alone else ["-"] * 3),
        *transfer_cells(record, row),
        _error(row),
    ]


def _by_shape(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.volume, row.m, row.n, row.k))


def _results(rows: Sequence[Row]) -> str:
    prefix = prefix_for(row.flop_per_second or 0 for row in rows)
    unit = f"{prefix}{operations(rows[0].precision)}"
    head = [
        *("shape", "kernel", "time", unit, "% of peak", "peak", "% of peak at clock"),
        *("% of library", "error / bound", "samples", "spread", "SM clock", "power", "throttled"),
        "versus",
    ]
    return markdown_table(head, [_result(row, prefix) for row in _by_shape(rows)])


def _result(row: Row, prefix: str) -> list[str]:
    seconds = row.seconds
    return [
        row.shape,
        row.label + row.ordinal,
        quantity(seconds.median, "s") if seconds else "-",
        significant(scaled(row.flop_per_second or 0, prefix)),
        percent(row.of_roof_nominal),
        row.roof.name if row.roof else "not known",
        percent(row.of_roof_at_clock),
        percent(row.of_library),
        _error(row),
        str(len(row.samples_seconds)),
        percent((seconds.q3 - seconds.q1) / seconds.median) if seconds else "-",
        megahertz(row.sm_hz) if row.sm_hz else "-",
        f"{row.power_w:.0f} W" if row.power_w else "-",
        percent(row.throttled_share),
        _versus(row.versus),
    ]


def _versus(versus: Versus | None) -> str:
    if versus is None:
        return "-"
    ratio, low, high = (100 * value for value in (versus.ratio, versus.low, versus.high))
    return f"{ratio:.2f} % ({low:.2f} to {high:.2f}) of {versus.kernel}"


def _time(time: RunTime) -> str:
    share = percent(time.kernel_seconds / time.wall_seconds)
    return f"{time.wall_seconds:.0f} s, {share} of them in kernels under test"


def _measured(ceilings: Sequence[MeasuredCeiling]) -> list[str]:
    if not ceilings:
        return []
    head = ["peak", "of", "fill", "value", "of nominal", "SM clock", "power", "throttled", "how"]
    rows = [
        [
            ceiling.name,
            ceiling.arithmetic or "memory",
            ceiling.fill or "",
            _roof_value(ceiling),
            percent(ceiling.of_nominal),
            megahertz(ceiling.sm_hz) if ceiling.sm_hz else "-",
            f"{ceiling.power_w:.0f} W" if ceiling.power_w else "-",
            percent(ceiling.throttled_share),
            ceiling.what,
        ]
        for ceiling in ceilings
    ]
    return ["## Measured peaks", markdown_table(head, rows)]


def _error(row: Row) -> str:
    if row.verification is None:
        return "not verified"
    values = (row.verification.max_error, row.verification.bound)
    return " / ".join("-" if value is None else f"{value:.1e}" for value in values)


def _list(title: str, rows: Sequence[Row], say: Callable[[Row], str]) -> list[str]:
    if not rows:
        return []
    items = [f"- {row.label}, {row.precision}, {row.shape}: {say(row)}" for row in rows]
    return [f"## {title} ({len(rows)})", "\n".join(items)]


def _reason(row: Row) -> str:
    return row.failed or row.skipped or "the record says neither a time nor a reason"


def _precision(ceiling: Ceiling | MeasuredCeiling) -> str | None:
    return ceiling.precision if isinstance(ceiling, Ceiling) else ceiling.arithmetic


def _roof_value(ceiling: Ceiling | MeasuredCeiling) -> str:
    if ceiling.flop_per_second:
        return quantity(ceiling.flop_per_second, operations(_precision(ceiling)))
    return quantity(ceiling.bytes_per_second, "B/s") if ceiling.bytes_per_second else "not known"
