"""The benchmark of the comparison: what it calls slower, in equal code and in code that is slower.

    python -m gemm_report.comparison.power [RECORD...] [--like RECORD] [--figure FILE] [--alarms]

Real processes are drawn from records of fresh processes of one program on one device, or of several
such (default: those of equal code in results). Simulated ones have the cases of another record and
noise of five kinds. A run is one comparison of all cases, without a calibration. Beside it stand
the rules of other tools on the same samples. Apache Otava is not among them: it finds changes in
series, not between two sides.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gemm_report.comparison.run import run_of
from gemm_report.comparison.trials import KINDS, Floats, Resampled, Simulated, Trial
from gemm_report.comparison.verdict import ERROR_RATE, POWER, Verdict, compare
from gemm_report.grouping import grouped
from gemm_report.record import Row, read_record
from gemm_report.writing.quantity import percent
from gemm_report.writing.tables import columns

RESULTS = Path(__file__).parents[3] / "results"
PROCESSES = (1, 3, 5)
SLOWDOWNS = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20)

# Of the runs of our alarms, those of other rates: they need less precision, or more time.
_FEWER = 10

Rule = Callable[[Trial], list[bool]]
Source = Simulated | Resampled


def ours(trial: Trial) -> list[bool]:
    """Which cases are called slower, in the order of names."""
    slower = {c.name for c in compare(trial.base, trial.new).cases if c.verdict is Verdict.SLOWER}
    return [name in slower for name in trial.names]


def mann_whitney(trial: Trial) -> list[bool]:
    """As in Google Benchmark's compare.py: p < 5 %, of all samples of a side."""
    from scipy.stats import mannwhitneyu

    return [
        bool(np.median(new) > np.median(old) and mannwhitneyu(new, old).pvalue < 0.05)
        for old, new in _samples(trial)
    ]


def nvbench(trial: Trial) -> list[bool]:
    """As in nvbench_compare.py: the change exceeds the smaller relative deviation of samples."""
    found = []
    for side in _samples(trial):
        (old, old_sd), (new, new_sd) = ((np.exp(x).mean(), np.exp(x).std()) for x in side)
        found.append(bool(new / old - 1 > min(old_sd / old, new_sd / new)))
    return found


def five_percent(trial: Trial) -> list[bool]:
    """The medians are more than 5 % apart."""
    pairs = _samples(trial)
    return [bool(np.median(new) - np.median(old) > math.log(1.05)) for old, new in pairs]


def _samples(trial: Trial) -> list[tuple[Floats, Floats]]:
    """Of each case, those of all processes of a side together."""
    base, new = ([np.concatenate(of) for of in zip(*side, strict=True)] for side in trial.samples)
    return list(zip(base, new, strict=True))


RULES: Mapping[str, Rule] = {
    "gemm-report": ours,
    "Mann-Whitney (compare.py)": mann_whitney,
    "nvbench_compare": nvbench,
    "5 % threshold": five_percent,
}

# The cases whose power is told, and which they are.
CLASSES: Mapping[str, Callable[[Row], bool]] = {
    "FP32 from 1024 on": lambda row: row.precision == "f32" and row.volume >= 1024**3,
    "16 or 8 bits at the power cap": lambda row: (
        row.throttled and row.precision.startswith(("bf16", "f16", "e4m3", "e5m2"))
    ),
    "all": lambda row: True,
}


def alarms(source: Source, rule: Rule, processes: int, runs: int) -> float:
    """The share of runs of equal cases in which any is called slower."""
    return sum(any(rule(source.trial(processes))) for _ in range(runs)) / runs


def power(
    source: Source, rule: Rule, processes: int, runs: int, slowdown: float
) -> dict[str, float]:
    """The share of slower cases that are called so, of each class."""
    rows = list(source.rows.values())
    found = np.mean([rule(source.trial(processes, slowdown)) for _ in range(runs)], axis=0)
    members = {name: [belongs(row) for row in rows] for name, belongs in CLASSES.items()}
    return {name: float(found[own].mean()) for name, own in members.items() if any(own)}


def stated(source: Source, processes: int, runs: int) -> tuple[float, float]:
    """The median of the detectable slowdowns that runs state, and the true one over the stated.

    In each run all cases are slowed by a multiple of what it states: the true one is the multiple
    of which 90 % are found.
    """
    multiples = np.geomspace(0.6, 1.6, 11)
    said, shares = [], []
    for _ in range(runs):
        state = source.rng.bit_generator.state
        trial = source.trial(processes)
        said.append(compare(trial.base, trial.new).detectable)
        found = []
        for multiple in multiples:
            source.rng.bit_generator.state = state  # the same draw
            found.append(np.mean(ours(source.trial(processes, said[-1] * multiple))))
        shares.append(found)
    return float(np.median(said)), float(np.interp(POWER, np.mean(shares, axis=0), multiples))


class Measured(NamedTuple):
    """Shares by what they are of; `n` is how many processes a side has."""

    sources: list[str]
    alarms: dict[tuple[str, int], list[float]]  # by rule and n, of each source
    found: dict[tuple[str, str, str, int], list[float]]  # by real source, class, rule, n
    stated: dict[tuple[str, int], tuple[float, float]]  # by source and n


