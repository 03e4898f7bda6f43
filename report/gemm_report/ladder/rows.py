"""Rows of a record that figures show: one a problem, and for each kernel its largest one."""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby
from typing import Any

from gemm_report.document import InputError
from gemm_report.grouping import grouped
from gemm_report.record import TRANSFERS, Part, Record, Row, rate

_BEHIND = {"library": 1, "peer": 2}


def ordered_rows(record: Record) -> list[Row]:
    """All rows: by precision, rung, variant and problem."""
    # Libraries come after the last rung, and other implementations after them.
    rungs = {k.name: (_BEHIND.get(k.family, 0), k.rung) for k in record.kernels}
    return sorted(
        record.rows,
        key=lambda row: (
            record.precision_names.index(row.precision),
            rungs.get(row.kernel, (1, 0)),
            natural(row.kernel_label),
            TRANSFERS.index(row.transfer) if row.transfer else -1,
            (row.volume, row.m, row.n, row.k),
            row.repetition,
        ),
    )


def timed_rows(record: Record, part: Part = Part.LADDER) -> list[Row]:
    """One of every kernel, layout and problem: of several repetitions, the middle one."""
    timed = [row for row in ordered_rows(record) if row.status == "timed" and row.part == part]
    repetitions = groupby(timed, key=lambda row: (row.precision, row.label, row.m, row.n, row.k))
    return [middle(list(rows)) for _, rows in repetitions]


def middle(rows: Sequence[Row]) -> Row:
    """Of repetitions, of which each has a time; of an even number the slower one of the middle."""
    return sorted(rows, key=rate)[(len(rows) - 1) // 2]


def drawn_rows(record: Record, part: Part = Part.LADDER) -> list[Row]:
    """Of each precision those of its plain layout, or all where there is none."""
    timed = timed_rows(record, part)
    found: list[Row] = []
    for precision, rows in by_precision(timed).items():
        found += [row for row in rows if row.layout == plain_layout(precision)] or rows
    return found


def plain_layout(precision: str) -> str:
    """In which no operand is transposed: tensor cores read operands of one byte along k alone."""
    return "nt" if precision.startswith(("e4m3", "e5m2", "s8")) else "nn"


def named(record: Record, rows: Iterable[Row], option: str, pattern: str) -> list[Row]:
    """Those whose names match what an option says; InputError for no expression or no match."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise InputError(f"{option}={pattern}: is no regular expression: {error}") from None
    found = [row for row in rows if wanted.search(str(row.identity))]
    if not found:
        raise InputError(f"{option}={pattern}: matches no such row of {record.path}")
    return found


def ladder_sizes(rows: Iterable[Row]) -> set[int]:
    """The cube sizes that a line may join.

    A size beside a rounder one (4092 beside 4096) asks what an odd size costs: joined to the line
    it would only make it jagged.
    """
    twos = {row.m: row.m & -row.m for row in rows if row.is_cube}
    return {
        size
        for size in twos
        if not any(abs(other - size) < 0.05 * size and twos[other] > twos[size] for other in twos)
    }


def headlines(rows: Sequence[Row]) -> list[Row]:
    """One row for each kernel and precision: its largest cube, else its largest problem."""
    sizes = ladder_sizes(rows)

    def weight(row: Row) -> tuple[bool, int]:
        return row.is_cube and row.m in sizes, row.volume

    return best_of(rows, lambda row: (row.precision, row.label), weight)


def best_of(
    rows: Iterable[Row], group: Callable[[Row], Hashable], merit: Callable[[Row], Any]
) -> list[Row]:
    """Of each group the first with the most merit, in the order of the groups."""
    return [max(its, key=merit) for its in grouped(rows, group).values()]


def facts(row: Row, *names: str, **others: object) -> dict[str, object]:
    """Of the data of a figure: the kernel, these attributes of its row, and what else there is."""
    return {"kernel": row.label} | {name: getattr(row, name) for name in names} | others


def natural(label: str) -> tuple[str | int, ...]:
    """A key that sorts tile:8 before tile:16."""
    parts = re.split(r"(\d{1,18})", label)
    return tuple(int(part) if i % 2 else part for i, part in enumerate(parts))


def precisions(rows: Iterable[Row]) -> list[str]:
    """Those that occur, in the order of the rows."""
    return list(dict.fromkeys(row.precision for row in rows))


def by_precision(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Those of each precision, in the order of the rows."""
    return grouped(rows, lambda row: row.precision)
