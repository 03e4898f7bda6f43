"""Name the bottleneck of a kernel, its evidence, and the next steps.

Runs gemm_bench for the times and again under ncu for the counters. If ncu is missing, too old or
not permitted, the page is made from the models alone, says so, and the exit code is 1.
GEMM_BENCH_BUILD=DIR (default build/release) has gemm_bench. From the files that -o keeps, the page
can be made again without a GPU: counters.json has what ncu counted of KERNEL and of OTHER.

examples:
  gemm-report explain WarpTile 4096
  gemm-report explain Tiled/tile:32 64x8192x512 --versus cuBLAS/math:default --markdown
  gemm-report explain WgmmaPersistent 8192 --precision bf16 -o build/why
  gemm-report explain my 4096 --gemm_kernel=my.cu --gemm_define=TILE:16 --versus Naive
  gemm-report explain WarpTile 4096 --record build/record.json.gz
  gemm-report explain WgmmaPersistent 8192 --precision bf16 --record build/why/record.json \\
    --counters build/why/counters.json

exit codes:
  0  done
  1  done without counters: a line on standard error says why
  3  bad input or usage: one line on standard error
"""

import argparse
import json
import os
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from gemm_report.document import InputError, read_json
from gemm_report.record import RECORD, Record, Row, read_record
from gemm_report.terminal import complain

if TYPE_CHECKING:
    from gemm_report.explain.collect import Counted

WITHOUT_COUNTERS = 1
_ROOT = Path(__file__).resolve().parents[3]


def add(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    option("kernel", metavar="KERNEL", help="its name, as in benchmark names")
    option("shape", metavar="SHAPE", help="4096, or 64x8192x512")
    option("--versus", metavar="OTHER", help="a kernel to compare with, interleaved")
    option("--precision", metavar="P", default="f32", help="default: f32")
    option("--layout", choices=("nn", "nt", "tn", "tt"), help="default: nn")
    option("--gemm_kernel", metavar="FILE", help="the file of your kernel, as for gemm_bench")
    said = "a macro of that file, as for gemm_bench"
    option("--gemm_define", metavar="NAME:VALUES", action="append", default=[], help=said)
    option("--modelled", action="store_true", help="use the models alone, without counters")
    said = "use the row of this record and run nothing"
    option("--record", metavar="RECORD", help=said, type=Path)
    said = "counters.json that -o kept, or a report of ncu (.ncu-rep), for the row in --record"
    option("--counters", metavar="FILE", help=said, type=Path)
    said = "keep the page there (index.html), as text and JSON too, the record with the counted "
    said += "bytes, counters.json and a figure of the memory traffic"
    option("-o", "--output", metavar="DIR", help=said, type=Path)
    form = command.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    form.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    from gemm_report.explain import collect

    _check(options)
    with TemporaryDirectory(prefix="explain-") as folder:
        path = options.record or Path(folder) / "record.json"
        program = _ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"
        record = read_record(path) if options.record else collect.timed(options, program, path)
        if record.device.kind != "gpu":
            raise InputError(f"{path}: was made on a CPU: only GPU kernels are explained")
        names = filter(None, (options.kernel, options.versus))
        rows = [collect.row_of(record, name, options) for name in names]
        why = None
        how = "Modelled: bytes are those of the model next to the kernel's code."
        counted = collect.Counted([()] * len(rows), how)
        if options.counters:
            counted = collect.stored(rows, options.counters)
        elif not options.record and not options.modelled:
            try:
                counted = collect.counted(rows, options, program)
            except InputError as error:
                why = str(error)
                counted = replace(counted, how=f"{how} There are no counters: {why}.")
        _tell(options, program, record, rows, counted)
    if why is None:
        return 0
    complain(f"explained without counters: {why}")
    return WITHOUT_COUNTERS


def _check(options: argparse.Namespace) -> None:
    """InputError before anything runs: what ncu counts for minutes must not be lost."""
    if not re.fullmatch(r"[1-9]\d{0,9}((x[1-9]\d{0,9}){2})?", options.shape):
        raise InputError(
            f"SHAPE '{options.shape}' is not one shape: write 4096, or MxNxK such as 64x8192x512"
        )
    if options.counters and not options.record:
        raise InputError("--counters needs --record: it says which row they are of")
    if options.output:
        try:
            options.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{options.output}: cannot be a folder ({error.strerror}): give another -o DIR"
            ) from None


def _tell(
    options: argparse.Namespace,
    program: Path,
    record: Record,
    rows: list[Row],
    counted: "Counted",
) -> None:
    from gemm_report.explain import collect, page
    from gemm_report.explain.diagnosis import diagnose
    from gemm_report.explain.observations import counted_traffic, observe

    # A record names only the kernels that it has rows of.
    ladder = collect.ladder(program)
    ladder += [(kernel.name, kernel.family, kernel.rung) for kernel in record.kernels]
    found = []
    for row, its in zip(rows, counted.launches, strict=True):
        seen = observe(record, row, its)
        told = diagnose(seen, ladder)
        found.append(page.Explanation(str(row.identity), seen, told, counted.how))
    versus = found[1] if found[1:] else None
    interleaved = rows[0].versus if versus else None
    forms = {
        "explain.txt": page.page(found[0], versus, interleaved),
        "explain.md": page.page(found[0], versus, interleaved, markdown=True),
        "explain.json": page.as_json(found[0], versus),
    }
    kind = "json" if options.json else "md" if options.markdown else "txt"
    sys.stdout.write(forms[f"explain.{kind}"])
    if options.output is None:
        return
    from gemm_report.explain.html_page import html_page
    from gemm_report.pages.picture import write_pictures

    drawn = [
        replace(row, counted=counted_traffic(row, its))
        for row, its in zip(rows, counted.launches, strict=True)
    ]
    shown = replace(record, rows=tuple(drawn))
    pictures = write_pictures(shown, options.output, ["hierarchy"])
    forms["index.html"] = html_page(found[0], versus, interleaved, pictures)
    bytes_of = {str(row.identity): row.counted for row in drawn}
    forms["record.json"] = collect.with_counted(read_json(record.path, RECORD), bytes_of)
    if any(counted.launches):
        pages = [[asdict(launch) for launch in its] for its in counted.launches]
        forms["counters.json"] = json.dumps(pages) + "\n"
    for name, text in forms.items():
        (options.output / name).write_text(text, encoding="utf-8")
