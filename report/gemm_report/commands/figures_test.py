import json
from pathlib import Path

import pytest

from gemm_report.cli import main
from gemm_report.document import BAD_INPUT


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a run ends with."""
    assert main(["figures", *map(str, arguments)]) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


@pytest.fixture
def old_path(gpu_path: Path, tmp_path: Path) -> Path:
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    document["context"]["gemm"]["commit"] = "fedcba9876543210"
    for benchmark in document["benchmarks"]:
        row = benchmark.get("gemm", {})
        if row.get("flop_per_second"):
            row["flop_per_second"] /= 2
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_two_runs_are_drawn_on_one_roofline(gpu_path: Path, old_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--versus", str(old_path), "--only", "roofline", "-o", str(out)]
    assert main(["figures", str(gpu_path), *options]) == 0
    assert {path.name for path in out.iterdir()} == {"roofline.png", "roofline.svg", "roofline.csv"}
    picture = (out / "roofline.svg").read_text(encoding="utf-8")
    assert "old: fedcba987654" in picture
    assert "kernel,old,Tiled/tile:16,f32" in (out / "roofline.csv").read_text(encoding="utf-8")


def test_figures_are_chosen_by_name(gpu_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["figures", str(gpu_path), "--only", "headline, ladder_f32", "-o", str(out)]) == 0
    assert {path.stem for path in out.iterdir()} == {"headline", "ladder_f32"}


def test_bad_choices_end_with_one_line_and_no_file(
    gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    cpu_path = gpu_path.with_name("cpu.json")
    said = refused(capsys, gpu_path, "--only", "pie", "-o", out)
    assert "has no such figure: choose among headline, ladder_f32, throughput_bf16" in said
    said = refused(capsys, gpu_path, "--versus", cpu_path, "-o", out)
    assert "give two records of one device" in said
    assert "is no regular expression" in refused(capsys, gpu_path, "--hierarchy", "(", "-o", out)
    assert "no such file" in refused(capsys, gpu_path, "--versus", tmp_path / "none", "-o", out)
    assert not out.exists()


def test_a_bad_record_is_named_and_the_others_of_its_folder_have_figures(
    gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "bad.json").write_text("{", encoding="utf-8")
    for name in ("a.json", "b.json"):
        (folder / name).write_bytes(gpu_path.read_bytes())
    said = refused(capsys, folder, "--only", "headline", "-o", out)
    assert "bad.json" in said
    assert {path.name for path in out.iterdir()} == {"a", "b"}
