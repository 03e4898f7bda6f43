"""Runs of other tools, as far as a comparison needs them: plain Google Benchmark, and nvbench."""

import array
import contextlib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gemm_report.comparison.run import Run, Timed, run_of
from gemm_report.document import Kind, Object, RecordError, parse_json, read_bytes, read_text
from gemm_report.record import RECORD, record_of

RUN = Kind("run of a benchmark", "the benchmark")

# How many of them are a second.
_UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}

# How Google Benchmark was told to measure a case; what stays of its name is the case.
_MANNER = re.compile(
    r"/(?:manual_time|real_time|process_time"
    r"|(?:iterations|repeats|min_time|min_warmup_time):[\d.]+s?)(?=/|$)"
)
_AGGREGATE = re.compile(r"_(mean|median|stddev|cv|min|max|BigO|RMS)$")

# Lines through several cases, and no case.
_FITS = ("BigO", "RMS")

# Of nvbench: isolated launches first, since that is what it compares itself. What it times on the
# CPU alone has times of the CPU only.
_SAMPLES = ("nv/json/bin:nv/cold/sample_times", "nv/json/bin:nv/cpu_only/sample_times")
_CENTRES = (
    "nv/cold/time/gpu/median",
    "nv/cold/time/gpu/mean",
    "nv/cpu_only/time/cpu/median",
    "nv/cpu_only/time/cpu/mean",
)


def read_run(path: Path) -> Run:
    """A record of ours, JSON of Google Benchmark, or of nvbench; RecordError for anything else."""
    constants: list[str] = []
    text = read_text(path, RUN)
    # Google Benchmark writes NaN for a counter that is none: no reason to refuse the times.
    document = parse_json(path, RUN, text, constant=constants.append)
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        raise _neither(path)
    context = document.get("context")
    if isinstance(context, dict) and "gemm" in context:
        return run_of(record_of(path, parse_json(path, RECORD, text) if constants else document))
    run = Object(path, RUN, "run", document)
    if isinstance(context, dict):
        return _google(run)
    if "devices" in document or "meta" in document:
        return _nvbench(run)
    raise _neither(path)


def _neither(path: Path) -> RecordError:
    return RecordError(
        f"{path}: is neither a record of gemm_bench nor JSON of Google Benchmark or nvbench: "
        "give one of these"
    )


def _google(run: Object) -> Run:
    """Which device it was is not in the file."""
    rows = [row for row in run.children("benchmarks") if _aggregate(row) not in _FITS]
    names = _names([_run_name(row) for row in rows])
    repetitions: dict[str, list[float]] = {name: [] for name in names.values()}
    medians: dict[str, list[float]] = {name: [] for name in names.values()}
    untimed: dict[str, str] = {}
    for row in rows:
        name, aggregate = names[_run_name(row)], _aggregate(row)
        if reason := _reason(row):
            untimed.setdefault(name, reason)
        elif aggregate in (None, "median") and (seconds := _real_time(row)):
            (medians if aggregate else repetitions)[name].append(seconds)
    timed = {name: repetitions[name] or medians[name] for name in repetitions}
    return _run(run.path, None, timed, untimed)


def _names(run_names: Iterable[str]) -> dict[str, str]:
    """Each without the manner in which it was measured, unless only that tells it from others."""
    short = {name: _MANNER.sub("", name) for name in run_names}
    count = Counter(short.values())
    return {name: each if count[each] == 1 else name for name, each in short.items()}


def _run_name(row: Object) -> str:
    if "run_name" in row.values:
        return row.take("run_name", str)
    name = row.take("name", str)
    return name if _aggregate(row) is None else _AGGREGATE.sub("", name)


def _aggregate(row: Object) -> str | None:
    """Its name; None for a repetition. Versions before 1.5 tell by the benchmark's name alone."""
    if "run_type" in row.values:
        is_aggregate = row.take("run_type", str) == "aggregate"
        return row.take("aggregate_name", str) if is_aggregate else None
    found = _AGGREGATE.search(row.take("name", str))
    return found and found[1]


