"""Whether NEW is slower than BASE: a verdict for every case, and one for all.

The argument:

1. Compared are medians, and their ratio's logarithm d = log(NEW / BASE): a slowdown of 3 % is as
   large for a kernel of a microsecond as for one of a second. Of several processes of a side, the
   mean of the log medians counts.
2. d is uncertain for two reasons. A process does not know its own median, because its samples
   scatter and are autocorrelated (within.py: a bootstrap of circular blocks). And fresh processes
   of equal code differ: in addresses, in clocks, in what a library finds best (between.py, from
   calibrations and repeated processes). That part is often the larger one, and no number of samples
   makes it smaller. The variance of d is the sum of both over both sides; the part between
   processes is divided by their number.
3. Both parts are estimates, and have few degrees of freedom: the interval of d takes the quantile
   of Student's t, with the degrees that Welch and Satterthwaite give to the sum.
4. A record has hundreds of cases. All intervals of a comparison together hold with 95 %: each is
   taken at 5 % over the number of cases (Bonferroni). Holm's procedure would find a little more,
   but gives no intervals, and the verdict is by interval. Two-sided: of comparisons of equal code
   at most one in forty calls any case slower, and with 100 cases one case in 4,000.
5. What matters is a threshold, by default 1 %. `same`: the whole interval lies within it. `slower`
   or `faster`: the interval excludes 0, and the estimate lies beyond the threshold. `ambiguous`:
   all else; the interval then holds a difference that would matter, and what is missing is told.
6. Some cases have levels: equal code runs at one of two speeds, each process at its own (modes.py).
   Of one process against one, the level's offset that comes nearest is taken out of d. What is left
   is judged, but never as `same`, and as slower only if NEW is: an offset may explain a change, it
   cannot prove that there was none. A level that no calibrated process showed is a false alarm: if
   4 % of the cases have one, taken by a third of the processes, simulation gives 1.9 in 1,000 cases
   with 4 calibrated processes, 1.0 with 6, 0.5 with 8 and 0.2 with 10.
7. A single process may be unlucky. So a case that is slower in time alone while the GPU was
   throttled, or though its machine code is the same, is `ambiguous` until three processes of each
   side agree: then it is the driver, the GPU or the arguments, and worth the alarm.

Cycles beside seconds (of the SM clock, by the timers of each sample) go through the same steps.
Where they changed by less than the threshold and half of what the seconds did, the GPU's clock is
the suspect, not the kernel.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, median
from typing import NamedTuple

from gemm_report.comparison.noise.between import GUESSED, Between, Model, Offset, groups_of
from gemm_report.comparison.noise.calibration import Calibration
from gemm_report.comparison.noise.moderation import Variance
from gemm_report.comparison.noise.within import LogMedian, log_median
from gemm_report.comparison.run import Run, Timed
from gemm_report.document import RecordError
from gemm_report.record import Row
from gemm_report.writing.quantity import change, megahertz

THRESHOLD = 0.01
ERROR_RATE = 0.05  # of a whole comparison

# More than these nobody will run.
_MOST_PROCESSES = 100
_MOST_SAMPLES = 100

# From so many processes of each side on, it is no bad luck of one.
_ENOUGH_PROCESSES = 3

_NO_OFFSET = Offset(0.0, 0.0)

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
        within = 1 / (1 + threshold) <= self.low and self.high <= 1 + threshold
        if within:
            return Verdict.SAME
        if self.low > 1 and self.ratio > 1 + threshold:
            return Verdict.SLOWER
        if self.high < 1 and self.ratio < 1 / (1 + threshold):
            return Verdict.FASTER
        return Verdict.AMBIGUOUS


@dataclass(frozen=True)
class Process:
    """A run, and what it knows of each case."""

    run: Run
    seconds: Mapping[str, LogMedian]
    cycles: Mapping[str, LogMedian]


@dataclass(frozen=True)
class Case:
    """A case that both sides timed.

    `ratio` is NEW over BASE as measured, `time` the interval after the `offset` of another level
    was taken out. Standard deviations are those of the log ratio.
    """

    name: str
    verdict: Verdict
    base_seconds: float
    new_seconds: float
    ratio: float
    offset: float | None
    time: Interval
    cycles: Interval | None
    within_sd: float
    between_sd: float
    noise: str
    suspect: str | None
    needs: str | None
    new_row: Row | None


@dataclass(frozen=True)
class Untimed:
    """A case that one side timed and the other did not, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """All that is to be told.

    `failed` were right in BASE and are wrong in NEW; `otherwise_failed` are wrong in NEW, and were
    wrong in BASE or not timed there.
    """

    base: tuple[Run, ...]
    new: tuple[Run, ...]
    threshold: float
    calibration: Calibration | None
    cases: tuple[Case, ...]
    failed: tuple[Untimed, ...]
    otherwise_failed: tuple[Untimed, ...]
    no_longer_timed: tuple[Untimed, ...]
    newly_timed: tuple[str, ...]
    only_base: tuple[str, ...]
    only_new: tuple[str, ...]
    common_shift: str | None

    def count(self, verdict: Verdict) -> int:
        """How many cases have it."""
        return sum(case.verdict is verdict for case in self.cases)

    @property
    def regressed(self) -> bool:
        """Whether anything is slower, or wrong now."""
        return bool(self.failed) or self.count(Verdict.SLOWER) > 0


