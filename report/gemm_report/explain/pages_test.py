"""The pages in results/ are those that tools/explain makes of what ncu counted on an H200."""

import gzip
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


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_page_follows_from_what_was_counted(name: str, tmp_path: Path) -> None:
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM}, which knows the rungs that steps name, is not built")
    for ending, file in (("json", "record.json"), ("csv", "counters.csv")):
        packed = (PAGES / f"{name}.{ending}.gz").read_bytes()
        (tmp_path / file).write_bytes(gzip.decompress(packed))
    stored = ["--record", "record.json", "--counters", "counters.csv"]
    done = subprocess.run(
        [ROOT / "tools" / "explain", *QUESTIONS[name], *stored, "--markdown"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (PAGES / f"{name}.md").read_text(encoding="utf-8")


def test_every_page_has_its_question() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == QUESTIONS.keys()
