"""Runs gemm_bench for a timed record, and once more under ncu for counters.

What is asked are the options of the command explain.
"""

import difflib
import json
import re
from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gemm_report.document import InputError
from gemm_report.explain import metrics, ncu
from gemm_report.record import Record, Row, Traffic, read_record

# Up to seven launches on a corner of the problem come before those of the whole. Of a row whose
# launch is many kernels ncu is not asked for all.
_LAUNCHES, _MOST_KERNELS = 10, 4
# Options of gemm_bench: under ncu a launch takes seconds, which nothing may take for its own time.
UNTIMED = (
    *("--gemm_monitor=0", "--gemm_warmup=0.02", "--gemm_sample=0.0001"),
    *("--benchmark_min_time=1x", "--gemm_row_budget=1e6", "--gemm_patience=3600"),
    *("--gemm_peaks=nominal", "--gemm_kernel_limit=3600"),
)


@dataclass(frozen=True)
class Counted:
    """The launches that ncu saw of each row, and how it counted."""

    launches: Sequence[Sequence[ncu.Launch]]
    how: str


def timed(asked: Namespace, program: Path, record: Path) -> Record:
    """The record of the rows asked for, once they were found among the cases there are."""
    if not program.is_file():
        raise InputError(
            f"there is no {program.name} in {program.parent}: run tools/bench, which builds it, or "
            "set GEMM_BENCH_BUILD"
        )
    kernels = filter(None, (asked.kernel, asked.versus))
    wanted = [escaped(_case(kernel, asked, program)) for kernel in kernels]
    options = [*_options(asked), f"--benchmark_filter=^({'|'.join(wanted)})/manual_time"]
    if asked.versus:
        options.append(f"--gemm_versus={asked.versus}")
    ncu.run([str(program), *options, f"--benchmark_out={record}"], may_fail=record)
    return read_record(record)


def _options(asked: Namespace) -> list[str]:
    """Of gemm_bench, for the cases that may be meant."""
    # Without a GPU gemm_bench would list the CPU's kernels, as if no others were known.
    found = ["--gemm_device=0", f"--gemm_shapes={asked.shape}"]
    found += [f"--gemm_precisions={asked.precision}"]
    found += [f"--gemm_layouts={asked.layout}"] if asked.layout else []
    found += [f"--gemm_kernel={asked.gemm_kernel}"] if asked.gemm_kernel else []
    return found + [f"--gemm_define={define}" for define in asked.gemm_define]


def ladder(program: Path) -> list[tuple[str, str, int]]:
    """Name, family and rung of every kernel of the suite; none where it cannot say."""
    try:
        said = ncu.run([str(program), "--gemm_list_kernels"])
    except (InputError, OSError):  # not built, or of another commit than this page
        return []
    lines = [line.split("\t") for line in said.splitlines()]
    return [(name, family, int(rung)) for rung, family, name, _ in lines]


def row_of(record: Record, kernel: str, asked: Namespace) -> Row:
    """The timed row; InputError where the record has none, or several."""
    shape, layout = asked.shape, asked.layout

    def plain(row: Row) -> str:
        return row.kernel_label.partition("/layout:")[0]

    labels = {
        plain(row): row
        for row in record.rows
        if row.precision == asked.precision and row.transfer is None
        if row.shape in (shape, f"{shape}x{shape}x{shape}") and layout in (None, row.layout)
    }
    where = f"{record.path}: {asked.precision} at {shape}{f' in {layout}' if layout else ''}"
    elsewhere = dict.fromkeys(
        f"{row.precision} at {row.shape} in {row.layout}"
        for row in record.rows
        if kernel in (row.kernel, plain(row))
    )
    row = labels[_meant(kernel, labels, f"{where}: no row of {kernel}", elsewhere)]
    if row.status != "timed":
        why = row.failed or row.skipped or "it was not timed"
        raise InputError(f"{where}: {row.label} is {row.status}: {why}")
    return row


