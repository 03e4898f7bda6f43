"""The kernels of an object, a program or a cubin, as the toolkit's disassembler prints them."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gemm_report.document import InputError

from gemm_sass.instruction import Instruction, instructions_in

ROOT = Path(__file__).resolve().parents[2]
_REGISTERS = re.compile(r"^ Function (\S+):\n +REG:(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Kernel:
    """One kernel as compiled for one architecture."""

    source: str  # as source_of says: "best/fp32/split_k" for kernels/best/fp32/split_k.cu
    function: str  # "async_copy<AsyncTile<64, 128, ...>>"
    symbol: str  # mangled
    architecture: str  # "sm_90a"
    compiler: str  # release of ptxas: "13.0"; empty if the cubin has none
    registers: int  # per thread
    code: tuple[Instruction, ...]


def disassembler() -> str | None:
    """The path of cuobjdump; None if it or nvdisasm, which it calls, is missing."""
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    path = os.pathsep.join([os.environ.get("PATH", ""), f"{toolkit}/bin", f"{ROOT}/.venv/bin"])
    return shutil.which("nvdisasm", path=path) and shutil.which("cuobjdump", path=path)


def kernels_of(files: Sequence[Path], words: Sequence[str] = ()) -> list[Kernel]:
    """The kernels with one of the words in their name (all without words), by source, function and
    architecture. Raises InputError for a file that is damaged or has no kernel."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        each = pool.map(lambda path: list(_kernels_of(path, words)), files)
        found = [kernel for kernels in each for kernel in kernels]
    number = {a: int(a.removeprefix("sm_").rstrip("af")) for a in {k.architecture for k in found}}
    found.sort(key=lambda k: (k.source, k.function, number[k.architecture], k.architecture))
    return found


def _kernels_of(path: Path, words: Sequence[str]) -> Iterator[Kernel]:
    together = sources_of(path)
    # Listing functions is fast; disassembling all of them takes seconds.
    symbols = list(dict(_REGISTERS.findall(_cuobjdump(path, "-res-usage"))))
    names = {
        symbol: (source_of(name, together), shortened(name))
        for symbol, name in zip(symbols, demangled(symbols), strict=True)
    }
    wanted = [symbol for symbol in symbols if named("/".join(names[symbol]), words)]
    if not wanted:
        return
    chosen = [] if wanted == symbols else ["-fun", ",".join(wanted)]
    text = _cuobjdump(path, "-elf", "-res-usage", "-sass", *chosen)
    # For each cubin cuobjdump prints the sections, with ptxas's note, then the resources of the
    # functions, then their code.
    head, *cubins = re.split(r"^\tcode for (\S+)$", text, flags=re.MULTILINE)
    for architecture, text in zip(cubins[::2], cubins[1::2], strict=True):
        release = re.search(r"Tool Version: .* release (\d+\.\d+)", head)
        compiler = release[1] if release else ""
        registers = dict(_REGISTERS.findall(head))
        _, *functions = re.split(r"^\t\tFunction : (\S+)$", text, flags=re.MULTILINE)
        for symbol, body in zip(functions[::2], functions[1::2], strict=True):
            source, function = names[symbol]
            count, code = int(registers.get(symbol, 0)), tuple(instructions_in(body))
            yield Kernel(source, function, symbol, architecture, compiler, count, code)
        head = text  # ends with the sections of the next cubin


def _cuobjdump(path: Path, *options: str) -> str:
    """The output of cuobjdump. Raises InputError with its message if it fails."""
    if not (program := disassembler()):
        raise InputError(
            "cuobjdump or nvdisasm is missing: run tools/setup test, which installs them, or "
            "install the CUDA toolkit"
        )
    if not path.is_file():
        raise InputError(f"{path}: no such file: give the path of an object of nvcc or a cubin")
    done = subprocess.run(
        [program, *options, path], capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise InputError(f"{path}: give an object of nvcc or a cubin: {said or 'cuobjdump failed'}")
    return done.stdout


def objects_of(build: Path) -> list[Path]:
    """The objects of the target `kernels`."""
    return sorted((build / "kernels" / "CMakeFiles" / "kernels.dir").rglob("*.cu.o"))


def object_of(build: Path, source: str) -> Path:
    """The object of that target with the code of simt/async_copy."""
    for path in objects_of(build):
        if source in sources_of(path):
            return path
    raise InputError(f"{source}.cu is not built: build it")


def sources_of(path: Path) -> list[str]:
    """The sources of an object: simt/async_copy for .../kernels.dir/simt/async_copy.cu.o; all that
    the generated file includes for .../kernels.dir/groups/simt_naive.cu.o; else the file's name."""
    before, target, source = path.as_posix().rpartition("/CMakeFiles/kernels.dir/")
    if not target:
        return [path.name]
    if not source.startswith("groups/"):
        return [source.removesuffix(".cu.o")]
    together = Path(before, source.removesuffix(".o"))
    return re.findall(r'^#include "kernels/(.+)\.cu"$', together.read_text(), re.MULTILINE)


def source_of(name: str, together: Sequence[str]) -> str:
    """That of these sources, compiled together, which has the function with this demangled name. A
    namespace in the name is that of the file. A header's function has it in a template argument;
    without one it belongs to them all, and its source is their folder."""
    for source in together:
        stem = re.sub(r"^\d+_", "", source.rpartition("/")[2])  # of a numbered rung
        if len(together) == 1 or re.search(rf"\b{stem}(_rung)?::", name):
            return source
    return together[0].rpartition("/")[0]


def demangled(symbols: Sequence[str]) -> list[str]:
    """Function names with namespaces and template arguments, without parameters."""
    if not symbols:
        return []
    if not (program := shutil.which("c++filt")):
        raise InputError("c++filt is not on PATH: install binutils")
    # -p: without parameters and result type
    done = subprocess.run(
        [program, "-p"], input="\n".join(symbols), capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def shortened(name: str) -> str:
    """`a::f<a::T<1, (a::E)2> >` becomes `f<T<1, 2>>`."""
    name = re.sub(r"\((anonymous namespace|\w+)\)::", "", name)
    name = re.sub(r"\((?:\w+::)*\w+\)(?=-?\d)", "", name)  # the type of an enumerator
    return re.sub(r"> +(?=>)", ">", re.sub(r"\b\w+::", "", name))


def named(name: str, words: Sequence[str]) -> bool:
    """Whether the name has one of the words, or there are none. AsyncCopy matches async_copy."""

    def plain(text: str) -> str:
        return re.sub(r"[\s_]", "", text).lower()

    return not words or any(plain(word) in plain(name) for word in words)
