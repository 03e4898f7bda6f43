"""What `tools/report history` finds of planted changes, and what it finds where there are none.

    PYTHONPATH=report python studies/history.py [--seed 2026] [--series 400]

The thresholds were chosen on seed 1; the figures in docs/history.md are of seed 2026. A series
has 300 records unless its name says otherwise. Noise has a standard deviation of 0.3 or 1 % and is
independent unless the name says otherwise; a number behind "correlation" is that of neighbours.
A step is found if its place is right within one record and its size within a quarter (gradual
changes: if the sum of what is reported there is right within a quarter). A reported change is false
if it is further from all planted ones than a level of four records is long. The last lines are of
the cycles of results/, without the changes found there and in random order, of cases with 5 records
or more.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gemm_report.collection import Refusals
from gemm_report.history.changes import ENOUGH, Change, find_changes, without_changes
from gemm_report.history.series import read_history
from gemm_report.text import markdown_table
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Random = np.random.Generator
RESULTS = Path(__file__).resolve().parents[1] / "results"
Noise = Callable[[Random, int], Floats]


class Planted(NamedTuple):
    """Logarithms; each change by its first and last record and its size in logarithms."""

    values: Floats
    changes: Sequence[tuple[int, int, float]] = ()
    gpus: Sequence[str] = ()


def judged(planted: Planted) -> tuple[int, int, bool | None]:
    """How many of the changes are found, how many reported ones are elsewhere, and the interval.

    That is whether it holds the size, where one was planted and one is reported.
    """
    reported = find_changes(np.exp(planted.values), planted.gpus)[1]

    def beside(each: Change, start: int, end: int, near: int) -> bool:
        return each.at >= start - near and each.start <= end + near

    found = 0
    for start, end, size in planted.changes:
        here = [each for each in reported if beside(each, start, end, max(1, (end - start) // 5))]
        found += abs(sum(np.log(each.ratio) for each in here) / size - 1) <= 0.25
    false = sum(
        not any(beside(each, s, e, max(4, (e - s) // 5)) for s, e, _ in planted.changes)
        for each in reported
    )
    holds = None
    if len(planted.changes) == len(reported) == 1:
        holds = reported[0].low <= np.exp(planted.changes[0][2]) <= reported[0].high
    return found, false, holds


def sigma(random: Random) -> float:
    """Of single records."""
    return float(random.choice([0.003, 0.01]))


def correlated(correlation: float, random: Random, count: int) -> Floats:
    """Normal noise of which neighbours are alike."""
    values = random.normal(size=count)
    for i in range(1, count):
        values[i] = correlation * values[i - 1] + np.sqrt(1 - correlation**2) * values[i]
    return values * sigma(random)


def heavy(random: Random, count: int) -> Floats:
    """Student's t with 3 degrees of freedom."""
    return random.standard_t(3, count) * sigma(random) / math.sqrt(3)


def two_speeds(random: Random, count: int) -> Floats:
    """A share of 10 to 50 % of the records is slower by 3 to 12 %."""
    slow = random.random(count) < random.uniform(0.1, 0.5)
    return 0.003 * random.normal(size=count) + slow * math.log1p(random.uniform(0.03, 0.12))


def lasting_speeds(random: Random, count: int) -> Floats:
    """Two speeds, each of which lasts 15 records on average."""
    slow = np.cumsum(random.random(count) < 1 / 15) % 2
    return 0.003 * random.normal(size=count) + slow * math.log1p(random.uniform(0.03, 0.12))


independent = partial(correlated, 0.0)


def none(noise: Noise, random: Random, count: int = 300) -> Planted:
    """No change."""
    return Planted(noise(random, count))


