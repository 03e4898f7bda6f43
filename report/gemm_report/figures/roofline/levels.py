"""The memories of a card, and how many products a kernel makes of each byte of them, by model."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gemm_report.ladder.rungs import rate
from gemm_report.record import Record, Row, Traffic


@dataclass(frozen=True)
class Level:
    """One memory: how its probe begins, its mark, and why a kernel may stand above its roof."""

    probe: str
    name: str
    marker: str
    why_above: str
    bytes_of: Callable[[Traffic], float]
    counted_marker: str
    least_share: float = 0.0  # of the bytes asked of the L2

    def flop_per_byte(self, row: Row) -> float | None:
        """By the model of its bytes; None where there is none, or next to nothing is moved."""
        return self._intensity(row.flop, row.traffic)

    def counted_flop_per_byte(self, row: Row) -> float | None:
        """By the bytes that ncu counted; None where it did not, or next to nothing is moved."""
        return self._intensity(row.flop, row.counted)

    def _intensity(self, flop: float, traffic: Traffic | None) -> float | None:
        if traffic is None:
            return None
        moved = self.bytes_of(traffic)
        return flop / moved if moved > self.least_share * traffic.l2_bytes else None


SHARED = Level(
    "Shared",
    "shared memory",
    "s",
    "the model counts too much",
    lambda traffic: traffic.shared_bytes,
    "P",
    least_share=0.01,  # a kernel that sends less through it multiplies elsewhere
)
L2 = Level("L2", "L2", "D", "the L1 answers for it", lambda t: t.l2_bytes, "X")
DRAM = Level("DRAM", "DRAM", "v", "the L2 held some of it", lambda t: t.dram_bytes, "^")


def above_notes(record: Record, level: Level, rows: Iterable[Row]) -> list[str]:
    """Which of `rows` stand above the roof of a memory, and why, if any do."""
    roof = record.measured_memory_roof(level.probe)
    width = (roof.bytes_per_second or 0) if roof else float("inf")
    above = [row.label for row in rows if rate(row) > (level.flop_per_byte(row) or 1e300) * width]
    names = ", ".join(dict.fromkeys(above))
    title = level.name[0].upper() + level.name[1:]
    return [f"{title}, above its roof since {level.why_above}: {names}."] if above else []
