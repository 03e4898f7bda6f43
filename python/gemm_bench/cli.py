"""The command gemm-bench: benchmarks, and reports of their records."""

import os
import signal
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from gemm_bench.program import ProgramMissingError, environment, program

BAD_INPUT = 2  # as the program's own

HELP = """\
usage: gemm-bench [options of gemm_bench]     measures, and makes a page of the record
       gemm-bench COMMAND [OPTIONS]           COMMAND is one of
                                              {commands}

The record goes to results/<device>/<utc>-<commit>.json.gz in the current folder, and its page to a
folder of the same name; --benchmark_out=FILE or DIR/ puts both elsewhere.

  gemm-bench                                  the default suite
  gemm-bench --benchmark_filter=Tiled         the kernels whose names match
  gemm-bench --gemm_kernel=my.cu              your own kernel
  gemm-bench compare before.json.gz after.json.gz   is anything slower?
  gemm-bench serve                            verdicts on kernels, over HTTP on this machine
  gemm-bench mcp                              the same as a tool for agents (MCP)

The options of gemm_bench:

"""
# What writes no record.
PRINTS = (
    "--benchmark_list_tests",
    "--benchmark_list_tests=true",
    "--gemm_list_kernels",
    "--gemm_name_record",
)


def command() -> NoReturn:
    """The program; ends with the status of what it ran."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Runs the command; its exit status."""
    if arguments[:1] in (["serve"], ["mcp"]):
        return serve(*arguments)
    if arguments and not arguments[0].startswith("-"):
        return report(arguments)
    try:
        if any(each in ("--help", "-h") for each in arguments):
            from gemm_report.cli import COMMANDS

            print(HELP.format(commands=", ".join(COMMANDS)), end="", flush=True)
            return _run(["--help"])
        return bench(arguments)
    except ProgramMissingError as missing:
        print(f"gemm-bench: {missing}", file=sys.stderr)
        return BAD_INPUT


def serve(kind: str, *arguments: str) -> int:
    """Verdicts for programs: over HTTP, or as a tool of the Model Context Protocol."""
    try:
        main = import_module(f"gemm_bench.{kind}").main
    except ModuleNotFoundError as missing:
        print(f"gemm-bench: {missing}: pip install 'gemm-bench[{kind}]'", file=sys.stderr)
        return BAD_INPUT
    return int(main(list(arguments)))


def report(arguments: list[str]) -> NoReturn:
    """A command of gemm_report."""
    os.environ["GEMM_REPORT_AS"] = "gemm-bench"
    sys.argv[1:] = arguments
    from gemm_report.cli import command

    command()


def bench(arguments: list[str]) -> int:
    """Measures, as the options say, and makes a page of the record, if one was written."""
    if any(each in PRINTS for each in arguments):
        return _run(arguments)
    if not any(each.startswith("--benchmark_out=") for each in arguments):
        arguments = ["--benchmark_out=results/", "--benchmark_out_format=json", *arguments]
    with tempfile.NamedTemporaryFile() as named:
        status = _run([f"--gemm_tell_record={named.name}", *arguments])
        # Replaced by the program. Without a name the record went to a pipe, or there is none.
        record = Path(named.name).read_text().removesuffix("\n")
    if record and Path(record).is_file():
        print(f"\nrecord: {record}\npage: ", end="", flush=True)
        from gemm_report.cli import main as make

        if make(["report", record]) != 0:
            print(f"gemm-bench: no page was made: run gemm-bench report {record}", file=sys.stderr)
    return status


def _run(arguments: list[str]) -> int:
    """The program's exit status, 128 and its number after a signal. Signals reach it, not only
    those of the terminal; it writes its record then, and a page is made of that."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    child: subprocess.Popen[bytes] | None = None
    early = []  # those that came before there was a child

    def forward(number: int, _: object) -> None:
        if child:
            child.send_signal(number)
        else:
            early.append(number)

    before = {number: signal.signal(number, forward) for number in numbers}
    try:
        child = subprocess.Popen([program(), *arguments], env=environment(), process_group=0)
        for number in early:
            child.send_signal(number)
        status = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status
