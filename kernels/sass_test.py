"""The machine code of the fast kernels is no worse than kernels/sass.json says.

`tools/sass --write` renews that table. A build by another release of nvcc is compared too, and
skipped with what is worse: its registers and orders of instructions are not ours to answer for.
"""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from gemm_sass import held
from gemm_sass.cubin import Elf, cubins_in
from gemm_sass.held import Held, Table
from gemm_sass.loop import BYTES, CACHE, decoded, figures
from gemm_sass.objects import Named, named_kernels, objects_of
from resources_test import parse

ROOT = Path(__file__).parents[1]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
OBJECTS = objects_of(BUILD)
TABLE = held.read(ROOT / "kernels" / "sass.json")
# Names that nvdisasm gives one opcode by architecture or by modifiers that we do not read.
SAME = {"REDG": "RED", "CGAERRBAR": "ERRBAR"}
SAME |= {"UCGABAR_ARV": "UCGABAR", "UCGABAR_WAIT": "UCGABAR"}
FUNCTIONS = sorted({key[:2] for key in TABLE})

needs_objects = pytest.mark.skipif(not OBJECTS, reason=f"{BUILD} has no kernels for a GPU")


def object_of(source: str) -> Path:
    return BUILD / "kernels" / "CMakeFiles" / "kernels.dir" / f"{source}.cu.o"


def compared(table: Table, built: Table, function: tuple[str, str]) -> tuple[list[str], list[str]]:
    """What is worse, and why it is not known on other architectures or is no fault of ours."""
    worse, other = [], []
    for key, now in built.items():
        if key[:2] != function:
            continue
        if not (then := table.get(key)):
            other.append(f"nothing is held on {key[2]}")
            continue
        found = [f"{key[2]}: {text}" for text in now.worse_than(then)]
        if now.compiler == then.compiler:
            worse += found
        else:
            told = "; ".join(found) or "nothing is worse"
            other.append(f"nvcc {now.compiler} made it, held is {then.compiler}: {told}")
    return worse, other


@needs_objects
@pytest.mark.parametrize(("source", "function"), FUNCTIONS, ids=[each[1] for each in FUNCTIONS])
def test_the_code_is_no_worse_than_what_is_held(source: str, function: str) -> None:
    path = object_of(source)
    assert path.exists(), f"{source}.cu is not built: build it, or take it out of kernels/sass.json"
    kernels = [one for one in named_kernels([path]) if one.function == function]
    assert kernels, f"{source}.cu has no {function}: take it out of kernels/sass.json"
    built = held.entries([(one, figures(one.kernel)) for one in kernels])
    worse, other = compared(TABLE, built, (source, function))
    assert not worse, f"{worse}: if that is meant, tools/sass --write"
    if len(other) == len(built):
        pytest.skip("; ".join(other))


# --- The decoder is right about this build -------------------------------------------------------


@needs_objects
@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.name.removesuffix(".cu.o"))
def test_registers_and_spills_are_what_ptxas_said(path: Path) -> None:
    said = {
        (one.function, one.architecture): one
        for one in parse(path.with_name(f"{path.name}.ptxas").read_text())
    }
    found = {(one.kernel.symbol, one.kernel.architecture): one for one in named_kernels([path])}
    assert found.keys() <= said.keys()
    assert found
    for key, one in found.items():
        assert one.kernel.registers == said[key].registers, key
        names = {each.name for each in decoded(one.kernel)}
        assert bool(names & {"LDL", "STL"}) == (said[key].stack > 0), key


@needs_objects
def test_every_instruction_of_the_build_is_known() -> None:
    unknown = {
        (one.source, one.kernel.architecture, each.name)
        for one in named_kernels(OBJECTS)
        for each in decoded(one.kernel)
        if each.name.startswith("0x")
    }
    assert not unknown, "tell tools/gemm_sass/instruction.py of them"


@needs_objects
@pytest.mark.skipif(not shutil.which("nvdisasm"), reason="no nvdisasm here")
@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.name.removesuffix(".cu.o"))
def test_mnemonics_are_those_of_nvdisasm(path: Path, tmp_path: Path) -> None:
    (fat,) = (one.content for one in Elf(path.read_bytes()).sections if one.name == ".nv_fatbin")
    kernels = {(one.kernel.symbol, one.kernel.architecture): one for one in named_kernels([path])}
    for content in cubins_in(fat):
        cubin = tmp_path / "kernel.cubin"
        cubin.write_bytes(content)
        done = subprocess.run(["nvdisasm", "-c", cubin], capture_output=True, text=True, check=True)
        architecture = re.search(r"\.target\s+(\S+)", done.stdout)
        assert architecture
        for text in done.stdout.split("//---")[1:]:
            if section := re.search(r"\.section\s+\.text\.([^,]+)", text):
                one = kernels[section[1], architecture[1]]
                theirs = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w\s+)?([A-Z]\w+)", text)
                ours = [each.name.split(".")[0] for each in decoded(one.kernel)]
                assert [SAME.get(name, name) for name in theirs] == ours


# --- The test can fail ---------------------------------------------------------------------------

KEY = ("simt/shared_memory/tiled", "tiled", "sm_90a")
THEN = Held("13.0", 100, instructions=110, ports=1.2, moved=4, narrow_loads=0, local=0)
WORSE = replace(THEN, instructions=120)


def test_what_is_worse_is_complained_of() -> None:
    assert compared({KEY: THEN}, {KEY: THEN}, KEY[:2]) == ([], [])
    (text,), other = compared({KEY: THEN}, {KEY: WORSE}, KEY[:2])
    assert text.startswith("sm_90a: 120 instructions") and other == []


def test_other_compilers_and_architectures_are_told_of() -> None:
    by_another = replace(WORSE, compiler="12.4")
    worse, (text,) = compared({KEY: THEN}, {KEY: by_another}, KEY[:2])
    assert worse == [] and "nvcc 12.4" in text and "120 instructions" in text
    worse, (text,) = compared({}, {KEY: WORSE}, KEY[:2])
    assert worse == [] and text == "nothing is held on sm_90a"


def test_something_is_held() -> None:
    sources = {source for source, _ in FUNCTIONS}
    assert sources >= {
        *(
            "simt/register_tiles/warp_tile",
            "simt/register_tiles/shared_double_buffer",
            "simt/asynchronous/async_copy",
            "simt/asynchronous/rasterized",
        ),
        *("simt/asynchronous/warp_specialized", "simt/split_k/stream_k"),
    }
    assert all(one.multiply_adds and not one.local for one in TABLE.values())
    assert not any(one.narrow_loads for one in TABLE.values())
    assert all(one.ports >= 1 for one in TABLE.values())
    assert all(one.instructions * BYTES <= CACHE for one in TABLE.values())


def test_names_are_no_ones_twice() -> None:
    seen: set[tuple[str, str, str]] = set()
    for one in named_kernels(OBJECTS):
        assert key_of(one) not in seen, "two functions of one name: the table would mix them up"
        seen.add(key_of(one))


def key_of(one: Named) -> tuple[str, str, str]:
    return one.source, one.function, one.kernel.architecture
