"""Which GPU of a fleet is slow: against the others of its group, by time, cycles and mean time.

A GPU is slow in a case if the upper end of its 95 % interval is below the median of the others by
more than a threshold and by more than the fleet's own spread explains. Spread: the median absolute
deviation, which a few slow GPUs do not move, moderated by a prior where few GPUs tell little. The
quantile allows for all GPUs, cases and scales together (Bonferroni, 1 %). Where the GPUs of a case
cannot be judged so, the case is unclear.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from gemm_report.fleet.reading import COPIES, LINKS, STATES, Finding, Gpu, Group
from gemm_report.grouping import grouped
from gemm_report.text import megahertz, percent

THRESHOLD = 0.015
CONFIDENCE = 0.99
# Of healthy GPUs, worth as much as what this number of degrees of freedom tells. At the power cap
# the clock differs with the silicon: by 8 % over a cluster (Sinha et al., SC22), which is five
# sigmas. Four H200s differed by 0.1 to 1.9 % from the slowest to the fastest.
PRIOR_SPREAD, LINK_SPREAD, CAPPED_SPREAD, PRIOR_FREEDOM = 0.003, 0.006, 0.015, 8
_OF_SIGMA = 1.4826  # sigma over the median absolute deviation
_EFFICIENCY = 0.37  # of that, against the standard deviation
# A healthy fleet has no such spread, in priors, and no such gap between two parts, in spreads.
_FAR_BEYOND, _GAP = 3.0, 3.0
_PART = 0.1  # of the GPUs: fewer are no group of their own

Values = np.ndarray
Found = list[tuple[str, Finding]]  # with the key of the GPU


@dataclass(frozen=True)
class Case:
    """The GPUs of a group in one case: their median, and how far each is from the others."""

    group: Group
    name: str
    gpus: tuple[Gpu, ...]
    median: float
    spread: float  # of the logarithms, robust
    limit: float  # a loss of more is seen
    changes: Values  # by GPU: rate over the median of the others - 1


@dataclass(frozen=True)
class Fleet:
    """What was found; `unclear` says what could not be judged."""

    gpus: tuple[Gpu, ...]  # with their findings
    cases: tuple[Case, ...]
    unclear: tuple[str, ...] = ()

    def changes(self) -> dict[tuple[str, str], float]:
        """By GPU and case, against the GPUs of the same run."""
        return {
            (gpu.key, case.name): change
            for case in self.cases
            for gpu, change in zip(case.gpus, case.changes, strict=True)
        }


def judge(gpus: Sequence[Gpu], threshold: float = THRESHOLD, before: Sequence[Fleet] = ()) -> Fleet:
    """Finds what is slow, throttled, lacking or alone; `before` are earlier runs, oldest first."""
    cases: list[Case] = []
    found: Found = []
    unclear: list[tuple[str, Sequence[Gpu], str]] = []  # cases, whose, and why
    for group, members in grouped(gpus, lambda gpu: gpu.group).items():
        if group and len(members) == 1:
            found.append((members[0].key, Finding("alone", None, f"no other GPU with {group}")))
        elif group:
            known = dict.fromkeys(name for gpu in members for name in gpu.rates)
            # Links to one GPU are judged by themselves.
            names = [n for n in known if not n.startswith(LINKS) or n == COPIES]
            sigmas = _sigmas(3 * len(names) * len(members))
            for name in names:
                having = [gpu for gpu in members if name in gpu.rates]
                lacking = _lacking(name, members)
                if 2 * len(lacking) >= len(members):
                    why = f"{len(lacking)} of {len(members)} GPUs lack it"
                    unclear.append((name, members, why))
                else:
                    found += lacking
                if len(having) > 1:
                    case, slow, reasons = _judge_case(group, name, having, threshold, sigmas)
                    cases.append(case)
                    found += slow
                    unclear += [(name, having, why) for why in reasons]
            slow_copies = {key for key, finding in found if finding.case == COPIES}
            links = _slow_links(members, threshold)
            found += [(key, finding) for key, finding in links if key not in slow_copies]
    unclear += _slow_groups(cases, threshold)
    found += [(gpu.key, Finding("unclear", n, why)) for n, whose, why in unclear for gpu in whose]
    fleet = Fleet(tuple(gpus), tuple(cases), tuple(f"{name}: {why}" for name, _, why in unclear))
    found += _slower_than_before(fleet, threshold, before)
    of_gpu = grouped(found, lambda each: each[0])
    every = {gpu.key: [*gpu.findings, *(f for _, f in of_gpu.get(gpu.key, ()))] for gpu in gpus}
    for its in every.values():
        its.sort(key=lambda finding: (STATES.index(finding.state), finding.change or 0))
    return replace(fleet, gpus=tuple(replace(g, findings=tuple(every[g.key])) for g in gpus))


def others_median(values: Values) -> Values:
    """Of each of n >= 2 values, the median of the n - 1 others."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), int)
    ranks[order] = np.arange(len(values))
    ascending, others = values[order], len(values) - 1
    low, high = (others - 1) // 2, others // 2
    return np.asarray(ascending[low + (low >= ranks)] + ascending[high + (high >= ranks)]) / 2


