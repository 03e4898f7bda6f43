"""Arrows run one way: kernels <- bench -> results -> report."""

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
# Who registers cases or speaks to Google Benchmark.
BENCHMARK_SPEAKERS = {
    "main.cpp",
    "peaks_main.cpp",
    "command_line.cpp",
    "fixture.hpp",
    "reporters.hpp",
}
# What a kernel may know: the CUDA toolkit, the BLAS it wraps, and how a library is loaded.
KERNEL_LIBRARIES = re.compile(
    r"cuda|nvrtc\.h|dlfcn\.h|cublas|cooperative_groups|mma\.h|cblas\.h|omp\.h|gtest/"
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
                    "kernels/precision.hpp",
                    "kernels/registry.hpp",
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


def test_results_hold_no_code() -> None:
    allowed = {".json", ".gz", ".md", ".png", ".svg", ".csv", ".journal"}
    assert [path for path in own_files("results/**") if path.suffix not in allowed] == []


def test_every_kernel_file_says_what_it_adds() -> None:
    sources = own_files("kernels/*/*.cpp", "kernels/*/*.cu", "kernels/*/*.cuh")
    assert sources
    for path in sources:
        assert path.read_text().startswith("// "), f"{path} has no head comment"
