"""The pages in results/ are those that explain makes of what ncu counted on an H200."""

import gzip
import json
from pathlib import Path

import pytest

from gemm_report.cli import main
from gemm_report.explain.diagnosis_test import ladder

PAGES = Path(__file__).parents[3] / "results" / "nvidia-h200" / "explained"
QUESTIONS = {
    "naive": ("Naive", "4096"),
    "tiled": ("Tiled/tile:32", "4096"),
    "warp_tile": ("WarpTile", "4096"),
    "best_f32": ("Best", "4096", "--versus", "cuBLAS/math:default"),
    "best_bf16": ("Best", "4096", "--precision", "bf16"),
}


def counted(record: Path) -> list[object]:
    """The bytes that ncu counted of each row."""
    benchmarks = json.loads(record.read_text(encoding="utf-8"))["benchmarks"]
    return [benchmark["gemm"]["counted"] for benchmark in benchmarks]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_page_follows_from_what_was_counted(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for ending, file in (("json", "record.json"), ("counters.json", "counters.json")):
        packed = (PAGES / f"{name}.{ending}.gz").read_bytes()
        (tmp_path / file).write_bytes(gzip.decompress(packed))
    rungs = "".join(f"{rung}\t{family}\t{kernel}\t\n" for kernel, family, rung in ladder())
    (tmp_path / "gemm_bench").write_text(f"#!/bin/sh\ncat <<'END'\n{rungs}END\n")
    (tmp_path / "gemm_bench").chmod(0o755)
    monkeypatch.setenv("GEMM_BENCH_BUILD", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    stored = ["--record", "record.json", "--counters", "counters.json", "--markdown", "-o", "kept"]
    assert main(["explain", *QUESTIONS[name], *stored]) == 0
    assert capsys.readouterr().out == (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert counted(tmp_path / "kept" / "record.json") == counted(tmp_path / "record.json")


def test_every_page_has_its_question() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == QUESTIONS.keys()
