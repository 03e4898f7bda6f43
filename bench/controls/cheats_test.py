"""Kernels that fool a timer are refused, and honest ones that do almost the same are not.

On the GPU, through gemm_bench. Each cheat of cheats/ is `failed` or `suspect` at every size.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "cheats"
BENCH = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")

# By entry; what the reason contains, of which one is enough.
WRONG = ("on new values", "does every launch compute", "after the launches had ended", "elements")
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
    "side_stream": WRONG,
    "late_thread": WRONG,
    "skip_calls": WRONG,
    "after_a_pause": (*SLOWER, *WRONG),
    "forge": ("descriptor",),
}
HONEST_LIBRARIES = ("honest", "joined_stream", "scratch")


def has_gpu() -> bool:
    try:
        name = subprocess.run([BENCH, "--gemm_device=0", "--gemm_name_record"], capture_output=True)
    except OSError:
        return False
    return name.returncode == 0


pytestmark = pytest.mark.skipif(not has_gpu(), reason="no GPU")


def refused(folder: Path, kernels: list[str], *options: str) -> dict[str, list[str]]:
    """Why each row of each kernel has no time, by the kernel's name; "" if it has one."""
    out = folder / "record.json"
    subprocess.run(
        [
            *(BENCH, "--gemm_kernel=" + ",".join(kernels), f"--benchmark_out={out}"),
            *("--benchmark_filter=^cheat", "--gemm_warmup=0.1", "--gemm_sampling=0.2"),
            *("--gemm_peaks=nominal", "--gemm_kernel_limit=30", *options),
        ],
        capture_output=True,
        check=False,
    )
    found: dict[str, list[str]] = {}
    for row in json.loads(out.read_text(encoding="utf-8"))["benchmarks"]:
        gemm = row["gemm"]
        kind = "" if gemm["failed"] is None else "suspect: " if gemm["suspect"] else "failed: "
        found.setdefault(gemm["kernel"], []).append(
            kind + (gemm["failed"] or gemm["skipped"] or "")
        )
    print(json.dumps(found, indent=1))
    return found


def check(found: dict[str, list[str]], expected: dict[str, tuple[str, ...]], rows: int) -> None:
    wrongly = {
        name: reasons
        for name, reasons in found.items()
        if len(reasons) != rows
        or any(
            not any(part in reason for part in expected[name]) if name in expected else reason
            for reason in reasons
        )
    }
    assert not wrongly


@pytest.mark.parametrize("state", [(), ("--gemm_cache=hot",)])
def test_sources(tmp_path: Path, state: tuple[str, ...]) -> None:
    names = [*SOURCES, *HONEST_SOURCES]
    shutil.copy(FOLDER / "cheats.cu", tmp_path / "cheat.cu")
    found = refused(
        tmp_path,
        [f"{tmp_path}/cheat.cu:{name}" for name in names],
        *("--gemm_precisions=f32,bf16", "--gemm_shapes=256,2048", *state),
    )
    found = {name.split(":")[-1].split(".")[-1]: reasons for name, reasons in found.items()}
    assert found.keys() == set(names)
    check(found, SOURCES, 4)


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_libraries(tmp_path: Path) -> None:
    kernels = []
    for name in (*LIBRARIES, *HONEST_LIBRARIES):
        made = tmp_path / f"cheat_{name}.so"
        subprocess.run(
            [
                *(str(NVCC), "-std=c++20", "-O2", "-w", "-arch=native", "-shared"),
                *("-Xcompiler", "-fPIC", f"-DCHEAT={name}", "-I", ROOT / "kernels" / "user"),
                *(FOLDER / "cheats_host.cu", "-o", made),
            ],
            check=True,
        )
        kernels.append(str(made))
    found = refused(tmp_path, kernels, "--gemm_shapes=512,2048")
    found = {name.removeprefix("cheat_"): reasons for name, reasons in found.items()}
    assert found.keys() == {*LIBRARIES, *HONEST_LIBRARIES}
    check(found, LIBRARIES, 2)
