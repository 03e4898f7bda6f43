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
from gemm_report.explain.observations import indexed_share, observe  # noqa: E402
from gemm_report.record import Record, read_record  # noqa: E402

FAULTY = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "bench" / "faulty"
SOURCE = Path(__file__).with_suffix(".cu")
# One record of all, and what ncu counted, by its name.
KEPT = Path(__file__).parent / "faulty_kernels"
RECORD, COUNTERS = KEPT / "all.json.gz", KEPT / "all.counters.json.gz"

# By kernel: what is to be found, and at which shape, of which the blocks fill the GPU but for the
# tail wave's. Of the first seven it is to be found first, of the others first or second.
PLANTED = {
    "FaultyUncoalesced": ("uncoalesced", "1024"),
    "FaultyBankConflicts": ("bank conflicts", "1024"),
    "FaultySpilling": ("spills", "4096"),
    "FaultyLowOccupancy": ("low occupancy", "1024"),
    "FaultyTailWave": ("tail wave", "1024"),
    "FaultyHostBound": ("host-bound", "512x512x80"),
    "FaultyPowerCapped": ("power-capped", "2048"),
    "FaultyDoubleSum": ("FP64 arithmetic", "1024x1024x256"),
    "FaultyDoubleLiteral": ("FP64 arithmetic", "1024x1024x256"),
    "FaultyConversions": ("type conversions", "1024x1024x256"),
    "FaultyDivision": ("integer work", "1024x1024x256"),
    "FaultyIndexFunction": ("integer work", "1024x1024x256"),
    "FaultyDivergent": ("divergence", "1024x1024x256"),
    "FaultyFewLanes": ("divergence", "1024x1024x256"),
    "FaultySmallBlocks": ("divergence", "1024x1024x256"),
    "FaultyBarriers": ("barriers", "1024x1024x256"),
    "FaultyOneLoader": ("barriers", "1024x1024x256"),
    "FaultyCalls": ("branches", "1024x1024x256"),
    "FaultyIndexedSums": ("local array", "1024x1024x256"),
    "FaultyIndexedOperands": ("local array", "1024x1024x256"),
    "FaultyLaunchBounds": ("spills", "4096x4096x256"),
    "FaultyAtomicProducts": ("atomics", "1024x1024x256"),
    "FaultySharedAtomics": ("atomics", "1024x1024x256"),
    "FaultyTextbook": ("uncoalesced", "1024x1024x256"),
    "FaultySample": ("bank conflicts", "1024x1024x256"),
    "FaultyTemplate": ("FP64 arithmetic", "1024x1024x256"),
    "FaultyReduction": ("barriers", "1024x1024x256"),
}
FIRST = [*PLANTED][:7]
# Nothing but counters tells of them.
COUNTED = {"FaultyUncoalesced", "FaultyBankConflicts"}
# So many of all are to be found first or second.
FOUND = 0.9


def test_every_faulty_kernel_has_its_fault() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    assert re.findall(r'\{"(Faulty\w+)",', text) == [*PLANTED]
    assert {fault for fault, _ in PLANTED.values()} <= STEPS.keys()


class Explained:
    """One record of all faulty kernels, with what ncu counted of them, if anything."""

    def __init__(self, record: Record, launches: list[ncu.Launch]) -> None:
        self.rows = {row.kernel: row for row in record.rows}
        self.record = record
        self.launches = launches

    def findings(self, kernel: str, counted: bool) -> tuple[Finding, ...]:
        """None of a row without a time."""
        if self.rows[kernel].status != "timed":
            return ()
        launches = self.launches if counted else []
        return diagnose(observe(self.record, self.rows[kernel], launches)).findings


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
    cases = "|".join(
        f"{kernel}/f32/{shape if 'x' in shape else 'x'.join(3 * [shape])}"
        for kernel, (_, shape) in PLANTED.items()
    )
    shapes = ",".join(dict.fromkeys(shape for _, shape in PLANTED.values()))
    command = [str(program), f"--benchmark_filter=^({cases})/", "--gemm_precisions=f32"]
    command.append(f"--gemm_shapes={shapes}")
    timed = [*command, "--gemm_warmup=0.5", "--gemm_sampling=0.2", f"--benchmark_out={path}"]
    done = subprocess.run(timed, capture_output=True, text=True)
    assert path.exists(), done.stderr
    record = read_record(path)
    functions = [name for row in record.rows for name in ncu.kernels_of(row.device_kernels)]
    names, dropped = metrics.select(ncu.available("ncu"))
    print("not counted here:", dropped)
    # A launch of each grid: at shapes of more than 1024 those on corners of the problem come first.
    counting = ["--filter-mode", "per-launch-config", *command, *collect.UNTIMED]
    report = folder / f"counters{ncu.REPORT}"
    try:
        ncu.count("ncu", report, names, functions, 1, counting)
        launches = ncu.read_report(report, metrics.names())
    except InputError as error:
        if "ERR_NVGPUCTRPERM" not in str(error):
            raise
        pytest.skip("ncu may not read the counters")
    if keep := os.environ.get("GEMM_BENCH_KEEP"):
        counted = json.dumps([[asdict(launch) for launch in launches]])
        for kept, text in ((RECORD, path.read_text(encoding="utf-8")), (COUNTERS, counted)):
            (Path(keep) / kept.name).write_bytes(gzip.compress(text.encode()))
    return Explained(record, launches)


