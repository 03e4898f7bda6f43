"""--gemm_verdict as programs see it."""

import fcntl
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import test_runs
from test_runs import NEEDS_BENCH, ROOT

jsonschema = pytest.importorskip("jsonschema")
pytest.importorskip("numpy")

SCHEMA = json.loads((ROOT / "python/gemm_bench/verdict.schema.json").read_text())
KERNELS = """
import os

import numpy as np


def prepare(problem, a, b, c):
    a, b, c = (np.asarray(each) for each in (a, b, c))
    return lambda stream: np.matmul(a, b, out=c)


def zero(problem, a, b, c):
    c = np.asarray(c)
    return lambda stream: c.fill(0)


def signal(problem, a, b, c):
    os.kill(os.getpid(), 11)


def leave(problem, a, b, c):
    os._exit(0)


def throw(problem, a, b, c):
    raise ValueError("no")


def forge(problem, a, b, c):
    os.write(3, b"{}")  # to the descriptor of the answer
    os._exit(0)


def unsupported(problem):
    return "only up to 512" if problem.m > 512 else None
"""

CACHED = ("--gemm_baselines_cached",)
BUDGET = ("--gemm_row_budget=0.001", "--gemm_library=omit")

pytestmark = NEEDS_BENCH


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("verdict")
    (made / "k.py").write_text(KERNELS)
    (made / "broken.py").write_text("def prepare(:\n")
    return made


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    quick = ["--gemm_warmup=0.01", "--gemm_sampling=0.1", "--gemm_peaks=nominal"]
    quick.append("--gemm_row_budget=60")  # of a busy host
    cache = {"XDG_CACHE_HOME": str(folder / "cache"), "OPENBLAS_NUM_THREADS": "1"}
    environment = {**os.environ, **cache}
    options = ("--gemm_device=cpu", *quick, "--gemm_verdict", *options)
    return test_runs.run(*options, cwd=folder, env=environment)


def verdicts(folder: Path, *options: str) -> list[dict[str, Any]]:
    done = run(folder, *options)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    # What is skipped has not failed.
    skipped = (
        all(one["status"] in ("passed", "unsupported") for one in lines) or BUDGET[0] in options
    )
    assert done.returncode == (0 if skipped else 1)
    return lines


def test_what_a_verdict_says_of_a_right_kernel(folder: Path) -> None:
    shapes = "--gemm_shapes=64,48x32x16"
    lines = verdicts(folder, "--gemm_kernel=k.py", shapes, "--gemm_versus=CpuNaive")
    assert [(one["m"], one["n"], one["k"]) for one in lines] == [(64, 64, 64), (48, 32, 16)]
    for one in lines:
        assert (one["status"], one["reason"]) == ("passed", None)
        seconds, versus = one["seconds"], one["versus"]
        assert seconds["low"] <= seconds["median"] <= seconds["high"]
        flop = 2 * one["m"] * one["n"] * one["k"]
        assert one["flop_per_second"] == pytest.approx(flop / seconds["median"])
        assert versus["kernel"].startswith("CpuNaive")
        assert versus["low"] <= versus["ratio"] <= versus["high"]
        assert one["checks"]["checked"] > 0
        assert one["host_code"]
    assert lines[0]["seed"] == lines[1]["seed"]
    seeded = ("--gemm_shapes=64", "--gemm_library=omit", "--gemm_seed=7")
    assert verdicts(folder, "--gemm_kernel=k.py", *seeded)[0]["seed"] == 7


CODES = {
    "k.py:zero": ("wrong", "elements are wrong"),
    "k.py:forge": ("cheats", "descriptor"),
    "broken.py": ("compile-error", "SyntaxError"),
    "k.py:nothing": ("compile-error", "no function nothing"),
    "k.py:signal": ("crashed", "Segmentation fault"),
    "k.py:leave": ("crashed", "exit(0)"),
    "k.py:throw": ("crashed", "ValueError: no"),
}


def test_kernels_that_do_not_pass_have_codes(folder: Path) -> None:
    few = ("--gemm_shapes=64", "--gemm_library=omit")
    lines = verdicts(folder, f"--gemm_kernel={','.join(CODES)}", *few)
    for one, (status, reason) in zip(lines, CODES.values(), strict=True):
        assert one["status"] == status, one["reason"]
        assert reason in one["reason"]
        assert all(
            one[key] is None for key in ("seconds", "flop_per_second", "versus", "sol_score")
        )


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--gemm_kernel=k.py", "--gemm_shapes=513", "--gemm_library=omit"), "unsupported"),
        (
            (
                "--gemm_kernel=k.py",
                "--gemm_shapes=64",
                "--gemm_peak_flops=1e6",
                "--gemm_library=omit",
            ),
            "impossible",
        ),
        (("--benchmark_filter=CpuNaive", "--gemm_shapes=1024", *BUDGET), "timeout"),
    ],
)
def test_more_codes(options: tuple[str, ...], status: str, folder: Path) -> None:
    (one,) = verdicts(folder, *options)
    assert one["status"] == status


def test_a_cached_baseline_is_measured_once(folder: Path) -> None:
    """A broken file, and one with times that no measurement gives, are as none."""
    options = ("--gemm_kernel=k.py", "--gemm_shapes=96", "--gemm_versus=CpuNaive", *CACHED)

    def cached() -> float:
        (one,) = verdicts(folder, *options)
        assert one["status"] == "passed"
        assert one["versus"]["cached"]
        return float(one["versus"]["seconds"])

    first = cached()
    (file,) = (folder / "cache" / "gemm_bench").glob("*.baselines.json")
    kept = file.read_text()
    assert cached() == first
    assert file.read_text() == kept
    for broken in ("{", kept.replace('"min": ', '"min": -')):
        file.write_text(broken)
        assert cached() > 0
        assert json.loads(file.read_text()).keys() == json.loads(kept).keys()
        assert file.read_text() != broken


@pytest.mark.parametrize(
    "options",
    [
        ["--benchmark_format=json"],
        ["--benchmark_format=console"],
        ["--benchmark_min_time=1x"],
        ["--gemm_versus=k", *CACHED],
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(
    folder: Path, options: list[str]
) -> None:
    done = run(folder, "--gemm_kernel=k.py", *options)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "gemm_bench: --gemm_" in done.stderr


def test_one_measurement_at_a_time_on_a_device(folder: Path) -> None:
    """Who comes second says so, and waits."""
    options = ["--gemm_kernel=k.py", "--gemm_shapes=64", "--gemm_library=omit"]
    made = os.open("/tmp/gemm_bench.cpu.lock", os.O_RDONLY | os.O_CREAT, 0o444)
    with os.fdopen(made) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with ThreadPoolExecutor() as pool:
            second = pool.submit(run, folder, *options)
            with pytest.raises(TimeoutError):
                second.result(timeout=2)
            fcntl.flock(lock, fcntl.LOCK_UN)
            done = second.result()
    assert "Waiting until another process has measured" in done.stderr
    assert json.loads(done.stdout)["status"] == "passed"
