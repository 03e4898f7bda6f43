"""Writes the generated parts of README.md and docs/: an excerpt of a record, options.

    python docs/generate.py [--check] GEMM_BENCH

GEMM_BENCH is the built program, whose options docs/options.md lists. With --check nothing is
written, and the exit status is 1 if a page is not what would be written.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "report"))

from gemm_report.record import Departure, Record, Row, read_record  # noqa: E402

RECORD = ROOT / "results" / "nvidia-h200" / "20261128T230235Z-69ba7f50b353.json.gz"
SHOWN = (
    ("Naive", "f32"),
    ("StreamK", "f32"),
    ("cuBLAS/math:default", "f32"),
    ("MmaSync/layout:nt", "bf16"),
    ("WgmmaStreamK/layout:nt", "bf16"),
    ("cuBLASLt/algo:best/layout:nt", "bf16"),
)


def time_text(seconds: float) -> str:
    """In us, ms or s, as the console has it (bench/run/console.cpp)."""
    scale, unit = (1e6, "us") if seconds < 1e-3 else (1e3, "ms") if seconds < 1 else (1, "s")
    return f"{seconds * scale:.4g} {unit}"


def console(record: Record) -> str:
    """Results as the console prints them."""
    rows = {(row.kernel_label, row.precision): row for row in record.rows if row.size == "4096"}
    width = max(len(kernel) for kernel, _ in SHOWN)
    head = f"{'Benchmark':{width}} Type Size      Time          Rate  \u00b1% % peak % at clock"
    lines = [f"{head} % library SM MHz    W", "-" * (len(head) + 22)]
    said = set[str]()
    for kernel, precision in SHOWN:
        row = rows[kernel, precision]
        cells = f"{kernel:{width}} {precision:4} {row.size} {_cells(row)}"
        lines.append(f"{cells}{'*' if row.doubts else ''}")
        for one in row.doubts:
            if one.code not in said:
                said.add(one.code)
                lines.append(f"    * in doubt: {_doubt(one)}")
    return "\n".join(["```", *lines, "```"])


def _doubt(one: Departure) -> str:
    value, limit = ("" if n is None else f" {100 * n:.2g} %" for n in (one.value, one.limit))
    return f"{one.code}{value}{limit and f' (limit{limit})'}"


def _half(interval: float) -> str:
    """Of an interval, in percent and at most four characters."""
    half = 50 * interval
    return f"{half:.{2 if half < 10 else 1 if half < 100 else 0}f}"


def _cells(row: Row) -> str:
    assert row.flop_per_second is not None and row.seconds is not None
    of_peak, at_clock, library = (
        "-" if share is None else f"{100 * share:.1f}"
        for share in (row.of_roof_nominal, row.of_roof_at_clock, row.of_library)
    )
    sm_hz = sorted(row.samples_sm_hz or [0])
    return (
        f"{time_text(row.seconds.median):>9} {row.flop_per_second * 1e-12:7.4g} TFLOP/s"
        f" {_half(row.median_interval or 0):>4} {of_peak:>6} {at_clock:>10} {library:>9}"
        f" {sm_hz[len(sm_hz) // 2] * 1e-6:6.0f}"
        f" {f'{row.power_w:.0f}' if row.power_w else '-':>4}"
    )


def options(program: Path) -> str:
    """docs/options.md, from what --help says."""
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    page = "# Options of gemm_bench\n\n<!-- Written by docs/generate.py. -->\n\n"
    page += "Google Benchmark's own options keep their meaning; `gemm_bench --help` lists them.\n"
    for group in re.findall(r"^[A-Z].*:\n(?:  .*\n)+", said.replace("|", "\\|"), re.MULTILINE):
        title, _, lines = group.partition(":\n")
        if "--gemm_" not in lines:
            continue
        page += f"\n## {title}\n\n| Option | Default | Meaning |\n| --- | --- | --- |\n"
        for line in re.sub(r"\n {9,}", " ", lines).splitlines():
            usage, _, meaning = line.strip().partition("  ")
            what, _, default = meaning.strip().removesuffix(")").partition(" (default: ")
            page += f"| `{usage}` | {default} | {what if default else meaning.strip()} |\n"
    return page


def with_region(page: str, name: str, content: str) -> str:
    """`page` with `content` between the markers of that name."""
    begin, end = f"<!-- gemm_report:begin {name} -->\n", f"<!-- gemm_report:end {name} -->"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    new, count = re.subn(pattern, lambda _: f"{begin}{content}\n{end}", page, flags=re.DOTALL)
    assert count == 1, f"the page has no region {name}"
    return new


def pages(program: Path) -> dict[Path, str]:
    """The generated pages."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = with_region(readme, "console", console(read_record(RECORD)))
    return {ROOT / "README.md": readme, ROOT / "docs" / "options.md": options(program)}


def main() -> int:
    """Writes or checks the pages."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__)
        return 0 if "--help" in arguments else 2
    stale = {
        path: text
        for path, text in pages(Path(arguments[0]).resolve()).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        print(path.relative_to(ROOT))
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
