"""Makes a long history of one real record, with changes at known places, to try history on.

    python -m gemm_report.history.generated RECORD FOLDER --records 1000 --rows 300

Noise is as `tools/calibrate` found it on an H200 (standard deviations of 0.01 to 0.4 % between
processes) and worse: 0.1 to 1 % by row, Student's t with 5 degrees of freedom, a correlation of
0.3 between neighbours, half of it with the clock, and one record in a hundred slower by 5 % on the
average. One row in 500 failed, one record in 200 was interrupted. Samples are cut to four a row, so
that 1,000 records of 300 rows have 0.9 GB.
"""

import argparse
import copy
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 1.05
# What changes with the times at a place; `nothing` changes with them as well.
CAUSES = ("fingerprint", "driver", "toolkit", "power limit", "method", "clock", "nothing")
# Records between two changes of a series, at least.
APART = 24
_START = datetime.fromisoformat("2020-01-01T00:00:00+00:00")
_SAMPLES = 4


@dataclass(frozen=True)
class Event:
    """From record `at` on, `rows` take `factors` times as long, because of `cause`."""

    at: int
    cause: str
    rows: NDArray[np.int64]
    factors: NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """All of a history, one column a row of the record."""

    template: dict[str, Any]
    rows: list[dict[str, Any]]
    events: list[Event]
    factors: NDArray[np.float64]
    clocks: NDArray[np.float64]
    failed: NDArray[np.bool_]
    interrupted: NDArray[np.bool_]
    commits: list[str]


def make_world(template: dict[str, Any], records: int, rows: int, seed: int) -> World:
    """What happens in a history of `records` records with `rows` rows each."""
    random = np.random.default_rng(seed)
    events = _events(random, records, rows)
    sd = np.exp(random.uniform(np.log(0.001), np.log(0.01), rows))
    noise = _noise(random, records, rows) * sd
    of_clock = random.random(rows) < 0.5
    clocks = np.where(of_clock, -0.5 * noise, 0.0)
    slow = random.random((records, rows)) < 0.01
    noise[slow] += random.exponential(0.05, int(slow.sum()))
    for event in events:
        noise[event.at :, event.rows] += np.log(event.factors)
        if event.cause in ("clock", "power limit"):
            clocks[event.at :, event.rows] -= np.log(event.factors)
    changes = np.cumsum(random.random(records) < 1 / 3)
    for event in events:
        # A kernel's code changes with a commit; a driver does not.
        changes[event.at :] += event.cause == "fingerprint"
    return World(
        template=template,
        rows=_rows(template, rows),
        events=events,
        factors=np.exp(noise),
        clocks=np.exp(clocks),
        failed=random.random((records, rows)) < 0.002,
        interrupted=random.random(records) < 0.005,
        commits=[_hash("commit", int(change)) for change in changes],
    )


def planted(world: World) -> dict[str, Any]:
    """What was planted, as JSON."""
    steps = [
        {"row": int(row), "name": _name(world.rows[row]), "record": event.at}
        | {"factor": float(factor), "cause": event.cause}
        for event in world.events
        for row, factor in zip(event.rows, event.factors, strict=True)
    ]
    names = [_name(row) for row in world.rows]
    return {"records": [file_name(world, i) for i in range(len(world.commits))]} | {
        "rows": names,
        "steps": steps,
    }


def file_name(world: World, index: int) -> str:
    """As gemm_bench's records are named."""
    return f"{_date(index):%Y%m%dT%H%M%SZ}-{world.commits[index]}.json"


def record(world: World, index: int) -> dict[str, Any]:
    """One record as JSON."""
    context = copy.deepcopy(world.template["context"])
    context["date"] = _date(index).isoformat()
    run = context["gemm"]
    run["commit"] = world.commits[index]
    run["complete"] = not bool(world.interrupted[index])
    happened = [event for event in world.events if event.at <= index]
    counts = {cause: sum(event.cause == cause for event in happened) for cause in CAUSES}
    run["device"]["driver"] = f"{550 + 5 * counts['driver']}.54"
    run["device"]["runtime"] = f"12.{counts['toolkit']}"
    run["device"]["power_limit_w"] = 700.0 - 10 * counts["power limit"]
    run["method"]["state"] = ("settled", "burst")[counts["method"] % 2]
    code: dict[int, int] = {}
    for event in happened:
        if event.cause == "fingerprint":
            code |= {int(row): event.at for row in event.rows}
    shown = len(world.rows) // 2 if world.interrupted[index] else len(world.rows)
    rows = [_row(world, index, i, code.get(i, 0)) for i in range(shown)]
    return {"context": context, "benchmarks": rows}


