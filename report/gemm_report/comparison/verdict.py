"""Whether NEW is slower than BASE: a verdict for every case, and one for all.

docs/comparing.md has the verdicts and what they are worth. The argument:

1. Compared are medians, by the logarithm of their ratio, d = log(NEW / BASE). Of several processes
   of a side the mean of the log medians counts.
2. d is uncertain for two reasons. A process does not know its own median, because its samples
   scatter and are autocorrelated (within.py: a bootstrap of circular blocks). And fresh processes
   of equal code differ (between.py): often by more, and no number of samples makes that smaller.
   The variance of d is the sum of both over both sides; the part between processes is divided by
   their number. Both are estimates: the interval of d takes the quantile of Student's t, with the
   degrees of freedom that Welch and Satterthwaite give to the sum.
3. A record has hundreds of cases. All intervals of a comparison together hold with 95 %: each is
   taken at 5 % over the number of cases (Bonferroni). Holm's procedure would find a little more,
   but gives no intervals, and the verdict is by interval.
4. Equal code may run at several levels (levels.py), and each process gets one of them. Where the
   processes of a side show several, levels are compared: the fastest of both sides, the slowest of
   both, that of most processes, or the only one of a side with either of the other. The pair that
   is closest counts. Where processes ran different GPU kernels (a library chooses again in each),
   those of one that both sides ran are compared. What is left is judged, but never as `same`.
5. Levels can also part the two sides completely, and then look like a change. Of n processes a side
   this happens to such a case with a chance of at most 4^-n. Times the number of cases that show
   levels in this comparison, that must be below 5 %; else a change of up to 15 % is `ambiguous`,
   unless the machine code changed. Of fewer than three processes a side levels are not known: then
   changes of up to 15 % need a calibration, by whose cases with levels the chance is counted.
6. What could have been seen: a slowdown x is found if its estimate passes the end of the interval,
   the threshold and, where that applies, the 15 %. The estimate scatters around x like Student's t,
   so that the chance is known for every x: `detectable` is where it is 90 %, of a case, and on the
   average of all cases. It is that of a slowdown that comes with other machine code.

Cycles beside seconds (of the SM clock, by the timers of each sample) go through the same steps.
Where they changed by less than the threshold and half of what the seconds did, the GPU's clock is
the suspect, not the kernel; of fewer than three processes a side it is one unlucky process.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import product
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from gemm_report.comparison.conditions import library_changes
from gemm_report.comparison.noise.between import GUESSED, Groups, Model, groups_of
from gemm_report.comparison.noise.calibration import Calibration
from gemm_report.comparison.noise.levels import WIDEST, levels
from gemm_report.comparison.noise.moderation import Variance
from gemm_report.comparison.noise.table import table_of
from gemm_report.comparison.noise.within import LogMedian
from gemm_report.comparison.run import Run, Timed
from gemm_report.document import RecordError
from gemm_report.record import Row
from gemm_report.writing.quantity import change, megahertz

THRESHOLD = 0.01
ERROR_RATE = 0.05  # of a whole comparison

# More than these nobody will run.
_MOST_PROCESSES = 100
_MOST_SAMPLES = 100

# From so many processes of each side on, they show levels, and it is no bad luck of one.
ENOUGH_PROCESSES = 3

# Of slowdowns, so many are found that are as large as `detectable`.
POWER = 0.9

_LARGEST_LOG = 300.0

_LONGEST_KERNEL = 80

# Of so many cases the same change is no accident of one of them.
_FEWEST_SHIFTED = 8
_SHARE_SHIFTED = 0.75


class Verdict(Enum):
    """Of a case. The order is that of attention."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    FASTER = "faster"
    SAME = "same"


