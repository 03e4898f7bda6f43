"""The table of what was found best, which kernels/ includes: kernels/tuned.inc.

A line is an element of an array in C++; the comment behind it says what the choice rests on.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from gemm_report.document import InputError, RecordError
from gemm_report.figures.tuning import Sweep, sweeps
from gemm_report.readme import read_text
from gemm_report.record import Record, rate
from gemm_report.text import quantity

HEADER = (
    "// The fastest points of tuning spaces, as tools/tune --write found them: "
    "rows of TunedPoint.\n"
)

# Kernel, precision, compute capability, problem.
Key = tuple[str, str, int, int, int, int]

_ENTRY = re.compile(
    r'\{"(\w+)", Precision::(\w+), (\d+), \{(\d+), (\d+), (\d+)\}, "[^"\\]+"\},  // [^\\]+'
)


def merged(path: Path, record: Record) -> str:
    """The text of `path`, which may not exist yet, with the winners of `record` in it."""
    if not record.complete:
        raise RecordError(f"{record.path}: the run was interrupted: give a complete record")
    known = record.precision_names
    entries = _read(path, known) | dict(_entry(record, sweep) for sweep in sweeps(record))

    def place(key: Key) -> tuple[object, ...]:
        kernel, precision, capability, m, n, k = key
        return kernel, known.index(precision), capability, m * n * k, m, n, k

    return HEADER + "".join(f"{entries[key]}\n" for key in sorted(entries, key=place))


def _read(path: Path, precisions: Sequence[str]) -> dict[Key, str]:
    lines = read_text(path).splitlines() if path.exists() else []
    found: dict[Key, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("//"):
            continue
        entry = _ENTRY.fullmatch(line)
        if not entry or entry[2] not in precisions:
            raise InputError(
                f"{path}: line {number} is no entry of the table: take another copy, or remove it"
            )
        capability, m, n, k = (int(entry[i]) for i in range(3, 7))
        found[entry[1], entry[2], capability, m, n, k] = line
    return found


def _entry(record: Record, sweep: Sweep) -> tuple[Key, str]:
    best, known = sweep.best, re.fullmatch(r"(\d+)\.(\d)", record.device.compute_capability or "")
    if not known:
        raise RecordError(
            f"{record.path}: its device has no compute capability: give a record of a GPU"
        )
    capability = int(known[1] + known[2])
    entry = (
        f'{{"{best.kernel}", Precision::{best.precision}, {capability}, {{{best.m}, {best.n}, '
        f'{best.k}}}, "{best.settings}"}},  // {quantity(rate(best), "FLOP/s")}, '
        f"{record.device.name}, {record.commit_name}"
    )
    if not _ENTRY.fullmatch(entry):
        raise RecordError(f"{record.path}: has a name that C++ does not allow: {best.label}")
    return (best.kernel, best.precision, capability, best.m, best.n, best.k), entry
