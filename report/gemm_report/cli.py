"""What the records of gemm_bench mean: figures, pages, comparisons, history.

examples:
  gemm-report figures results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz
  gemm-report report results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz
  gemm-report compare before.json after.json
  gemm-report explain WarpTile 4096

exit codes:
  0  done
  1  readme --check: the file is not what the record gives; compare: a regression;
     explain: there are no counters
  2  compare: not enough data
  3  bad input or usage, or output that cannot be written: one line on standard error says which
     file, and what to do
  4  a defect of gemm-report, with a traceback
  5, 6, 7  compare: a wrong result, missing cases, sides that are not alike
  130  interrupted
"""

import argparse
import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from gemm_report.document import BAD_INPUT, InputError
from gemm_report.terminal import called, complain, printable

# What a command needs beyond the standard library it imports when it runs: figures need
# matplotlib, comparisons do not, and --help needs nothing.
_NAMES = "figures report site history readme tune ratios compare fleet explain"
COMMANDS = {n: import_module(f"gemm_report.commands.{n}") for n in (*_NAMES.split(), "export")}

DEFECT = 4
INTERRUPTED = 130


def command() -> NoReturn:
    """The program. Python itself would end with 1 for a defect of ours, which is a verdict here."""
    # Each thread of OpenBLAS takes memory, and no command multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.pop("MPLBACKEND", None)  # of a notebook, which may not be installed here
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # of `| head`, as with any other program
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main()
    except Exception:
        code = DEFECT
        traceback.print_exc()
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit code."""
    # Libraries warn of glyphs that no font has: nothing that a reader of reports can act on.
    with warnings.catch_warnings(action="ignore"):
        try:
            options = _parser().parse_args(arguments)
            code: int = options.run(options)
            if sys.stdout:
                sys.stdout.flush()
            return code
        except InputError as error:
            message = str(error)
        except KeyboardInterrupt:
            complain("interrupted")
            return INTERRUPTED
        except ModuleNotFoundError as error:
            library = str(error.name).partition(".")[0]
            if library in ("None", __package__):
                raise
            message = f"{library} is missing: python -m pip install {library}"
        except OSError as error:
            if error.filename is None:  # of standard output, at which Python would try again
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            name = error.filename or "output"
            message = f"{name}: {error.strerror or error}: give another path, or see to its folder"
        complain(message)
        return BAD_INPUT


class _Parser(argparse.ArgumentParser):
    """Ends with 3 where argparse would with 2, which is a verdict here."""

    def format_help(self) -> str:
        text = super().format_help().replace("gemm-report explain", called("explain"))
        return text.replace("gemm-report ", f"{called()} ")

    def print_help(self, file: Any = None) -> None:
        # argparse itself passes over a full disk.
        print(self.format_help(), end="", file=file, flush=True)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {printable(message)}: see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    description, _, epilog = (__doc__ or "").partition("\n")
    shape: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = _Parser(prog=called(), description=description, epilog=epilog.lstrip(), **shape)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        said, _, epilog = (module.__doc__ or name).partition("\n")
        shape |= {"description": said, "epilog": getattr(module, "EPILOG", epilog.lstrip())}
        brief = said[0].lower() + said[1:].removesuffix(".")
        command = commands.add_parser(name, prog=called(name), help=brief, **shape)
        module.add(command)
        command.set_defaults(run=module.run)
    return parser