class Interval(NamedTuple):
    """Of the time of NEW over that of BASE."""

    ratio: float
    low: float
    high: float

    def verdict(self, threshold: float) -> Verdict:
        """By the definitions above; `threshold` is a fraction of the time."""
        if 1 / (1 + threshold) <= self.low and self.high <= 1 + threshold:
            return Verdict.SAME
        if self.low > 1 and self.ratio > 1 + threshold:
            return Verdict.SLOWER
        if self.high < 1 and self.ratio < 1 / (1 + threshold):
            return Verdict.FASTER
        return Verdict.AMBIGUOUS


class Estimate(NamedTuple):
    """Of the log ratio: it, its variance, and the degrees of freedom and the quantile of that.

    Of the variance within processes only what that between them does not contain is added.
    """

    d: float
    within: float
    between: float
    degrees: float
    quantile: float

    @property
    def sd(self) -> float:
        """Of the log ratio."""
        return math.hypot(math.sqrt(self.within), math.sqrt(self.between))

    @property
    def interval(self) -> Interval:
        """Of the ratio."""
        reach = self.quantile * math.sqrt(self.within + self.between)
        return Interval(*(_exp(self.d + each) for each in (0, -reach, reach)))


@dataclass(frozen=True)
class Case:
    """A case that both sides timed.

    `base_seconds` and `new_seconds` are means over processes; `estimate` and `cycles` are of NEW
    over BASE at the levels that are compared. A slowdown is found if its logarithm, which is known
    as well as the estimate says, comes out beyond `reach`.
    """

    name: str
    verdict: Verdict
    base_seconds: float
    new_seconds: float
    estimate: Estimate
    cycles: Interval | None
    noise: str
    suspect: str | None
    needs: str | None
    new_row: Row | None
    reach: float
    levels: int

    @property
    def time(self) -> Interval:
        """NEW over BASE at the levels that are compared."""
        return self.estimate.interval

    @property
    def ratio(self) -> float:
        """NEW over BASE of the means over all processes."""
        return self.new_seconds / self.base_seconds

    @property
    def excluded(self) -> float:
        """Which slowdown there is not, as a fraction, though an unknown level might hide some."""
        return self.time.high * (_exp(WIDEST) if self.noise in GUESSED else 1.0) - 1

    @property
    def detectable(self) -> float:
        """The smallest slowdown that is found with 90 % probability, as a fraction."""
        return detectable([self])


@dataclass(frozen=True)
class Comparison:
    """All that is to be told; of cases without a verdict their names, and why where that is known.

    `failed` were right in BASE and are wrong in NEW; `otherwise_failed` are wrong in NEW, and were
    wrong in BASE or not timed there.
    """

    base: Sequence[Run]
    new: Sequence[Run]
    threshold: float
    calibration: Calibration | None
    cases: Sequence[Case]
    failed: Mapping[str, str]
    otherwise_failed: Mapping[str, str]
    no_longer_timed: Mapping[str, str]
    newly_timed: Sequence[str]
    only_base: Sequence[str]
    only_new: Sequence[str]
    common_shift: str | None
    changed_libraries: Mapping[str, str]  # by name, what was and is
    other_library: Sequence[str]  # cases of these, which are not compared

    def count(self, verdict: Verdict) -> int:
        """How many cases have it."""
        return sum(case.verdict is verdict for case in self.cases)

    @property
    def missing(self) -> list[str]:
        """What had a time in BASE and has none in NEW, for whatever reason but a wrong result."""
        return [*self.no_longer_timed, *self.only_base]

    @property
    def detectable(self) -> float:
        """Of slowdowns so large, as a fraction, each in any of the cases, 90 % are found."""
        return detectable(self.cases)

    def unsure(self, wanted: float) -> bool:
        """Whether a slowdown of `wanted` might not be found, or may be there."""
        unclear = (case for case in self.cases if case.verdict is Verdict.AMBIGUOUS)
        seems = any(max(case.time.ratio, case.ratio) >= 1 + wanted for case in unclear)
        return bool(self.cases) and (seems or self.detectable > wanted)

    @property
    def regressed(self) -> bool:
        """Whether anything is slower, or wrong now."""
        return bool(self.failed) or self.count(Verdict.SLOWER) > 0


