"""A record as a page of Markdown: every row is on it, with its time or with its reason."""

from collections.abc import Iterable, Sequence

from gemm_report.ladder import ordered_rows, precisions
from gemm_report.page import method_line, run_line
from gemm_report.quantity import percent, prefix_for, quantity, scaled, significant
from gemm_report.record import Ceiling, Record, Row


def summary(record: Record) -> str:
    """The whole page."""
    rows = ordered_rows(record)
    timed = [row for row in rows if row.status == "timed"]
    parts = [f"# GEMM benchmark: {record.device.name}"]
    if not record.complete:
        parts.append("**This record is incomplete:** the run was interrupted or still goes on.")
    parts += [
        f"{run_line(record)}  \n{method_line(record)}  \nrecord `{record.path.name}`",
        "## Roofs",
        markdown_table(
            ["roof", "precision", "value", "origin", "source"],
            [
                [c.name, c.precision or "", _roof_value(c), c.origin, c.source]
                for c in record.ceilings
            ],
        ),
        "## Results",
        "Time is the median of the samples, spread their interquartile range over it. Error is the "
        "largest difference to the reference, bound what rounding allows where it came closest.",
    ]
    for precision in precisions(timed):
        parts += [
            f"### {precision}",
            _results([row for row in timed if row.precision == precision]),
        ]
    if not timed:
        parts.append("No row has a time.")
    if record.aggregates:
        parts.append(
            f"Google Benchmark's {record.aggregates} aggregate rows are left out: "
            "the repetitions that they aggregate are above."
        )
    for status in ("skipped", "failed", "untimed"):
        parts += _reasons(status, [row for row in rows if row.status == status])
    return "\n\n".join(parts) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells may hold any text."""
    lines = [head, ["---"] * len(head), *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _results(rows: Sequence[Row]) -> str:
    prefix = prefix_for(row.flop_per_second or 0 for row in rows)
    by_shape = sorted(rows, key=lambda row: (row.volume, row.m, row.n, row.k))
    head = [
        *("shape", "kernel", "time", f"{prefix}FLOP/s", "of roof", "roof", "of roof at clock"),
        *("of library", "error / bound", "samples", "spread"),
    ]
    return markdown_table(head, [_result(row, prefix) for row in by_shape])


def _result(row: Row, prefix: str) -> list[str]:
    repetition = f" (repetition {row.repetition + 1})" if row.repetition else ""
    seconds = row.seconds
    return [
        row.shape,
        row.label + repetition,
        quantity(seconds.median, "s") if seconds else "-",
        significant(scaled(row.flop_per_second or 0, prefix)),
        percent(row.of_roof_nominal),
        row.roof.name if row.roof else "not known",
        percent(row.of_roof_at_clock),
        percent(row.of_library),
        _error(row),
        str(len(row.samples_seconds)),
        percent((seconds.q3 - seconds.q1) / seconds.median) if seconds else "-",
    ]


def _error(row: Row) -> str:
    if row.verification is None:
        return "not verified"
    values = (row.verification.max_error, row.verification.bound)
    return " / ".join("-" if value is None else f"{value:.1e}" for value in values)


def _reasons(status: str, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    items = [
        f"- {row.label}, {row.precision}, {row.shape}: "
        f"{row.failed or row.skipped or 'the record says neither a time nor a reason'}"
        for row in rows
    ]
    return [f"## {status.capitalize()} ({len(rows)})", "\n".join(items)]


def _roof_value(ceiling: Ceiling) -> str:
    if ceiling.flop_per_second:
        return quantity(ceiling.flop_per_second, "FLOP/s")
    return quantity(ceiling.bytes_per_second, "B/s") if ceiling.bytes_per_second else "not known"
