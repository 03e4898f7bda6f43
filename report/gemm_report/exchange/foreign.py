"""Runs of other tools, as far as a comparison needs them: plain Google Benchmark, and nvbench."""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gemm_report.comparison.run import Run, Timed, run_of
from gemm_report.document import (
    Kind,
    Nonnegative,
    RecordError,
    Text,
    cut,
    decoded,
    parse_json,
    read_bytes,
    read_text,
)
from gemm_report.record import RECORD, record_of

RUN = Kind("run of a benchmark", "the benchmark")

# How many of them are a second.
_UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}

# How Google Benchmark was told to measure a case; what stays of its name is the case.
_MANNER = re.compile(
    r"/(?:manual_time|real_time|process_time"
    r"|(?:iterations|repeats|min_time|min_warmup_time):[\d.]+s?)(?=/|$)"
)
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


@dataclass(frozen=True)
class _Entry:
    """Of Google Benchmark 1.5 or newer."""

    name: Text
    run_name: Text | None = None
    aggregate_name: Text = ""  # none: a repetition
    error_occurred: Any = None
    error_message: str | None = None
    skipped: Any = None
    skip_message: str | None = None
    time_unit: Literal["ns", "us", "ms", "s"] = "ns"
    real_time: Nonnegative | None = None


@dataclass(frozen=True)
class _Google:
    benchmarks: tuple[_Entry, ...]


@dataclass(frozen=True)
class _Named:
    name: Text
    value: Any = None


@dataclass(frozen=True)
class _Summary:
    tag: Text
    data: tuple[_Named, ...] | None = None


@dataclass(frozen=True)
class _State:
    device: int | None = None
    is_skipped: Any = None
    skip_reason: str | None = None
    axis_values: tuple[_Named, ...] | None = None
    summaries: tuple[_Summary, ...] | None = None


@dataclass(frozen=True)
class _States:
    name: Text
    states: tuple[_State, ...] | None = None


@dataclass(frozen=True)
class _Device:
    id: int
    name: Text


@dataclass(frozen=True)
class _Nvbench:
    benchmarks: tuple[_States, ...]
    devices: tuple[_Device, ...] | None = None


def read_run(path: Path) -> Run:
    """A record of ours, JSON of Google Benchmark, or of nvbench; RecordError for anything else."""
    constants: list[str] = []
    text = read_text(path, RUN)
    # Google Benchmark writes NaN for a counter that is none: no reason to refuse the times.
    document = parse_json(path, RUN, text, constant=constants.append)
    if isinstance(document, dict) and isinstance(document.get("benchmarks"), list):
        context = document.get("context")
        if isinstance(context, dict) and "gemm" in context:
            document = parse_json(path, RECORD, text) if constants else document
            return run_of(record_of(path, document))
        if isinstance(context, dict):
            return _google(path, decoded(path, RUN, document, _Google).benchmarks)
        if "devices" in document or "meta" in document:
            return _nvbench(path, decoded(path, RUN, document, _Nvbench))
    raise RecordError(
        f"{path}: is neither a record of gemm_bench nor JSON of Google Benchmark or nvbench: "
        "give one of these"
    )


def _google(path: Path, entries: Iterable[_Entry]) -> Run:
    """Which device it was is not in the file."""
    rows = [row for row in entries if row.aggregate_name not in _FITS]
    names = _names([row.run_name or row.name for row in rows])
    found: dict[str, dict[str, list[float]]]
    found = {name: {"": [], "median": []} for name in names.values()}
    untimed: dict[str, str] = {}
    for row in rows:
        name = names[row.run_name or row.name]
        if row.error_occurred or row.skipped:
            said = row.error_message if row.error_occurred else row.skip_message
            untimed.setdefault(name, cut(said or "no reason is given"))
        elif row.real_time and row.aggregate_name in found[name]:
            found[name][row.aggregate_name].append(row.real_time / _UNITS[row.time_unit])
    timed = {name: each[""] or each["median"] for name, each in found.items()}
    return _run(path, None, timed, untimed)


def _names(run_names: Iterable[str]) -> dict[str, str]:
    """Each without the manner in which it was measured, unless only that tells it from others."""
    short = {name: _MANNER.sub("", name) for name in run_names}
    count = Counter(short.values())
    return {name: each if count[each] == 1 else name for name, each in short.items()}


def _nvbench(path: Path, run: _Nvbench) -> Run:
    named = {each.id: each.name for each in run.devices or ()}
    states = [(each.name, state) for each in run.benchmarks for state in each.states or ()]
    used = list(dict.fromkeys(state.device for _, state in states))
    names = dict.fromkeys(named[id] for id in used if id in named)
    timed: dict[str, Sequence[float]] = {}
    untimed: dict[str, str] = {}
    for benchmark, state in states:
        axes = (f"{axis.name}:{axis.value}" for axis in state.axis_values or ())
        name = "/".join([benchmark, *axes])
        if len(used) > 1:
            name += f"/device:{state.device}"
        if name in timed:
            raise RecordError(f"{path}: has {name} twice: {RUN.advice}")
        timed[name] = []
        if state.is_skipped:
            untimed[name] = state.skip_reason or "no reason is given"
        else:
            timed[name] = _seconds(path, state)
    return _run(path, " and ".join(names) or None, timed, untimed)


def _seconds(path: Path, state: _State) -> Sequence[float]:
    """All samples where their file is there, else their median or mean."""
    summaries = {
        each.tag: {datum.name: datum.value for datum in each.data or ()}
        for each in state.summaries or ()
    }
    for tag in _SAMPLES:
        if tag in summaries and (samples := _samples(path, summaries[tag])):
            return samples
    centres = (_number(summaries[tag].get("value")) for tag in _CENTRES if tag in summaries)
    return [centre for centre in centres if centre][:1]


def _number(value: Any) -> float | None:
    """nvbench writes numbers as texts, so that no reader rounds them."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        number = float(value)
        return number if 0 < number < float("inf") else None
    return None


def _samples(run: Path, data: Mapping[str, Any]) -> Sequence[float]:
    """Those of the file that it names; none where that is not there. RecordError for damage."""
    import numpy as np

    path = _beside(run, str(data.get("filename")))
    if path is None:
        return []
    content = read_bytes(path, RUN, unpack=False)
    samples = np.frombuffer(content[: len(content) // 4 * 4], "<f4").astype(float)
    whole = len(content) == 4 * (_number(data.get("size")) or -1)
    if not (whole and ((samples > 0) & (samples < 1e30)).all()):
        raise RecordError(f"{path}: does not hold the samples that {run} tells of: {RUN.advice}")
    return samples.tolist()


def _beside(path: Path, name: str) -> Path | None:
    """A file in the folder of `path`, whose name may begin with that folder; never one outside."""
    folder = Path(os.path.realpath(path.parent))
    for start in (folder, folder.parent):
        found = Path(os.path.realpath(start / name))
        if found.is_relative_to(folder) and found.is_file():
            return found
    return None


def _run(
    path: Path, device: str | None, seconds: Mapping[str, Sequence[float]], untimed: dict[str, str]
) -> Run:
    """One bad repetition makes a case one without a time."""
    untimed = {n: "it has no positive time" for n, found in seconds.items() if not found} | untimed
    timed = {n: Timed(n, tuple(found)) for n, found in seconds.items() if n not in untimed}
    return Run(path, device, timed, untimed)