def detectable(cases: Sequence[Case]) -> float:
    """Of slowdowns so large (a fraction), each in any of these cases, 90 % are found."""
    if not cases:
        return math.inf
    known = [(case.reach, case.estimate.sd, case.estimate.degrees) for case in cases]
    reach, sd, degrees = np.array(known).T
    low, high = 0.0, float(np.max(reach + 20 * sd))
    while high - low > 1e-5 + 1e-4 * high:
        middle = (low + high) / 2
        found = float(np.mean(stdtr(degrees, (middle - reach) / np.maximum(sd, 1e-12))))
        low, high = (middle, high) if found < POWER else (low, middle)
    return _exp(high) - 1


def compare(
    base: Sequence[Run],
    new: Sequence[Run],
    calibration: Calibration | None = None,
    threshold: float = THRESHOLD,
    across_libraries: bool = False,
) -> Comparison:
    """Processes of equal code on either side, one or more; RecordError where nothing matches.

    A library of another release is no change of code: its cases are compared only if asked for.
    """
    sides = base, new
    # With a time in any process, in their order; and wrong in any process, and how.
    was, now = ({name: None for run in side for name in run.timed} for side in sides)
    wrong_before, wrong = (
        {name: run.untimed[name] for run in side for name in sorted(run.failed)} for side in sides
    )
    right = {name: None for name in was if name not in wrong_before}
    names = [name for name in right if name in now and name not in wrong]
    failed = {name: why for name, why in wrong.items() if name in right}
    changed = library_changes(*([run.record for run in side if run.record] for side in sides))
    others = [] if across_libraries else [name for name in names if _library(name, new, changed)]
    names = [name for name in names if name not in others]
    if others and not names and not failed:
        raise RecordError(
            f"{new[0].path}: has only cases of a library that changed "
            f"({'; '.join(f'{name} {told}' for name, told in changed.items())}): "
            "give --across-libraries to compare its releases"
        )
    if not names and not failed:
        raise RecordError(
            f"{new[0].path}: has no timed case that {base[0].path} has too: "
            "give runs of the same cases"
        )
    timed = [run.timed for run in (*base, *new)]
    rows = {name: [run[name].row for run in timed if name in run] for name in names}
    groups = {name: groups_of([row for row in its if row]) for name, its in rows.items()}
    table = table_of(new)
    scales = [_Scale(sides, groups, calibration, table, at_clock) for at_clock in (False, True)]
    mixed = sum(scales[0].pair(name).levels > 1 for name in names)
    rate = ERROR_RATE / max(len(names), 1)
    cases = [
        _case(name, sides, *scales, mixed, rate, threshold, _library(name, new, changed))
        for name in names
    ]
    order = list(Verdict)
    cases.sort(key=lambda case: (order.index(case.verdict), -abs(math.log(case.time.ratio))))
    seen, seen_now = (
        {name: None for run in side for name in (*run.timed, *run.untimed)} for side in sides
    )
    why_not = {name: why for run in new for name, why in run.untimed.items()}
    lost = [name for name in right if name not in wrong and name not in now]
    got = [name for name in now if name not in wrong and name not in right]
    return Comparison(
        base=base,
        new=new,
        threshold=threshold,
        calibration=calibration,
        cases=cases,
        failed=failed,
        otherwise_failed={name: why for name, why in wrong.items() if name not in right},
        no_longer_timed={name: why_not[name] for name in lost if name in why_not},
        newly_timed=[name for name in got if name in seen],
        only_base=[name for name in seen if name not in seen_now],
        only_new=[name for name in seen_now if name not in seen],
        common_shift=_common_shift(cases, threshold),
        changed_libraries=changed,
        other_library=others,
    )


