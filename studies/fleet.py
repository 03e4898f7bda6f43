"""What `tools/report fleet` finds in simulated fleets.

    PYTHONPATH=report python studies/fleet.py [--seed 700] [--fleets 200]

The thresholds were chosen on seeds below 600; the figures in docs/fleet.md are of the seeds from
700 on. The GPUs are those of `gemm_report.fleet.records_test.simulated`: the spread x 1 is that of
four H200s (from the slowest to the fastest 0.1 % in FP32, 0.3 to 1.7 % in BF16 and 0.4 to 1.9 % in
FP8, where it is the clock at the power cap that differs); that of memory and links is assumed.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from gemm_report.fleet.judging import judge
from gemm_report.fleet.reading import BAD, Gpu, state_of
from gemm_report.fleet.records_test import PRODUCTS, simulated
from gemm_report.text import markdown_table

COUNTS = (2, 4, 8, 64, 1000)


def ours(gpus: Sequence[Gpu]) -> list[bool]:
    """Which are bad."""
    return [state_of(gpu) in BAD for gpu in judge(gpus).gpus]


def sizes(seeds: Sequence[int], most: int) -> str:
    """One GPU slow by 2 %, healthy fleets, and two halves, by number of GPUs and spread."""
    lines = []
    for wider in (0.2, 1, 2, 3):
        for count in COUNTS:
            some = seeds[: max(most // count, 20)]
            found = dict.fromkeys(("more cycles", "lower clock"), 0)
            alarms = unclear = halves = 0
            for seed in some:
                for kind in found:
                    gpus, truth = simulated(seed, count, wider, [(kind, 0.02)])
                    found[kind] += ours(gpus)[truth.index((kind, 0.02))]
                gpus, _ = simulated(seed, count, wider)
                healthy = judge(gpus)
                alarms += sum(state_of(gpu) in BAD for gpu in healthy.gpus)
                unclear += bool(healthy.unclear)
                for i in range(count // 2):
                    its = gpus[2 * i]
                    slow = {
                        n: replace(its.rates[n], value=its.rates[n].value / 1.1) for n in PRODUCTS
                    }
                    gpus[2 * i] = replace(its, rates=its.rates | slow)
                half = judge(gpus)
                halves += bool(half.unclear) or any(state_of(gpu) in BAD for gpu in half.gpus)
            shares = (
                f"{100 * each / len(some):.0f} %" for each in (*found.values(), unclear, halves)
            )
            cycles, clock, exit_2, named = shares
            false = f"{1000 * alarms / len(some) / count:.2f}"
            lines.append([str(count), f"x {wider:g}", cycles, clock, false, exit_2, named])
    head: tuple[str, ...] = ("GPUs", "spread", "2 % more cycles found", "2 % lower clock found")
    head += ("healthy GPUs called bad, of 1,000", "healthy fleets unclear", "half 10 % slow: named")
    return markdown_table(head, lines, left=0)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=700, help="the first")
    parser.add_argument("--fleets", type=int, default=200, help="of each kind at most")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.fleets)
    print(sizes(seeds, 20000))


if __name__ == "__main__":
    main()
