"""The pages in results/ are those that tools/explain makes of what ncu counted on an H200."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "results" / "nvidia-h200" / "explained"
PROGRAM = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "gemm_bench"

QUESTIONS = {
    "naive": ("Naive", "4096"),
    "tiled": ("Tiled/tile:32", "4096"),
    "warp_tile": ("WarpTile", "4096"),
    "best_f32": ("Best", "4096", "--versus", "cuBLAS/math:default"),
    "best_bf16": ("Best", "4096", "--precision", "bf16"),
}


def knows_rungs() -> bool:
    """Whether there is a build, and one with GPU kernels."""
    if not PROGRAM.exists():
        return False
    said = subprocess.run([PROGRAM, "--gemm_list_kernels"], capture_output=True, text=True)
    return "\tStreamK\t" in said.stdout


def counted(record: Path) -> list[object]:
    """The bytes that ncu counted of each row."""
    benchmarks = json.loads(record.read_text(encoding="utf-8"))["benchmarks"]
    return [benchmark["gemm"]["counted"] for benchmark in benchmarks]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_page_follows_from_what_was_counted(name: str, tmp_path: Path) -> None:
    if not knows_rungs():
        pytest.skip(f"{PROGRAM}, which is to know the rungs that steps name, has no GPU kernels")
    for ending, file in (("json", "record.json"), ("csv", "counters.csv")):
        packed = (PAGES / f"{name}.{ending}.gz").read_bytes()
        (tmp_path / file).write_bytes(gzip.decompress(packed))
    stored = ["--record", "record.json", "--counters", "counters.csv"]
    done = subprocess.run(
        [ROOT / "tools" / "explain", *QUESTIONS[name], *stored, "--markdown", "-o", "kept"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert counted(tmp_path / "kept" / "record.json") == counted(tmp_path / "record.json")


def test_every_page_has_its_question() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == QUESTIONS.keys()
