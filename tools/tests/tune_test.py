"""tools/tune as a person meets it, with a gemm_bench that only pretends."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "report" / "gemm_report" / "testdata" / "ladder.json"
PLAIN = RECORD.with_name("gpu.json")

STUB = """#!/usr/bin/env bash
case "$*" in
  *--bad*) echo "gemm_bench: unknown option --bad" >&2; exit 2 ;;
  *--benchmark_list_tests*)
    [[ "$*" != *^BlockTile1D/* ]] || printf '%s\\n' BlockTile1D/f32/64 BlockTile1D/BM:64/f32/64
    exit ;;
  *--gemm_name_record*) echo test/1.json; exit ;;
esac
printf '%s\\n' "$@" >"${0%/*}/arguments"
for argument in "$@"; do
  case $argument in --benchmark_out=*) out=${argument#*=} ;; esac
done
mkdir -p "$(dirname "$out")"
cp "RECORD" "$out"
exit STATUS
"""


def build(folder: Path, record: Path = RECORD, status: int = 0) -> Path:
    """A project with the tools and the report, and a build of it."""
    for name in ("tools", "report"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kernels").mkdir()
    if (ROOT / ".venv").exists():  # what tools/setup would put there again
        (folder / ".venv").symlink_to(ROOT / ".venv")
    program = folder / "build" / "gemm_bench"
    program.parent.mkdir()
    text = STUB.replace("RECORD", str(record)).replace("STATUS", str(status))
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return folder


def tune(project: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables: dict[str, Any] = {**os.environ, "GEMM_BENCH_BUILD": "build", **environment}
    return subprocess.run(
        [project / "tools" / "tune", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=variables,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_runs_the_whole_grid_and_prints_the_best_point(tmp_path: Path) -> None:
    project = build(tmp_path)
    done = tune(project, "BlockTile1D", "--shape", "4096", "--precision=f32", "--gemm_seed=2")
    assert done.returncode == 0, done.stderr
    given = (project / "build" / "arguments").read_text(encoding="utf-8").splitlines()
    assert given[:5] == [
        *("--gemm_shapes=4096", "--gemm_precisions=f32", "--gemm_seed=2", "--gemm_variants=all"),
        "--benchmark_filter=^BlockTile1D/",
    ]
    record = project / "results" / "test" / "tuning" / "1.json"
    assert done.stdout.splitlines()[-1] == f"record: {record}"
    assert "BM:128/BN:128/NR:16" in done.stdout
    assert (record.with_suffix("") / "tuning.png").exists()
    assert not (project / "kernels" / "tuned.inc").exists()


def test_write_stores_the_best_points(tmp_path: Path) -> None:
    project = build(tmp_path)
    output = project / "record.json"
    done = tune(project, "BlockTile1D", "--write", "-o", str(output))
    assert done.returncode == 0, done.stderr
    table = (project / "kernels" / "tuned.inc").read_text(encoding="utf-8")
    assert table.count('{"BlockTile1D", Precision::f32, 90, ') == 2
    assert output.exists()
    assert (project / "record" / "tuning.csv").exists()


def test_write_stores_nothing_after_a_failed_run(tmp_path: Path) -> None:
    project = build(tmp_path, status=1)
    done = tune(project, "BlockTile1D", "--write")
    assert done.returncode == 1
    assert "tuned.inc is unchanged, since gemm_bench ended with 1" in done.stderr
    assert "BM:128/BN:128/NR:16" in done.stdout
    assert not (project / "kernels" / "tuned.inc").exists()


def test_a_record_without_a_grid_is_kept(tmp_path: Path) -> None:
    project = build(tmp_path, record=PLAIN)
    done = tune(project, "BlockTile1D")
    assert done.returncode == 3
    assert "has no timed row of a parameter grid" in done.stderr
    assert last_line(done).startswith("tune: the record is kept: ")


def test_a_run_without_a_record_fails(tmp_path: Path) -> None:
    project = build(tmp_path, record=Path("/nowhere"), status=7)
    done = tune(project, "BlockTile1D")
    assert done.returncode == 7
    assert last_line(done) == "tune: gemm_bench ended with 7 and wrote no record"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "no kernel: give one"),
        (["--shape"], "--shape needs a value"),
        (["BlockTile1D", "--precision"], "--precision needs a value"),
        (["BlockTile1D", "-o"], "-o needs a value"),
        (["BlockTile1D", "-o", "/"], "/: exists"),
        (["BlockTile1D", "Naive"], "Naive: a second kernel"),
        (["Block.*"], "Block.*: not a kernel name"),
        (["Naive"], "Naive: no such kernel with parameters"),
        (["BlockTile1D", "--benchmark_out=x.json"], "give -o FILE"),
        (["BlockTile1D", "--benchmark_filter=x"], "the kernel's grid decides"),
        (["BlockTile1D", "--gemm_variants=default"], "the kernel's grid decides"),
        (["BlockTile1D", "--benchmark_list_tests"], "measures nothing"),
        (["BlockTile1D", "--bad"], "unknown option --bad"),
    ],
)
def test_bad_input_gives_one_line_and_exit_2(
    arguments: list[str], expected: str, tmp_path: Path
) -> None:
    done = tune(build(tmp_path), *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    said = [line for line in done.stderr.splitlines() if not line.startswith("setup: ")]
    assert len(said) == 1
    assert expected in said[0]


def test_a_missing_build_is_refused(tmp_path: Path) -> None:
    done = tune(build(tmp_path), "BlockTile1D", GEMM_BENCH_BUILD="nothing")
    assert done.returncode == 2
    assert "nothing/gemm_bench does not exist" in last_line(done)


def test_help(tmp_path: Path) -> None:
    done = tune(build(tmp_path), "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: tools/tune KERNEL [--shape LIST]")