def _moderated(variance: float, freedom: float, prior: float) -> float:
    both = PRIOR_FREEDOM * prior**2 + freedom * variance
    return float((both / (PRIOR_FREEDOM + freedom)) ** 0.5)


def _deviation(values: Values) -> float:
    """The sigma that the median absolute deviation tells."""
    return _OF_SIGMA * float(np.median(np.abs(values - np.median(values))))


def _sigmas(tests: int) -> float:
    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / tests)


def _limit(values: Values, threshold: float, sigmas: float, prior: float = PRIOR_SPREAD) -> float:
    """By how much a logarithm is low beyond threshold and spread."""
    count = len(values)
    spread = (
        _moderated(_deviation(values) ** 2, _EFFICIENCY * (count - 2), prior) if count > 1 else 0
    )
    # What a value is compared with scatters as well.
    return max(-math.log(1 - threshold), sigmas * spread * math.sqrt(1 + 1 / max(count - 1, 1)))


def _lacking(name: str, gpus: Sequence[Gpu]) -> Found:
    """GPUs without a case that most others have, unless it is known why."""
    return [
        (gpu.key, Finding("missing", name, gpu.skipped.get(name) or "the record lacks it"))
        for gpu in gpus
        if name not in gpu.rates and not any(each.case in (name, None) for each in gpu.findings)
    ]


def _judge_case(
    group: Group, name: str, gpus: list[Gpu], threshold: float, sigmas: float
) -> tuple[Case, Found, list[str]]:
    rates = [gpu.rates[name] for gpu in gpus]
    clocked = all(rate.sm_hz for rate in rates)
    logs = np.log([rate.value for rate in rates])
    cycles = np.log([rate.per_cycle or 1 for rate in rates])
    clocks = np.log([rate.sm_hz or 1 for rate in rates])
    means = np.log([rate.mean or rate.value for rate in rates])
    margins = 1.96 * np.array([rate.error for rate in rates])
    capped = 2 * sum("power cap" in rate.reasons for rate in rates) > len(rates)
    usual = LINK_SPREAD if name.startswith(("PCIe_", LINKS)) else PRIOR_SPREAD
    prior = CAPPED_SPREAD if capped else usual

    def low(values: Values, prior: float) -> Values:
        limit = _limit(values, threshold, sigmas, prior)
        return np.asarray(values - others_median(values) + margins < -limit)

    slow_in_cycles = low(cycles, PRIOR_SPREAD) & clocked
    slow_in_median = low(logs, prior) | slow_in_cycles
    changes, in_cycles, of_clock, on_average = (
        np.expm1(values - others_median(values)) for values in (logs, cycles, clocks, means)
    )
    slow = slow_in_median | low(means, prior)
    found = []
    for i in np.flatnonzero(slow):
        state, why, change, rate = "slow", "", changes[i], rates[i]
        if not slow_in_median[i]:
            change, why = on_average[i], " on average: some samples are slow, the median is not"
        elif slow_in_cycles[i]:
            why = f": needs {percent(1 / (1 + in_cycles[i]) - 1)} more cycles"
        elif clocked and rate.sm_hz and of_clock[i] < in_cycles[i]:
            state = "throttled" if rate.reasons else "slow"
            why = f": the clock is lower, {megahertz(rate.sm_hz)}"
            why += f", {', '.join(rate.reasons) or 'NVML gives no reason'}"
            if rate.temperature_c:
                warm = np.median([each.temperature_c or np.nan for each in rates])
                why += f", {rate.temperature_c:.0f} °C (median {warm:.0f})"
        elif clocked:
            why = f": clock {_signed(of_clock[i])}, work per cycle {_signed(in_cycles[i])}"
        found.append((gpus[i].key, Finding(state, name, _signed(change) + why, float(change))))
    limit = 1 - np.exp(-_limit(logs, threshold, sigmas, prior))
    of_all = float(np.exp(np.median(logs))), _deviation(logs), float(limit), changes
    unclear = list(_unclear(logs, slow, threshold, prior))
    if clocked and not unclear:
        # No GPU does the same in fewer cycles: a single one shows that the others are slow.
        unclear = [f"{each} (in cycles)" for each in _unclear(cycles, slow, threshold, fast=1)]
    return Case(group, name, tuple(gpus), *of_all), found, unclear


