"""Whether NEW is slower than BASE: what both sides timed, judged by the rule, and how it ends."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from statistics import geometric_mean, median

import numpy as np

from gemm_report.comparison.conditions import library_changes
from gemm_report.comparison.rule import (
    APART,
    ENOUGH,
    THRESHOLD,
    TWO_SPEEDS,
    Change,
    Judgement,
    Verdict,
    judge,
    parted,
)
from gemm_report.comparison.run import Run, cycles_of
from gemm_report.document import RecordError
from gemm_report.record import Row
from gemm_report.text import change, megahertz

_MOST_PROCESSES = 100  # more than these nobody will run
_LONGEST_KERNEL = 80
_MOST_UNSEEN = 0.05  # of the cases, that a comparison may end with 0


class Ending(IntEnum):
    """The exit codes of a comparison; docs/ci.md has their order."""

    OK = 0
    REGRESSION = 1
    NOT_ENOUGH = 2
    WRONG = 5
    MISSING = 6
    REFUSED = 7


@dataclass(frozen=True)
class Case:
    """A case that both sides timed.

    `base_seconds` and `new_seconds` are geometric means over processes, `cycles` the ratio of the
    SM cycles where they are known.
    """

    name: str
    verdict: Verdict
    change: Change
    base_seconds: float
    new_seconds: float
    cycles: float | None
    suspect: str | None
    needs: str | None
    new_row: Row

    @property
    def ratio(self) -> float:
        """Of the times, NEW over BASE, at the levels that are compared."""
        return _exp(self.change.d)

    @property
    def of_means(self) -> float:
        """The ratio of the means over all processes."""
        return self.new_seconds / self.base_seconds

    @property
    def interval(self) -> tuple[float, float]:
        """Of the ratio; those of all cases together hold with 95 %."""
        d, reach = self.change.d, self.change.reach
        return _exp(d - reach), _exp(d + reach)

    @property
    def detectable(self) -> float:
        """The smallest slowdown, a fraction, that is called slower with 90 % probability."""
        return _exp(self.change.detectable) - 1


@dataclass(frozen=True)
class Comparison:
    """All that is to be told.

    `failed` are wrong in NEW, `missing` have a time in BASE and none in some processes of NEW, and
    `added` have a time in NEW alone. `across` are the conditions that differ and were asked for.
    """

    base: Sequence[Run]
    new: Sequence[Run]
    threshold: float
    cases: Sequence[Case]
    judgement: Judgement
    failed: Mapping[str, str]
    missing: Mapping[str, str]
    added: Sequence[str]
    across: Mapping[str, str]
    wanted: float
    strict: bool
    allow_missing: bool

    def count(self, verdict: Verdict) -> int:
        """How many cases have it."""
        return sum(case.verdict is verdict for case in self.cases)

    @property
    def processes(self) -> int:
        """Of the side that has fewer."""
        return min(len(self.base), len(self.new))

    @property
    def detectable(self) -> float:
        """A slowdown so large, a fraction, in one case would not be green: in 95 % of the cases."""
        noticed = sorted(case.change.noticed for case in self.cases)
        at = len(noticed) - 1 - int(_MOST_UNSEEN * len(noticed))
        return _exp(noticed[at]) - 1 if noticed else math.inf

    @property
    def unseen(self) -> int:
        """In how many cases a slowdown of `wanted` might have passed."""
        return self.judgement.unseen(self.wanted)

    @property
    def two_speeds(self) -> int:
        """How many cases ran at two speeds in equal processes."""
        return sum(case.change.gap > 0 for case in self.cases)

    @property
    def settled_by(self) -> int:
        """How many processes a side leave nothing to two speeds."""
        rarer = [case.change.rarer for case in self.cases if case.change.gap]
        some = range(max(self.processes, ENOUGH), _MOST_PROCESSES)
        return next((n for n in some if not parted(rarer, n)), _MOST_PROCESSES)

    @property
    def regressed(self) -> bool:
        """Whether a case is slower."""
        return self.count(Verdict.SLOWER) > 0

    @property
    def ending(self) -> Ending:
        """The first that applies."""
        unclear = (case for case in self.cases if case.verdict is Verdict.AMBIGUOUS)
        doubtful = any(max(case.ratio, case.of_means) > 1 + self.wanted for case in unclear)
        few = self.judgement.doubtful or self.unseen > _MOST_UNSEEN * len(self.cases)
        strict = self.strict and (self.count(Verdict.AMBIGUOUS) or self.unseen)
        endings = (
            (Ending.WRONG, self.failed),
            (Ending.REGRESSION, self.regressed),
            (Ending.MISSING, self.missing and not self.allow_missing),
            (Ending.NOT_ENOUGH, few or doubtful or strict),
        )
        return next((ending for ending, applies in endings if applies), Ending.OK)


def compare(
    base: Sequence[Run],
    new: Sequence[Run],
    threshold: float = THRESHOLD,
    across: Mapping[str, str] | None = None,
    wanted: float | None = None,
    strict: bool = False,
    allow_missing: bool = False,
) -> Comparison:
    """Processes of equal code on either side; RecordError where nothing matches.

    `wanted` is a slowdown that must not pass unseen: by default 10 %, or twice the threshold.
    """
    was, now = ({name: None for run in side for name in run.timed} for side in (base, new))
    wrong_before, wrong = (
        {name: run.untimed[name] for run in side for name in sorted(run.failed)}
        for side in (base, new)
    )
    right = [name for name in was if name not in wrong_before and name not in wrong]
    names = [name for name in right if name in now]
    missing = {name: why for name in right if (why := _lost(name, new))}
    if not (names or wrong or missing):
        raise RecordError(
            f"{new[0].record.path}: has no timed case that {base[0].record.path} has too: "
            "give runs of the same cases"
        )
    usual = "GPU" if new[0].record.device.kind == "gpu" else "CPU"
    rows = [_of(name, (*base, *new)) for name in names]
    kinds = ["throttled" if any(row.throttled for row in its) else usual for its in rows]
    cycles = _logs(base, names, cycles_of), _logs(new, names, cycles_of)
    seconds = attrgetter("samples_seconds")
    times = _logs(base, names, seconds), _logs(new, names, seconds)
    judgement = judge(*times, kinds, threshold, cycles)
    changed = library_changes(*([run.record for run in side] for side in (base, new)))
    cases = [
        _case(name, base, new, at, (cycles[0][:, i], cycles[1][:, i]), changed, threshold)
        for i, (name, at) in enumerate(zip(names, judgement.cases, strict=True))
    ]
    order = list(Verdict)
    cases.sort(key=lambda case: (order.index(case.verdict), -abs(case.change.d)))
    return Comparison(
        base=base,
        new=new,
        threshold=threshold,
        cases=cases,
        judgement=judgement,
        failed=wrong,
        missing=missing,
        added=[name for name in now if name not in was and name not in wrong],
        across=across or {},
        wanted=wanted or max(0.1, 2 * threshold),
        strict=strict,
        allow_missing=allow_missing,
    )


def _of(name: str, side: Sequence[Run]) -> list[Row]:
    return [run.timed[name] for run in side if name in run.timed]


def _lost(name: str, new: Sequence[Run]) -> str | None:
    """In how many processes a case has no time, and why; None where all have it."""
    without = [run for run in new if name not in run.timed]
    if not without:
        return None
    why = next((run.untimed[name] for run in without if name in run.untimed), "it is gone")
    return why if len(new) == 1 else f"in {len(without)} of {len(new)} processes: {why}"


def _logs(
    side: Sequence[Run], names: Sequence[str], of: Callable[[Row], Sequence[float]]
) -> np.ndarray:
    """Log medians [process, case] of a row's samples, NaN where there is none."""
    values = np.full((len(side), len(names)), math.nan)
    for i, run in enumerate(side):
        for j, name in enumerate(names):
            if name in run.timed and (samples := of(run.timed[name])):
                values[i, j] = math.log(median(samples))
    return values