def _reason(row: Object) -> str | None:
    """Why there is no time."""
    for flag, message in (("error_occurred", "error_message"), ("skipped", "skip_message")):
        if row.values.get(flag):
            return row.or_else(**{message: None}).reason_or_none(message) or "no reason is given"
    return None


def _real_time(row: Object) -> float | None:
    unit = row.or_else(time_unit="ns").one_of("time_unit", tuple(_UNITS))
    seconds = row.or_else(real_time=None).nonnegative_or_none("real_time")
    return seconds and seconds / _UNITS[unit]


def _nvbench(run: Object) -> Run:
    named = {
        each.take("id", int): each.take("name", str) for each in run.children_or_empty("devices")
    }
    states = [
        (benchmark, state)
        for benchmark in run.children("benchmarks")
        for state in benchmark.children_or_empty("states")
    ]
    used = list(dict.fromkeys(_device(state) for _, state in states))
    names = dict.fromkeys(named[id] for id in used if id in named)
    timed: dict[str, Sequence[float]] = {}
    untimed: dict[str, str] = {}
    for benchmark, state in states:
        name = "/".join([benchmark.take("name", str), *_axes(state)])
        if len(used) > 1:
            name += f"/device:{_device(state)}"
        if name in timed:
            raise RecordError(f"{run.path}: has {name} twice: {run.kind.advice}")
        timed[name] = []
        if state.values.get("is_skipped"):
            reason = state.or_else(skip_reason=None).values["skip_reason"]
            untimed[name] = reason if isinstance(reason, str) and reason else "no reason is given"
        else:
            timed[name] = _seconds(state)
    return _run(run.path, " and ".join(names) or None, timed, untimed)


def _device(state: Object) -> int | None:
    return state.or_else(device=None).take("device", int, type(None))


def _axes(state: Object) -> list[str]:
    return [
        f"{axis.take('name', str)}:{axis.take('value', str, int, float)}"
        for axis in state.children_or_empty("axis_values")
    ]


def _seconds(state: Object) -> Sequence[float]:
    """All samples where their file is there, else their median or mean."""
    summaries = {each.take("tag", str): each for each in state.children_or_empty("summaries")}
    for tag in _SAMPLES:
        if tag in summaries and (samples := _samples(summaries[tag])):
            return samples
    for tag in _CENTRES:
        if tag in summaries and (centre := _number(_data(summaries[tag]).get("value"))):
            return [centre]
    return []


def _data(summary: Object) -> Mapping[str, Any]:
    values = summary.children_or_empty("data")
    return {each.take("name", str): each.values.get("value") for each in values}


def _number(value: Any) -> float | None:
    """nvbench writes numbers as texts, so that no reader rounds them."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        number = float(value)
        return number if 0 < number < float("inf") else None
    return None


def _samples(summary: Object) -> Sequence[float]:
    """Those of the file that it names; none where that is not there. RecordError for damage."""
    data = _data(summary)
    path = _beside(summary.path, str(data.get("filename")))
    if path is None:
        return []
    samples = array.array("f")
    content = read_bytes(path, summary.kind, unpack=False)
    if len(content) % samples.itemsize == 0:
        samples.frombytes(content)
    if sys.byteorder == "big":
        samples.byteswap()
    if len(samples) != _number(data.get("size")) or not all(0 < s < 1e30 for s in samples):
        raise RecordError(
            f"{path}: does not hold the samples that {summary.path} tells of: {summary.kind.advice}"
        )
    return list(samples)


def _beside(path: Path, name: str) -> Path | None:
    """A file in the folder of `path`, whose name may begin with that folder; never one outside."""
    folder = Path(os.path.realpath(path.parent))
    for start in (folder, folder.parent):
        found = Path(os.path.realpath(start / name))
        if found.is_relative_to(folder) and found.is_file():
            return found
    return None


def _run(
    path: Path,
    device: str | None,
    samples: Mapping[str, Sequence[float]],
    untimed: Mapping[str, str],
) -> Run:
    """One bad repetition makes a case one without a time."""
    without = {name: "it has no positive time" for name, found in samples.items() if not found}
    reasons = {**without, **untimed}
    timed = {
        name: Timed(name, tuple(found)) for name, found in samples.items() if name not in reasons
    }
    return Run(path, device, timed, reasons)
