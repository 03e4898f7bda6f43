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


def test_figures_are_chosen_by_name(gpu_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["figures", str(gpu_path), "--only", "headline, ladder_f32", "-o", str(out)]) == 0
    assert {path.stem for path in out.iterdir()} == {"headline", "ladder_f32"}


def test_bad_choices_end_with_one_line_and_no_file(
    gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    said = refused(capsys, gpu_path, "--only", "pie", "-o", out)
    assert "has no such figure: choose among headline, ladder_f32" in said
    assert "is no regular expression" in refused(capsys, gpu_path, "--hierarchy", "(", "-o", out)
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