def process(run: Run) -> Process:
    """Its medians, and how well it knows them."""
    timed = run.timed.values()
    return Process(
        run,
        {case.name: log_median(case.samples_seconds) for case in timed},
        {case.name: log_median(case.samples_cycles) for case in timed if case.samples_cycles},
    )


def compare(
    base: Sequence[Process],
    new: Sequence[Process],
    calibration: Calibration | None = None,
    threshold: float = THRESHOLD,
) -> Comparison:
    """Processes of equal code on either side, one or more; RecordError where nothing matches."""
    wrong_before = _wrong(base)
    right = {name: None for name in _names(base) if name not in wrong_before}
    wrong, timed_new = _wrong(new), _names(new)
    failed = [Untimed(name, reason) for name, reason in wrong.items() if name in right]
    names = [name for name in right if name in timed_new and name not in wrong]
    if not names and not failed:
        raise RecordError(
            f"{new[0].run.path}: has no timed case that {base[0].run.path} has too: "
            "give runs of the same cases"
        )
    found = {name: _timed(name, [*base, *new]) for name in names}
    groups = {name: groups_of(cases) for name, cases in found.items()}
    models = [
        Model(calibration, _repeated(names, base, new, at_clock), groups, at_clock)
        for at_clock in (False, True)
    ]
    cases = []
    for name in names:
        betweens = [model.of(found[name][-1], groups[name]) for model in models]
        cases.append(_case(name, base, new, betweens, ERROR_RATE / len(names), threshold))
    seen_base, seen_new = _seen(base), _seen(new)
    untimed_new = {name: reason for each in new for name, reason in each.run.untimed.items()}
    return Comparison(
        base=tuple(each.run for each in base),
        new=tuple(each.run for each in new),
        threshold=threshold,
        calibration=calibration,
        cases=tuple(sorted(cases, key=_attention)),
        failed=tuple(failed),
        otherwise_failed=tuple(
            Untimed(name, reason) for name, reason in wrong.items() if name not in right
        ),
        no_longer_timed=tuple(
            Untimed(name, untimed_new[name])
            for name in right
            if name in untimed_new and name not in wrong and name not in timed_new
        ),
        newly_timed=tuple(
            name
            for name in timed_new
            if name in seen_base and name not in right and name not in wrong
        ),
        only_base=tuple(name for name in seen_base if name not in seen_new),
        only_new=tuple(name for name in seen_new if name not in seen_base),
        common_shift=_common_shift(cases, threshold),
    )