def counted(rows: Sequence[Row], asked: Namespace, program: Path) -> Counted:
    """What ncu counts of the kernels of these rows. Raises InputError where it cannot."""
    found = ncu.program()
    ncu.package()  # before minutes of counting
    names, dropped = metrics.select(ncu.available(found))
    launches = []
    for row in rows:
        its = ncu.kernels_of(row.device_kernels)
        case = f"--benchmark_filter=^{escaped(str(row.identity))}/"
        command = [str(program), *_options(asked), *UNTIMED, case]
        most = _LAUNCHES * min(len(its), _MOST_KERNELS)
        with TemporaryDirectory(prefix="explain-") as folder:
            report = Path(folder) / f"counters{ncu.REPORT}"
            ncu.count(found, report, names, its, most, command)
            seen = ncu.read_report(report, metrics.names())
        launches.append(_of_row(row, seen, "ncu"))
    without = f"; this chip has no counter of {', '.join(dropped)}" if dropped else ""
    how = (
        "Times are gemm_bench's. Counters are those of the longest launch that ncu saw, with the "
        f"clocks left alone and the caches flushed before each pass{without}."
    )
    return Counted(launches, how)


def stored(rows: Sequence[Row], path: Path) -> Counted:
    """The launches of each row in a file: a page for each, in their order, or one for all."""
    pages = ncu.read_kept(path, metrics.names())
    if len(pages) not in (1, len(rows)):
        raise InputError(
            f"{path}: has {len(pages)} pages of ncu for {len(rows)} rows: one is needed for each, "
            "that of KERNEL first"
        )
    pairs = zip(rows, pages if len(pages) == len(rows) else pages * len(rows), strict=True)
    launches = [_of_row(row, page, str(path)) for row, page in pairs]
    return Counted(launches, f"Times are the record's, counters of the longest launch in {path}.")


def _of_row(row: Row, seen: Sequence[ncu.Launch], who: str) -> list[ncu.Launch]:
    wanted = sorted(set(ncu.kernels_of(row.device_kernels)))
    found = [each for each in seen if ncu.base_name(each.kernel) in wanted]
    if not found:
        raise InputError(f"{who} saw no launch of {', '.join(wanted) or row.label}")
    return found


def _case(kernel: str, asked: Namespace, program: Path) -> str:
    """The one benchmark that is meant."""
    listing = [*_options(asked), "--benchmark_filter=.", "--benchmark_list_tests"]
    said = ncu.run([str(program), *listing])
    names = [line.strip() for line in said.splitlines() if line.strip().endswith("/manual_time")]
    ending = f"/{asked.precision}/"
    labels = {n.partition(ending)[0].partition("/layout:")[0]: n for n in names if ending in n}
    absent = f"no kernel {kernel} in {asked.precision} at {asked.shape}"
    return labels[_meant(kernel, labels, absent)].removesuffix("/manual_time")


def _meant(kernel: str, labels: Collection[str], absent: str, elsewhere: Iterable[str] = ()) -> str:
    """The label that is the kernel's, or the one of its variants; InputError where none is."""
    found = [a for a in labels if a == kernel] or [a for a in labels if a.startswith(f"{kernel}/")]
    if len(found) > 1:
        raise InputError(f"{kernel} has several variants: give one of {', '.join(found)}")
    if found:
        return found[0]
    if elsewhere:
        raise InputError(f"{absent}: it has {', '.join(list(elsewhere)[:6])}")
    near = difflib.get_close_matches(kernel, list(labels), n=3, cutoff=0.4)
    near = near or sorted(labels)[:3]
    raise InputError(absent + (f": is it {' or '.join(near)}?" if near else ": nothing runs there"))


def escaped(name: str) -> str:
    """For an option of Google Benchmark, whose expressions do not know an escaped hyphen."""
    return re.escape(name).replace("\\-", "-")


def with_counted(document: Any, rows: Mapping[str, Traffic | None]) -> str:
    """The record's JSON, with the counted bytes next to the modelled ones of each row."""
    for benchmark in document["benchmarks"]:
        name = benchmark["name"].removesuffix("/manual_time")
        if name in rows and benchmark["run_type"] == "iteration":
            counts = rows[name]
            benchmark["gemm"]["counted"] = counts and asdict(counts)
    return json.dumps(document, indent=1) + "\n"