def _library(name: str, side: Sequence[Run], changed: Mapping[str, str]) -> str | None:
    """How the library changed that this case is of; None where it is of none, or of the same."""
    row = next((run.timed[name].row for run in side if name in run.timed), None)
    if row is None or not row.is_library:
        return None
    return next((told for of, told in changed.items() if of.lower() == row.kernel.lower()), None)


class _Pair(NamedTuple):
    """The log medians of one level of each side, and how many levels the side with more has."""

    base: Sequence[LogMedian]
    new: Sequence[LogMedian]
    levels: int

    @property
    def d(self) -> float:
        """The log ratio."""
        return fmean(each.value for each in self.new) - fmean(each.value for each in self.base)


class _Scale:
    """Seconds, or cycles: what both sides measured of each case, and the noise of that."""

    def __init__(
        self,
        sides: Sequence[Sequence[Run]],
        groups: Mapping[str, Groups],
        calibration: Calibration | None,
        table: Mapping[str, Variance],
        at_clock: bool,
    ) -> None:
        # By case and side the log medians, by the GPU kernels that the processes ran.
        self._sides = {
            name: [_by_kernels(name, side, at_clock) for side in sides] for name in groups
        }
        alike = {
            name: [[each.value for each in group] for side in both for group in side.values()]
            for name, both in self._sides.items()
        }
        self.model = Model(calibration, alike, groups, table, at_clock)
        self.pair = cache(self._pair)

    def _pair(self, name: str) -> _Pair:
        """The processes of both sides that are compared."""
        base, new = self._sides[name]
        both = [kernels for kernels in base if kernels in new]
        if both:
            kernels = max(both, key=lambda each: min(len(base[each]), len(new[each])))
            medians = [base[kernels], new[kernels]]
        else:
            medians = [[each for group in side.values() for each in group] for side in (base, new)]
        usual = self.model.usual(name).value
        found = [
            [[side[i] for i in level] for level in levels([x.value for x in side], usual)]
            for side in medians
        ]
        marked = ((side[0], side[-1], max(side, key=len)) for side in found)
        candidates = zip(*marked, strict=True) if min(map(len, found)) > 1 else product(*found)
        most = max(len(each) for each in (*found, *((base, new) if both else ())))
        return min((_Pair(*each, most) for each in candidates), key=lambda pair: abs(pair.d))


def _by_kernels(
    name: str, side: Sequence[Run], at_clock: bool
) -> dict[tuple[str, ...], list[LogMedian]]:
    found: dict[tuple[str, ...], list[LogMedian]] = {}
    for case in (run.timed[name] for run in side if name in run.timed):
        if known := case.medians[at_clock]:
            found.setdefault(case.row.device_kernels if case.row else (), []).append(known)
    return found