def write_history(world: World, folder: Path) -> None:
    """Writes every record into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(len(world.commits)):
        text = json.dumps(record(world, index), separators=(",", ":"))
        (folder / file_name(world, index)).write_text(text, encoding="utf-8")


def _events(random: np.random.Generator, records: int, rows: int) -> list[Event]:
    apart = max(APART, records // 25)
    places = [place + int(random.integers(0, apart // 4)) for place in range(apart, records, apart)]
    places = [place for place in places if place <= records - APART]
    # A quarter of the rows never changes: what is found there is false.
    restless = np.flatnonzero(random.random(rows) < 0.75)
    events = []
    for i, place in enumerate(places):
        chosen = restless[random.random(len(restless)) < 0.2]
        factors = np.where(random.random(len(chosen)) < 0.5, STEP, 1 / STEP)
        events.append(Event(place, CAUSES[i % len(CAUSES)], chosen, factors))
    return events


def _noise(random: np.random.Generator, records: int, rows: int) -> NDArray[np.float64]:
    """Of variance 1, correlated with the record before."""
    innovations = random.standard_t(5, (records, rows)) / np.sqrt(5 / 3)
    noise = innovations.copy()
    for i in range(1, records):
        noise[i] = 0.3 * noise[i - 1] + np.sqrt(1 - 0.3**2) * innovations[i]
    return noise


def _rows(template: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Those of the record; where they are too few, the same again on larger problems."""
    timed = [
        row
        for row in template["benchmarks"]
        if row["run_type"] == "iteration" and row["gemm"].get("seconds")
    ]
    rows = []
    for i in range(count):
        row = copy.deepcopy(timed[i % len(timed)])
        case, lap = row["gemm"], i // len(timed)
        if lap:
            old = f"{case['m']}x{case['n']}x{case['k']}"
            case["k"] += 4096 * lap
            row["name"] = row["name"].replace(old, f"{case['m']}x{case['n']}x{case['k']}")
            row["run_name"] = row["name"]
            case["flop"] = 2.0 * case["m"] * case["n"] * case["k"]
        rows.append(row)
    return rows


def _row(world: World, index: int, which: int, code: int) -> dict[str, Any]:
    row = world.rows[which]
    case = row["gemm"]
    factor, clock = float(world.factors[index, which]), float(world.clocks[index, which])
    new: dict[str, Any] = {"fingerprint": _hash(row["name"], code)}
    if world.failed[index, which]:
        nothing = dict.fromkeys(("seconds", "flop_per_second", "clocks", "median_interval"))
        empty = {key: [] for key in ("samples_seconds", "samples_sm_hz", "samples_throttled")}
        new |= nothing | empty | {"failed": "c[0,0] = nan, expected 1 +- 0.1"}
        return {**row, "gemm": {**case, **new}}
    new["seconds"] = {key: value * factor for key, value in case["seconds"].items()}
    new["flop_per_second"] = case["flop"] / new["seconds"]["median"]
    for key, by in (("samples_seconds", factor), ("samples_sm_hz", clock)):
        new[key] = [value * by for value in (case.get(key) or [])[:_SAMPLES]]
    new["samples_throttled"] = (case.get("samples_throttled") or [])[:_SAMPLES]
    if case["clocks"]:
        hz = {
            key: {name: value * clock for name, value in case["clocks"][key].items()}
            for key in ("sm_hz", "sm_hz_by_timer")
            if case["clocks"].get(key)
        }
        new["clocks"] = {**case["clocks"], **hz}
    return {**row, "real_time": row["real_time"] * factor, "gemm": {**case, **new}}


def _name(row: dict[str, Any]) -> str:
    return row["name"].removesuffix("/manual_time")


def _date(index: int) -> datetime:
    return _START + timedelta(hours=4 * index)


def _hash(text: str, number: int) -> str:
    return hashlib.sha256(f"{text} {number}".encode()).hexdigest()[:16]


def main() -> None:
    """Writes the records into FOLDER, and what was planted into FOLDER-planted.json."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("record", type=Path, metavar="RECORD")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    template = json.loads(options.record.read_text(encoding="utf-8"))
    world = make_world(template, options.records, options.rows, options.seed)
    write_history(world, options.folder)
    beside = options.folder.with_name(options.folder.name + "-planted.json")
    beside.write_text(json.dumps(planted(world)), encoding="utf-8")


if __name__ == "__main__":
    main()
