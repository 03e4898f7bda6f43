"""The command tools/sass."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gemm_report.document import InputError
from gemm_report.terminal import printable

from gemm_sass import held, show
from gemm_sass.kernels import ROOT, Kernel, kernels_of, objects_of
from gemm_sass.loop import figures

TABLE = ROOT / "kernels" / "sass.json"
BAD_INPUT = 2

EPILOG = """\
Needs cuobjdump and nvdisasm, parts of the CUDA toolkit that tools/setup test installs where they
are missing.

One line for each kernel and architecture, with figures of its hot loop: of the innermost loops with
multiply-adds (FFMA, MMA, ...), the one with most.
  registers  per thread
  loop       instructions of the hot loop
  KiB        its size; ! above 36 KiB, where it misses the instruction cache on an H200
  math       its multiply-adds
  share      math / loop: the largest share of the peak where an FFMA takes one issue slot (8.6 on)
  moved      FFMA whose accumulator changes its register
  LDS        loads from shared memory of 32, 64 and 128 bits
  local      LDL and STL (spills, arrays in local memory) in the whole kernel

examples:
  tools/sass                              every kernel of the build
  tools/sass AsyncCopy                    kernels with this in their source or function
  tools/sass 'WarpTiling<128, 128, 16' -a sm_90a
  tools/sass AsyncCopy -a sm_90a --listing | less
  tools/sass --file attempt.cubin         an object, a program or a cubin
  tools/sass --write                      update kernels/sass.json (kernels/sass_test.py)
  tools/sass AsyncCopy -a sm_90a --write  add this kernel to it

GEMM_BENCH_BUILD=DIR (default build/release) is the build, relative to the project.

exit codes:
  0  done
  2  bad input or usage, or no such kernel: one line on stderr
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"sass: {printable(message)}: see tools/sass --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tools/sass",
        description="Shows figures of the hot loops in the machine code of kernels.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option, said = parser.add_argument, "only this one, such as sm_90a"
    option("name", nargs="*", metavar="NAME", help="part of a kernel's name")
    option("-a", "--architecture", action="append", metavar="SM", help=said)
    said = "instead of the build's objects"
    option("--file", type=Path, action="append", metavar="FILE", help=said)
    form = parser.add_mutually_exclusive_group()
    said = "the instructions, with the stall cycles that the compiler encodes in them"
    form.add_argument("--listing", action="store_true", help=said)
    form.add_argument("--write", action="store_true", help=f"update {TABLE.name}")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit code."""
    try:
        print(run(_parser().parse_args(arguments)), flush=True)
        return 0
    except InputError as error:
        print(f"sass: {error}", file=sys.stderr)
    except OSError as error:
        print(f"sass: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
    return BAD_INPUT


def run(options: argparse.Namespace) -> str:
    """The output of the command."""
    kernels = chosen(options)
    if options.listing:
        return "\n\n".join(map(show.listing, kernels))
    rows = [(one, figures(one)) for one in kernels]
    if options.write:
        before = held.read(TABLE) if TABLE.exists() else {}
        built = held.entries(rows)
        after = (held.joined if options.name else held.renewed)(before, built)
        held.write(TABLE, after)
        changed = sum(before.get(key) != value for key, value in after.items())
        return f"{TABLE}: {changed} of {len(after)} entries are new or changed"
    return show.table(rows)


def chosen(options: argparse.Namespace) -> list[Kernel]:
    """The kernels that the options name."""
    if options.write and options.file:
        raise InputError("--write takes the objects of the build: leave out --file")
    if options.write and options.architecture and not options.name:
        raise InputError("--write updates the whole table: leave out -a, or name kernels to add")
    build = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
    files = options.file or objects_of(build)
    if not files:
        raise InputError(f"{build}: has no objects of kernels: build them, or give --file")
    found = kernels_of(files, options.name)
    architectures = sorted({one.architecture for one in found})
    if options.architecture:
        found = [one for one in found if one.architecture in options.architecture]
    if not found:
        wanted = " or ".join(options.name) or "any kernel"
        raise InputError(
            f"{wanted}: is built for {', '.join(architectures)}: give one of these"
            if architectures
            else f"{wanted}: no kernel has this in its name: tools/sass lists them"
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