def _case(
    name: str,
    runs: Sequence[Sequence[Run]],
    seconds: _Scale,
    cycles: _Scale,
    mixed: int,
    error_rate: float,
    threshold: float,
    library: str | None,
) -> Case:
    sides = [[run.timed[name] for run in side if name in run.timed] for side in runs]
    pair, relevant = seconds.pair(name), math.log1p(threshold)
    variance, source = seconds.model.of(name)
    estimate = _estimate(pair, variance, error_rate)
    at_clock = None
    if all(case.medians[1] for side in sides for case in side):
        of_cycles, _ = cycles.model.of(name)
        at_clock = _estimate(cycles.pair(name), of_cycles, error_rate).interval
    rows = [side[-1].row for side in sides]
    fewest = min(map(len, sides))
    few = fewest < ENOUGH_PROCESSES
    suspects, changed, unlucky = _suspects(pair.d, at_clock, rows, relevant)
    if pair.levels > 1:
        suspects.insert(0, "equal processes ran at several speeds, and the closest are compared")
    if library:
        suspects.insert(0, f"another release of the library: {library}")
    busy = _busy(sides[1] if pair.d > 0 else sides[0], sides[0] if pair.d > 0 else sides[1])
    if busy and abs(pair.d) > relevant:
        suspects.insert(0, f"a busy host: others had {100 * busy:.0f} % of its CPUs")

    guessed = few and source in GUESSED
    # How many cases of equal code have sides that only levels part.
    parted = seconds.model.parted(name, abs(pair.d)) if few else mixed * 0.25**fewest
    by_levels = parted >= ERROR_RATE and (not changed or guessed)
    # The power limit moves the clock of equal processes, however many there are.
    capped = unlucky and all(row and row.throttled for row in rows)
    doubtful = by_levels or capped or (unlucky and few)

    verdict = estimate.interval.verdict(threshold)
    may_be_levels = doubtful and abs(pair.d) < WIDEST
    if pair.levels > 1 if verdict is Verdict.SAME else may_be_levels:
        verdict = Verdict.AMBIGUOUS
    if busy and verdict is not Verdict.SAME:  # there is no limit to what that may do
        verdict = Verdict.AMBIGUOUS
    needs = None
    if verdict is Verdict.AMBIGUOUS:
        if busy:
            needs = "a quiet host"
        elif few and (doubtful or guessed):
            needs = f"{ENOUGH_PROCESSES} runs per side, or a calibration (tools/calibrate)"
        elif capped:
            needs = "a fixed clock: the same code took as many cycles on a throttled GPU"
        elif by_levels and abs(pair.d) > relevant:
            needs = f"{processes_for(mixed)} runs per side: {mixed} cases ran at several speeds"
        else:
            samples = [len(case.samples_seconds) for case in sides[1]]
            needs = _needs(estimate, median(samples), fewest, threshold)
    reach = max(relevant, estimate.quantile * estimate.sd)
    means = [_exp(fmean(case.medians[0].value for case in side)) for side in sides]
    return Case(
        name=name,
        verdict=verdict,
        base_seconds=means[0],
        new_seconds=means[1],
        estimate=estimate,
        cycles=at_clock,
        noise=source,
        suspect="; ".join(suspects) or None if verdict is not Verdict.SAME else None,
        needs=needs,
        new_row=rows[1],
        reach=max(reach, WIDEST) if guessed else reach,
        levels=pair.levels,
    )


def _busy(slower: Sequence[Timed], other: Sequence[Timed]) -> float | None:
    """Which share of the CPUs others had where that may be why a side is slower; else None.

    Where each side has processes enough, load that came to both is in the noise between them.
    """
    shares, others = (
        [row.host.others_share for row in (case.row for case in side) if row and row.host]
        for side in (slower, other)
    )
    disturbed = [case.row is not None and case.row.disturbed for case in slower]
    enough = min(len(slower), len(other)) >= ENOUGH_PROCESSES
    if not any(disturbed) or not shares:
        return None
    if enough and not (all(disturbed) and min(shares) > max(others, default=0)):
        return None
    return max(shares)


def processes_for(mixed: int) -> int:
    """A side, to show that no level parts the sides where so many cases have levels."""
    return max(ENOUGH_PROCESSES, math.floor(math.log(mixed / ERROR_RATE, 4)) + 1)


def _estimate(pair: _Pair, noise: Variance, error_rate: float) -> Estimate:
    """Of NEW over BASE; `noise` is that between processes."""
    sides = (pair.base, pair.new)
    withins = [(each.variance / len(side) ** 2, each) for side in sides for each in side]
    observed = sum(variance for variance, _ in withins)
    between = noise.value * sum(1 / len(side) for side in sides)
    within = max(0.0, observed - between)
    # Welch and Satterthwaite.
    spread = between**2 / noise.degrees
    if observed:
        spread += sum((v * within / observed) ** 2 / each.degrees for v, each in withins)
    degrees = (within + between) ** 2 / spread if spread else noise.degrees
    return Estimate(pair.d, within, between, degrees, float(stdtrit(degrees, 1 - error_rate / 2)))


