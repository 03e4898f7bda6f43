"""No kernel spills registers on any architecture that it was compiled for.

ptxas reports spills at compile time, and cmake/keep_ptxas_report stores the report next to each
object. A kernel's file may allow unavoidable spills with a reason: "// spills on sm_75: why".
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from gemm_sass.kernels import demangled, object_of, shortened, source_of, sources_of
from own_files import own_files

ROOT = Path(__file__).parents[1]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
SOURCES = [
    path
    for path in own_files("kernels/ladder/**/*.cu", "kernels/best/**/*.cu")
    if not path.stem.endswith("_test")
]


@dataclass
class Resources:
    """The resources of one function on one architecture, as ptxas reports them."""

    function: str
    architecture: str
    stack: int = 0
    spilled: int = 0
    registers: int = 0


def parse(report: str) -> list[Resources]:
    """Reads the output of ptxas -v."""
    found: list[Resources] = []
    architecture = ""
    for line in report.splitlines():
        if entry := re.search(r"Compiling entry function '\S+' for '(\w+)'", line):
            architecture = entry[1]
        elif function := re.search(r"Function properties for (\S+)", line):
            found.append(Resources(function[1], architecture))
        elif numbers := re.search(
            r"(\d+) bytes stack frame, (\d+) .* stores, (\d+) .* loads", line
        ):
            found[-1].stack = int(numbers[1])
            found[-1].spilled = int(numbers[2]) + int(numbers[3])
        elif used := re.search(r"Used (\d+) registers", line):
            found[-1].registers = int(used[1])
    return found


def generation(architecture: str) -> str:
    """The generation of an architecture: sm_90 for sm_90a."""
    return architecture.rstrip("af")


def allowed(source: str) -> set[str]:
    """The architectures for which a kernel's file gives a reason to spill."""
    comments = re.findall(r"^ *// spills on ((?:sm_\d+(?:, )?)+): \S", source, re.MULTILINE)
    return {architecture for comment in comments for architecture in comment.split(", ")}


def part_of(report: str, source: str, together: Sequence[str]) -> str:
    """What is said of one of the sources that were compiled together, and of functions of none."""
    symbols = sorted(set(re.findall(r"\b_Z\w+", report)))
    sources = (source_of(name, together) for name in demangled(symbols))
    of = dict(zip(symbols, sources, strict=True))
    lines, here = [], True
    for line in report.splitlines(keepends=True):
        if symbol := re.search(r"\b_Z\w+", line):
            here = of[symbol[0]] == source or of[symbol[0]] not in together
        if here:
            lines.append(line)
    return "".join(lines)


def problems(source: str, report: str) -> list[str]:
    """Unexcused spills, needless excuses and serialised wgmma in the ptxas report of a file."""
    excused = allowed(source)
    functions = parse(report)
    spilling = [one for one in functions if one.stack > 0 or one.spilled > 0]
    found = [
        f"{shortened(*demangled([one.function]))} on {one.architecture}: {one.spilled} bytes "
        f"spilled, a stack of {one.stack}, {one.registers} registers"
        for one in spilling
        if generation(one.architecture) not in excused
    ]
    compiled = {generation(one.architecture) for one in functions}
    needless = (excused & compiled) - {generation(one.architecture) for one in spilling}
    found += [f"nothing spills on {architecture}" for architecture in sorted(needless)]
    serialised = re.compile(r"wgmma\.mma_async.*serialized")  # by its text: the codes are many
    return found + [line.strip() for line in report.splitlines() if serialised.search(line)]


