"""How each precision compares: our fastest kernel, and the fastest library."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from gemm_report.ladder.rows import by_precision, plain_layout, timed_rows
from gemm_report.record import Ceiling, Record, Row, rate

# From here on a library that is so much faster in another layout is on its slow path in this one.
_SLOW_PATH = 1.5


@dataclass(frozen=True)
class Standing:
    """The fastest of our kernels on each problem of one precision and layout."""

    rows: tuple[Row, ...]  # by size
    peak: Ceiling | None
    slow_library: bool  # whether the record has the library much faster in another layout

    @property
    def best(self) -> Row:
        """Where ours is fastest, of the problems that a library was timed on if there are any."""
        return max(self.rows, key=_merit)

    @property
    def name(self) -> str:
        """Of the best kernel, without its layout."""
        return "/".join(filter(None, (self.best.kernel, self.best.settings)))

    @property
    def library(self) -> float | None:
        """Rate of the fastest library on the same problem."""
        share = self.best.of_library
        return rate(self.best) / share if share else None

    @property
    def peak_at_clock(self) -> float | None:
        """The peak at the clock that the best row ran at."""
        if not (self.peak and self.peak.clock_hz and self.best.sm_hz):
            return None
        return (self.peak.flop_per_second or 0) * self.best.sm_hz / self.peak.clock_hz

    @property
    def compared(self) -> list[Row]:
        """Those on whose problem a library was timed."""
        return [row for row in self.rows if row.of_library]

    @property
    def of_library(self) -> float | None:
        """Geometric mean over all sizes that both have."""
        shares = [row.of_library for row in self.compared if row.of_library]
        return geometric_mean(shares) if shares else None

    @property
    def worst(self) -> Row | None:
        """The size that is farthest behind the library."""
        return min(self.compared, key=lambda row: row.of_library or 0, default=None)


def standings(record: Record) -> list[Standing]:
    """One for each precision that a kernel of ours has a time in."""
    found = []
    for precision, rows in by_precision(timed_rows(record)).items():
        ours = [row for row in rows if row.is_ours]
        if ours:
            best = max(ours, key=_merit)
            libraries = [r for r in rows if r.is_library and r.shape == best.shape]
            here = [rate(r) for r in libraries if r.layout == best.layout]
            slow = here and max(map(rate, libraries)) > _SLOW_PATH * max(here)
            peak = next(iter(record.compute_roofs(precision)), None)
            its_rows = fastest([row for row in ours if row.layout == best.layout])
            found.append(Standing(tuple(its_rows), peak, bool(slow)))
    return found


def fastest(rows: Sequence[Row]) -> list[Row]:
    """Of each problem the fastest, the smallest problem first."""
    best = {(row.volume, row.m, row.n, row.k): row for row in sorted(rows, key=rate)}
    return [best[key] for key in sorted(best)]


def _merit(row: Row) -> tuple[bool, bool, float]:
    plain = row.layout == plain_layout(row.precision)
    return row.of_library is not None, plain, rate(row)
