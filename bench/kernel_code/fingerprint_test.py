"""The fingerprint of a GPU kernel follows its machine code, and nothing else."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
LIST = BUILD / "bench" / "list_fingerprints"
OBJECTS = BUILD / "kernels" / "CMakeFiles" / "kernels.dir"
NVCC = os.environ.get("CUDACXX") or shutil.which("nvcc")

KERNEL = """\
__constant__ float weights[4];
__device__ __noinline__ float inner(float x) { return x * 3.5f; }
template <int N> __global__ void scale(float* p, double d) {
  __shared__ float tile[N];
  tile[threadIdx.x % N] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = inner(tile[(threadIdx.x + 1) % N]) + 1.2345678901234 * d + weights[N % 4];
}
template __global__ void scale<32>(float*, double);
template __global__ void scale<64>(float*, double);
"""
SCALE = "_Z5scaleILi32EEvPfd"

pytestmark = pytest.mark.skipif(not LIST.exists(), reason=f"{LIST} is not built")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="no nvcc here")

Key = tuple[str, str]  # of a function and an architecture


def listed(*files: Path) -> dict[Key, str]:
    done = subprocess.run([LIST, *files], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(function, architecture): found for architecture, found, function in lines}


def compiled(
    source: str, folder: Path, codes: tuple[str, ...] = ("sm_80", "sm_90a"), *options: str
) -> dict[Key, str]:
    assert NVCC
    folder.mkdir()
    (folder / "kernel.cu").write_text(source)
    targets = [f"-gencode=arch=compute_{code.partition('_')[2]},code={code}" for code in codes]
    subprocess.run(
        [NVCC, "-c", *targets, *options, folder / "kernel.cu", "-o", folder / "kernel.o"],
        check=True,
        timeout=120,
    )
    return listed(folder / "kernel.o")


def scales(found: dict[Key, str]) -> dict[Key, str]:
    return {key: value for key, value in found.items() if key[0].startswith("_Z5scale")}


def of_90(found: dict[Key, str]) -> dict[Key, str]:
    return {key: value for key, value in scales(found).items() if key[1] == "90"}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, str]:
    return compiled(KERNEL, tmp_path_factory.mktemp("original") / "build")


@needs_nvcc
def test_every_function_has_one_for_every_architecture(original: dict[Key, str]) -> None:
    assert set(scales(original)) == {
        (function, architecture)
        for function in (SCALE, SCALE.replace("32", "64"))
        for architecture in ("80", "90")
    }
    assert len(set(original.values())) == len(original)
    assert all(re.fullmatch("[0-9a-f]{16}", found) for found in original.values())


@needs_nvcc
@pytest.mark.parametrize(
    "same",
    [
        "// a comment\n\n\n" + KERNEL.replace("{\n", "{  // another\n\n"),
        KERNEL.replace("weights", "loads").replace("inner", "innermost"),
        KERNEL + "__global__ void other(float* p) { p[1] = 2.5f * p[0]; }\n",
        "__global__ void first(double* p) { *p += 0.7; }\n" + KERNEL,
    ],
    ids=["comments and lines", "names", "a kernel behind it", "a kernel before it"],
)
def test_does_not_change_with_what_is_no_code(
    same: str, original: dict[Key, str], tmp_path: Path
) -> None:
    found = scales(compiled(same, tmp_path / "elsewhere", ("sm_90a",)))
    assert found == of_90(original)


@needs_nvcc
@pytest.mark.parametrize(
    "other",
    [
        KERNEL.replace("3.5f", "3.6f"),
        KERNEL.replace("1.2345678901234", "1.2345678901235"),
        KERNEL.replace("+ 1)", "+ 2)"),
        KERNEL.replace("tile[N];", "tile[2 * N];"),
    ],
    ids=["a constant of what it calls", "a literal", "an index", "its shared memory"],
)
def test_changes_with_the_code(other: str, original: dict[Key, str], tmp_path: Path) -> None:
    found = scales(compiled(other, tmp_path / "build", ("sm_90a",)))
    before = of_90(original)
    assert found.keys() == before.keys()
    assert not {key for key in found if found[key] == before[key]}


@needs_nvcc
def test_line_information_is_no_code(original: dict[Key, str], tmp_path: Path) -> None:
    found = compiled(KERNEL, tmp_path / "build", ("sm_80", "sm_90a"), "-lineinfo")
    assert found == original


@needs_nvcc
def test_what_the_driver_would_compile_has_none(tmp_path: Path) -> None:
    assert compiled(KERNEL, tmp_path / "build", ("compute_90",)) == {}


@needs_nvcc
def test_two_codes_under_one_name_have_none(tmp_path: Path) -> None:
    """It is unknown which of them runs."""
    compiled(KERNEL, tmp_path / "a", ("sm_90a",))
    compiled(KERNEL.replace("3.5f", "3.6f"), tmp_path / "b", ("sm_90a",))
    objects = [tmp_path / name / "kernel.o" for name in "ab"]
    joined = tmp_path / "joined.o"
    subprocess.run(["ld", "-r", "-z", "muldefs", *objects, "-o", joined], check=True)
    assert listed(joined)[SCALE, "90"] == "-"
    subprocess.run(["ld", "-r", "-z", "muldefs", *objects[:1], "-o", joined], check=True)
    assert listed(joined) == listed(objects[0])


def test_every_kernel_that_was_built_has_one() -> None:
    """By what ptxas said when it made them (cmake/keep_ptxas_report)."""
    reports = sorted(OBJECTS.rglob("*.ptxas"))
    if not reports:
        pytest.skip("built without CUDA")
    program = listed(BUILD / "libgemm_bench.so")
    count = 0
    for report in reports:
        entries = re.findall(r"entry function '(\S+)' for 'sm_(\d+)[af]?'", report.read_text())
        found = listed(report.with_suffix(""))
        for function, architecture in entries:
            assert re.fullmatch("[0-9a-f]{16}", found[function, architecture]), function
            assert program[function, architecture] == found[function, architecture], function
        count += len(entries)
    assert count > 50