def _case(
    name: str,
    base: Sequence[Run],
    new: Sequence[Run],
    found: Change,
    cycles: tuple[np.ndarray, np.ndarray],
    libraries: Mapping[str, str],
    threshold: float,
) -> Case:
    relevant = math.log1p(threshold)
    sides = [_of(name, side) for side in (base, new)]
    at_clock = float(cycles[1][list(found.new)].mean() - cycles[0][list(found.base)].mean())
    known = None if math.isnan(at_clock) else at_clock
    was, now = (side[-1] for side in sides)
    suspects, needs, verdict = [], None, found.verdict
    if found.perhaps == TWO_SPEEDS or verdict not in (Verdict.SAME, Verdict.AMBIGUOUS):
        suspects = _suspects(found.d, known, was, now, libraries, relevant)
    slower = sides[found.d > 0]
    busy = _busy(slower, sides[found.d <= 0])
    if busy and abs(found.d) > relevant:
        verdict, needs = Verdict.AMBIGUOUS, "a quiet host"
        suspects.insert(0, f"a busy host: others had {100 * busy:.0f} % of its CPUs")
    elif verdict is Verdict.CLOCK:
        needs = "a fixed clock: the cycles are the same, and the power limit moved the clock"
    elif found.perhaps == TWO_SPEEDS:
        needs = "more runs per side: it may be two speeds"
    elif verdict is Verdict.AMBIGUOUS:
        needs = f"{ENOUGH} runs per side" if found.perhaps else _needs(found, relevant)
    if found.gap:
        suspects.insert(0, "equal processes ran at two speeds, and the closest are compared")
    old, seconds = (geometric_mean(median(e.samples_seconds) for e in side) for side in sides)
    ratio = None if known is None else _exp(known)
    suspect = "; ".join(suspects) or None
    return Case(name, verdict, found, old, seconds, ratio, suspect, needs, now)