def judge(explained: Explained) -> None:
    places: dict[str, int | None] = {}
    faults = []
    for kernel, (fault, _) in PLANTED.items():
        findings = explained.findings(kernel, True)
        named = [one.kind for one in findings]
        places[kernel] = place = named.index(fault) + 1 if fault in named else None
        if place:
            faults += [one.kind == fault for one in findings[:2] if one.is_fault]
        shares = ", ".join(f"{one.kind} {one.share:.2f}" for one in findings[:4])
        row = explained.rows[kernel]
        print(f"{kernel:24} {fault:18} {place or '-'}  {shares or row.failed or row.skipped}")
    within = sum(place is not None and place <= 2 for place in places.values())
    print(f"named first or second: {within} of {len(places)}")
    print(f"of the faults named first or second {sum(faults)} of {len(faults)} were planted")
    assert within >= FOUND * len(places)
    assert [kernel for kernel in FIRST if places[kernel] != 1] == []


def test_the_faults_are_named_on_the_gpu(on_the_gpu: Explained) -> None:
    judge(on_the_gpu)


def test_the_faults_are_named_of_what_was_counted() -> None:
    (launches,) = ncu.read_kept(COUNTERS, ())
    judge(Explained(read_record(RECORD), launches))


@pytest.mark.parametrize("kernel", FIRST)
def test_the_fault_is_named_on_the_gpu_without_counters(on_the_gpu: Explained, kernel: str) -> None:
    findings = on_the_gpu.findings(kernel, False)
    if kernel in COUNTED:
        assert findings[-1].kind == "unknown"
        assert all(finding.share < 0.1 for finding in findings)
    else:
        assert findings[0].kind == PLANTED[kernel][0]


def test_the_program_names_the_fault_of_what_was_counted() -> None:
    kernel = FIRST[-1]
    fault, shape = PLANTED[kernel]
    stored = ["--record", str(RECORD), "--counters", str(COUNTERS), "--json"]
    command = [str(ROOT / "tools" / "explain"), kernel, shape, *stored]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["explained"]
    assert told["findings"][0]["kind"] == fault
    assert not told["findings"][0]["modelled"]
    assert len(told["steps"]) == 2


def test_local_memory_is_told_by_its_cause_in_the_machine_code(tmp_path: Path) -> None:
    """Spilled registers, and arrays with run-time indices."""
    nvcc, dump = shutil.which("nvcc"), shutil.which("cuobjdump")
    if nvcc is None or dump is None:
        pytest.skip("there is no nvcc, or no cuobjdump")
    built = tmp_path / "faulty.cubin"
    # Headers of the CUDA toolkit and of this repository alone are needed.
    options = ["-std=c++20", "-arch=sm_90a", "-cubin", f"-I{ROOT}"]
    subprocess.run([nvcc, *options, SOURCE, "-o", built], check=True, capture_output=True)
    said = subprocess.run([dump, "-sass", built], check=True, capture_output=True, text=True)
    causes = {}
    for part in said.stdout.split("Function : ")[1:]:
        lines = part.splitlines()
        if name := re.search(r"faulty_[a-z_]+(?=E)", lines[0]):
            causes[name[0]] = indexed_share([ncu.Instruction(line, 0, 0) for line in lines])
    assert causes["faulty_indexed_sums"] == causes["faulty_indexed_operands"] == 1
    assert causes["faulty_launch_bounds"] == causes["faulty_spilling"] == 0
    assert causes["faulty_atomic_products"] is causes["faulty_shared_atomics"] is None
