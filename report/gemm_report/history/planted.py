"""What history finds of planted changes, and what it finds where there are none.

    python -m gemm_report.history.planted                    # print the table
    python -m gemm_report.history.planted --write DIR --record results/.../RECORD.json
                                                             # write records to time history with

Noise is as `tools/calibrate` found it on an H200 (standard deviations of 0.01 to 0.4 % between
processes) and worse: 0.1 to 1 % by series, Student's t with 5 degrees of freedom, a correlation of
0.3 between neighbours, and one record in a hundred slower by 5 % on the average. Series at two
speeds add 3 to 12 % to 10 to 50 % of their records.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gemm_report.history.changes import SHORTEST, Change, Floats, find_changes
from gemm_report.writing.tables import markdown_table

STEP = 1.05
# Records between two steps, at least.
APART = 24
_START = datetime.fromisoformat("2020-01-01T00:00:00+00:00")


@dataclass(frozen=True)
class Planted:
    """Logarithms of seconds; each change by its first and last record and its size in logarithms.

    A change is found if one of its size, a quarter more or less, is reported no further from it
    than `near` records. A reported one is false if it is further from all of them, and further
    than a level is long.
    """

    values: Floats
    changes: Sequence[tuple[int, int, float]] = ()
    near: int = 1

    def judged(self) -> tuple[int, int]:
        """How many of the changes are found, and how many reported ones are elsewhere."""
        reported = find_changes(np.exp(self.values))[1]
        found = 0
        for start, end, size in self.changes:
            here = [each for each in reported if _beside(each, start, end, self.near)]
            found += abs(sum(np.log(each.ratio) for each in here) / size - 1) <= 0.25
        far = max(self.near, SHORTEST)
        return found, sum(
            not any(_beside(each, *change[:2], far) for change in self.changes) for each in reported
        )


def _beside(reported: Change, start: int, end: int, near: int) -> bool:
    return reported.at >= start - near and reported.start <= end + near


def noise(random: np.random.Generator, records: int, correlation: float = 0.3) -> Floats:
    """Of one series, about 0."""
    innovations = random.standard_t(5, records) / np.sqrt(5 / 3)
    values = innovations.copy()
    for i in range(1, records):
        values[i] = correlation * values[i - 1] + np.sqrt(1 - correlation**2) * innovations[i]
    values *= np.exp(random.uniform(np.log(0.001), np.log(0.01)))
    slow = random.random(records) < 0.01
    values[slow] += random.exponential(0.05, int(slow.sum()))
    return values


def with_steps(records: int, random: np.random.Generator) -> Planted:
    """Some steps of 5 %, up or down."""
    apart = max(APART, records // 25)
    places = [at + int(random.integers(0, apart // 4)) for at in range(apart, records, apart)]
    values, changes = noise(random, records), []
    for at in places:
        if at <= records - APART and random.random() < 0.2:
            size = float(random.choice([-1, 1]) * np.log(STEP))
            values[at:] += size
            changes.append((at, at, size))
    return Planted(values, changes)


def with_ramp(total: float, during: int, random: np.random.Generator) -> Planted:
    """A level, a ramp of `during` records, and a level of 0 to 99."""
    return _gradual(random, np.arange(1, during + 1) / during * np.log1p(total))


def with_staircase(random: np.random.Generator) -> Planted:
    """5 to 14 steps of 1 %, 8 to 39 records long."""
    steps, during = int(random.integers(5, 15)), int(random.integers(8, 40))
    return _gradual(random, np.repeat(np.arange(1, steps + 1), during) * np.log1p(0.01))


def at_two_speeds(records: int, random: np.random.Generator) -> Planted:
    """No change: each record takes one of two speeds at random."""
    slow = random.random(records) < random.uniform(0.1, 0.5)
    return Planted(noise(random, records) + slow * np.log1p(random.uniform(0.03, 0.12)))


def unchanged(correlation: float, random: np.random.Generator) -> Planted:
    """Noise alone."""
    return Planted(noise(random, 300, correlation))


def _gradual(random: np.random.Generator, rise: Floats) -> Planted:
    before, after = int(random.integers(30, 150)), int(random.integers(0, 100))
    rise *= random.choice([-1, 1])
    values = np.concatenate([np.zeros(before), rise, np.full(after, rise[-1])])
    change = (before, before + len(rise), float(rise[-1]))
    return Planted(values + noise(random, len(values)), [change], near=len(rise) // 5)


CASES: dict[str, Callable[[np.random.Generator], Planted]] = {
    **{f"steps of 5 % in {n:,} records": partial(with_steps, n) for n in (300, 3000)},
    **{
        f"ramp of {total:.0%} over {n} records".replace("%", " %"): partial(with_ramp, total, n)
        for total in (0.1, 0.2, 0.5)
        for n in (60, 120, 300)
    },
    "staircase of 1 % steps": with_staircase,
    **{f"two speeds, {n:,} records": partial(at_two_speeds, n) for n in (100, 300, 1000)},
    **{f"no change, correlation {r}, 300 records": partial(unchanged, r) for r in (0.0, 0.3, 0.8)},
}


def delays(seed: int, series: int) -> list[int]:
    """Of steps of 5 % after 60 records: how many records until each is reported."""
    found = []
    for i in range(series):
        random = np.random.default_rng([seed, i])
        values = noise(random, 60 + APART)
        values[60:] += np.log(STEP)
        for count in range(1, APART + 1):
            if any(abs(c.at - 60) <= 1 for c in find_changes(np.exp(values[: 60 + count]))[1]):
                found.append(count)
                break
    return found


def table(seed: int, series: int) -> str:
    """In Markdown."""
    lines = []
    for number, (name, make) in enumerate(CASES.items()):
        planted = found = false = 0
        for i in range(series):
            case = make(np.random.default_rng([seed, number, i]))
            here, elsewhere = case.judged()
            planted += len(case.changes)
            found += here
            false += elsewhere > 0
        share = f"{100 * found / planted:.1f} % of {planted:,}" if planted else "-"
        lines.append([name, f"{series:,}", share, f"{100 * false / series:.1f} %"])
    head = ("planted", "series", "found", "series with a false change")
    late = np.quantile(delays(seed, series), [0.5, 0.99], method="higher")
    said = "A step of 5 % is reported once {} records have it (median; {} in 99 %).".format(*late)
    return f"{markdown_table(head, lines, left=1)}\n\n{said}"


def records(
    template: dict[str, Any], count: int, seed: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and records: `template` again and again, each row with steps of its own."""
    random = np.random.default_rng(seed)
    timed = [row for row in template["benchmarks"] if row.get("gemm", {}).get("seconds")]
    factors = np.exp([with_steps(count, random).values for _ in timed])
    for index in range(count):
        document = {"context": deepcopy(template["context"])}
        date = _START + timedelta(hours=4 * index)
        document["context"]["date"] = date.isoformat()
        document["benchmarks"] = [
            scaled(row, float(factor)) for row, factor in zip(timed, factors[:, index], strict=True)
        ]
        yield f"{date:%Y%m%dT%H%M%SZ}-{index:012x}.json", document