def measure(sources: Mapping[str, Source], runs: int) -> Measured:
    """Alarms and statements of every source, power of the real ones."""
    measured, fewer = Measured(list(sources), {}, {}, {}), max(2, runs // _FEWER)
    for name, source in sources.items():
        for n in PROCESSES:
            for rule, judge in RULES.items():
                share = alarms(source, judge, n, runs if judge is ours else fewer)
                measured.alarms.setdefault((rule, n), []).append(share)
            measured.stated[name, n] = stated(source, n, max(2, fewer // 2))
        if isinstance(source, Resampled):
            for rule, n, slowdown in product(RULES, PROCESSES, SLOWDOWNS):
                for of, share in power(source, RULES[rule], n, fewer, slowdown).items():
                    measured.found.setdefault((name, of, rule, n), []).append(share)
    return measured


def tables(measured: Measured) -> str:
    """As columns of text."""
    alarms = [("rule", "processes", *measured.sources)]
    for rule, n in product(RULES, PROCESSES):
        alarms.append((rule, str(n), *map(percent, measured.alarms[rule, n])))
    found = [("processes", "cases", "rule", "a side", *(f"{s:.0%}" for s in SLOWDOWNS))]
    for (*of, n), shares in sorted(measured.found.items()):
        found.append((*of, str(n), *map(percent, shares)))
    detectable = [("noise", "processes", "stated", "true / stated")]
    for (source, n), (said, ratio) in measured.stated.items():
        detectable.append((source, str(n), f"{100 * said:.2f} %", f"{ratio:.2f}"))
    parts = [
        "Runs of equal cases in which any case is called slower, by processes a side",
        columns(alarms, left=1),
        "Slower cases that are found, by planted slowdown",
        columns(found, left=3),
        "Detectable slowdown as stated, and the true one over it",
        columns(detectable, left=1),
    ]
    return "\n\n".join(parts)


def draw(measured: Measured, real: str, path: Path) -> None:
    """Alarms in equal code beside the power in real processes, of three processes a side."""
    from matplotlib.figure import Figure

    n, sources, slowdowns = 3, measured.sources, [100 * each for each in SLOWDOWNS]
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    left, *right = figure.subplots(1, 3, width_ratios=(1.7, 1, 1))
    for i, rule in enumerate(RULES):
        shares = [100 * share for share in measured.alarms[rule, n]]
        places = [j + (i - 1.5) * 0.2 for j in range(len(sources))]
        left.bar_label(left.bar(places, shares, 0.2, label=rule), fmt="%.0f", fontsize=6)
    names = [source.replace(" ", "\n").replace("auto", "auto-\n") for source in sources]
    left.set_xticks(range(len(sources)), names, fontsize=6)
    left.axhline(100 * ERROR_RATE, color="black", linewidth=0.8, linestyle="--")
    left.set_ylabel("runs with a false alarm [%]")
    left.set_title(f"Equal code, {n} processes a side", fontsize=10)
    for axes, of in zip(right, list(CLASSES)[:2], strict=True):
        for rule in RULES:
            shares = [100 * share for share in measured.found[real, of, rule, n]]
            axes.plot(slowdowns, shares, marker="o")
        axes.set(xscale="log", xlabel="planted slowdown [%]", ylabel="found [%]")
        axes.set_xticks(slowdowns, [f"{each:.0f}" for each in slowdowns])
        axes.minorticks_off()
        axes.set_title(f"{real},\n{of}", fontsize=9)
    figure.legend(loc="outside lower center", ncols=len(RULES), fontsize=9)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the tables, and draws them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", type=Path, nargs="*", metavar="RECORD")
    parser.add_argument("--like", type=Path, metavar="RECORD", help="the cases to simulate")
    parser.add_argument("--runs", type=int, default=1000, help="for each rate (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of all draws (default 1)")
    parser.add_argument("--alarms", action="store_true", help="only ours, in real equal processes")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draws it, as PNG or SVG")
    options = parser.parse_args(arguments)
    paths = options.records or sorted(RESULTS.glob("*/calibration/equal/*"))
    programs = grouped(
        map(read_record, paths),
        lambda it: f"{it.device.name.removeprefix('NVIDIA ')} at {it.commit[:7]}",
    )
    if not paths or any(len(records) < 2 for records in programs.values()):
        parser.error("give two records or more of fresh processes of one program and device")
    like = read_record(options.like or paths[-1])
    kinds = () if options.alarms else KINDS
    sources: dict[str, Source] = {kind: Simulated(like, kind, options.seed) for kind in kinds}
    for program, records in programs.items():
        real = [run_of(record) for record in records]
        print(f"{program}: {len(real)} real processes")
        sources[program] = Resampled(real, options.seed)
    if options.alarms:
        for (name, source), n in product(sources.items(), PROCESSES):
            count = round(options.runs * alarms(source, ours, n, options.runs))
            print(f"{name}, {n} a side: an alarm in {count} of {options.runs} runs", flush=True)
        return
    measured = measure(sources, options.runs)
    print(tables(measured))
    if options.figure:
        largest = max(programs, key=lambda program: len(sources[program].rows))
        draw(measured, largest, options.figure)


if __name__ == "__main__":
    main()
