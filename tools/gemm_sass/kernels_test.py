"""Whole files, with a fake cuobjdump; names, and selection by words."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from gemm_report.document import InputError

from gemm_sass.instruction_test import EXIT, decoded, other
from gemm_sass.kernels import (
    demangled,
    disassembler,
    kernels_of,
    named,
    object_of,
    objects_of,
    shortened,
    source_of,
)

# Prints the file that it is given, which a test wrote.
PROGRAM = """#!/bin/sh
for file; do :; done
grep -q "code for" "$file" && exec cat "$file"
echo "cuobjdump info    : File '$file' does not contain device code"
exit 255
"""


def put_disassembler(folder: Path) -> None:
    """Fakes of cuobjdump and nvdisasm."""
    folder.mkdir(exist_ok=True)
    for name in ("cuobjdump", "nvdisasm"):
        (folder / name).write_text(PROGRAM)
        (folder / name).chmod(0o755)


def cubin(
    kernels: Mapping[str, Sequence[str]], architecture: str = "sm_90a", registers: int = 168
) -> str:
    """The output for a cubin of ptxas 13.0."""
    head = "\tTool Version: Cuda compilation tools, release 13.0, V13.0.88\n\nResource usage:\n"
    uses = [f" Function {name}:\n  REG:{registers} STACK:0 SHARED:0\n" for name in kernels]
    codes = [f"\t\tFunction : {name}\n{''.join(lines)}" for name, lines in kernels.items()]
    return f"{head}{''.join(uses)}\n\tcode for {architecture}\n{''.join(codes)}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_disassembler(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return tmp_path


def test_all_cubins_of_a_file_are_read(folder: Path) -> None:
    path = folder / "both.o"
    first = cubin({"_Z1av": [other(), EXIT], "_Z1bv": [EXIT]})
    path.write_text(first + cubin({"_Z1av": [EXIT]}, "sm_80", 32).replace("release", "of"))
    a80, a90, b90 = kernels_of([path])
    assert (a80.source, a80.function, a80.symbol) == ("both.o", "a", "_Z1av")
    assert (a80.architecture, a80.compiler, a80.registers) == ("sm_80", "", 32)
    assert (a90.architecture, a90.compiler, a90.registers) == ("sm_90a", "13.0", 168)
    assert (a90.code, b90.code) == (decoded([other(), EXIT]), decoded([EXIT]))
    (folder / "another.o").write_text(cubin({"_Z3twov": [EXIT]}))
    assert [one.function for one in kernels_of([path, folder / "another.o"], ["Two"])] == ["two"]


@pytest.mark.parametrize("missing", ["cuobjdump", "nvdisasm"])
def test_without_a_disassembler_it_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr("gemm_sass.kernels.ROOT", folder)
    monkeypatch.setenv("CUDA_HOME", str(folder))
    monkeypatch.setenv("PATH", f"{folder}/bin")
    assert disassembler() == f"{folder}/bin/cuobjdump"
    (folder / "bin" / missing).unlink()
    with pytest.raises(InputError, match="run tools/setup test"):
        kernels_of([folder / "k.o"])


def test_mangled_names_are_decoded_and_shortened() -> None:
    file = "_GLOBAL__N__497c070a_13_rasterized_cu_340dede6_13868"
    symbol = f"_ZN4gemm4simt{len(file)}{file}10rasterizedINS0_4TileILi64ELb1EEEEEvPf"
    names = demangled([symbol, "plain"])
    assert [shortened(name) for name in names] == ["rasterized<Tile<64, true>>", "plain"]
    assert shortened("f<(gemm::Precision)2, -1, double>") == "f<2, -1, double>"


def test_kernels_of_sources_compiled_together_are_told_apart(folder: Path) -> None:
    for name, text in {
        "CMakeFiles/kernels.dir/groups/mma.cu.o": cubin({"_ZN3mma4copyEv": [EXIT]}),
        "CMakeFiles/kernels.dir/tensor/slow.cu.o": cubin({"_ZN4slow4copyEv": [EXIT]}),
        "groups/mma.cu": '#include "kernels/tensor/mma_big.cu"\n#include "kernels/tensor/mma.cu"\n',
    }.items():
        path = folder / "kernels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    together, _ = objects_of(folder)
    assert object_of(folder, "tensor/mma") == object_of(folder, "tensor/mma_big") == together
    with pytest.raises(InputError, match=r"tensor/none\.cu is not built"):
        object_of(folder, "tensor/none")
    assert [one.source for one in kernels_of(objects_of(folder))] == ["tensor/mma", "tensor/slow"]
    for name, source in {
        "gemm::tensor::mma<gemm::tensor::mma_big::(anonymous namespace)::B>": "tensor/mma_big",
        "gemm::tensor::mma<gemm::tensor::mma_rung::(anonymous namespace)::B>": "tensor/mma",
        "gemm::tensor::mma<float>": "tensor",
    }.items():
        assert source_of(name, ["tensor/mma", "tensor/mma_big"]) == source
        assert source_of(name, ["tensor/alone"]) == "tensor/alone"


def test_words_match_source_or_function_in_any_case() -> None:
    copy, tiled = "simt/async_copy/async_copy<AsyncTile<64, 128>>", "simt/tiled/tiled<float, 32>"
    for words, found in (
        ([], [copy, tiled]),
        (["AsyncCopy"], [copy]),
        (["AsyncTile<64,128>"], [copy]),
        (["tiled/tiled", "absent"], [tiled]),
    ):
        assert [name for name in (copy, tiled) if named(name, words)] == found, words
