"""The command gemm-report."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from gemm_report.commands import calibrate, figures, kernels, readme, recover, seeds, tune
from gemm_report.document import InputError

# What a command needs beyond the standard library it imports when it runs: a calibration is made
# without matplotlib, and --help needs nothing.
COMMANDS = {
    "figures": figures,
    "readme": readme,
    "kernels": kernels,
    "seeds": seeds,
    "tune": tune,
    "calibrate": calibrate,
    "recover": recover,
}

BAD_INPUT = 3

_EPILOG = """\
examples:
  gemm-report figures results/h200/20250131T120000Z-0123abc.json
  gemm-report figures before.json after.json -o comparison
  gemm-report readme results/h200/20250131T120000Z-0123abc.json
  gemm-report readme results/h200/20250131T120000Z-0123abc.json --check
  gemm-report seeds results/h200/20250131T120000Z-0123abc.json results/cpu/...json
  gemm-report tune results/h200/tuning/20250131T120000Z-0123abc.json
  gemm-report kernels results/h200/20250131T120000Z-0123abc.json
  gemm-report calibrate 1.json 2.json 3.json -o noise.json
  gemm-report recover results

exit codes:
  0  done
  1  readme or kernels --check: the file is not what the record gives
  3  bad input or usage: one line on standard error says which file, and what to do
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except InputError as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename or 'output'}: {error.strerror or error}"
    print(f"gemm-report: {message}", file=sys.stderr)
    return BAD_INPUT


class _Parser(argparse.ArgumentParser):
    """Ends with 3 where argparse would with 2, which is a verdict here."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}: see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gemm-report",
        description="What the records of gemm_bench mean: figures, pages, comparisons, history.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
            epilog=getattr(module, "EPILOG", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add(command)
        command.set_defaults(run=module.run)
    return parser