def _case(
    name: str,
    base: Sequence[Process],
    new: Sequence[Process],
    betweens: Sequence[Between],
    error_rate: float,
    threshold: float,
) -> Case:
    sides = [[each for each in side if name in each.seconds] for side in (base, new)]
    seconds = [[each.seconds[name] for each in side] for side in sides]
    d = fmean(each.value for each in seconds[1]) - fmean(each.value for each in seconds[0])
    # The one that leaves the least to explain; mostly there is none.
    offset = min((_NO_OFFSET, *betweens[0].offsets), key=lambda offset: abs(d - offset.value))
    time, parts, quantile = _interval(seconds, betweens[0].variance, error_rate, offset)
    cycles = None
    if all(name in each.cycles for side in sides for each in side):
        medians = [[each.cycles[name] for each in side] for side in sides]
        cycles, _, _ = _interval(medians, betweens[1].variance, error_rate)
    rows = [side[-1].run.timed[name].row for side in sides]
    verdict = time.verdict(threshold)
    if offset.value and (verdict is Verdict.SAME or (verdict is Verdict.SLOWER) != (d > 0)):
        verdict = Verdict.AMBIGUOUS
    processes = min(map(len, sides))
    suspect, doubtful = _suspect(d, cycles, rows, offset, threshold)
    if doubtful and verdict is not Verdict.SAME and processes < _ENOUGH_PROCESSES:
        verdict = Verdict.AMBIGUOUS
    if doubtful:
        processes = max(processes, _ENOUGH_PROCESSES - 1)
    needs = _needs(time, parts, quantile, sides[1], name, processes, threshold)
    if offset.value:
        needs = "another run of NEW, until one is at the level of BASE"
    elif betweens[0].source in GUESSED:
        # A number from a guess would be one.
        needs = f"a calibration (tools/calibrate), or {_ENOUGH_PROCESSES} runs per side"
    means = [_exp(fmean(each.value for each in side)) for side in seconds]
    return Case(
        name=name,
        verdict=verdict,
        base_seconds=means[0],
        new_seconds=means[1],
        ratio=_exp(d),
        offset=_exp(offset.value) if offset.value else None,
        time=time,
        cycles=cycles,
        within_sd=math.sqrt(parts.within),
        between_sd=math.sqrt(parts.between),
        noise=betweens[0].source,
        suspect=None if verdict is Verdict.SAME else suspect,
        needs=needs if verdict is Verdict.AMBIGUOUS else None,
        new_row=rows[1],
    )


class _Parts(NamedTuple):
    """Of the variance of the log ratio."""

    within: float
    between: float


def _interval(
    sides: Sequence[Sequence[LogMedian]],
    between: Variance,
    error_rate: float,
    offset: Offset = _NO_OFFSET,
) -> tuple[Interval, _Parts, float]:
    """The ratio of NEW over BASE with its interval, its variance, and the quantile of that."""
    from scipy.special import stdtrit

    withins = [(each.variance / len(side) ** 2, each) for side in sides for each in side]
    share = sum(1 / len(side) for side in sides) + offset.factor
    parts = _Parts(sum(variance for variance, _ in withins), between.value * share)
    variance = parts.within + parts.between
    # Welch and Satterthwaite.
    spread = parts.between**2 / between.degrees
    spread += sum(value**2 / each.degrees for value, each in withins if each.degrees)
    degrees = variance**2 / spread if spread else between.degrees
    quantile = float(stdtrit(degrees, 1 - error_rate / 2))
    means = [fmean(each.value for each in side) for side in sides]
    d, reach = means[1] - means[0] - offset.value, quantile * math.sqrt(variance)
    return Interval(_exp(d), _exp(d - reach), _exp(d + reach)), parts, quantile


