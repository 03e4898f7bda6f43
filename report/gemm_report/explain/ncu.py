"""Nsight Compute's command line: what it prints, in SI units, and why it cannot, in one line.

Its CSV with `--page raw` is a row for each launch behind a row of units. Only metrics that were
asked for are read, and those strictly: next to them ncu prints what the GPU is and how the kernel
was launched, some of it as text.
"""

import csv
import io
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gemm_report.document import InputError

_OLDEST = (2021, 1)  # the first whose CSV and names of metrics are those used here

_COUNTS = """% ratio inst sector block warp cycle request register/thread thread inst/cycle
    sector/request op 1 wavefront conflict inst/warp warp/inst thread/inst warp/cycle byte/sector
    byte/block cycle/second s second hz Hz 1/s byte"""
_UNITS = dict.fromkeys(["", "thread inst", *_COUNTS.split()], 1.0)
_UNITS |= {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3}
_UNITS |= {"Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9, "KHz": 1e3, "MHz": 1e6, "GHz": 1e9, "1/ns": 1e9}
_UNITS |= {"cycle/nsecond": 1e9, "cycle/usecond": 1e6, "Kbyte/block": 1e3}
_UNITS |= {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}
_ABSENT = ("", "n/a", "nan", "-nan", "(!) n/a", "no data")


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel, with the metrics that ncu had for it; absent ones are left out."""

    kernel: str
    metrics: Mapping[str, float]


def program() -> str:
    """Where ncu is; InputError if it is missing or too old."""
    found = shutil.which("ncu")
    if found is None:
        raise InputError("there is no ncu (Nsight Compute) on PATH: it comes with the CUDA toolkit")
    said = _run([found, "--version"])
    version = re.search(r"Version (\d+)\.(\d+)", said)
    if not version:
        raise InputError(f"{found} --version says no version: is it Nsight Compute?")
    if (int(version[1]), int(version[2])) < _OLDEST:
        raise InputError(
            f"{found} is {version[1]}.{version[2]}, too old: {_OLDEST[0]}.{_OLDEST[1]} or newer is "
            "needed, which comes with the CUDA toolkit"
        )
    return found


def available(ncu: str) -> frozenset[str]:
    """The base names of all metrics of the chips that are here."""
    names = re.findall(r"^([a-z]\w*__\w+)\s", _run([ncu, "--query-metrics"]), re.MULTILINE)
    if not names:
        raise InputError(f"{ncu} --query-metrics names no metric: ncu sees no GPU that it supports")
    return frozenset(names)


def count(
    ncu: str, metrics: Sequence[str], kernels: Iterable[str], launches: int, command: Sequence[str]
) -> str:
    """Runs a command under ncu; the raw page, as CSV, of the first launches of these kernels.

    Caches are flushed before each pass, since the operand sets of a batch are rotated past them.
    """
    options = ["--csv", "--page", "raw", "--print-units", "base", "--target-processes", "all"]
    options += ["--clock-control", "none", "--cache-control", "all"]
    options += [*named(kernels), "--launch-count", str(launches), "--metrics", ",".join(metrics)]
    return _run([ncu, *options, *command])


def source(ncu: str, kernels: Iterable[str], launches: int, command: Sequence[str]) -> str:
    """The source pages, as CSV, of the first launches of these kernels: of SASS, then of lines."""
    with TemporaryDirectory(prefix="explain-") as folder:
        report = f"{folder}/source.ncu-rep"
        options = ["--section", "SourceCounters", "--clock-control", "none", "--export", report]
        options += ["--target-processes", "all", *named(kernels), "--launch-count", str(launches)]
        _run([ncu, *options, *command])
        page = [ncu, "--import", report, "--page", "source", "--csv", "--print-source"]
        instructions = _run([*page, "sass"])
        try:
            return instructions + _run([*page, "cuda"])
        except InputError:  # without -lineinfo there are no lines
            return instructions


def named(kernels: Iterable[str]) -> list[str]:
    """Options with which ncu counts these alone."""
    names = "|".join(sorted({re.escape(base_name(name)) for name in kernels}))
    return ["--kernel-name-base", "function", "--kernel-name", f"regex:^({names})$"]


def pages(text: str) -> list[str]:
    """The CSV of each run in what ncu printed, without its remarks and the program's lines."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith('"ID"'):
            found.append([line])
        elif found and line.startswith('"'):
            found[-1].append(line)
    return ["\n".join(lines) + "\n" for lines in found]


def read(page: str, wanted: Collection[str]) -> list[Launch]:
    """The launches on one page, with those of the wanted metrics that ncu had."""
    if not page:
        return []
    header, *rows = csv.reader(io.StringIO(page))
    if "Kernel Name" not in header:
        raise InputError("ncu's CSV has no column 'Kernel Name': this version is not known here")
    whole = [row for row in rows if len(row) >= len(header)]
    if not whole:
        return []
    units, *launches = whole
    if units[header.index("ID")]:
        raise InputError("ncu's CSV has no row of units: use ncu --csv --page raw")
    name = header.index("Kernel Name")
    metrics = [(i, column) for i, column in enumerate(header) if column in wanted]
    return [
        Launch(
            row[name],
            {
                column: _number(column, row[i], units[i])
                for i, column in metrics
                if row[i].strip().lower() not in _ABSENT
            },
        )
        for row in launches
    ]


def base_name(kernel: str) -> str:
    """The name that gemm_bench and ncu agree on: no return type, namespaces or arguments."""
    # The compiler and ncu write namespaces without a name in two ways.
    named = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel)
    bare = re.sub(r"<.*|\(.*", "", named)
    return (bare.split("::")[-1].split() or [""])[-1]


def kernels_of(launched: Iterable[str]) -> list[str]:
    """The base names of what a launch runs, without the copies that ncu does not count."""
    return [base_name(name) for name in launched if name not in ("memset", "memcpy")]


def _number(metric: str, text: str, unit: str) -> float:
    factor = _UNITS.get(unit)
    if factor is None:
        raise InputError(f"ncu gave {metric} in '{unit}', which is not known here")
    # Some versions put what a sum is made of behind it: "33.0 (1; 2; 30)".
    plain = text.replace(",", "").partition("(")[0].strip()
    try:
        return float(plain) * factor
    except ValueError:
        raise InputError(f"ncu gave {metric} as '{text}', which is no number") from None


def _run(command: Sequence[str]) -> str:
    # Other languages swap points and commas.
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    said = f"{done.stdout}\n{done.stderr}"
    if "ERR_NVGPUCTRPERM" in said:
        raise InputError(
            "ncu may not read the counters (ERR_NVGPUCTRPERM): run it as root, or load the driver "
            "with NVreg_RestrictProfilingToAdminUsers=0"
        )
    if done.returncode != 0:
        lines = [line for line in said.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("==ERROR==")]
        last = (errors or lines or ["no output"])[-1]
        raise InputError(f"{Path(command[0]).name} ended with {done.returncode}: {last}")
    return done.stdout