def _unclear(
    values: Values, slow: Values, threshold: float, prior: float = PRIOR_SPREAD, fast: int = 0
) -> Iterator[str]:
    """Two groups, neither of them small or of `fast` GPUs, or a spread that hides every loss."""
    order, count = np.argsort(values), len(values)
    least = max(2, int(np.ceil(_PART * count)))
    if count >= least + (fast or least):
        gaps = np.diff(values[order])[least - 1 : count - (fast or least)]
        at = least + int(np.argmax(gaps))
        parts = values[order[:at]], values[order[at:]]
        within = sum(len(part) * part.var() for part in parts) / (count - 2)
        wide = _GAP * _moderated(within, count - 2, prior)
        if gaps.max() > max(wide, -np.log(1 - threshold)) and not slow[order[:at]].all():
            loss = 1 - np.exp(np.median(parts[0]) - np.median(parts[1]))
            yield f"two groups: {at} of {count} GPUs are {percent(loss)} slower than the others"
            return
    if count > 3 and (spread := _deviation(values[~slow])) > _FAR_BEYOND * prior:
        yield f"the GPUs scatter by {percent(spread)}, usual are {percent(prior)} or less"


def _slow_groups(
    cases: Sequence[Case], threshold: float
) -> Iterator[tuple[str, Sequence[Gpu], str]]:
    """Groups of one device name that are slower than others: by fault, or by what differs."""
    pairs = [
        sorted(pair, key=lambda case: case.median)
        for pair in combinations(cases, 2)
        if pair[0].name == pair[1].name and pair[0].group.device == pair[1].group.device
    ]
    for its in grouped(pairs, lambda pair: frozenset(case.group for case in pair)).values():
        slow, fast = min(its, key=lambda pair: pair[0].median / pair[1].median)
        loss = 1 - slow.median / fast.median
        if loss > threshold:
            differing = slow.group.differing(fast.group)
            why = f"{len(slow.gpus)} GPUs are {percent(loss)} slower than {len(fast.gpus)} others"
            yield slow.name, slow.gpus, f"{why}, which differ: {differing}"


def _signed(change: float) -> str:
    return f"{100 * change:+.1f} %"


def _slow_links(gpus: Sequence[Gpu], threshold: float) -> Found:
    """Copies to one other GPU that are slow, where those to the others are not."""
    links = [
        (gpu.key, name, rate.value)
        for gpu in gpus
        for name, rate in gpu.rates.items()
        if name.startswith(LINKS) and name != COPIES
    ]
    if len(links) < 6:  # with two GPUs the median of each tells as much
        return []
    logs = np.log([value for *_, value in links])
    limit = _limit(logs, threshold, _sigmas(len(logs)), LINK_SPREAD)
    changes = logs - np.median(logs)
    return [
        (key, Finding("slow", name, f"{_signed(np.expm1(change))}: this link alone", float(change)))
        for (key, name, _), change in zip(links, changes, strict=True)
        if change < -limit
    ]


def _slower_than_before(fleet: Fleet, threshold: float, before: Sequence[Fleet]) -> Found:
    """GPUs that lost against their fleet since earlier runs: a change of driver is no loss."""
    earlier = [each.changes() for each in before]
    losses: dict[tuple[str, str], float] = {}
    for place, change in fleet.changes().items():
        if past := [changes[place] for changes in earlier if place in changes]:
            losses[place] = (1 + change) / (1 + float(np.median(past))) - 1
    if len(losses) < 2:
        return []
    sigmas = _sigmas(len(losses))
    limits = {
        name: _limit(np.log1p([losses[place] for place in places]), threshold, sigmas)
        for name, places in grouped(losses, lambda place: place[1]).items()
    }
    return [
        (key, Finding("slow", name, f"{_signed(loss)} against its earlier runs", loss))
        for (key, name), loss in losses.items()
        if np.log1p(loss) < -limits[name]
    ]
