"""Where in the code of a kernel its warps wait, and what its local memory is for.

Nsight Compute's source page (`--section SourceCounters --page source --csv`): a line with the name
of the kernel, one of columns, and one for each instruction, or for each line of a file that was
compiled with -lineinfo.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gemm_report.explain.ncu import base_name

_SAMPLES = "Warp Stall Sampling (All Samples)"
_EXECUTED = ("Instructions Executed", "# Instructions Executed", "Executed")
_LOCAL = re.compile(r"\b(?:LDL|STL)\b[^;]*?\[([^\]]*)\]")
# Of the stack: its pointer and a constant. At run-time indices another register is the address.
_STACK = re.compile(
    r"\s*(?:R1(?:\.\w+)?(?:\s*\+\s*-?0x[0-9a-f]+)?|-?0x[0-9a-f]+)\s*", re.IGNORECASE
)


@dataclass(frozen=True)
class Spot:
    """An instruction or a line: its text, its place, stall samples, and how often it ran."""

    text: str
    place: str
    samples: float
    executed: float


def spots(pages: str, kernels: Iterable[str], lines: bool = False) -> list[Spot]:
    """The instructions of these kernels, or their `lines`, in the launch with most samples."""
    wanted = {base_name(kernel) for kernel in kernels}
    found = [
        its
        for name, columns, its in _launches(pages)
        if ("Address" not in columns) == lines and base_name(name) in wanted
    ]
    return max(found, key=lambda its: sum(spot.samples for spot in its), default=[])


@lru_cache(maxsize=1)  # pages of many kernels have tens of thousands of lines
def _launches(pages: str) -> list[tuple[str, list[str], list[Spot]]]:
    """Of each launch its kernel, the names of the columns, and its instructions or lines."""
    found: list[tuple[str, list[str], list[Spot]]] = []
    file, columns, its = "", [], []
    for row in csv.reader(io.StringIO(pages)):
        if row[:1] == ["Kernel Name"] and len(row) > 1:
            file, columns, its = "", [], []
            found.append((row[1], columns, its))
        elif row[:1] in (["File Path"], ["File Name"]) and len(row) > 1:
            file = row[1]
        elif _SAMPLES in row and "Source" in row:
            columns[:] = row
        elif columns and len(row) >= len(columns):
            values = dict(zip(columns, row, strict=False))
            executed = next((values[name] for name in _EXECUTED if name in values), "")
            number = values.get("#", values.get("Line No", ""))
            place = f"{file.rpartition('/')[2]}:{number}" if file else number
            text = values["Source"].strip()
            its.append(Spot(text, place, _number(values[_SAMPLES]), _number(executed)))
    return found


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def hottest(lines: Sequence[Spot]) -> tuple[Spot, float] | None:
    """The line with most stalls, and its share of them; None without a sample."""
    total = sum(line.samples for line in lines)
    line = max(lines, key=lambda each: each.samples, default=None)
    return (line, line.samples / total) if line and total else None


def indexed_share(instructions: Sequence[Spot]) -> float | None:
    """Of the accesses to local memory those at run-time indices; None where there is none.

    Where nothing says how often each ran, one such access makes it 1.
    """
    accesses = [
        (not _STACK.fullmatch(address[1]), each.executed)
        for each in instructions
        if (address := _LOCAL.search(each.text))
    ]
    if not accesses:
        return None
    total = sum(executed for _, executed in accesses)
    if not total:
        return float(any(indexed for indexed, _ in accesses))
    return sum(executed for indexed, executed in accesses if indexed) / total
