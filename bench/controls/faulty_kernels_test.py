"""tools/explain names what is wrong with each of the faulty kernels: on a GPU with ncu, and
everywhere from what ncu counted of them on an H200.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "report"))

from gemm_report.document import InputError  # noqa: E402
from gemm_report.explain import collect, metrics, ncu  # noqa: E402
from gemm_report.explain.diagnosis import STEPS, Finding, diagnose  # noqa: E402
from gemm_report.explain.observations import observe  # noqa: E402
from gemm_report.record import Record, read_record  # noqa: E402

FAULTY = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "bench" / "faulty"
KEPT = ROOT / "bench" / "controls" / "faulty_kernels"

# By kernel: what is to be found first, and at which shape, of which the blocks fill the GPU but for
# the tail wave's.
FAULTS = {
    "FaultyUncoalesced": ("uncoalesced", "1024"),
    "FaultyBankConflicts": ("bank conflicts", "1024"),
    "FaultySpilling": ("spills", "4096"),
    "FaultyLowOccupancy": ("low occupancy", "1024"),
    "FaultyTailWave": ("tail wave", "1024"),
    "FaultyHostBound": ("host-bound", "512x512x80"),
    "FaultyPowerCapped": ("power-capped", "2048"),
}
# What is to be found first or second.
OTHERS = {
    "FaultyDoubleSum": "FP64 arithmetic",
    "FaultyDoubleLiteral": "FP64 arithmetic",
    "FaultyConversions": "type conversions",
    "FaultyDivision": "integer work",
    "FaultyIndexFunction": "integer work",
    "FaultyDivergent": "divergence",
    "FaultyFewLanes": "divergence",
    "FaultySmallBlocks": "divergence",
    "FaultyBarriers": "barriers",
    "FaultyOneLoader": "barriers",
    "FaultyCalls": "branches",
    "FaultyIndexedSums": "local array",
    "FaultyIndexedOperands": "local array",
    "FaultyLaunchBounds": "spills",
    "FaultyAtomicProducts": "atomics",
    "FaultySharedAtomics": "atomics",
    "FaultyTextbook": "uncoalesced",
    "FaultySample": "bank conflicts",
    "FaultyTemplate": "FP64 arithmetic",
    "FaultyReduction": "barriers",
}
SHAPES = {kernel: shape for kernel, (_, shape) in FAULTS.items()}
SHAPES |= dict.fromkeys(OTHERS, "1024x1024x256") | {"FaultyLaunchBounds": "4096x4096x256"}
PLANTED = {kernel: fault for kernel, (fault, _) in FAULTS.items()} | OTHERS
# Nothing but counters tells of them.
COUNTED = {"FaultyUncoalesced", "FaultyBankConflicts"}
# Of those that were found before: so many of all are to be found first or second.
FOUND = 0.9


def cube(shape: str) -> str:
    return shape if "x" in shape else f"{shape}x{shape}x{shape}"


def test_every_faulty_kernel_has_its_fault() -> None:
    sources = [Path(__file__).with_suffix(".cu"), *KEPT.glob("*.cu")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    assert set(re.findall(r'faulty\(\s*"(\w+)"', text)) == PLANTED.keys()
    assert set(PLANTED.values()) <= STEPS.keys()
    assert len(PLANTED) >= 20


class Explained:
    """One record of all faulty kernels, with what ncu counted of them, if anything."""

    def __init__(self, record: Record, launches: list[ncu.Launch]) -> None:
        self.record = record
        self.launches = launches

    def findings(self, kernel: str, counted: bool) -> tuple[Finding, ...]:
        row = next(row for row in self.record.rows if row.kernel == kernel)
        assert row.status == "timed", row.failed or row.skipped
        return diagnose(observe(self.record, row, self.launches if counted else [])).findings

    def table(self) -> dict[str, tuple[int | None, list[str]]]:
        """Of each kernel the place of its fault, from 1 on, and what was named."""
        found: dict[str, tuple[int | None, list[str]]] = {}
        rows = {row.kernel: row for row in self.record.rows}
        for kernel, fault in PLANTED.items():
            if rows[kernel].status != "timed":
                found[kernel] = None, [rows[kernel].failed or rows[kernel].skipped or "untimed"]
                continue
            named = [f"{f.kind} {f.share:.2f}" for f in self.findings(kernel, True)]
            places = [i for i, each in enumerate(named, 1) if each.rpartition(" ")[0] == fault]
            found[kernel] = (min(places, default=None), named)
        return found


@pytest.fixture(scope="session")
def on_the_gpu(tmp_path_factory: pytest.TempPathFactory) -> Explained:
    """In two processes: one times all kernels, one counts them.

    GEMM_BENCH_KEEP=DIR keeps there what was counted, packed.
    """
    pytest.importorskip("msgspec")
    found = shutil.which("nvidia-smi")
    if not found or subprocess.run([found, "-L"], capture_output=True).returncode:
        pytest.skip("there is no GPU")
    program = FAULTY / "gemm_bench"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    if shutil.which("ncu") is None:
        pytest.skip("there is no ncu")
    folder = tmp_path_factory.mktemp("faulty")
    path = folder / "record.json"
    timed = [*command(program, SHAPES), "--gemm_warmup=0.5", "--gemm_sampling=0.2"]
    done = subprocess.run([*timed, f"--benchmark_out={path}"], capture_output=True, text=True)
    assert path.exists(), done.stderr
    record = read_record(path)
    names, dropped = metrics.select(ncu.available("ncu"))
    print("not counted here:", dropped)
    # A launch of each grid: at shapes of more than 1024 those on corners of the problem come first.
    counting = ["--filter-mode", "per-launch-config", *command(program, SHAPES), *collect.UNTIMED]
    report = folder / f"counters{ncu.REPORT}"
    try:
        ncu.count("ncu", report, names, functions_of(record), 1, counting)
        launches = ncu.read_report(report, metrics.names())
    except InputError as error:
        if "ERR_NVGPUCTRPERM" not in str(error):
            raise
        pytest.skip("ncu may not read the counters")
    if keep := os.environ.get("GEMM_BENCH_KEEP"):
        counted = json.dumps([[asdict(launch) for launch in launches]])
        kept = {"json": path.read_text(encoding="utf-8"), "counters.json": counted}
        for ending, text in kept.items():
            (Path(keep) / f"all.{ending}.gz").write_bytes(gzip.compress(text.encode()))
    return Explained(record, launches)


def functions_of(record: Record) -> list[str]:
    """The GPU kernels that the faulty kernels launch."""
    return [name for row in record.rows for name in ncu.kernels_of(row.device_kernels)]


def command(program: Path, shapes: dict[str, str]) -> list[str]:
    """gemm_bench with each of these kernels at its shape."""
    cases = "|".join(f"{kernel}/f32/{cube(shape)}" for kernel, shape in shapes.items())
    return [
        *(str(program), f"--benchmark_filter=^({cases})/", "--gemm_precisions=f32"),
        f"--gemm_shapes={','.join(dict.fromkeys(shapes.values()))}",
    ]


def judge(explained: Explained) -> None:
    table = explained.table()
    for kernel, (place, named) in table.items():
        print(f"{kernel:24} {PLANTED[kernel]:18} {place or '-'}  {', '.join(named[:4])}")
    within = sum(place is not None and place <= 2 for place, _ in table.values())
    faults = [(kernel, f.kind) for kernel, (place, _) in table.items() if place
              for f in explained.findings(kernel, True)[:2] if f.is_fault]  # fmt: skip
    planted = sum(PLANTED[kernel] == kind for kernel, kind in faults)
    print(f"named first or second: {within} of {len(table)}")
    print(f"of the faults named first or second {planted} of {len(faults)} were planted")
    assert within >= FOUND * len(table)
    assert [kernel for kernel in FAULTS if table[kernel][0] != 1] == []


def test_the_faults_are_named_on_the_gpu(on_the_gpu: Explained) -> None:
    judge(on_the_gpu)


@pytest.mark.parametrize("kernel", FAULTS)
def test_the_fault_is_named_on_the_gpu_without_counters(on_the_gpu: Explained, kernel: str) -> None:
    findings = on_the_gpu.findings(kernel, False)
    if kernel in COUNTED:
        assert findings[-1].kind == "unknown"
        assert all(finding.share < 0.1 for finding in findings)
    else:
        assert findings[0].kind == FAULTS[kernel][0]


if (KEPT / "all.json.gz").exists():  # a test that is skipped would hide that those on the GPU ran

    def test_the_faults_are_named_of_what_was_counted_together() -> None:
        (launches,) = ncu.read_kept(KEPT / "all.counters.json.gz", ())
        judge(Explained(read_record(KEPT / "all.json.gz"), launches))


@pytest.mark.parametrize("kernel", FAULTS)
def test_the_fault_is_named_first_of_what_was_counted(kernel: str) -> None:
    fault, size = FAULTS[kernel]
    record, counters = (KEPT / f"{kernel}.{ending}.gz" for ending in ("json", "counters.json"))
    stored = ["--record", record, "--counters", counters, "--json"]
    done = subprocess.run(
        [ROOT / "tools" / "explain", kernel, str(size), *stored],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["explained"]
    assert told["findings"][0]["kind"] == fault
    assert not told["findings"][0]["modelled"]
    assert len(told["steps"]) == 2
