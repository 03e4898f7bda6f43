"""What was built, by names for people: `async_copy<AsyncTile<64, 128, ...>>` of simt/async_copy."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gemm_report.document import InputError

from gemm_sass.cubin import Kernel, kernels_in
from gemm_sass.loop import generation


@dataclass(frozen=True)
class Named:
    """A kernel, the source that it comes from, and the name of its function."""

    source: str  # "simt/async_copy", which kernels/ has as a .cu
    function: str
    kernel: Kernel


def objects_of(build: Path) -> list[Path]:
    """The objects of the target `kernels`."""
    return sorted((build / "kernels" / "CMakeFiles" / "kernels.dir").rglob("*.cu.o"))


def named_kernels(files: Sequence[Path]) -> list[Named]:
    """All kernels of some files, by source, function and architecture."""
    found = [(source_of(path), kernel) for path in files for kernel in kernels_in(path)]
    functions = readable([kernel.symbol for _, kernel in found])
    return sorted(
        (
            Named(source, function, kernel)
            for (source, kernel), function in zip(found, functions, strict=True)
        ),
        key=lambda one: (
            one.source,
            one.function,
            generation(one.kernel.architecture),
            one.kernel.architecture,
        ),
    )


def source_of(path: Path) -> str:
    """simt/async_copy for .../kernels.dir/simt/async_copy.cu.o; for other files their name."""
    _, target, source = path.as_posix().rpartition("/kernels.dir/")
    return source.removesuffix(".cu.o") if target else path.name


def readable(symbols: Sequence[str]) -> list[str]:
    """The functions' names with their template arguments, without namespaces and parameters."""
    if not symbols:
        return []
    if not (program := shutil.which("c++filt")):
        raise InputError("there is no c++filt on PATH: install binutils, as for the compiler")
    done = subprocess.run(
        [program], input="\n".join(symbols), capture_output=True, text=True, check=True
    )
    return [shortened(name) for name in done.stdout.splitlines()]


def shortened(name: str) -> str:
    """`void a::f<a::T<1, 2> >(a::P, float*)` becomes `f<T<1, 2>>`."""
    name = re.sub(r"\((anonymous namespace|\w+)\)::", "", name)
    name = re.sub(r"\((?:\w+::)*\w+\)(?=-?\d)", "", name)  # the type of an enumerator
    name = re.sub(r"\b\w+::", "", name).replace("> >", ">>").replace("> >", ">>")
    depth, start, end = 0, 0, len(name)
    for at, each in enumerate(name):
        depth += (each == "<") - (each == ">")
        if depth == 0 and each == "(":
            end = at
            break
        if depth == 0 and each == " ":
            start = at + 1
    return name[start:end]


def matching(kernels: Sequence[Named], words: Sequence[str]) -> list[Named]:
    """Those in whose source or function one of the words is; `AsyncCopy` is in `async_copy`."""

    def plain(text: str) -> str:
        return re.sub(r"[\s_]", "", text).lower()

    wanted = [plain(word) for word in words] or [""]
    return [
        one
        for one in kernels
        if any(word in plain(f"{one.source}/{one.function}") for word in wanted)
    ]
