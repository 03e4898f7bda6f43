"""tools/calibrate as a person meets it; on the CPU, with the build in GEMM_BENCH_BUILD."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "calibrate"
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")

# A gemm_bench of which the second process is not as it should be.
STUB = """#!/usr/bin/env bash
case "$*" in
  *--bad*) echo "gemm_bench: unknown option --bad" >&2; exit 2 ;;
  *--benchmark_list_tests*) exit ;;
  *--gemm_name_record*) echo test/1.json; exit ;;
esac
for argument in "$@"; do
  case $argument in --benchmark_out=*) out=${argument#*=} ;; esac
done
[[ $out != */2.json ]] || { SECOND }
echo '{}' >"$out"
"""


def calibrate(build: Path, *arguments: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "GEMM_BENCH_BUILD": str(build), **kwargs.pop("env", {})},
        **kwargs,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """The folder of a build whose second process fails."""
    program = tmp_path / "build" / "gemm_bench"
    program.parent.mkdir()
    program.write_text(STUB.replace("SECOND", "exit 1;"), encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    return program.parent


@pytest.mark.skipif(not (BUILD / "gemm_bench").exists(), reason=f"{BUILD} is not built")
def test_runs_fresh_processes_and_stores_their_spread(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    output = tmp_path / "new" / "noise.json"
    done = calibrate(
        BUILD,
        *("-n", "2", "-o", str(output), "--gemm_device=cpu", "--gemm_shapes=64"),
        *("--gemm_warmup=0.001", "--gemm_sample=0.0001", "--benchmark_min_time=0.001s"),
        *("--benchmark_filter=CpuNaive|CpuBlocked", "--gemm_peaks=nominal"),
        env={"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(output.read_text(encoding="utf-8"))
    schema = (ROOT / "results" / "calibration.schema.json").read_text(encoding="utf-8")
    jsonschema.validate(document, json.loads(schema))
    assert document["processes"] == 2
    assert document["device"]["kind"] == "cpu"
    assert {row["kernel"] for row in document["rows"]} == {"CpuNaive", "CpuBlocked"}
    assert done.stdout.splitlines()[-1] == str(output)
    assert len(done.stdout.splitlines()) == 4, "a head, two rows and the path"
    assert [path.name for path in tmp_path.iterdir()] == ["new"], "the records are not kept"


def test_after_a_failed_process_complete_records_are_listed(stub: Path) -> None:
    output, temporary = stub / "noise.json", stub.parent / "tmp"
    done = calibrate(stub, "-n", "3", "-o", str(output), env={"TMPDIR": str(temporary)})
    assert done.returncode == 1
    (record,) = temporary.glob("*/*.json")
    assert record.name == "1.json"
    assert last_line(done).endswith(f"process 2 of 3 ended with 1; complete records: {record}")
    assert not output.exists()


def test_a_process_without_a_record_fails(stub: Path) -> None:
    program = stub / "gemm_bench"
    program.write_text(
        program.read_text().replace("2.json ]] || { exit 1", "1.json ]] || { exit 0")
    )
    done = calibrate(stub, "-o", str(stub / "noise.json"), env={"TMPDIR": str(stub.parent / "tmp")})
    assert done.returncode == 1
    assert last_line(done).endswith("process 1 of 10 ended with 0; complete records: none")
    assert not list((stub.parent / "tmp").iterdir())


def test_records_that_cannot_be_used_are_kept(stub: Path) -> None:
    program = stub / "gemm_bench"
    program.write_text(program.read_text().replace("exit 1;", ":;"), encoding="utf-8")
    temporary = stub.parent / "tmp"
    done = calibrate(stub, "-n", "2", "-o", str(stub / "x.json"), env={"TMPDIR": str(temporary)})
    assert done.returncode == 3
    assert "is not a record of gemm_bench" in done.stderr
    assert len(list(temporary.glob("*/*.json"))) == 2
    assert all(str(path) in last_line(done) for path in temporary.glob("*/*.json"))


def test_a_signal_stops_it_after_the_running_process(stub: Path) -> None:
    program = stub / "gemm_bench"
    program.write_text(program.read_text().replace("exit 1;", "touch now; sleep 2;"))
    with subprocess.Popen(
        [TOOL, "-n", "9", "-o", str(stub / "noise.json")],
        cwd=stub,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GEMM_BENCH_BUILD": str(stub), "TMPDIR": str(stub.parent / "tmp")},
    ) as process:
        for _ in range(600):
            if (stub / "now").exists():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; complete records: " in said
    assert "process 3" not in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-n"], "-n needs a value"),
        (["-n", "1"], "-n 1: give a number"),
        (["-n", "nan"], "-n nan: give a number"),
        (["-n", "-3"], "-n -3: give a number"),
        (["-n", "1e3"], "-n 1e3: give a number"),
        (["-o"], "-o needs a value"),
        (["-o", "/"], "/: exists"),
        (["--benchmark_out=x.json"], "give -o FILE"),
        (["--benchmark_list_tests"], "measures nothing"),
        (["--gemm_name_record"], "measures nothing"),
        (["--bad"], "unknown option --bad"),
    ],
)
def test_bad_input_gives_one_line_and_exit_2(
    arguments: list[str], expected: str, stub: Path
) -> None:
    done = calibrate(stub, *arguments, env={"TMPDIR": str(stub.parent / "tmp")})
    assert done.returncode == 2
    assert done.stdout == ""
    said = [line for line in done.stderr.splitlines() if not line.startswith("setup: ")]
    assert len(said) == 1
    assert expected in said[0]
    assert not list((stub.parent / "tmp").iterdir())


def test_a_missing_build_is_refused(tmp_path: Path) -> None:
    done = calibrate(tmp_path / "nothing")
    assert done.returncode == 2
    assert "gemm_bench does not exist" in last_line(done)


def test_help(tmp_path: Path) -> None:
    done = calibrate(tmp_path, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: tools/calibrate [-n PROCESSES]")
