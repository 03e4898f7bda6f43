"""Arrows run one way: kernels <- bench -> results -> report, and between the rooms of bench/."""

import re
from pathlib import Path

import pytest
from own_files import own_files

ROOT = Path(__file__).parents[1]
SOURCES = [
    path.relative_to(ROOT)
    for path in own_files("kernels/**", "bench/**")
    if path.suffix in {".cpp", ".hpp", ".cu", ".cuh"}
]
# Files that register cases or use Google Benchmark.
BENCHMARK_SPEAKERS = {"main.cpp", "command_line.cpp", "gemm_case.hpp", "reporters.hpp"}
# Each room of bench/ knows those before it; a test may know all.
ROOMS = [
    *("base", "kernel_code", "verification", "device", "timing", "peaks"),
    *("cases", "record", "measurement", "run", "controls"),
]
# What a kernel may include beside the standard library and kernels/: the CUDA toolkit, the BLAS it
# wraps, and how a library is loaded.
KERNEL_LIBRARIES = re.compile(
    r"cuda|nvrtc\.h|dlfcn\.h|cublas|cooperative_groups|mma\.h|cblas\.h|omp\.h|gtest/|nlohmann/|elf\.h|link\.h|fcntl\.h|unistd\.h|sys/file\.h"
)
# What bench/ knows of kernels: their contract, parts that are no kernels, and what asks the driver.
CONTRACT = {
    "kernels/driver_function.hpp",
    "kernels/epilogue.hpp",
    "kernels/gemm.hpp",
    "kernels/layout.hpp",
    "kernels/libraries.hpp",
    "kernels/precision.hpp",
    "kernels/registry.hpp",
    "kernels/scales.hpp",
    "kernels/small_floats.hpp",
    "kernels/tokens.hpp",
    "kernels/parts/mma.cuh",
    "kernels/parts/wgmma_sizes.cuh",
    "kernels/plans.hpp",
    "kernels/user/python.hpp",
    "kernels/user/user_kernel.hpp",
}


def room(path: str) -> int | None:
    """The place in ROOMS of a path from the root, if it is in one."""
    parts = path.split("/")
    return ROOMS.index(parts[1]) if parts[0] == "bench" and len(parts) > 2 else None


def wrong(source: str, included: str) -> bool:
    """Whether this file of kernels/ or bench/ may not include that."""
    folder, _, rest = included.partition("/")
    if source.startswith("kernels/"):
        known = re.fullmatch(r"[a-z_0-9]+", included) or KERNEL_LIBRARIES.match(included)
        return folder != "kernels" and not known
    mine, its = room(source), room(included)
    if mine is not None and not re.search(r"_test\.|/test_", source):
        if its is not None and its > mine:
            return True
        if included == "kernels/registry.hpp" and mine < ROOMS.index("cases"):
            return True
    if folder == "benchmark":
        return Path(source).name not in BENCHMARK_SPEAKERS
    if folder == "kernels":
        return included not in CONTRACT
    return bool(rest) and folder not in {"bench", "gtest", "nlohmann", "sys"}


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_includes_point_the_right_way(path: Path) -> None:
    text = (ROOT / path).read_text()
    includes = re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', text, re.MULTILINE)
    assert [each for each in includes if wrong(str(path), each)] == []


@pytest.mark.parametrize(
    ("source", "included"),
    [
        ("kernels/gemm.hpp", "bench/base/clock.hpp"),
        ("kernels/gemm.hpp", "benchmark/benchmark.h"),
        ("bench/base/clock.hpp", "bench/run/session.hpp"),
        ("bench/device/gpu.cpp", "kernels/registry.hpp"),
        ("bench/record/record.cpp", "benchmark/benchmark.h"),
        ("bench/run/session.cpp", "kernels/ladder/fp32/18_tiled.cu"),
        ("bench/run/session.cpp", "boost/json.hpp"),
    ],
)
def test_what_points_the_wrong_way_is_found(source: str, included: str) -> None:
    assert wrong(source, included)


def test_results_hold_no_code() -> None:
    allowed = {".json", ".gz", ".md", ".png", ".svg", ".csv", ".gpus"}
    assert [path for path in own_files("results/**") if path.suffix not in allowed] == []


def test_a_kernel_file_has_a_namespace_of_its_own() -> None:
    by_themselves = {"90_3xtf32", "wgmma_swapped"}
    for path in own_files("kernels/ladder/**/*.cu", "kernels/best/**/*.cu"):
        if not path.stem.endswith("_test") and path.stem not in by_themselves:
            part = "simt" if path.parent.name == "fp32" else "tensor"
            name = f"gemm::{part}::{re.sub(r'^[0-9]+_', '', path.stem)}"
            assert re.search(rf"^namespace {name}(_rung)? {{$", path.read_text(), re.MULTILINE), (
                f"{path}: put it into namespace {name}: files of a folder are compiled together"
            )


def test_every_kernel_file_says_what_it_adds() -> None:
    sources = own_files("kernels/*/**/*.cpp", "kernels/*/**/*.cu", "kernels/*/**/*.cuh")
    assert [path for path in sources if not path.read_text().startswith("// ")] == []


def test_what_the_gpu_computes_by_the_same_lines_reads_no_table_of_the_host() -> None:
    """A constexpr function of bench/verification compiles for both, and a GPU cannot read
    kPrecisions: a launch fails. What it needs is an argument."""
    function = re.compile(r"^constexpr [^;{}]*\{.*?^\}", re.M | re.S)
    bodies = {
        (path.name, match.group().split("(")[0].split()[-1]): match.group()
        for path in sorted((ROOT / "bench" / "verification").glob("*.hpp"))
        for match in function.finditer(path.read_text())
    }
    assert ("epilogue.hpp", "add_element") in bodies and len(bodies) > 20
    assert [name for name, body in bodies.items() if "traits_of(" in body] == []
