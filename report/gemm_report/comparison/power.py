"""What comparisons of equal code say, and which slowdowns they would find: a table of evidence.

    python -m gemm_report.comparison.power RECORD RECORD RECORD...

The records are of fresh processes of one program. Every pair of them is compared, with the noise
calibrated from the others; whatever is called slower or faster then is a false alarm. Into the
later record of each pair slowdowns are planted: all its samples take longer by a factor.
"""

import argparse
import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from gemm_report.comparison.noise.calibrate import calibration
from gemm_report.comparison.noise.calibration import Calibration, calibration_of
from gemm_report.comparison.noise.within import LogMedian
from gemm_report.comparison.run import run_of
from gemm_report.comparison.verdict import Comparison, Process, Verdict, compare, process
from gemm_report.record import read_record
from gemm_report.writing.tables import columns

SLOWDOWNS = (0.01, 0.02, 0.03, 0.05, 0.10)


def calibrated(processes: Sequence[Process]) -> Calibration | None:
    """The calibration that these would make; None of fewer than two."""
    if len(processes) < 2:
        return None
    records = [each.run.record for each in processes if each.run.record]
    return calibration_of(Path("the other records"), calibration(records))


def slowed(one: Process, slowdown: float) -> Process:
    """As if every sample had taken longer."""

    def later(medians: Mapping[str, LogMedian]) -> dict[str, LogMedian]:
        shift = math.log1p(slowdown)
        return {
            name: dataclasses.replace(each, value=each.value + shift)
            for name, each in medians.items()
        }

    return Process(one.run, later(one.seconds), later(one.cycles))


def comparisons(
    processes: Sequence[Process], slowdown: float = 0, others: int | None = None
) -> Iterator[Comparison]:
    """Of all pairs, with the noise of the others, or of so many of them."""
    for i, j in combinations(range(len(processes)), 2):
        rest = [each for k, each in enumerate(processes) if k not in (i, j)]
        # Not the same few in every pair.
        chosen = [rest[(i + j + k) % len(rest)] for k in range(len(rest))][:others]
        yield compare([processes[i]], [slowed(processes[j], slowdown)], calibrated(chosen))


def false_alarms(processes: Sequence[Process]) -> list[tuple[str, ...]]:
    """By the number of processes that the noise comes from: 0 is the documented default."""
    lines = [("calibrated", "pairs", "cases", *(verdict.value for verdict in Verdict), "slower of")]
    most = len(processes) - 2
    for others in sorted({0, *(n for n in (2, 3, 4, 5, 6, 8) if n < most), most}):
        found = list(comparisons(processes, others=others))
        cases = sum(len(each.cases) for each in found)
        counts = [sum(each.count(verdict) for each in found) for verdict in Verdict]
        # Slower one way is faster the other way: both are false alarms of two comparisons.
        wrong = counts[0] + counts[2]
        rate = f"1 in {2 * cases / wrong:.0f}" if wrong else f"0 in {2 * cases}"
        line = (others, len(found), cases, *counts, rate)
        lines.append(tuple(map(str, line)))
    return lines


def power(processes: Sequence[Process], others: int | None = None) -> list[tuple[str, ...]]:
    """The share of cases called slower, by precision, size and planted slowdown."""
    called: dict[tuple[str, int, str], dict[float, Counter[bool]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    for slowdown in SLOWDOWNS:
        for comparison in comparisons(processes, slowdown, others):
            for case in comparison.cases:
                row = case.new_row
                if row:
                    found = case.verdict is Verdict.SLOWER
                    called[row.precision, row.volume, row.size][slowdown][found] += 1
    lines = [("precision", "size", "cases", *(f"{s:.0%}" for s in SLOWDOWNS))]
    for (precision, _, size), found in sorted(called.items()):
        counts = [found[slowdown] for slowdown in SLOWDOWNS]
        shares = [f"{100 * each[True] / each.total():.1f} %" for each in counts]
        lines.append((precision, size, str(counts[0].total()), *shares))
    return lines


def main() -> None:
    """Prints it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    options = parser.parse_args()
    if len(options.records) < 3:
        parser.error("give three records or more")
    processes = [process(run_of(read_record(path))) for path in options.records]
    print("False alarms, by the number of other processes that the noise comes from", end="\n\n")
    print(columns(false_alarms(processes), left=0))
    for title, others in (("the noise of all others", None), ("the default noise", 0)):
        print(f"\nShare called slower, by planted slowdown, with {title}", end="\n\n")
        print(columns(power(processes, others), left=2))


if __name__ == "__main__":
    main()