def scaled(row: dict[str, Any], factor: float, samples: int = 4) -> dict[str, Any]:
    """A row that takes `factor` as long, with the first of its samples."""
    case = row["gemm"]
    seconds = {key: value * factor for key, value in case["seconds"].items()}
    new = {key: (case.get(key) or [])[:samples] for key in ("samples_sm_hz", "samples_throttled")}
    new |= {"seconds": seconds, "flop_per_second": case["flop"] / seconds["median"]}
    new["samples_seconds"] = [each * factor for each in case["samples_seconds"][:samples]]
    return {**row, "real_time": row["real_time"] * factor, "gemm": {**case, **new}}


def main() -> None:
    """Prints the table, or writes records."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=1000, help="of each kind")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--write", type=Path, metavar="DIR", help="write records, no table")
    parser.add_argument("--record", type=Path, help="what to write again and again")
    parser.add_argument("--records", type=int, default=1000)
    options = parser.parse_args()
    if not options.write:
        print(table(options.seed, options.series))
        return
    if not options.record:
        parser.error("--write needs --record")
    options.write.mkdir(parents=True, exist_ok=True)
    template = json.loads(options.record.read_text(encoding="utf-8"))
    for name, document in records(template, options.records, options.seed):
        text = json.dumps(document, separators=(",", ":"))
        (options.write / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
