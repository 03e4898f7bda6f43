"""In words: in which points a row deviates from NVIDIA's guideline for measurements.

A record has a code, a value and a limit for each (docs/methodology.md); the sentences are here.
"""

import re
from collections.abc import Iterable, Sequence

from gemm_report.grouping import grouped
from gemm_report.record import UNCERTAIN, Departure

# Of the value; `mega` is a millionth of it.
_SENTENCES = {
    "other-distribution": "normal input data, not uniform in [-1, 1]",
    "low-power-operands": "input data that draws less power than real data",
    "not-checked": "a single sample, which is not checked: no rate",
    "reused-operands": "each operand set was used {value:.0f} times with the same values",
    "one-operand-set": "one operand set, which may stay in the cache",
    "cached-operands": "operand sets of {mega:.0f} MB do not exceed twice the last-level cache",
    "host-bound": "a short kernel without a CUDA graph: the host may limit the launch rate",
    "memory-kept": "{mega:.0f} MB more of the GPU's memory were in use after the samples than "
    "before",
    "burst": "burst: the GPU was not in steady state",
    "not-at-limit": "at the power limit in {percent:.0f} % of the readings only",
    "not-watched": "no readings of clock and power",
    "not-settled": "clock or power still changed after {value:.2g} s of warm-up",
    "short-warm-up": "{value:.2g} s of warm-up while throttled: clocks may oscillate longer",
    "power-not-watched": "no readings of power",
    "clock-drift": "the SM clock changed by {percent:.2g} % during the samples",
    "other-clock": "the SM clock of the samples is {percent:+.2g} % from that of an undisturbed "
    "stretch",
    "clock-not-held": "fixed frequency, but the GPU was throttled",
    "few-launches": "timed for {value:,.0f} launches only",
    UNCERTAIN: "the interval of the median is {percent:.2g} % wide",
    "too-few-samples": "too few samples for an interval of the median",
    "injected": "injected code, such as a profiler",
    "busy-host": "a busy host: others used {percent:.2g} % of its CPUs meanwhile",
    "shared-gpu": "other processes on the GPU: {value:.0f}",
    "mps-share": "MPS gives this process {value:.0f} % of the GPU",
    "hardware-slowdown": "slowed down by the hardware in {percent:.0f} % of the readings",
}
_LIMITS = {
    "cached-operands": " ({mega:.0f} MB)",
    "short-warm-up": " (for {value:g} s)",
    "few-launches": " (of at least {value:,.0f})",
    UNCERTAIN: ", the target {percent:.2g} %",
}


def sentence(*alike: Departure) -> str:
    """What it is, with its value and limit; of several of one code the least and the most.

    Of a code that is not known here, or without its value, the code.
    """
    code = alike[0].code
    words = _SENTENCES.get(code, "")
    values = [each.value for each in alike if each.value is not None]
    limits = [each.limit for each in alike if each.limit is not None]
    if not words or ("{" in words and not values):
        return code.replace("-", " ")
    said = _filled(words, values)
    return said + (_filled(_LIMITS[code], limits) if limits and code in _LIMITS else "")


def sentences(departures: Iterable[Departure]) -> list[str]:
    """A sentence for each code that occurs."""
    return [sentence(*alike) for alike in grouped(departures, lambda each: each.code).values()]


def _filled(words: str, values: Sequence[float]) -> str:
    def span(place: re.Match[str]) -> str:
        scale = {"value": 1.0, "mega": 1e-6, "percent": 100.0}[place[1]]
        ends = (format(scale * each, place[2]) for each in (min(values), max(values)))
        return " to ".join(dict.fromkeys(_plain(end) for end in ends))

    return re.sub(r"\{(\w+):(.*?)\}", span, words)


def _plain(number: str) -> str:
    """Not 1.2e+02."""
    return f"{float(number):.0f}" if "e+" in number else number
