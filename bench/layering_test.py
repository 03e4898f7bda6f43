"""Arrows run one way: kernels <- bench -> results -> report, and between the rooms of bench/."""

import re
from pathlib import Path

import pytest
from own_files import own_files

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for path in own_files("kernels/**", "bench/**")
    if path.suffix in {".cpp", ".hpp", ".cu", ".cuh"}
]
# Files that register cases or use Google Benchmark.
BENCHMARK_SPEAKERS = {
    "main.cpp",
    "command_line.cpp",
    "gemm_case.hpp",
    "reporters.hpp",
}
# Each room of bench/ knows those before it; a test may know all.
ROOMS = [
    "base",
    "kernel_code",
    "verification",
    "device",
    "timing",
    "peaks",
    "cases",
    "record",
    "measurement",
    "run",
    "controls",
]
# What a kernel may know: the CUDA toolkit, the BLAS it wraps, and how a library is loaded.
KERNEL_LIBRARIES = re.compile(
    r"cuda|nvrtc\.h|dlfcn\.h|cublas|cooperative_groups|mma\.h|cblas\.h|omp\.h|gtest/|nlohmann/|elf\.h|link\.h|fcntl\.h|unistd\.h|sys/file\.h"
)
STANDARD = re.compile(r"[a-z_0-9]+$")


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


def test_there_is_something_to_check() -> None:
    assert len(SOURCES) > 20


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_includes_point_the_right_way(path: Path) -> None:
    for included in includes(path):
        if path.is_relative_to(ROOT / "kernels"):
            mine = included.startswith("kernels/")
            known = STANDARD.match(included) or KERNEL_LIBRARIES.match(included)
            assert mine or known, f"a kernel may not include {included}"
        else:
            ours = included.startswith(("kernels/", "bench/")) or included == "build_info.hpp"
            if included.startswith("kernels/"):
                assert included in {
                    "kernels/driver_function.hpp",  # no kernel: both ask the driver
                    "kernels/gemm.hpp",
                    "kernels/layout.hpp",
                    "kernels/libraries.hpp",
                    "kernels/precision.hpp",
                    "kernels/registry.hpp",
                    "kernels/parts/mma.cuh",  # no kernels: instructions, for probes too
                    "kernels/parts/wgmma_sizes.cuh",
                    "kernels/parts/cost.hpp",  # for time_plans
                    "kernels/plans.hpp",
                    "kernels/user/python.hpp",
                    "kernels/user/user_kernel.hpp",
                }, f"bench knows kernels by their contract, not by {included}"
            if included.startswith("benchmark/"):
                assert path.name in BENCHMARK_SPEAKERS
            assert (
                ours
                or "/" not in included
                or included.startswith(("benchmark/", "gtest/", "nlohmann/", "sys/"))
            ), f"unexpected {included}"


def room(path: str) -> int | None:
    """The place in ROOMS of a path from the root, if it is in one."""
    parts = path.split("/")
    return ROOMS.index(parts[1]) if parts[0] == "bench" and len(parts) > 2 else None


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_knows_those_before_it(name: str) -> None:
    sources = [path for path in SOURCES if path.parent == ROOT / "bench" / name]
    assert sources
    for path in sources:
        if re.search(r"_test\.|/test_", str(path)):
            continue
        for included in includes(path):
            below = room(included)
            assert below is None or below <= ROOMS.index(name), f"{path} includes {included}"


def test_the_device_does_not_know_the_registry() -> None:
    lower = [path for path in SOURCES if path.parent.name in ROOMS[: ROOMS.index("cases")]]
    for path in lower:
        if "_test." not in path.name:
            assert "kernels/registry.hpp" not in includes(path), path


def test_results_hold_no_code() -> None:
    allowed = {".json", ".gz", ".md", ".png", ".svg", ".csv", ".gpus", ".gemm_bench_lock"}
    assert [path for path in own_files("results/**") if path.suffix not in allowed] == []


def has_namespace(name: str, text: str) -> bool:
    return re.search(rf"^namespace {name}(_rung)? {{$", text, re.MULTILINE) is not None


def test_a_kernel_file_has_a_namespace_of_its_own() -> None:
    by_themselves = {"90_3xtf32", "wgmma_swapped"}
    for path in own_files("kernels/ladder/**/*.cu", "kernels/best/**/*.cu"):
        if not path.stem.endswith("_test") and path.stem not in by_themselves:
            part = "simt" if path.parent.name == "fp32" else "tensor"
            name = f"gemm::{part}::{re.sub(r'^[0-9]+_', '', path.stem)}"
            assert has_namespace(name, path.read_text()), (
                f"{path}: put it into namespace {name}: files of a folder are compiled together"
            )
    assert has_namespace("gemm::simt::tiled", "namespace gemm::simt::tiled {\n")
    assert not has_namespace("gemm::simt::tiled", "namespace gemm::simt {\nnamespace tiled_b {\n")


def test_every_kernel_file_says_what_it_adds() -> None:
    sources = own_files("kernels/*/**/*.cpp", "kernels/*/**/*.cu", "kernels/*/**/*.cuh")
    assert sources
    for path in sources:
        assert path.read_text().startswith("// "), f"{path} has no head comment"
