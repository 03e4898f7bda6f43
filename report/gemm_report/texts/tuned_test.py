import dataclasses
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.document import RecordError
from gemm_report.record import Record
from gemm_report.texts.tuned import HEADER, merged

OLD = (
    '{"BlockTile1D", Precision::f32, 80, {4096, 4096, 4096}, "BM:64/BN:64/NR:8"},'
    "  // 9.10 TFLOP/s, NVIDIA A100, 0123456789ab\n"
)
STALE = OLD.replace(" 80,", " 90,").replace("NVIDIA A100", "Test GPU")
NEW = (
    '{"BlockTile1D", Precision::f32, 90, {4096, 4096, 4096}, "BM:128/BN:128/NR:16"},'
    "  // 20.4 TFLOP/s, Test GPU, 0123456789ab\n"
)


def test_winners_are_written_as_lines_of_c(ladder: Record, tmp_path: Path) -> None:
    text = merged(tmp_path / "tuned.inc", ladder)
    assert text.startswith(HEADER)
    small, large = text.removeprefix(HEADER).splitlines(keepends=True)
    assert "{1024, 1024, 1024}" in small
    assert large == NEW


def test_other_cards_and_problems_stay_and_the_old_winner_goes(
    ladder: Record, tmp_path: Path
) -> None:
    path = tmp_path / "tuned.inc"
    other = OLD.replace("BlockTile1D", "WarpTile").replace("f32", "bf16")
    path.write_text(f"// an old head\n{STALE}\n{other}{OLD}", encoding="utf-8")
    text = merged(path, ladder)
    small = next(line for line in text.splitlines(keepends=True) if "{1024, 1024, 1024}" in line)
    assert text == HEADER + OLD + small + NEW + other
    path.write_text(text, encoding="utf-8")
    assert merged(path, ladder) == text


@pytest.mark.parametrize(
    "line",
    ["gibberish", OLD.replace("f32", "f8").strip(), OLD.split("  //")[0], OLD.strip() + "\n}"],
)
def test_a_table_that_is_damaged_is_refused_and_stays(
    line: str, ladder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tuned.inc"
    path.write_text(f"{line}\n", encoding="utf-8")
    arguments = ["tune", str(ladder_path), "-o", str(tmp_path / "new"), "--write", str(path)]
    assert main(arguments) == BAD_INPUT
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "is no entry of the table" in output.err
    assert path.read_text(encoding="utf-8") == f"{line}\n"
    assert not (tmp_path / "new").exists()


def test_the_command_writes_the_table(
    ladder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tuned.inc"
    assert main(["tune", str(ladder_path), "-o", str(tmp_path), "--write", str(path)]) == 0
    assert path.read_text(encoding="utf-8").endswith(NEW)
    assert capsys.readouterr().out.splitlines()[-1] == str(path)


def test_only_a_complete_record_of_a_gpu_counts(ladder: Record, tmp_path: Path) -> None:
    path = tmp_path / "tuned.inc"
    with pytest.raises(RecordError, match="interrupted"):
        merged(path, dataclasses.replace(ladder, complete=False))
    device = dataclasses.replace(ladder.device, compute_capability=None)
    with pytest.raises(RecordError, match="no compute capability"):
        merged(path, dataclasses.replace(ladder, device=device))


def test_a_folder_is_no_table(ladder: Record, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="cannot be read"):
        merged(tmp_path, ladder)
