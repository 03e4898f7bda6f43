"""The machine code of the fast kernels is no worse than kernels/sass.json says.

`tools/sass --write` updates that table. Builds by another release of nvcc are compared too, but
only skipped with the differences: register allocation and instruction order depend on the release.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from gemm_sass import held
from gemm_sass.held import Held, Table
from gemm_sass.instruction import BYTES, Instruction
from gemm_sass.kernels import Kernel, disassembler, kernels_of, object_of, objects_of
from gemm_sass.loop import CACHE, Figures, figures
from resources_test import parse

ROOT = Path(__file__).parents[1]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
TABLE = held.read(ROOT / "kernels" / "sass.json")
FUNCTIONS = sorted({key[:2] for key in TABLE})
SOURCES = sorted({source for source, _ in FUNCTIONS})

MISSING = ""
if not objects_of(BUILD):
    MISSING = f"{BUILD} has no kernels for a GPU"
elif not disassembler():
    MISSING = "no cuobjdump or no nvdisasm here, which tools/setup test installs"
needs_objects = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@cache
def built(path: Path) -> list[tuple[Kernel, Figures]]:
    """The kernels of an object; their code, which is large, is dropped."""
    return [(replace(one, code=()), figures(one)) for one in kernels_of([path])]


def compared(table: Table, built: Table, function: tuple[str, str]) -> tuple[list[str], list[str]]:
    """What is worse; and architectures or compilers without a comparable entry."""
    worse, other = [], []
    for key, now in built.items():
        if key[:2] != function:
            continue
        if not (then := table.get(key)):
            other.append(f"no entry for {key[2]}")
            continue
        found = [f"{key[2]}: {text}" for text in now.worse_than(then)]
        if now.compiler == then.compiler:
            worse += found
        else:
            differences = "; ".join(found) or "nothing is worse"
            other.append(f"built by nvcc {now.compiler}, entry by {then.compiler}: {differences}")
    return worse, other


@needs_objects
@pytest.mark.parametrize(("source", "function"), FUNCTIONS, ids=[each[1] for each in FUNCTIONS])
def test_the_code_is_no_worse_than_its_entry(source: str, function: str) -> None:
    key = source, function
    rows = built(object_of(BUILD, source))
    now = held.entries([row for row in rows if (row[0].source, row[0].function) == key])
    assert now, f"{source}.cu has no {function}: remove it from kernels/sass.json"
    worse, other = compared(TABLE, now, key)
    assert not worse, f"{worse}: if intended, run tools/sass --write"
    if len(other) == len(now):
        pytest.skip("; ".join(other))


@needs_objects
@pytest.mark.parametrize("source", SOURCES)
def test_registers_and_spills_match_the_ptxas_report(source: str) -> None:
    """Checks the parser of cuobjdump's output."""
    path = object_of(BUILD, source)
    said = {
        (one.function, one.architecture): one
        for one in parse(path.with_name(f"{path.name}.ptxas").read_text())
    }
    found = {(one.symbol, one.architecture): (one, has) for one, has in built(path)}
    assert found.keys() == said.keys()
    for key, (one, has) in found.items():
        assert one.registers == said[key].registers, key
        assert bool(has.local) == (said[key].stack > 0), key


@needs_objects
@pytest.mark.parametrize("source", SOURCES)
def test_names_are_unique(source: str) -> None:
    rows = built(object_of(BUILD, source))
    assert len(held.entries(rows)) == len(rows), "the table would confuse functions of one name"


def moved_between_mmas(code: Sequence[Instruction]) -> int:
    """The number of R2UR between MMAs that follow each other closely, those of a K tile. They move
    descriptors into uniform registers, and MMAs wait for them."""
    mmas = [at for at, one in enumerate(code) if one.name.endswith("GMMA")]
    close = [pair for pair in pairwise(mmas) if pair[1] - pair[0] < 40]
    return sum(one.name == "R2UR" for first, last in close for one in code[first:last])


@needs_objects
def test_wgmma_stream_k_keeps_descriptors_in_uniform_registers() -> None:
    path = object_of(BUILD, "best/tensor/wgmma_stream_k")
    kernels = kernels_of([path], ["WgmmaOperands<__nv_bfloat16, __nv_bfloat16, true, true, false>"])
    kernels = [one for one in kernels if one.architecture == "sm_90a"]
    if not kernels:
        pytest.skip("built without sm_90a")
    assert all(any(one.name.endswith("GMMA") for one in kernel.code) for kernel in kernels)
    assert not [one.function for one in kernels if moved_between_mmas(one.code)]


# --- The test can fail ---------------------------------------------------------------------------

KEY = ("ladder/fp32/18_tiled", "tiled", "sm_90a")
THEN = Held("13.0", 100, instructions=110, ports=1.2, moved=4, narrow_loads=0, local=0)
WORSE = replace(THEN, instructions=120)


def test_what_is_worse_is_reported() -> None:
    assert compared({KEY: THEN}, {KEY: THEN}, KEY[:2]) == ([], [])
    (text,), other = compared({KEY: THEN}, {KEY: WORSE}, KEY[:2])
    assert text.startswith("sm_90a: 120 instructions") and other == []


def test_other_compilers_and_architectures_are_listed() -> None:
    by_another = replace(WORSE, compiler="12.4")
    worse, (text,) = compared({KEY: THEN}, {KEY: by_another}, KEY[:2])
    assert worse == [] and "nvcc 12.4" in text and "120 instructions" in text
    worse, (text,) = compared({}, {KEY: WORSE}, KEY[:2])
    assert worse == [] and text == "no entry for sm_90a"


def test_the_table_has_entries() -> None:
    sources = {source for source, _ in FUNCTIONS}
    assert sources >= {
        *(
            "ladder/fp32/26_warp_tile",
            "ladder/fp32/28_shared_double_buffer",
            "ladder/fp32/29_async_copy",
            "ladder/fp32/30_rasterized",
        ),
        *("ladder/fp32/31_warp_specialized", "best/fp32/stream_k"),
    }
    assert all(one.multiply_adds and not one.local for one in TABLE.values())
    # SplitK loads a K-major Y 8 bytes at a time where its accumulators leave few registers.
    assert not any(
        one.narrow_loads for key, one in TABLE.items() if not key[1].startswith("split_k<")
    )
    assert all(one.ports >= 1 for one in TABLE.values())
    assert all(one.instructions * BYTES <= CACHE for one in TABLE.values())


def test_moved_descriptors_are_counted() -> None:
    mma, move = (Instruction("", name, (), 1) for name in ("HGMMA.64x96x16.F32.BF16", "R2UR"))
    other = Instruction("", "IMAD", (), 1)
    assert moved_between_mmas([move, mma, other, move, move, mma, move]) == 2
    assert moved_between_mmas([mma, move, *[other] * 50, mma]) == 0
