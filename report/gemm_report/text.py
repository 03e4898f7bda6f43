"""Names, units, numbers and tables as people read them; files that are there as a whole."""

import contextlib
import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gemm_report.document import InputError
from gemm_report.terminal import printable

_PRECISIONS = {
    "f32": "FP32",
    "tf32": "TF32",
    "tf32x3": "FP32 as 3×TF32",
    "bf16": "BF16",
    "f16": "FP16",
    "e4m3": "FP8 E4M3",
    "e4m3fast": "FP8 E4M3 fast",
    "e4m3block": "FP8 E4M3, block-scaled",
    "e5m2": "FP8 E5M2",
    "e5m2fast": "FP8 E5M2 fast",
    "f64": "FP64",
    "f64emulated": "FP64 on INT8 tensor cores",
    "s32": "INT32",
    "s8": "INT8",
}
_PROBES = {"DRAM_read": "DRAM", "L2_read": "L2", "Shared_read": "Shared memory"}


def precision_name(precision: str) -> str:
    """For titles: FP8 E4M3; the code itself where it is not known."""
    return _PRECISIONS.get(precision, precision)


def operations(precision: str | None) -> str:
    """FLOP/s, and OP/s of integers."""
    return "OP/s" if precision in ("s32", "s8") else "FLOP/s"


def roof_name(name: str) -> str:
    """Of a ceiling, for labels: DRAM, FP32 FMA, BF16 wgmma."""
    return _PROBES.get(name, name.replace("_", " "))


# T is the last: tensor cores, too, are counted in TFLOP/s, next to what is 30 times slower.
_PREFIXES = {"p": -12, "n": -9, "µ": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12}


def significant(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".removesuffix(".")


def prefix_for(values: Iterable[float]) -> str:
    """The prefix under which the largest of `values` lies between 1 and 1000, if there is one."""
    # Rounding first: 999.9e9 is written 1.00 T, not 1000 G.
    largest = max((float(f"{value:.3g}") for value in values), default=1.0)
    fitting = [prefix for prefix, power in _PREFIXES.items() if largest >= 10.0**power]
    return fitting[-1] if fitting else next(iter(_PREFIXES))


def scaled(value: float, prefix: str) -> float:
    """`value` counted in units of `prefix`."""
    return value / 10.0 ** _PREFIXES[prefix]


def quantity(value: float, unit: str) -> str:
    """For example 66.9 TFLOP/s."""
    prefix = prefix_for([value]) if value else ""
    return f"{significant(scaled(value, prefix))} {prefix}{unit}"


def megahertz(value: float) -> str:
    """For example 1980 MHz, since clocks move in steps of 15 MHz."""
    return f"{value / 1e6:.0f} MHz"


def times(factor: float | None) -> str:
    """For example ×1.31, and nothing where there is nothing to compare with."""
    if factor is None:
        return ""
    return f"×{factor:.2f}" if 0.095 <= factor < 9.995 else f"×{significant(factor)}"


def percent(fraction: float | None) -> str:
    """For example 73.1 %, and a dash where nothing is known."""
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def change(ratio: float) -> str:
    """For example +3.10 %; of what is far off, the factor."""
    if not 0.1 < ratio < 10:
        return f"×{ratio:.3g}"
    # Not -0.00.
    return f"{round(100 * (ratio - 1), 2) + 0.0:+.2f} %"


_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """With a sign for what a page or a figure cannot hold, or what would turn its text around."""
    return _INVISIBLE.sub("\ufffd", text)


def columns(lines: Sequence[Sequence[str]], left: int) -> str:
    """Cells under each other: the first `left` columns flush left, the others flush right."""
    lines = [[printable(cell) for cell in line] for line in lines]
    padded = []
    for i, column in enumerate(zip(*lines, strict=True)):
        width = max(map(len, column))
        padded.append([c.ljust(width) if i < left else c.rjust(width) for c in column])
    return "\n".join(map("  ".join, zip(*padded, strict=True)))


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], left: int | None = None
) -> str:
    """A table whose cells may hold any text; all columns, or the first `left`, are flush left."""
    lines = [head, ["---" if left is None or i < left else "---:" for i in range(len(head))], *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Numbers with all their digits; an empty cell is not known."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow(str(each).lower() if isinstance(each, bool) else each for each in row)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write what becomes `path` in the end. Its folder is made; InputError for no file."""
    # What a link points to is replaced, not the link: it may be /dev/stdout.
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is no file to write to: give the name of one")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        yield part
        part.replace(path)
    except OSError as error:  # a full disk does not say which file
        error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)