def _repeated(
    names: Sequence[str], base: Sequence[Process], new: Sequence[Process], at_clock: bool
) -> dict[str, Variance]:
    """What the processes of each side say of the noise between them."""
    repeated = {}
    for name in names:
        squares, degrees = 0.0, 0
        for side in (base, new):
            known = [each.cycles if at_clock else each.seconds for each in side]
            values = [medians[name].value for medians in known if name in medians]
            if len(values) > 1:
                mean = fmean(values)
                squares += sum((value - mean) ** 2 for value in values)
                degrees += len(values) - 1
        if degrees:
            repeated[name] = Variance(squares / degrees, degrees)
    return repeated


def _needs(
    time: Interval,
    parts: _Parts,
    quantile: float,
    new: Sequence[Process],
    name: str,
    processes: int,
    threshold: float,
) -> str:
    """What would make the interval so narrow that it leaves a verdict, if the ratio stays.

    More than `processes` of each, where samples will not do.
    """
    d, relevant = abs(math.log(time.ratio)), math.log1p(threshold)
    # Beside the threshold no number would do: there, half of it is asked for.
    reach = d if d > relevant else max(relevant - d, relevant / 2)
    wanted = (reach / quantile) ** 2
    if parts.within > parts.between and parts.between < wanted:
        factor = math.ceil(parts.within / (wanted - parts.between))
        if factor <= _MOST_SAMPLES:
            samples = [len(each.run.timed[name].samples_seconds) for each in new]
            return f"{factor} times the samples: {factor * round(median(samples))} in each run"
    needed = math.ceil(processes * (parts.within + parts.between) / wanted)
    needed = max(processes + 1, needed)
    if needed > _MOST_PROCESSES:
        return f"more than {_MOST_PROCESSES} runs per side: too noisy for {100 * threshold:g} %"
    return f"{needed} runs per side"


def _suspect(
    d: float,
    cycles: Interval | None,
    rows: Sequence[Row | None],
    offset: Offset,
    threshold: float,
) -> tuple[str | None, bool]:
    """What a change comes from where the rows tell, and whether that puts it in doubt."""
    base, new = rows
    suspects, doubtful = [], False
    relevant = math.log1p(threshold)
    if abs(d) < relevant:
        return None, False
    if offset.value:
        suspects.append(
            f"equal code was seen at two speeds, {change(_exp(offset.value))} apart: the interval "
            "is of what that leaves"
        )
    if base is None or new is None:
        return "; ".join(suspects) or None, doubtful
    codes = [row.fingerprint and (row.fingerprint, row.device_code) for row in (base, new)]
    changed = all(codes) and codes[0] != codes[1]
    if cycles and abs(math.log(cycles.ratio)) < min(relevant, abs(d) / 2):
        suspects.append(_clock(base, new))
        doubtful = (base.throttled or new.throttled) and not changed
    if base.device_kernels != new.device_kernels and base.device_kernels and new.device_kernels:
        kernels = ", ".join(new.device_kernels)
        rest = "…" if len(kernels) > _LONGEST_KERNEL else ""
        suspects.append(f"another GPU kernel ran: {kernels[:_LONGEST_KERNEL]}{rest}")
    elif changed:
        suspects.append("the machine code changed")
    elif all(codes):
        suspects.append("not the machine code, which is the same")
        doubtful = True
    return "; ".join(suspects) or None, doubtful


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
    ratios = [case.ratio for case in cases]
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


def _wrong(side: Sequence[Process]) -> dict[str, str]:
    """The cases whose result was wrong in any process, and how."""
    return {name: each.run.untimed[name] for each in side for name in sorted(each.run.failed)}


def _names(side: Sequence[Process]) -> dict[str, None]:
    """The cases with a time in any process, in their order."""
    return {name: None for each in side for name in each.seconds}


def _seen(side: Sequence[Process]) -> dict[str, None]:
    """The cases that are there at all."""
    return {name: None for each in side for name in (*each.run.timed, *each.run.untimed)}


def _timed(name: str, processes: Sequence[Process]) -> list[Timed]:
    return [each.run.timed[name] for each in processes if name in each.run.timed]


def _attention(case: Case) -> tuple[int, float]:
    """The worst first."""
    return list(Verdict).index(case.verdict), -abs(math.log(case.ratio))