def step(
    noise: Noise, size: float | None, random: Random, count: int = 300, at: int | None = None
) -> Planted:
    """One step up or down, in the middle half or at `at`; of 5 to 20 % where no size is given."""
    place = at or int(random.integers(count // 4, 3 * count // 4))
    total = float(random.choice([-1, 1]) * np.log1p(size or random.uniform(0.05, 0.2)))
    values = noise(random, count)
    values[place:] += total
    return Planted(values, [(place, place, total)])


def few(count: int, size: float | None, random: Random) -> Planted:
    """A short series with a step in its middle; the noise is 0.1 to 1 %."""
    at = count // 2 + int(random.integers(0, 2)) * (count % 2)
    scale = np.exp(random.uniform(np.log(0.001), np.log(0.01)))
    return step(lambda r, n: scale * r.normal(size=n), size, random, count, at)


def gradual(noise: Noise, rise: Floats, random: Random) -> Planted:
    """A level, a rise or fall, and a level."""
    before, after = (int(random.integers(30, 100)) for _ in range(2))
    rise = rise * random.choice([-1, 1])
    values = np.concatenate([np.zeros(before), rise, np.full(after, rise[-1])])
    change = (before, before + len(rise), float(rise[-1]))
    return Planted(values + noise(random, len(values)), [change])


def gpus(count: int, records: int, size: float, random: Random) -> Planted:
    """So many GPUs in turn, whose levels differ by 2 %; the noise of each is 0.3 %."""
    of = random.integers(0, count, records)
    levels = 0.02 * random.normal(size=count)
    values = levels[of] + 0.003 * random.normal(size=records)
    changes = []
    if size:
        values[records // 2 :] += np.log1p(size)
        changes = [(records // 2, records // 2, float(np.log1p(size)))]
    return Planted(values, changes, [f"gpu {i}" for i in of])


def _percent(size: float) -> str:
    return f"{100 * size:g} %"


def _ramp(total: float, during: int) -> Floats:
    return np.arange(1, during + 1) / during * math.log1p(total)


NOISES: dict[str, Noise] = {
    "independent": independent,
    "correlation 0.5": partial(correlated, 0.5),
    "correlation 0.9": partial(correlated, 0.9),
    "heavy tails": heavy,
    "two speeds": two_speeds,
}
CASES: dict[str, Callable[[Random], Planted]] = {
    **{
        f"step of {_percent(size)}, {name}": partial(step, noise, size)
        for name, noise in NOISES.items()
        for size in (0.02, 0.05, 0.1)
    },
    **{
        f"step of 5 %, 4 records old, {name}": partial(step, noise, 0.05, at=296)
        for name, noise in NOISES.items()
    },
    "records twice as slow, the newest 3": partial(step, independent, 1.0, at=297),
    "5 records, step of 20 %": partial(few, 5, 0.2),
    **{f"{n} records, step of 5 to 20 %": partial(few, n, None) for n in (8, 10, 12, 24)},
    **{
        f"ramp of {_percent(total)} over {n} records": partial(
            gradual, independent, _ramp(total, n)
        )
        for total, n in ((0.05, 60), (0.1, 60), (0.2, 60), (0.5, 120), (3.0, 300))
    },
    "ten steps of 1 %": partial(
        gradual, independent, np.repeat(np.arange(1, 11), 20) * np.log1p(0.01)
    ),
    **{f"no change, {name}": partial(none, noise) for name, noise in NOISES.items()},
    "no change, two speeds that last 15 records": partial(none, lasting_speeds),
    **{
        f"no change, {n} records, {name}": partial(none, noise, count=n)
        for n in (5, 8, 16)
        for name, noise in NOISES.items()
    },
    "16 GPUs in turn, 80 records, no change": partial(gpus, 16, 80, 0.0),
    "16 GPUs in turn, 80 records, step of 2 %": partial(gpus, 16, 80, 0.02),
    "16 GPUs in turn, 80 records, step of 5 %": partial(gpus, 16, 80, 0.05),
    "80 GPUs, one record each, step of 5 %": partial(gpus, 10**6, 80, 0.05),
}


def real(random: Random) -> dict[str, list[Planted]]:
    """The residuals of stored records, in random order; and with a step in the middle."""
    found: dict[str, list[Planted]] = {}
    for series in read_history(RESULTS, Refusals()).series:
        values = series.seconds * series.sm_hz
        if len(values) < ENOUGH or np.isnan(values).any():
            continue
        logs = np.log(without_changes(values, ()))[random.permutation(len(values))]
        half = len(logs) // 2
        for size in (0.0, 0.05, 0.1, 0.2):
            name = f"{series.device}, " + (f"step of {_percent(size)}" if size else "no change")
            planted = logs + np.log1p(size) * (np.arange(len(logs)) >= half)
            changes = [(half, half, float(np.log1p(size)))] if size else []
            found.setdefault(name, []).append(Planted(planted, changes))
    return found


def line(name: str, cases: Sequence[Planted]) -> list[str]:
    """Of a table: what is found, and what is false."""
    judgements = [judged(case) for case in cases]
    planted = sum(len(case.changes) for case in cases)
    records = sum(len(case.values) for case in cases)
    share = f"{100 * sum(found for found, *_ in judgements) / planted:.0f} %" if planted else "-"
    false = [elsewhere for _, elsewhere, _ in judgements]
    having = f"{100 * sum(each > 0 for each in false) / len(cases):.1f} %"
    holding = [holds for *_, holds in judgements if holds is not None]
    held = f"{100 * sum(holding) / len(holding):.0f} %" if holding else "-"
    return [name, f"{len(cases)}", share, held, f"{1000 * sum(false) / records:.2f}", having]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=400, help="of each kind")
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    lines = []
    for number, (name, make) in enumerate(CASES.items()):
        seeds = ([options.seed, number, i] for i in range(options.series))
        lines.append(line(name, [make(np.random.default_rng(seed)) for seed in seeds]))
    lines += (line(*each) for each in real(np.random.default_rng(options.seed)).items())
    head: tuple[str, ...] = (
        "planted",
        "series",
        "found",
        "interval holds",
        "false per 1,000 records",
    )
    head += ("series with a false change",)
    print(markdown_table(head, lines, left=1))


if __name__ == "__main__":
    main()