def wanted(source: Path) -> set[str]:
    """The architectures that a file is built for; empty if the choice was left to nvcc."""
    cache = BUILD / "CMakeCache.txt"
    text = cache.read_text() if cache.exists() else ""
    if not (chosen := re.search(r"^CMAKE_CUDA_ARCHITECTURES:\w+=(.+)$", text, re.MULTILINE)):
        pytest.skip(f"{BUILD} is not built with CUDA")
    codes = chosen[1].split(";")
    if re.search(r"^GEMM_BENCH_ALSO_COMPILED_FOR:\w+=(.+)$", text, re.MULTILINE):
        also = (BUILD / "kernels" / "also_compiled_for.txt").read_text()
        name = re.escape(str(source.relative_to(ROOT / "kernels")))
        if found := re.search(rf"^{name} (.+)$", also, re.MULTILINE):
            codes += found[1].split()
    known = all(re.fullmatch(r"\d+[af]?(-real|-virtual)?", code) for code in codes)
    real = [code.removesuffix("-real") for code in codes if not code.endswith("-virtual")]
    return {f"sm_{code}" for code in real} if known else set()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_kernel_spills(source: Path) -> None:
    architectures = wanted(source)
    name = str(source.relative_to(ROOT / "kernels").with_suffix(""))
    path = object_of(BUILD, name)
    whole = path.with_name(f"{path.name}.ptxas").read_text()
    report = part_of(whole, name, sources_of(path))
    compiled = {one.architecture for one in parse(report)}
    assert compiled, f"the ptxas report of {source.name} is empty"
    assert compiled >= architectures
    assert problems(source.read_text(), report) == []


# --- The test can fail ---------------------------------------------------------------------------

REPORT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5tiledv' for 'sm_75'
ptxas info    : Function properties for _Z5tiledv
    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 8192 bytes smem, 424 bytes cmem[0]
ptxas info    : Compile time = 17.117 ms
ptxas info    : Compiling entry function '_Z5tiledv' for 'sm_90a'
ptxas info    : Function properties for _Z5tiledv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 50 registers, used 1 barriers, 8192 bytes smem
"""
CLEAN = REPORT.format(stack=0, stores=0, loads=0)
SPILLING = REPORT.format(stack=16, stores=12, loads=8)


def test_reads_the_output_of_ptxas() -> None:
    assert parse(SPILLING) == [
        Resources("_Z5tiledv", "sm_75", stack=16, spilled=20, registers=255),
        Resources("_Z5tiledv", "sm_90a", registers=50),
    ]


def test_spills_and_stacks_are_reported() -> None:
    assert problems("", CLEAN) == []
    (text,) = problems("", SPILLING)
    assert "tiled" in text and "sm_75: 20 bytes spilled" in text and "255 registers" in text
    assert len(problems("", REPORT.format(stack=8, stores=0, loads=0))) == 1


def test_a_reason_excuses_one_architecture() -> None:
    reason = "  // spills on sm_75: 64 results a thread leave no register for addresses\n"
    assert problems(reason, SPILLING) == []
    assert problems(reason.replace("sm_75", "sm_80, sm_75"), SPILLING) == []
    assert len(problems(reason.replace("75", "80"), SPILLING)) == 1
    assert len(problems("// spills on sm_75:\n", SPILLING)) == 1
    assert problems(reason, CLEAN) == ["nothing spills on sm_75"]
    assert problems(reason.replace("75", "90"), CLEAN) == ["nothing spills on sm_90"]


def test_serialised_wgmma_is_reported() -> None:
    line = (
        "ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are "
        "serialized due to non wgmma instructions defining accumulator registers of a wgmma "
        "between start and end of the pipeline stage in the function '_Z5tiledv'"
    )
    for code in ("C7515", "C7510", "C7520", "C7999"):
        said = line.replace("C7515", code)
        assert problems("", f"{CLEAN}{said}\n{CLEAN}") == [said]


def test_sources_that_are_compiled_together_are_told_apart() -> None:
    together = ["simt/naive/naive", "simt/naive/tiled", "simt/naive/other"]
    said = {
        name: SPILLING.replace("_Z5tiledv", name)
        for name in ("_ZN5naive1aEv", "_ZN10tiled_rung1bEv", "_ZN4gemm1cEv")
    }
    parts = [part_of("".join(said.values()), source, together) for source in together]
    naive, tiled, header = ([one.function for one in parse(text)] for text in said.values())
    assert [[one.function for one in parse(part)] for part in parts] == [
        naive + header,
        tiled + header,
        header,
    ]
