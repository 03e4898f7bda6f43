"""Which GPU of a fleet is slow: against the others of its group, by time, cycles and mean time.

A GPU is slow in a case if the upper end of its 95 % interval is below the median of the others by
more than a threshold and by more than the fleet's own spread explains. Spread: the median absolute
deviation, which a few slow GPUs do not move, moderated by a prior where few GPUs tell little. The
quantile allows for all GPUs, cases and scales together (Bonferroni, 1 %).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from gemm_report.fleet.reading import COPIES, LINKS, Finding, Gpu, Group, with_findings
from gemm_report.writing.quantity import percent

THRESHOLD = 0.02
CONFIDENCE = 0.99
# Of healthy GPUs, worth as much as what this number of degrees of freedom tells. At the power cap
# the clock differs with the silicon: by 8 % over a cluster (Sinha et al., SC22), which is five
# sigmas. Four H200s differed by 0.1 to 1.9 % from the slowest to the fastest.
PRIOR_SPREAD, CAPPED_SPREAD, PRIOR_FREEDOM = 0.005, 0.015, 8
_OF_SIGMA = 1.4826  # sigma over the median absolute deviation
_EFFICIENCY = 0.37  # of that, against the standard deviation
_CORRELATED = {"clock": "sm_hz", "power": "power_w", "temperature": "temperature_c"}

Values = np.ndarray


@dataclass(frozen=True)
class Case:
    """The GPUs of a group in one case: medians over them, and how far each is from the others."""

    group: Group
    name: str
    gpus: tuple[Gpu, ...]
    median: float
    spread: float  # of the logarithms, robust
    changes: Values  # by GPU: rate over the median of the others - 1
    correlations: dict[str, float | None]  # of the rate with clock, power and temperature
    joules: tuple[float, float, float] | None  # smallest, median, largest of a product


@dataclass(frozen=True)
class Fleet:
    """What was found."""

    gpus: tuple[Gpu, ...]  # with their findings
    cases: tuple[Case, ...]

    def changes(self) -> dict[tuple[str, str], float]:
        """By GPU and case, against the GPUs of the same run."""
        return {
            (gpu.key, case.name): change
            for case in self.cases
            for gpu, change in zip(case.gpus, case.changes, strict=True)
        }


def judge(gpus: Sequence[Gpu], threshold: float = THRESHOLD, before: Sequence[Fleet] = ()) -> Fleet:
    """Finds what is slow, throttled, lacking or alone; `before` are earlier runs, oldest first."""
    found: dict[str, list[Finding]] = {gpu.key: [] for gpu in gpus}
    groups: dict[Group, list[Gpu]] = {}
    for gpu in gpus:
        if gpu.group:
            groups.setdefault(gpu.group, []).append(gpu)
    cases: list[Case] = []
    for group, members in groups.items():
        if len(members) == 1:
            text = f"no other GPU with {group}"
            found[members[0].key].append(Finding("alone", None, text))
            continue
        shares = _names(members)
        tests = 3 * len(shares) * len(members)
        sigmas = _sigmas(tests)
        for name in shares:
            having = [gpu for gpu in members if name in gpu.rates]
            if 2 * len(having) > len(members):
                for gpu in members:
                    told = any(f.case in (name, None) for f in gpu.findings)
                    if name not in gpu.rates and not told:
                        text = gpu.skipped.get(name) or "the record lacks it"
                        found[gpu.key].append(Finding("missing", name, text))
            if len(having) < 2:
                continue
            case, slow = _judge_case(group, name, having, threshold, sigmas)
            cases.append(case)
            for gpu, finding in slow:
                found[gpu.key].append(finding)
        for gpu, finding in _slow_links(members, threshold):
            if not any(f.case == COPIES for f in found[gpu.key]):
                found[gpu.key].append(finding)
    fleet = Fleet(tuple(gpus), tuple(cases))
    for key, finding in _slower_than_before(fleet, threshold, before):
        found[key].append(finding)
    return Fleet(tuple(with_findings(gpu, found[gpu.key]) for gpu in gpus), tuple(cases))


def others_median(values: Values) -> Values:
    """Of each of n >= 2 values, the median of the n - 1 others."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), int)
    ranks[order] = np.arange(len(values))
    ascending, others = values[order], len(values) - 1
    low, high = (others - 1) // 2, others // 2
    return (ascending[low + (low >= ranks)] + ascending[high + (high >= ranks)]) / 2


def spread_of(values: Values, prior: float = PRIOR_SPREAD) -> float:
    """Robust standard deviation of logarithms of n >= 2 rates, moderated by the prior."""
    freedom = _EFFICIENCY * (len(values) - 2)
    seen = _OF_SIGMA * float(np.median(np.abs(values - np.median(values))))
    both = PRIOR_FREEDOM * prior**2 + freedom * seen**2
    return (both / (PRIOR_FREEDOM + freedom)) ** 0.5


def _names(gpus: Sequence[Gpu]) -> list[str]:
    """Cases by their first appearance; links to one GPU are judged by themselves."""
    names = dict.fromkeys(name for gpu in gpus for name in gpu.rates)
    return [n for n in names if not n.startswith(LINKS) or n == COPIES]


def _sigmas(tests: int) -> float:
    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / tests)


def _limit(values: Values, threshold: float, sigmas: float, prior: float = PRIOR_SPREAD) -> float:
    """By how much a logarithm is low beyond threshold and spread."""
    spread = sigmas * spread_of(values, prior) if len(values) > 1 else 0
    return max(-np.log(1 - threshold), spread)