def _needs(estimate: Estimate, samples: float, processes: int, threshold: float) -> str:
    """What would make the interval so narrow that it leaves a verdict, if the ratio stays."""
    d, relevant = abs(math.log(estimate.interval.ratio)), math.log1p(threshold)
    # Beside the threshold no number would do: there, half of it is asked for.
    reach = d if d > relevant else max(relevant - d, relevant / 2)
    wanted = (reach / estimate.quantile) ** 2
    whole = estimate.within + estimate.between
    if estimate.within > estimate.between and estimate.between < wanted:
        factor = math.ceil(whole / wanted)
        if factor <= _MOST_SAMPLES:
            return f"{factor} times the samples: {factor * round(samples)} in each run"
    needed = max(processes + 1, math.ceil(processes * whole / wanted))
    if needed > _MOST_PROCESSES:
        return f"more than {_MOST_PROCESSES} runs per side: too noisy for {100 * threshold:g} %"
    return f"{needed} runs per side"


def _suspects(
    d: float, cycles: Interval | None, rows: Sequence[Row | None], relevant: float
) -> tuple[list[str], bool, bool]:
    """What a change comes from; whether the code changed, and only a throttled GPU's clock did."""
    base, new = rows
    if base is None or new is None:
        return [], False, False
    codes = [row.fingerprint and (row.fingerprint, row.device_code) for row in (base, new)]
    kernels = base.device_kernels, new.device_kernels
    other_kernel = all(kernels) and kernels[0] != kernels[1]
    changed = bool(all(codes) and codes[0] != codes[1])
    if abs(d) < relevant:
        return [], changed, False
    suspects, unlucky = [], False
    if cycles and abs(math.log(cycles.ratio)) < min(relevant, abs(d) / 2):
        suspects.append(_clock(base, new))
        unlucky = (base.throttled or new.throttled) and not changed
    if other_kernel:
        told = ", ".join(new.device_kernels)
        rest = "…" if len(told) > _LONGEST_KERNEL else ""
        suspects.append(f"another GPU kernel ran: {told[:_LONGEST_KERNEL]}{rest}")
    elif changed:
        suspects.append("the machine code changed")
    elif all(codes):
        suspects.append("the machine code is the same: driver, clock, power limit or operands")
    return suspects, changed, unlucky


def _clock(base: Row, new: Row) -> str:
    """What happened to the clock."""
    told = "clock"
    if base.sm_hz and new.sm_hz:
        told += f" {megahertz(base.sm_hz)} to {megahertz(new.sm_hz)}"
    held = next((row for row in (new, base) if row.held_by), None)
    if held:
        power = f" at {held.power_w:.0f} W" if held.power_w else ""
        told += f" ({', '.join(held.held_by)}{power})"
    return told


def _common_shift(cases: Sequence[Case], threshold: float) -> str | None:
    """One line where most cases have moved together, which a change of one kernel does not do."""
    if len(cases) < _FEWEST_SHIFTED:
        return None
    ratios = [case.time.ratio for case in cases]
    middle = median(ratios)
    moved = sum((ratio > 1) == (middle > 1) for ratio in ratios)
    if abs(math.log(middle)) < math.log1p(threshold) / 2 or moved < _SHARE_SHIFTED * len(cases):
        return None
    way = "slower" if middle > 1 else "faster"
    told = f"common shift: {moved} of {len(cases)} cases are {way}, by {change(middle)} at median"
    at_clock = [case.cycles.ratio for case in cases if case.cycles]
    if at_clock:
        told += f", {change(median(at_clock))} in cycles"
    return f"{told}: look at the GPU (clock, power, driver) and the build before the kernels"


def _exp(value: float) -> float:
    """A number, however far off; little is known where the degrees of freedom are few."""
    return math.exp(max(-_LARGEST_LOG, min(_LARGEST_LOG, value)))
