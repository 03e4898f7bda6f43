"""Kernels that fool a timer are refused, and honest ones that do almost the same are not.

On the GPU, through gemm_bench: each cheat of cheats/ is failed or suspect, or not faster than the
honest kernel that it is made of.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "cheats"
BENCH = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")

# By entry; what the reason contains, of which one is enough.
WRONG = (
    "on new values",
    "never written",
    "does every launch compute",
    "after the launches had ended",
    "elements",
)
SLOWER = ("times as fast",)
SOURCES = {
    "skip_written": SLOWER,
    "skip_written_half": SLOWER,
    "replay_by_pointer": WRONG,
    "replay_by_value": (*SLOWER, *WRONG),
    "skip_launches": WRONG,
    "fewer_bits": ("fewer bits", "elements"),
    "fewer_products": WRONG,
    "change_operands": ("changed A or B", *WRONG, "fewer bits"),
}
HONEST_SOURCES = ("honest", "read_c", "keep_a_plan", "skip_zeros")
LIBRARIES = {
    "side_stream": (*SLOWER, *WRONG),
    "late_thread": (*WRONG, "C of another launch", "illegal memory access"),
    "skip_calls": WRONG,
    "after_a_pause": (*SLOWER, *WRONG),
    "forge": ("descriptor",),
}
HONEST_LIBRARIES = ("honest", "joined_stream", "scratch")
HOSTILE_LIBRARIES = {
    "crash": "Segmentation fault",
    "leave": "it called exit(0)",
    "hang": "did not end within",
    "reset": "",  # whatever CUDA says
    "scribble": "wrote to the descriptor of the result",
    "split": "or forked",
}


def has_gpu() -> bool:
    try:
        name = subprocess.run([BENCH, "--gemm_device=0", "--gemm_name_record"], capture_output=True)
    except OSError:
        return False
    return name.returncode == 0


pytestmark = pytest.mark.skipif(not has_gpu(), reason="no GPU")


Rows = dict[str, list[tuple[str, float]]]


def measured(folder: Path, kernels: list[str], *options: str) -> Rows:
    """Why each row of a kernel has no time, or "", and its seconds if it has."""
    out = folder / "record.json"
    subprocess.run(
        [
            *(BENCH, "--gemm_kernel=" + ",".join(kernels), f"--benchmark_out={out}"),
            *("--benchmark_filter=^cheat", "--gemm_warmup=0.1", "--gemm_sampling=0.2"),
            *("--gemm_peaks=nominal", "--gemm_kernel_limit=15", *options),
        ],
        capture_output=True,
        check=False,
    )
    found: Rows = {}
    for row in json.loads(out.read_text(encoding="utf-8"))["benchmarks"]:
        gemm = row["gemm"]
        reason = gemm["failed"] or gemm["skipped"] or ""
        name = re.sub(r"^cheat[._]", "", gemm["kernel"])
        found.setdefault(name, []).append((reason, (gemm.get("seconds") or {}).get("median", 0)))
        print(row["name"], "suspect:" if gemm["suspect"] else "", reason)
    return found


def check(found: Rows, expected: dict[str, tuple[str, ...]], rows: int) -> None:
    """An honest kernel has a time, and a cheat the reason expected, or it gains nothing."""
    for name, each in found.items():
        assert len(each) == rows, name
        for (reason, seconds), (none, honest) in zip(each, found["honest"], strict=True):
            assert not none
            if name not in expected:
                assert not reason, name
            elif reason:
                assert any(part in reason for part in expected[name]), (name, reason)
            else:
                assert seconds > 0.95 * honest, (name, seconds, honest)


SIZES = {
    "settled": ("--gemm_precisions=f32,bf16", "--gemm_shapes=256,2048,4096"),
    "hot": ("--gemm_cache=hot", "--gemm_shapes=1024", "--gemm_precisions=f32"),
}


@pytest.mark.parametrize("state", SIZES)
def test_sources(tmp_path: Path, state: str) -> None:
    names = {*SOURCES, *HONEST_SOURCES}
    shutil.copy(FOLDER / "cheats.cu", tmp_path / "cheat.cu")
    kernels = [f"{tmp_path}/cheat.cu:{name}" for name in sorted(names)]
    found = measured(tmp_path, kernels, *SIZES[state])
    assert found.keys() == names
    check(found, SOURCES, 6 if state == "settled" else 1)


def libraries(folder: Path, names: Iterable[str]) -> list[str]:
    kernels = []
    for name in names:
        made = folder / f"cheat_{name}.so"
        subprocess.run(
            [
                *(str(NVCC), "-std=c++20", "-O2", "-w", "-arch=native", "-shared"),
                *("-Xcompiler", "-fPIC", f"-DCHEAT={name}", "-I", ROOT / "kernels" / "user"),
                *(FOLDER / "cheats_host.cu", "-o", made),
            ],
            check=True,
        )
        kernels.append(str(made))
    return kernels


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_libraries(tmp_path: Path) -> None:
    kernels = libraries(tmp_path, (*LIBRARIES, *HONEST_LIBRARIES))
    found = measured(tmp_path, kernels, "--gemm_shapes=512,4096")
    assert found.keys() == {*LIBRARIES, *HONEST_LIBRARIES}
    check(found, LIBRARIES, 2)


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_libraries_that_break_while_they_are_timed_harm_no_other_row(tmp_path: Path) -> None:
    kernels = libraries(tmp_path, (*HOSTILE_LIBRARIES, *HONEST_LIBRARIES))
    found = measured(tmp_path, kernels, "--gemm_shapes=1024", "--gemm_sampling=0.5")
    for name, expected in HOSTILE_LIBRARIES.items():
        ((reason, _),) = found[name]
        assert reason and expected in reason, (name, reason)
        assert reason.isprintable(), name
    for name in HONEST_LIBRARIES:
        ((reason, seconds),) = found[name]
        assert not reason and seconds > 0, (name, reason)
