"""Runs gemm_bench whole, for tests: on the CPU, so that they mean the same with and without a GPU.

The programs come from the build folder in GEMM_BENCH_BUILD, relative to the project's root.
"""

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
BENCH = BUILD / "gemm_bench"
QUICK = [
    "--gemm_device=cpu",
    "--gemm_warmup=0.001",
    "--gemm_sample=0.0001",
    "--gemm_sampling=0.05",
    "--gemm_peaks=nominal",
    "--benchmark_min_time=0.001s",
    "--gemm_row_budget=60",  # on a busy host
]
NEEDS_BENCH = pytest.mark.skipif(not BENCH.exists(), reason=f"{BENCH} is not built")

# One thread: several wait for each other on a busy machine.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("GEMM_BENCH_PYTHON", sys.executable)


def run(
    *arguments: str, program: Path = BENCH, timeout: float = 240, **kwargs: Any
) -> subprocess.CompletedProcess[str]:
    """Runs it to its end."""
    command = [program, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False, **kwargs
    )


def has_gpu() -> bool:
    """Whether the program can use one."""
    return BENCH.exists() and run("--gemm_device=0", "--gemm_name_record").returncode == 0


def record(path: Path) -> dict[str, Any]:
    """The record, which is JSON as the schema wants it."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}")

    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    document: dict[str, Any] = json.loads(text, parse_constant=refuse)
    _validator().validate(document)
    return document


@cache
def _validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "results" / "schema.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def ran(
    out: Path, *arguments: str, code: int = 0, **kwargs: Any
) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    """The record of a quick run, and what it printed."""
    done = run(*QUICK, *arguments, f"--benchmark_out={out}", **kwargs)
    assert done.returncode == code, done.stdout + done.stderr
    return record(out), done


def rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """What `gemm` says of each result, repetition by repetition."""
    return [row["gemm"] for row in document["benchmarks"] if row["run_type"] == "iteration"]


def codes(row: dict[str, Any]) -> set[str]:
    """In which points a row deviates from the guideline, and why it is in doubt."""
    return {deviation["code"] for deviation in row.get("departures", [])}


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[Any] | None = None) -> None:
    """Fails after a minute, or if the process ends before."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