def _needs(found: Change, relevant: float) -> str | None:
    """How many processes would leave a verdict, if the change stays."""
    d = abs(found.d)
    # Beside the threshold no number would do: there, half of it is asked for.
    wanted = d if d > relevant else max(relevant - d, relevant / 2)
    if found.reach <= wanted:
        return None
    needed = math.ceil(found.processes * (found.reach / wanted) ** 2)
    if needed > _MOST_PROCESSES:
        return f"more than {_MOST_PROCESSES} runs per side"
    return f"{max(needed, found.processes + 1)} runs per side"


def _busy(slower: Sequence[Row], other: Sequence[Row]) -> float | None:
    """Which share of the CPUs others had where that may be why a side is slower; else None.

    Where each side has processes enough, load that came to both is in the spread.
    """
    shares, others = (
        [row.host.others_share for row in side if row.host] for side in (slower, other)
    )
    disturbed = [row.disturbed for row in slower]
    enough = min(len(slower), len(other)) >= ENOUGH
    if not any(disturbed) or not shares:
        return None
    if enough and not (all(disturbed) and min(shares) > max(others, default=0)):
        return None
    return max(shares)


def _suspects(
    d: float,
    cycles: float | None,
    base: Row,
    new: Row,
    libraries: Mapping[str, str],
    relevant: float,
) -> list[str]:
    """What a change may come from."""
    suspects = []
    release = next((told for n, told in libraries.items() if n.lower() == new.kernel.lower()), None)
    if release and new.is_library:
        suspects.append(f"another release of the library: {release}")
    if cycles is not None and abs(cycles) < min(relevant, abs(d) / 2):
        suspects.append(_clock(base, new))
    plans = [row.plan and row.plan.name for row in (base, new)]
    if all(plans) and plans[0] != plans[1]:
        suspects.append(f"another plan: {plans[0]} in BASE, {plans[1]} in NEW")
    codes = [row.fingerprint and (row.fingerprint, row.device_code) for row in (base, new)]
    kernels = base.device_kernels, new.device_kernels
    if all(kernels) and kernels[0] != kernels[1]:
        told = ", ".join(new.device_kernels)
        rest = "…" if len(told) > _LONGEST_KERNEL else ""
        suspects.append(f"another GPU kernel ran: {told[:_LONGEST_KERNEL]}{rest}")
    elif not all(codes):
        suspects.append("whether the machine code changed is not known")
    elif codes[0] != codes[1]:
        suspects.append("the machine code changed")
    else:
        suspects.append("the machine code is the same: driver, clock, power limit or operands")
    return suspects


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


def common_lines(comparison: Comparison) -> list[str]:
    """The common shifts: what they are, or why they are not known."""
    lines = []
    for kind, found in comparison.judgement.common.items():
        told = f"common shift of the {kind} cases"
        by = change(_exp(found.d))
        if found.perhaps == APART:
            lines.append(f"{told}: not known, since a whole process is apart: run it again")
        elif found.verdict in (Verdict.SLOWER, Verdict.FASTER, Verdict.CLOCK):
            rest = "look at the GPU (clock, power, driver) and the build before the kernels"
            lines.append(f"{told}: {found.verdict.value}, {by}: {rest}")
        elif found.verdict is Verdict.AMBIGUOUS and not found.perhaps:
            lines.append(f"{told}: ambiguous, {by} ± {100 * found.reach:.2g} %")
    return lines


def _exp(value: float) -> float:
    """A number, however far off."""
    return math.exp(max(-300.0, min(300.0, value)))
