"""Rows that are shown: one a problem, the ladder at one size, and how precisions compare."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gemm_report.document import InputError
from gemm_report.grouping import grouped
from gemm_report.record import MEMORIES, TRANSFERS, Ceiling, Part, Record, Row, rate

_BEHIND = {"library": 1, "peer": 2}


def ordered_rows(record: Record) -> list[Row]:
    """All rows: by precision, rung, variant and problem."""
    # Libraries come after the last rung, and other implementations after them.
    order = [each.name for each in record.precisions]
    rungs = {k.name: (_BEHIND.get(k.family, 0), k.rung) for k in record.kernels}
    return sorted(
        record.rows,
        key=lambda row: (
            order.index(row.precision),
            rungs.get(row.kernel, (1, 0)),
            natural(row.kernel_label),
            TRANSFERS.index(row.transfer) if row.transfer else -1,
            (row.volume, row.m, row.n, row.k, row.shape),
            row.repetition,
        ),
    )


def timed_rows(record: Record, part: Part = Part.LADDER) -> list[Row]:
    """One of every kernel, layout and problem: of several repetitions, the middle one."""
    timed = [row for row in ordered_rows(record) if row.status == "timed" and row.part == part]
    repetitions = groupby(timed, key=lambda row: (row.precision, row.label, row.shape))
    return [middle(list(rows)) for _, rows in repetitions]


def middle(rows: Sequence[Row]) -> Row:
    """Of repetitions, of which each has a time; of an even number the slower one of the middle."""
    return sorted(rows, key=rate)[(len(rows) - 1) // 2]


def drawn_rows(record: Record, part: Part = Part.LADDER) -> list[Row]:
    """Of each precision those of its plain layout, or all where there is none; one product."""
    timed = [row for row in timed_rows(record, part) if row.is_plain]
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


# What the source documents and most published ladders are measured at.
USUAL_SIZE = 4096
# Our own kernels on CUDA cores multiply and add these in FP32.
_COMPUTED_IN = {"bf16": "f32", "f16": "f32"}
# In the names of the GPU's kernels from kernels/tensor, whichever kernel of the suite chose them.
_TENSOR = "gemm::tensor::"


@dataclass(frozen=True)
class Rung:
    """One of our kernels, or of its variants, and the fastest variant of the kernel below it."""

    row: Row
    below: Row | None

    @property
    def step(self) -> float | None:
        """How many times as fast as the rung below."""
        return rate(self.row) / rate(self.below) if self.below else None


@dataclass(frozen=True)
class Limit:
    """How fast a row could be if nothing but one resource held it up, by the model of its bytes."""

    resource: str
    flop_per_byte: float | None
    flop_per_second: float


def ladder_size(rows: Iterable[Row]) -> int | None:
    """The cube at which rungs are compared; others, where there is no rung.

    4096 if most kernels have it; else the one that most of them share, of several the largest.
    """
    found = [row for row in rows if row.is_cube]
    found = [row for row in found if row.is_ours] or found
    cubes = {(row.kernel, row.m) for row in found}
    sharing = Counter(size for _, size in cubes)
    if sharing[USUAL_SIZE] > len({kernel for kernel, _ in cubes}) / 2:
        return USUAL_SIZE
    return max(sharing, key=lambda size: (sharing[size], size), default=None)


def rungs(record: Record, precision: str) -> list[Rung]:
    """From the lowest to the highest, at the ladder's size."""
    found: list[Rung] = []
    below: Row | None = None
    rows = [row for row in at_size(record, precision) if row.is_ours]
    for _, variants in groupby(rows, key=lambda row: row.kernel):
        its_rungs = [Rung(row, below) for row in variants]
        found += its_rungs
        below = max((rung.row for rung in its_rungs), key=rate)
    return found


def libraries(record: Record, precision: str) -> list[Row]:
    """What the ladder leads to, at the same size."""
    return [row for row in at_size(record, precision) if row.is_library]


def ladder_precisions(record: Record) -> list[str]:
    """Those with a ladder to draw: f32 with two kernels, the others with more than three."""
    found = precisions(drawn_rows(record))
    kernels = {p: {rung.row.kernel for rung in rungs(record, p)} for p in found}
    return [p for p in found if len(kernels[p]) > (1 if p == "f32" else 3)]


def limits(record: Record, row: Row) -> list[Limit]:
    """What could limit `row`, the lowest limit first; nothing without a model of its bytes."""
    if row.traffic is None:
        return []
    found = [
        Limit(level, row.flop / moved, row.flop / moved * (roof.bytes_per_second or 0))
        for level, moved in row.traffic.levels.items()
        if moved and (roof := record.measured_memory_roof(MEMORIES[level]))
    ]
    if roof := arithmetic_roof(record, row):
        found.append(Limit(roof.name, None, roof.flop_per_second or 0))
    return sorted(found, key=lambda limit: limit.flop_per_second)


def arithmetic_roof(record: Record, row: Row) -> Ceiling | None:
    """Of the unit that computes: rungs on CUDA cores do not have the tensor peak; a kernel from
    a user's file may use them, and one that picks among all rungs has that of what it ran."""
    picked = any(_TENSOR in name for name in row.device_kernels)
    if not row.is_ours or row.family in ("tensor", "user") or picked:
        return next(iter(record.compute_roofs(row.precision)), None)
    roofs = record.compute_roofs(_COMPUTED_IN.get(row.precision, row.precision))
    return next((roof for roof in roofs if "tensor" not in roof.name), None)


def at_size(record: Record, precision: str) -> list[Row]:
    """All rows at the ladder's size."""
    rows = [row for row in drawn_rows(record) if row.precision == precision]
    size = ladder_size(rows)
    return [row for row in rows if row.is_cube and row.m == size]