def _judge_case(
    group: Group, name: str, gpus: list[Gpu], threshold: float, sigmas: float
) -> tuple[Case, list[tuple[Gpu, Finding]]]:
    rates = [gpu.rates[name] for gpu in gpus]
    logs = np.log([rate.value for rate in rates])
    errors = np.array([rate.error for rate in rates])
    changes = np.expm1(logs - others_median(logs))
    capped = 2 * sum("power cap" in rate.reasons for rate in rates) > len(rates)
    prior = CAPPED_SPREAD if capped else PRIOR_SPREAD

    def low(values: Values, prior: float) -> Values:
        limit = _limit(values, threshold, sigmas, prior)
        return values - others_median(values) + 1.96 * errors < -limit

    slow_in_time = low(logs, prior)
    clocked = all(rate.sm_hz for rate in rates)
    cycles = np.log([rate.per_cycle or 1 for rate in rates])
    clocks = np.log([rate.sm_hz or 1 for rate in rates])
    slow_in_cycles = low(cycles, PRIOR_SPREAD) & clocked
    means = np.log([rate.mean or rate.value for rate in rates])
    slow_on_average = low(means, prior)
    in_cycles = np.expm1(cycles - others_median(cycles))
    of_clock = np.expm1(clocks - others_median(clocks))
    found = []
    for i in np.flatnonzero(slow_in_time | slow_in_cycles | slow_on_average):
        state, why = "slow", ""
        if slow_in_cycles[i]:
            why = f": needs {percent(1 / (1 + in_cycles[i]) - 1)} more cycles"
        elif clocked and of_clock[i] < in_cycles[i]:
            why = f": the clock is lower, {rates[i].sm_hz / 1e6:.0f} MHz"
            state = "throttled" if rates[i].reasons else "slow"
            why += f", {', '.join(rates[i].reasons) or 'NVML gives no reason'}"
            if rates[i].temperature_c:
                warm = np.median([rate.temperature_c or np.nan for rate in rates])
                why += f", {rates[i].temperature_c:.0f} °C (median {warm:.0f})"
        elif clocked:
            why = f": clock {_signed(of_clock[i])}, work per cycle {_signed(in_cycles[i])}"
        change = changes[i]
        if not (slow_in_time[i] or slow_in_cycles[i]):
            change = np.expm1(means - others_median(means))[i]
            state, why = "slow", " on average: some samples are slow, the median is not"
        found.append((gpus[i], Finding(state, name, _signed(change) + why, float(change))))
    joules = [rate.joules for rate in rates if rate.joules]
    case = Case(
        group,
        name,
        tuple(gpus),
        float(np.exp(np.median(logs))),
        _OF_SIGMA * float(np.median(np.abs(logs - np.median(logs)))),
        changes,
        {
            name: _correlation(logs, [getattr(rate, what) for rate in rates])
            for name, what in _CORRELATED.items()
        },
        (min(joules), float(np.median(joules)), max(joules)) if joules else None,
    )
    return case, found


def _signed(change: float) -> str:
    return f"{100 * change:+.1f} %"


def _correlation(logs: Values, values: Sequence[float | None]) -> float | None:
    """Of ranks (Spearman), so that one GPU does not make it; None where few or equal GPUs tell."""
    if len(values) < 8 or None in values or len(set(values)) < 3 or len(set(logs)) < 3:
        return None
    return float(np.corrcoef(_ranks(logs), _ranks(np.array(values, float)))[0, 1])


def _ranks(values: Values) -> Values:
    """Of equal values their mean."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def _slow_links(gpus: Sequence[Gpu], threshold: float) -> list[tuple[Gpu, Finding]]:
    """Copies to one other GPU that are slow, where those to the others are not."""
    links = [(g, n, r.value) for g in gpus for n, r in g.rates.items() if n.startswith(LINKS)]
    links = [link for link in links if link[1] != COPIES]
    if len(links) < 6:  # with two GPUs the median of each tells as much
        return []
    logs = np.log([value for *_, value in links])
    limit = _limit(logs, threshold, _sigmas(len(logs)))
    changes = logs - np.median(logs)
    return [
        (gpu, Finding("slow", name, f"{_signed(np.expm1(change))}: this link alone", float(change)))
        for (gpu, name, _), change in zip(links, changes, strict=True)
        if change < -limit
    ]


def _slower_than_before(
    fleet: Fleet, threshold: float, before: Sequence[Fleet]
) -> list[tuple[str, Finding]]:
    """GPUs that lost against their fleet since earlier runs: a change of driver is no loss."""
    past: dict[tuple[str, str], list[float]] = {}
    for earlier in before:
        for place, change in earlier.changes().items():
            past.setdefault(place, []).append(change)
    losses = {
        place: (1 + change) / (1 + float(np.median(past[place]))) - 1
        for place, change in fleet.changes().items()
        if place in past
    }
    if len(losses) < 2:
        return []
    limits: dict[str, float] = {}
    for name in {name for _, name in losses}:
        logs = np.log1p([loss for (_, case), loss in losses.items() if case == name])
        limits[name] = _limit(logs, threshold, _sigmas(len(losses)))
    return [
        (key, Finding("slow", name, f"{_signed(loss)} against its earlier runs", loss))
        for (key, name), loss in losses.items()
        if np.log1p(loss) < -limits[name]
    ]
