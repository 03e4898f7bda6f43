"""Nsight Compute: runs it, and reads its report through NVIDIA's Python package ncu_report.

What was read can be kept as JSON: a list of pages, one a run of ncu, each a list of launches.
"""

import importlib
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from gemm_report.document import InputError, Kind, decoded, read_json

REPORT = ".ncu-rep"
_KEPT = Kind("file of counters", "tools/explain -o")
# ncu_report gives base units; what is not named here is counts, bytes, hertz or per cent.
_UNITS = {"ns": 1e-9, "nsecond": 1e-9, "cycle/nsecond": 1e9}
_LOCAL = re.compile(r"\b(?:LDL|STL)\b")


@dataclass(frozen=True)
class Instruction:
    """An instruction that waited or uses local memory; its source line where that is known."""

    text: str
    samples: float  # of warps that stalled there
    executed: float
    place: str = ""  # file:line
    line: str = ""


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel, with the metrics that ncu had for it, in SI units."""

    kernel: str
    metrics: dict[str, float]
    code: tuple[Instruction, ...] = ()


def program() -> str:
    """Where ncu is; InputError if it is missing."""
    if found := shutil.which("ncu"):
        return found
    raise InputError("there is no ncu (Nsight Compute) on PATH: it comes with the CUDA toolkit")


def package() -> ModuleType:
    """NVIDIA's ncu_report: as installed, or the one that came with ncu. InputError without it."""
    if ncu := shutil.which("ncu"):  # which may be a script beside the folder of Nsight Compute
        home = Path(ncu).resolve().parent
        beside = (*home.glob("extras/python"), *home.parent.glob("nsight-compute*/extras/python"))
        sys.path += [str(folder) for folder in beside if str(folder) not in sys.path]
    try:
        return importlib.import_module("ncu_report")
    except ImportError as error:
        raise InputError(
            f"NVIDIA's package ncu_report cannot be imported ({error}): python -m pip install "
            "ncu-report"
        ) from None


def available(ncu: str) -> frozenset[str]:
    """The base names of all metrics of the chips that are here."""
    names = re.findall(r"^([a-z]\w*__\w+)\s", run([ncu, "--query-metrics"]), re.MULTILINE)
    if not names:
        raise InputError(f"{ncu} --query-metrics names no metric: ncu sees no GPU that it supports")
    return frozenset(names)


def count(
    ncu: str,
    report: Path,
    metrics: Iterable[str],
    kernels: Iterable[str],
    launches: int,
    command: Sequence[str],
) -> None:
    """Runs a command under ncu, which writes a report of the first launches of these kernels.

    Caches are flushed before each pass, since the operand sets of a batch are rotated past them.
    """
    names = "|".join(sorted({re.escape(base_name(name)) for name in kernels}))
    options = ["--force-overwrite", "--export", str(report), "--import-source", "yes"]
    options += ["--section", "SourceCounters", "--metrics", ",".join(metrics)]
    options += ["--clock-control", "none", "--cache-control", "all", "--target-processes", "all"]
    options += ["--kernel-name-base", "function", "--kernel-name", f"regex:^({names})$"]
    run([ncu, *options, "--launch-count", str(launches), *command])


def read_report(path: Path, wanted: Collection[str]) -> list[Launch]:
    """The launches in ncu's report, with those of the wanted metrics that it has."""
    ncu_report = package()
    if not path.is_file():
        raise InputError(f"{path}: there is no report of ncu: it saw none of these kernels")
    try:
        context = ncu_report.load_report(str(path))
    except Exception as error:  # which one, NVIDIA does not say
        raise InputError(f"{path}: is no report of ncu ({error})") from None
    return [_launch(action, wanted) for its in context for action in its]


def _launch(action: Any, wanted: Collection[str]) -> Launch:
    found = {}
    for name in set(wanted) & set(action.metric_names()):
        metric = action.metric_by_name(name)
        value = metric.as_double() * _UNITS.get(metric.unit(), 1.0)
        if math.isfinite(value):
            found[name] = value
    return Launch(action.name(), found, _code(action))


def _code(action: Any) -> tuple[Instruction, ...]:
    samples = _by_address(action, "smsp__pcsamp_sample_count")
    executed = _by_address(action, "inst_executed")
    files = {Path(name).name: text.splitlines() for name, text in action.source_files().items()}
    found = []
    for address in sorted(samples | executed):
        text = " ".join(action.sass_by_pc(address).split())
        if not (samples.get(address) or _LOCAL.search(text)):
            continue
        place, line = "", ""
        if source := action.source_info(address):
            name, number = Path(source.file_name()).name, source.line()
            place = f"{name}:{number}"
            line = "".join(files.get(name, [])[number - 1 : number]).strip()
        counts = samples.get(address, 0.0), executed.get(address, 0.0)
        found.append(Instruction(text, *counts, place, line))
    return tuple(found)


def _by_address(action: Any, name: str) -> dict[int, float]:
    """A metric that has a value for each instruction; empty where it was not counted."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return {}
    places = metric.correlation_ids()
    return {places.as_uint64(i): metric.as_double(i) for i in range(metric.num_instances())}


def read_kept(path: Path, wanted: Collection[str]) -> list[list[Launch]]:
    """The pages of a file that `explain -o` kept, or the one of a report of ncu."""
    if path.suffix == REPORT:
        return [read_report(path, wanted)]
    return decoded(path, _KEPT, read_json(path, _KEPT), list[list[Launch]])


def base_name(kernel: str) -> str:
    """The name that gemm_bench and ncu agree on: no return type, namespaces or arguments."""
    # The compiler and ncu write namespaces without a name in two ways.
    named = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel)
    bare = re.sub(r"<.*|\(.*", "", named)
    return (bare.split("::")[-1].split() or [""])[-1]


def kernels_of(launched: Iterable[str]) -> list[str]:
    """The base names of what a launch runs, without the copies that ncu does not count."""
    return [base_name(name) for name in launched if name not in ("memset", "memcpy")]


def run(command: Sequence[str], may_fail: Path | None = None) -> str:
    """What a program printed; InputError with its last line where it failed and wrote no record."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = f"{done.stdout}\n{done.stderr}"
    if "ERR_NVGPUCTRPERM" in said:
        raise InputError(
            "ncu may not read the counters (ERR_NVGPUCTRPERM): run it as root, or load the driver "
            "with NVreg_RestrictProfilingToAdminUsers=0"
        )
    if done.returncode != 0 and not (may_fail and may_fail.is_file()):
        lines = [line for line in said.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("==ERROR==")]
        last = (errors or lines or ["no output"])[-1]
        raise InputError(f"{Path(command[0]).name} ended with {done.returncode}: {last}")
    return done.stdout
