"""Kernels that fool a timer are refused or gain nothing, and honest ones have a rate.

KINDS has each kind of cheat and its controls in cheats/; docs/verification.md has the same table.
As a program it counts how often honest kernels are refused:

    python bench/controls/cheats_test.py --runs N [--device cpu|gpu]
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "cheats"
BENCH = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")

# What must become of a control.
REFUSED = "refused"  # no rate
NO_GAIN = "no gain"  # no rate, or not above that of an honest twin
NOT_FOUND = "not found"  # anything: it patches the process that measures


# In place of a control of device code: that of another file shows the same.
ANY = "*"


class Kind(NamedTuple):
    """Of cheats. `cpp` and `host` are entries of cheats.cpp and cheats_host.cu, both for .so files;
    of the reasons one is enough."""

    kind: str
    expected: str
    cu: str = ""
    cpp: str = ""
    host: str = ""
    py: str = ""
    reasons: tuple[str, ...] = ("",)

    def entries(self, file: str) -> list[str]:
        """The controls in a source."""
        return str(getattr(self, file)).replace(ANY, "").split()


BITS = ("fewer bits", "elements", "rows")
# fmt: off
KINDS = [
    Kind("replays an earlier C, by pointer", REFUSED, "replay_by_pointer", "replay_by_pointer"),
    Kind("returns the C of another operand set", REFUSED, "previous_set", cpp="previous_set"),
    Kind("recognises old values and replays their C", NO_GAIN,
         "replay_by_value", "replay_by_content", py="replay_by_content"),
    Kind("keeps the C of known values in a file", NO_GAIN, cpp="file_cache file_cache_again"),
    Kind("returns early where C is written", NO_GAIN,
         "skip_written skip_written_half", "while_poisoned", py="while_poisoned"),
    Kind("skips operand sets whose values never changed", NO_GAIN,
         "sets_of_old_values", "sets_of_old_values"),
    Kind("computes in its first launches only", REFUSED, "call_count", cpp="call_count"),
    Kind("computes only after a pause", NO_GAIN, *3 * ["after_a_pause"]),
    Kind("computes only where the order of the operand sets changes", NO_GAIN, ANY,
         cpp="after_break", py="after_break"),
    Kind("spends the time budget, so that checks end early", NO_GAIN,
         "spends_the_budget", "spends_the_budget", py="spends_the_budget"),
    Kind("is slow on purpose half of the time", NO_GAIN, "bimodal", "bimodal"),
    Kind("leaves out some launches", NO_GAIN, "skip_launches", "skips_launches", "skip_calls"),
    Kind("leaves out some rows or tiles", NO_GAIN, "skip_tiles", "last_rows"),
    Kind("computes for all sets in one launch", NO_GAIN, "works_ahead", "works_ahead"),
    Kind("computes new values in a thread, before the launch", NO_GAIN, cpp="thread_ahead"),
    Kind("writes C after its launch, in a thread or another stream", NO_GAIN,
         cpp="late_thread", host="late_thread late_stream side_stream"),
    Kind("computes C when it is read", NO_GAIN, cpp="lazy_pages"),
    Kind("forges C for known vectors of Freivalds' check", REFUSED,
         "forge_freivalds", "forges_freivalds"),
    Kind("changes A or B", REFUSED, "change_operands", "zeroes_a_behind"),
    Kind("sets A to zero and skips the zeros", NO_GAIN, "zero_operands", "zeroes_operands"),
    Kind("rounds operands to fewer bits", REFUSED,
         "fewer_bits", "bits_16 bits_17", py="half_precision", reasons=BITS),
    Kind("computes FP32 by three products of BF16", REFUSED,
         "bf16_three_times", "bf16_three_times", reasons=BITS),
    Kind("leaves out products", REFUSED, "fewer_products", "every_second_product"),
    Kind("returns zero where C is small and k is long", REFUSED, ANY, cpp="zero_c"),
    Kind("changes the rounding mode", NO_GAIN, cpp="rounding_mode"),
    Kind("leaves the baseline one thread", NO_GAIN, cpp="one_thread"),
    Kind("keeps CPUs or SMs busy while the baseline runs", NO_GAIN,
         cpp="spins_meanwhile", host="spins_meanwhile"),
    Kind("keeps operands in the persisting part of the L2", NO_GAIN, host="persisting_window"),
    Kind("describes a launch that exceeds its arguments", REFUSED,
         "many_arguments far_offset", reasons=("argument", "offset")),
    Kind("reads the token of the answer at standard input", NO_GAIN, py="reads_token"),
    Kind("writes an answer of its own", REFUSED,
         cpp="writes_answer", host="forge", reasons=("descriptor",)),
    Kind("raises an exception that has no text", REFUSED,
         py="no_text", reasons=("its text cannot be made",)),
    Kind("patches the process that measures", NOT_FOUND,
         cpp="patches_clock", py="adds_one_sample"),
]
# fmt: on
SOURCES = {"cpp": "cheats.cpp", "cu": "cheats.cu", "host": "cheats_host.cu", "py": "cheats.py"}
HONEST = {
    "cu": ("honest", "read_c", "keep_a_plan", "skip_zeros"),
    "cpp": ("honest", "keeps_a_plan", "reads_c", "skips_zeros", "slow_at_first", "joined_thread"),
    "host": ("honest", "joined_stream", "scratch"),
    "py": ("honest",),
}
HOSTILE_LIBRARIES = {
    "crash": "Segmentation fault",
    "leave": "it called exit(0)",
    "hang": "did not end within",
    "reset": "",  # whatever CUDA says
    "scribble": "wrote to the descriptor of the result",
    "split": "or forked",
}
# Names of files that do something when they are imported, and their entries.
IMPORTED = {"reads_token": "honest", "adds_one_sample": "while_poisoned"}


def table() -> str:
    """Of docs/verification.md."""
    lines = ["| a kernel | `.cu` | `.so` | `.py` |", "| --- | --- | --- | --- |"]
    for kind in KINDS:
        found = "**not found**" if kind.expected == NOT_FOUND else "found"
        so = list(dict.fromkeys(kind.entries("cpp") + kind.entries("host")))
        cells = []
        for entries, applies in ((kind.entries("cu"), kind.cu), (so, so), (kind.entries("py"), so)):
            names = ": " + ", ".join(f"`{entry}`" for entry in entries) if entries else ""
            cells.append(found + names if entries or applies else "-")
        lines.append(f"| {kind.kind} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


class Row(NamedTuple):
    """Of a result: its outcome, its rate or its ratio to the baseline, and why it has none."""

    outcome: str  # "failed", "suspect", "not checked", "skipped", "no rate" or "rate"
    rate: float
    reason: str


def row_of(gemm: dict) -> Row:
    reason = gemm["failed"] or gemm["skipped"] or ""
    rate = (gemm.get("versus") or {}).get("ratio") or gemm.get("flop_per_second") or 0.0
    if "not checked" in reason:
        return Row("not checked", 0, reason)
    if reason:
        kind = "suspect" if gemm["suspect"] else "failed" if gemm["failed"] else "skipped"
        return Row(kind, 0, reason)
    return Row("rate" if rate else "no rate", rate, "")


# What --gemm_verdict says of a row with such an outcome.
STATUSES = {
    "failed": {"wrong", "cheats", "impossible", "compile-error", "crashed", "timeout"},
    "suspect": {"cheats"},
    "not checked": {"timeout"},
    "skipped": {"unsupported", "timeout"},
    "no rate": {"cheats"},
    "rate": {"passed"},
}


class Control(NamedTuple):
    """A cheat, or an honest twin, which has no kind."""

    file: str  # "cu", "cpp", "host" or "py"
    entry: str
    kernel: str  # as --gemm_kernel names it
    kind: Kind | None

    @property
    def name(self) -> str:
        """In the record."""
        return re.sub(r"\.(so|cu|py)\b:?", ".", Path(self.kernel).name).rstrip(".")

    def is_twin_of(self, cheat: "Control") -> bool:
        """Whether it is honest and has as many threads."""
        threads = self.entry != "joined_thread" or cheat.entry == "thread_ahead"
        return self.kind is None and self.file == cheat.file and threads


def compiled(folder: Path, compiler: list[str], source: str, name: str) -> str:
    made = str(folder / f"{name}.so")
    include = ["-I", str(ROOT / "kernels" / "user")]
    command = [*compiler, "-std=c++20", "-shared", *include, str(FOLDER / source), "-o", made]
    subprocess.run(command, check=True)
    return made


@cache
def host_library(folder: Path, entry: str) -> str:
    assert NVCC
    compiler = [NVCC, "-O2", "-w", "-arch=native", "-Xcompiler", "-fPIC", f"-DCHEAT={entry}"]
    return compiled(folder, compiler, "cheats_host.cu", f"cheat_{entry}")


@cache
def controls(folder: Path, device: str) -> tuple[Control, ...]:
    """All for a device; their files are made in the folder."""
    if device == "cpu":
        compiler = [os.environ.get("CXX", "c++"), "-O3", "-march=native", "-fPIC", "-pthread"]
        compiled(folder, compiler, "cheats.cpp", "cheats")
        for name in ("python", *IMPORTED):
            shutil.copy(FOLDER / "cheats.py", folder / f"{name}.py")
    else:
        shutil.copy(FOLDER / "cheats.cu", folder)

    def kernel(file: str, entry: str) -> str:
        if file == "host":
            return host_library(folder, entry)
        if entry in IMPORTED:
            return f"{folder}/{entry}.py:{IMPORTED[entry]}"
        name = {"cpp": "cheats.so", "cu": "cheats.cu", "py": "python.py"}[file]
        return f"{folder}/{name}:{entry}"

    can = {"cpp": True, "cu": True, "py": find_spec("numpy") is not None, "host": NVCC is not None}
    found: list[tuple[str, str, Kind | None]] = []
    for file in filter(can.__getitem__, ("cpp", "py") if device == "cpu" else ("cu", "host")):
        found += [(file, entry, None) for entry in HONEST[file]]
        found += [(file, entry, kind) for kind in KINDS for entry in kind.entries(file)]
    with ThreadPoolExecutor() as pool:  # nvcc takes seconds
        kernels = pool.map(lambda one: kernel(*one[:2]), found)
        return tuple(
            Control(*one[:2], made, one[2]) for one, made in zip(found, kernels, strict=True)
        )


def measured(folder: Path, device: str, kernels: list[str], *options: str) -> dict[str, list[Row]]:
    """The rows of each kernel, by its name in the record."""
    out = folder / "record.json"
    out.unlink(missing_ok=True)
    command = [
        *(BENCH, f"--gemm_device={'0' if device == 'gpu' else 'cpu'}"),
        *(["--gemm_kernel=" + ",".join(kernels)] if kernels else []),
        *(f"--benchmark_out={out}", "--gemm_peaks=nominal", "--gemm_library=omit"),
        *("--gemm_row_budget=3", "--gemm_kernel_limit=15", "--gemm_verdict", *options),
    ]
    environment = os.environ | {"GEMM_BENCH_PYTHON": sys.executable}
    if kernels and not any("versus" in option for option in options):
        environment["OPENBLAS_NUM_THREADS"] = "1"  # NumPy's, as the other cheats have
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    lines = map(json.loads, done.stdout.splitlines())
    verdicts = {(one["kernel"], one["name"]): one for one in lines}
    rows: dict[str, list[Row]] = {}
    for row in json.loads(out.read_text(encoding="utf-8"))["benchmarks"]:
        rows.setdefault(row["gemm"]["kernel"], []).append(row_of(row["gemm"]))
        found = rows[row["gemm"]["kernel"]][-1]
        print(row["name"], *found, file=sys.stderr)
        verdict = verdicts[row["gemm"]["kernel"], row["name"].removesuffix("/manual_time")]
        assert verdict["status"] in STATUSES[found.outcome], (found, verdict)
    return rows


def fault_of(kind: Kind, rows: list[Row], twins: list[list[Row]], most_gain: float) -> str:
    """Why a cheat must not have these rows, of the shapes that the twins have, or ""."""
    for row, *honest in zip(rows, *twins, strict=True):
        fastest = max(twin.rate for twin in honest)
        refused = row.outcome in ("failed", "suspect", "not checked")
        if kind.expected == NOT_FOUND:
            continue
        if kind.expected == REFUSED and not refused:
            return f"no refusal: {row}"
        if refused and not any(part in row.reason for part in ("not checked", *kind.reasons)):
            return f"another reason: {row.reason}"
        if row.rate > most_gain * fastest:
            return f"{row.rate / fastest:.3g} times as fast as the fastest twin"
    return ""


SHORT = {
    "cpu": ("--gemm_warmup=0.05", "--gemm_sampling=0.1"),
    "gpu": ("--gemm_warmup=0.1", "--gemm_sampling=0.2"),
}


class Run(NamedTuple):
    """Of some controls in one call of gemm_bench. Those of `only` are in no run without it."""

    options: str
    only: tuple[str, ...] = ()
    most_gain: float = 1.03


Rows = dict[str, list[Row]]


def rows_of(folder: Path, device: str, which: list[Control], run: Run) -> Rows:
    """Of controls, by their names. Honest kernels have a rate."""
    options = (*SHORT[device], *run.options.split())
    rows = measured(folder, device, [one.kernel for one in which], *options)
    assert rows.keys() == {one.name for one in which}
    for one in which:
        if one.kind is None:
            assert all(row.outcome == "rate" for row in rows[one.name]), (one.name, rows[one.name])
    return rows


def faults(rows: Rows, which: list[Control], most_gain: float) -> dict[Control, str]:
    """Of cheats."""
    told = {}
    for one in which:
        twins = [rows[other.name] for other in which if other.is_twin_of(one)]
        if one.kind and (fault := fault_of(one.kind, rows[one.name], twins, most_gain)):
            told[one] = fault
    return told


def faults_of_all(runs: list[Rows], which: list[Control], most_gain: float) -> dict[Control, str]:
    """Of cheats that gain in each run, by more than an honest kernel is faster than itself."""
    twins = [zip(*(rows[one.name] for rows in runs), strict=True) for one in which if not one.kind]
    rates = [[row.rate for row in equal] for shapes in twins for equal in shapes]
    scatter = max(max(equal) / min(equal) for equal in rates)
    each = [faults(rows, which, most_gain * scatter) for rows in runs]
    return {one: fault for one, fault in each[0].items() if all(one in told for told in each)}


def check(folder: Path, device: str, which: list[Control], run: Run) -> None:
    """Where a cheat is faster it is measured twice more: the host may have had other work."""
    rows = rows_of(folder, device, which, run)
    told = faults(rows, which, run.most_gain)
    again = [one for one in told if one.kind and one.kind.expected == NO_GAIN]
    if again:
        less = [one for one in which if one.kind is None] + again
        runs = [rows, *(rows_of(folder, device, less, run) for _ in range(2))]
        told = {one: fault for one, fault in told.items() if one not in again}
        told |= faults_of_all(runs, less, run.most_gain)
    assert not told, {one.name: fault for one, fault in told.items()}


@pytest.mark.parametrize(
    ("honest", "cheat", "gains"),
    [
        ((1.0, 1.01, 1.0), (1.3, 1.3, 1.3), True),
        ((1.0, 1.01, 1.0), (1.3, 1.02, 1.3), False),
        ((1.0, 1.4, 1.0), (1.3, 1.8, 1.3), False),
        ((1.0, 1.4, 1.0), (2.0, 2.8, 2.0), True),
    ],
)
def test_a_gain_is_one_beyond_what_the_host_scatters(
    honest: tuple[float, ...], cheat: tuple[float, ...], gains: bool
) -> None:
    kind = next(kind for kind in KINDS if kind.expected == NO_GAIN)
    which = [Control("cpp", "honest", "k.so:honest", None), Control("cpp", "c", "k.so:c", kind)]
    runs = [
        {one.name: [Row("rate", rate, "")] for one, rate in zip(which, rates, strict=True)}
        for rates in zip(honest, cheat, strict=True)
    ]
    assert bool(faults_of_all(runs, which, 1.03)) == gains


def has_gpu() -> bool:
    try:
        name = subprocess.run([BENCH, "--gemm_device=0", "--gemm_name_record"], capture_output=True)
    except OSError:
        return False
    return name.returncode == 0


def list_kernels() -> str:
    command = [BENCH, "--gemm_device=cpu", "--gemm_list_kernels"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no GPU")
RUNS = {
    "cpu": {
        "all": Run("--gemm_shapes=256"),
        "long": Run("--gemm_shapes=1x1x4194304", ("zero_c", "every_second_product")),
        "bits": Run(
            "--gemm_shapes=256,128x128x4096 --gemm_row_budget=20",
            ("bits_16", "bits_17", "bf16_three_times"),
        ),
        "versus": Run(
            "--gemm_shapes=256 --gemm_versus=OpenBLAS --gemm_sampling=0.5",
            ("one_thread", "spins_meanwhile"),
            most_gain=1.5,  # all CPUs are never free
        ),
    },
    "gpu": {
        "all": Run("--gemm_shapes=1024,4096"),
        "bits": Run("--gemm_shapes=1024,4096", ("bf16_three_times",)),
        "bf16": Run("--gemm_shapes=1024 --gemm_precisions=bf16"),
        "hot": Run("--gemm_shapes=1024 --gemm_cache=hot"),
        "few rows": Run("--gemm_shapes=1x4096x4096", ("persisting_window",)),
        "versus": Run("--gemm_shapes=4096 --gemm_versus=cuBLAS/math:default", ("spins_meanwhile",)),
    },
}


def selected(found: tuple[Control, ...], device: str, name: str) -> list[Control]:
    """The controls of a run, and their twins."""
    only = RUNS[device][name].only
    others = {entry for run in RUNS[device].values() for entry in run.only}
    files = {"cu"} if name == "bf16" else {*SOURCES}
    cheats = [
        one
        for one in found
        if one.kind and one.file in files
        if (one.entry in only if only else one.entry not in others)
    ]
    twins = [one for one in found if any(one.is_twin_of(cheat) for cheat in cheats)]
    return (twins[:1] if only else twins) + cheats


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("cheats")
    for file in Path("/dev/shm").glob("gemm_cheats_*"):
        file.unlink()


@pytest.mark.skipif(not BENCH.exists(), reason=f"{BENCH} is not built")
@pytest.mark.parametrize(
    ("device", "name"),
    [
        pytest.param(device, name, marks=[needs_gpu] if device == "gpu" else [])
        for device, runs in RUNS.items()
        for name in runs
    ],
)
def test_cheats_gain_nothing(folder: Path, device: str, name: str) -> None:
    if "OpenBLAS" in RUNS[device][name].options and "\tOpenBLAS\t" not in list_kernels():
        pytest.skip("built without OpenBLAS")
    check(folder, device, selected(controls(folder, device), device, name), RUNS[device][name])


@needs_gpu
@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_libraries_that_break_while_they_are_timed_harm_no_other_row(folder: Path) -> None:
    names = (*HOSTILE_LIBRARIES, *HONEST["host"])
    with ThreadPoolExecutor() as pool:
        kernels = list(pool.map(lambda name: host_library(folder, name), names))
    options = ("--gemm_warmup=0.1", "--gemm_sampling=0.5", "--gemm_shapes=1024")
    found = measured(folder, "gpu", kernels, *options)
    for name, expected in HOSTILE_LIBRARIES.items():
        (row,) = found[f"cheat_{name}"]
        assert row.reason and expected in row.reason and row.reason.isprintable(), (name, row)
    for name in HONEST["host"]:
        assert [row.outcome for row in found[f"cheat_{name}"]] == ["rate"], name


def test_the_document_has_the_table() -> None:
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    assert text.split("<!-- cheats -->\n")[1].split("<!-- end -->")[0] == table()


def test_the_entries_of_the_sources_are_those_of_the_kinds() -> None:
    patterns = {
        "cpp": r"^ENTRY\((\w+)\)",
        "cu": r"^(?:ENTRY\(|auto )(\w+)(?:\) \{|\(Call p\))",
        "host": r"^void (\w+)\(const gemm::Call& ?p?, cudaStream_t",
        "py": r"^def (\w+)\(problem, a, b, c\)|^    case \"(\w+)\"",
    }
    for file, name in SOURCES.items():
        listed = {*HONEST[file], *(entry for kind in KINDS for entry in kind.entries(file))}
        listed |= {*HOSTILE_LIBRARIES} if file == "host" else set()
        text = (FOLDER / name).read_text(encoding="utf-8")
        entries = {"".join(entry) for entry in re.findall(patterns[file], text, re.MULTILINE)}
        assert entries - {"tiled", "later"} <= listed, file
        through_so = {*HONEST["cpp"], *(entry for kind in KINDS for entry in kind.entries("cpp"))}
        assert listed - entries <= (through_so if file == "py" else set()), file


def campaign(runs: int, device: str) -> str:
    """How many results of honest kernels were refused: of the twins, and of the program's own."""
    results, accused, unchecked = 0, 0, 0
    with TemporaryDirectory() as made:
        twins = [one.kernel for one in controls(Path(made), device) if one.kind is None]
        shapes = "--gemm_shapes=256" if device == "cpu" else "--gemm_shapes=1024,4096"
        own = ("--benchmark_filter=.", "--gemm_library=measure")
        for _ in range(runs):
            for kernels, options in ((twins, ()), ([], own)):
                for rows in measured(Path(made), device, kernels, shapes, *options).values():
                    results += sum(row.outcome != "skipped" for row in rows)
                    accused += sum(row.outcome in ("failed", "suspect") for row in rows)
                    unchecked += sum(row.outcome == "not checked" for row in rows)
    return f"{accused} of {results} honest results accused, {unchecked} not checked"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    asked = parser.parse_args()
    print(campaign(asked.runs, asked.device))
