"""The ladder at one size: what each rung reaches, what its step is worth, and what limits it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from gemm_report.ladder.rows import drawn_rows, precisions
from gemm_report.record import MEMORIES, Ceiling, Part, Record, Row, rate

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
        return self.below and rate(self.row) / rate(self.below)


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


def naive(rows: Iterable[Row]) -> Row | None:
    """The first that is called so, of rows in the order of the ladder."""
    return next(filter(_is_naive, rows), None)


def largest_step(found: Iterable[Rung]) -> Rung | None:
    """The rung that gains most over all before it, the naive kernel apart."""
    best, largest, gain = 0.0, None, 1.0
    for rung in found:
        if best and rate(rung.row) > gain * best and rung.step and not _is_naive(rung.row):
            largest, gain = rung, rate(rung.row) / best
        best = max(best, rate(rung.row))
    return largest


def _is_naive(row: Row) -> bool:
    return row.is_ours and row.kernel.endswith("Naive")


def libraries(record: Record, precision: str) -> list[Row]:
    """What the ladder leads to, at the same size."""
    return [row for row in at_size(record, precision) if row.is_library]


def kernels_without_row(record: Record, precision: str) -> list[str]:
    """Those that have other rows of this precision, but none with a time at the ladder's size."""
    rows = [row for row in record.rows if row.precision == precision and row.is_ours]
    there = {rung.row.kernel for rung in rungs(record, precision)}
    missing = {row.kernel for row in rows if row.part is Part.LADDER} - there
    return [kernel.name for kernel in record.kernels if kernel.name in missing]


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
