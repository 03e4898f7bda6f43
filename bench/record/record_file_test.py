"""What is left of a run that did not end by itself, and what becomes of it.

GEMM_BENCH_KILLS says how often a run is killed, GEMM_BENCH_SEED when.
"""

import gzip
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import test_runs
from test_runs import BENCH, NEEDS_BENCH, ROOT, run, wait_until

pytest.importorskip("msgspec")

KILLS = int(os.environ.get("GEMM_BENCH_KILLS", "3"))
SEED = int(os.environ.get("GEMM_BENCH_SEED", "5"))
COMPARE = Path("/usr/share/benchmark/compare.py")

QUICK = ["--gemm_device=cpu", "--gemm_cache=hot", "--gemm_warmup=0.001", "--gemm_sample=0.0001"]
QUICK += ["--gemm_sampling=0.002", "--gemm_peaks=nominal", "--benchmark_min_time=2x"]
# On one core: a busy machine holds up kernels on several.
MANY = [*QUICK, "--gemm_shapes=" + ",".join(map(str, range(8, 72))), "--benchmark_filter=CpuNaive"]
ONE = [*QUICK, "--gemm_shapes=16", "--benchmark_filter=CpuNaive"]

pytestmark = NEEDS_BENCH


def record(path: Path) -> dict[str, Any]:
    """The record, if the schema and gemm_report have nothing to say against it."""
    document = test_runs.record(path)
    code = "import sys, pathlib; from gemm_report.record import read_record\n"
    code += "read_record(pathlib.Path(sys.argv[1]))"
    read = run("-c", code, str(path), program=Path(sys.executable), cwd=ROOT / "report")
    assert read.returncode == 0, read.stderr
    return document


def names(document: dict[str, Any]) -> list[str]:
    return [row["name"] for row in document["benchmarks"]]


def shown(console: str) -> list[str]:
    """The rows that a console says are finished; a last line may be torn."""
    lines = console.split("\n")[:-1]
    return [f"{line.split()[0]}/manual_time" for line in lines if re.search(r"\[\d+/\d+, ", line)]


def killed(options: list[str], seconds: float, folder: Path) -> str:
    """What a run showed that was killed after so long."""
    console = folder / "console.txt"
    with (
        console.open("w") as out,
        subprocess.Popen([BENCH, *options], stdout=out, stderr=out) as process,
    ):
        time.sleep(seconds)
        process.kill()
    return console.read_text()


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds of the run that is killed at random moments."""
    out = tmp_path_factory.mktemp("whole") / "record.json"
    begin = time.monotonic()
    done = run(*MANY, f"--benchmark_out={out}")
    seconds = time.monotonic() - begin
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown(done.stdout) == names(record(out))
    assert len(shown(done.stdout)) >= 64
    return seconds


@pytest.mark.parametrize("kill", range(KILLS))
def test_every_row_that_was_shown_outlives_a_kill(
    kill: int, whole_run: float, tmp_path: Path
) -> None:
    moment = random.Random(f"{SEED} {kill}").uniform(0, 1.02) * whole_run
    out = tmp_path / ("record.json.gz" if kill % 2 else "record.json")
    rows = shown(killed([*MANY, f"--benchmark_out={out}"], moment, tmp_path))
    print(f"killed after {moment:.2f} s: {len(rows)} rows shown")
    if len(rows) > 1 or out.exists():
        document = record(out)
        # A row is shown just before it is on the disk.
        assert abs(len(names(document)) - len(rows)) <= 1
        assert names(document)[: len(rows)] == rows[: len(names(document))]
        whole = len(rows) >= 64 and document["context"]["gemm"]["complete"]
        assert whole or not document["context"]["gemm"]["complete"]


def test_the_record_of_a_killed_run_is_one_for_googles_tools(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    with subprocess.Popen(
        [BENCH, *MANY, "--gemm_cooldown=1", f"--benchmark_out={out}"], stdout=subprocess.DEVNULL
    ) as process:
        wait_until(out.exists, process)
        process.kill()
    document = record(out)
    of_run = document["context"]["gemm"]
    assert not of_run["complete"]
    assert of_run["kernels"]
    assert 0 < of_run["time"]["kernel_seconds"] < of_run["time"]["wall_seconds"]
    if not COMPARE.exists():
        pytest.skip("no compare.py of Google Benchmark here")
    pytest.importorskip("scipy")
    options = [str(COMPARE), "--no-utest", "benchmarks", str(out), str(out)]
    compared = run(*options, program=Path(sys.executable))
    assert compared.returncode == 0, compared.stderr
    assert names(document)[0] in compared.stdout


def test_runs_that_start_at_once_get_a_record_each(tmp_path: Path) -> None:
    told = [tmp_path / f"{i}.txt" for i in range(4)]
    runs = [
        subprocess.Popen(
            [BENCH, *ONE, f"--benchmark_out={tmp_path / 'results'}/", f"--gemm_tell_record={path}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for path in told
    ]
    errors = [process.communicate(timeout=60)[1] for process in runs]
    assert [process.returncode for process in runs] == [0] * 4, errors
    paths = [Path(path.read_text().strip()) for path in told]
    assert len(set(paths)) == 4
    for path, error in zip(paths, errors, strict=True):
        assert f"Record: {path}" in error
        assert re.fullmatch(r"\d{8}T\d{6}Z-\w+(-dirty)?\.json\.gz", path.name)
        assert path.parent.parent == tmp_path / "results"
        assert f"--benchmark_out={path.name}" in record(path)["context"]["gemm"]["command"]
        assert str(tmp_path) not in gzip.decompress(path.read_bytes()).decode()
    assert set((tmp_path / "results").glob("*/*")) == set(paths)


def test_the_name_of_the_record_can_be_told_to_a_stream(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    (tmp_path / "errors.txt").write_text("before\n")
    with (tmp_path / "errors.txt").open("a") as errors:
        command = [BENCH, *ONE, f"--benchmark_out={out}", "--gemm_tell_record=/dev/stderr"]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=errors, timeout=60, check=True)
    assert (tmp_path / "errors.txt").read_text() == f"before\n{out}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["errors.txt", "record.json"]


@pytest.mark.parametrize("out", ["/dev/stdout", "/dev/fd/1"])
def test_a_stream_gets_the_record_and_no_other_file(out: str, tmp_path: Path) -> None:
    piped = run(*ONE, "--benchmark_format=csv", f"--benchmark_out={out}").stdout
    assert json.loads(piped[piped.index("{") :])["benchmarks"]
    with (tmp_path / "console.txt").open("w") as console:
        command = [BENCH, *ONE, f"--benchmark_out={out}"]
        assert subprocess.run(command, stdout=console, timeout=60, check=False).returncode == 0
    text = (tmp_path / "console.txt").read_text()
    assert shown(text) == names(json.loads(text[text.index("{\n") :]))
    assert [path.name for path in tmp_path.iterdir()] == ["console.txt"]


def test_what_a_full_disk_takes_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "record.json"

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    done = run(*MANY, f"--benchmark_out={out}", preexec_fn=small_files)
    assert done.returncode == 2
    rows = shown(done.stdout)
    assert len(rows) >= 64, "the run goes on"
    keeping, writing = done.stderr.splitlines()
    assert "The run goes on" in keeping
    assert "cannot write" in writing
    assert f"are in '{out}'" in writing
    kept = names(record(out))
    assert 5 < len(kept) < len(rows)
    assert kept == rows[: len(kept)]
