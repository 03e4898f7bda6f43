"""How each precision compares with the library, problem by problem, and what bounds a row."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from gemm_report.comparison.rule import SPREAD
from gemm_report.grouping import grouped
from gemm_report.notes import slowed
from gemm_report.record import Ceiling, Record, Row, Versus, rate
from gemm_report.rows import USUAL_SIZE, by_precision, facts, limits, plain_layout, timed_rows
from gemm_report.text import precision_name

# Of interest for what they cost, not for how fast they are.
_MINOR = ("s32", "tf32x3")
# What a reader asks for first; others come after, in the order of the record.
_FIRST = ("bf16", "f16", "e4m3", "e4m3fast", "s8", "tf32", "f32", "f64")
_KINDS = ("plain", "grouped", "batched")
# From here on a library that is so much faster in another layout is on its slow path in this one.
_SLOW_PATH = 1.5
# Times the spread that compare assumes of fresh processes: 95 % by its 3 degrees of freedom.
_T = 3.18
_LAUNCH = 10e-6  # seconds in which begin and end of a launch count
_NEAR = 0.6  # of the DRAM roof


@dataclass(frozen=True)
class Pair:
    """Our fastest kernel on one problem, and the fastest library there."""

    ours: Row
    library: Row | None
    device: str  # its kind

    @property
    def ratio(self) -> float | None:
        """Speed over that of the library; interleaved where the record has that."""
        if self._interleaved:
            return self._interleaved.ratio
        return rate(self.ours) / rate(self.library) if self.library else self.ours.of_library

    @property
    def interval(self) -> tuple[float, float]:
        """Of the ratio: by its own interval or those of the medians, and the noise of compare."""
        ratio, sides = self.ratio or 1.0, [row for row in (self.ours, self.library) if row]
        throttled = any(row.throttled for row in sides)
        kind = "throttled" if throttled else {"gpu": "GPU", "cpu": "CPU"}[self.device]
        if self._interleaved:
            halves = [math.log(self._interleaved.high / self._interleaved.low) / 2]
        else:
            halves = [(row.median_interval or 0) / 2 for row in sides]
        reach = math.hypot(_T * SPREAD[kind], *halves)
        return ratio * math.exp(-reach), ratio * math.exp(reach)

    @property
    def _interleaved(self) -> Versus | None:
        return self.ours.versus if self.ours.versus and self.ours.versus.library else None

    @property
    def in_doubt(self) -> bool:
        """Whether a figure of it is; an interleaved ratio has an interval of its own."""
        if self._interleaved:
            return False
        return any(row is not None and bool(row.doubts) for row in (self.ours, self.library))

    @property
    def opponent(self) -> str:
        """The library: cuBLASLt."""
        row, versus = self.library, self._interleaved
        label = row.kernel if row else versus.kernel if versus else self.ours.library or ""
        return label.partition("/")[0]

    @property
    def library_rate(self) -> float | None:
        """FLOP/s of the library, where the record has it."""
        if self.library is None and self._interleaved and self._interleaved.seconds:
            return self.ours.flop / self._interleaved.seconds
        return rate(self.library) if self.library else None

    @property
    def verdict(self) -> str:
        """win, tie, loss, doubt, or none without a library."""
        low, high = self.interval
        if self.ratio is None:
            return "none"
        if self.in_doubt:
            return "doubt"
        return "win" if low > 1 else "loss" if high < 1 else "tie"


def pair_facts(pair: Pair, **others: object) -> dict[str, object]:
    """Of the data of a figure: ours, the library, and the ratio with its interval."""
    names = "precision", "layout", "size", "flop_per_second"
    low, high = pair.interval
    told: dict[str, object] = {"library": pair.library and pair.library.label}
    told |= {"library_flop_per_second": pair.library_rate, "ratio": pair.ratio}
    told |= {"low": low, "high": high, "verdict": pair.verdict}
    return facts(pair.ours, *names, **told, **others)


@dataclass(frozen=True)
class Standing:
    """The problems of one precision, kind and layout, the smallest first."""

    precision: str
    layout: str
    pairs: tuple[Pair, ...]
    peak: Ceiling | None
    slow_library: bool
    kind: str  # plain, grouped, batched

    @property
    def name(self) -> str:
        """For titles: BF16, and BF16, grouped."""
        kind = "" if self.kind == "plain" else f", {self.kind}"
        return precision_name(self.precision) + kind

    @property
    def lead(self) -> Pair:
        """At 4096, else at the largest cube, else at the largest problem."""

        def merit(pair: Pair) -> tuple[bool, bool, int]:
            row = pair.ours
            return row.is_cube and row.m == USUAL_SIZE, row.is_cube, row.volume

        return max(self.pairs, key=merit)

    @property
    def compared(self) -> list[Pair]:
        """Those that say something: of a library that is not on its slow path."""
        return [] if self.slow_library else [each for each in self.pairs if each.ratio]

    @property
    def mean(self) -> float | None:
        """Geometric mean of the ratios."""
        ratios = [pair.ratio for pair in self.compared if pair.ratio]
        return geometric_mean(ratios) if ratios else None

    @property
    def worst(self) -> Pair | None:
        """The problem that is farthest behind the library."""
        return min(self.compared, key=lambda pair: pair.ratio or 0, default=None)

    @property
    def peak_at_clock(self) -> float | None:
        """The peak at the clock that the row in the lead ran at."""
        clock, peak = self.lead.ours.sm_hz, self.peak
        if not (peak and peak.clock_hz and clock):
            return None
        return (peak.flop_per_second or 0) * clock / peak.clock_hz

    @property
    def why_not(self) -> str:
        """Nothing is compared."""
        if self.slow_library:
            return f"the library has no fast kernel in layout {self.layout}"
        return f"no library timed in layout {self.layout}"


def standings(record: Record) -> list[Standing]:
    """One for each precision and kind of problem that a kernel of ours has a time in.

    Minor precisions only alone; epilogues are left out.
    """
    groups = by_precision(row for row in timed_rows(record) if row.epilogue == "none")
    main = {precision: rows for precision, rows in groups.items() if precision not in _MINOR}
    has_main = any(row.is_ours for rows in main.values() for row in rows)
    chosen = main if has_main else groups
    kinds = {p: grouped(rows, lambda row: row.kind) for p, rows in chosen.items()}
    found = [kinds[p][kind] for p in in_order(chosen) for kind in _KINDS if kind in kinds[p]]
    return [_standing(record, rows) for rows in found if any(row.is_ours for row in rows)]


def in_order(precisions: Iterable[str]) -> list[str]:
    """As readers ask for them."""
    known = {name: i for i, name in enumerate(_FIRST)}
    return sorted(precisions, key=lambda name: known.get(name, len(known)))


def _standing(record: Record, rows: Sequence[Row]) -> Standing:
    """In the layout in which most problems have a library, of several the plain one."""
    precision = rows[0].precision
    libraries = [row for row in rows if row.is_library]
    problems = {(row.layout, row.shape) for row in libraries}

    def merit(layout: str) -> tuple[int, bool]:
        its = {row.shape for row in rows if row.is_ours and row.layout == layout}
        both = sum((layout, shape) in problems for shape in its)
        return both, layout == plain_layout(precision)

    layout = max(sorted({row.layout for row in rows if row.is_ours}), key=merit)
    here = [row for row in rows if row.layout == layout]
    best = {row.shape: row for row in winners(row for row in here if row.is_library)}
    ours = winners(row for row in here if row.is_ours)
    pairs = tuple(Pair(row, best.get(row.shape), record.device.kind) for row in ours)
    peak = next(iter(record.compute_roofs(precision)), None)
    slow = bool(best) and _is_slow(libraries, precision, layout)
    return Standing(precision, layout, pairs, peak, slow, rows[0].kind)


def _is_slow(libraries: Sequence[Row], precision: str, layout: str) -> bool:
    """Where tensor cores need another layout, or the record has the library much faster in one."""
    if plain_layout(precision) == "nt" != layout:
        return True
    here = {row.shape: rate(row) for row in libraries if row.layout == layout}
    return any(rate(row) > _SLOW_PATH * here.get(row.shape, math.inf) for row in libraries)


def winners(rows: Iterable[Row]) -> list[Row]:
    """Of each problem the fastest, the smallest problem first; one in doubt must be so by 5 %."""

    def merit(row: Row) -> float:
        return rate(row) * (0.95 if bool(row.doubts) else 1)

    best = {(row.volume, row.m, row.n, row.k, row.shape): row for row in sorted(rows, key=merit)}
    return [best[key] for key in sorted(best)]


def bound(record: Record, row: Row) -> str:
    """What keeps a row from being faster, as far as the record tells; else a dash."""
    if record.device.kind != "gpu" or row.status != "timed" or row.seconds is None:
        return "-"
    if row.seconds.median < _LAUNCH:
        return "launch"
    peaks = record.compute_roofs(row.precision)
    memory = (
        row.roof and peaks and row.roof.flop_per_second < 0.999 * (peaks[0].flop_per_second or 0)
    )
    if memory and (row.of_roof_nominal or 0) > _NEAR:
        return "DRAM"
    blocks = max((code.blocks or 0 for code in row.device_code), default=0)
    sms = record.device.sm_count or 0
    if 0 < blocks < 0.9 * sms:
        return "tiles"
    if slowed(record, row):
        return row.held_by[0] if row.held_by else "clock"
    lowest = next(iter(limits(record, row)), None)
    if lowest is None:
        return "-"
    if lowest.flop_per_byte is not None:
        return lowest.resource
    return "tensor cores" if "tensor" in lowest.resource else "issue slots"
