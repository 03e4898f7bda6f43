"""What is exported is each number of the record."""

import csv
import shutil
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.commands.export import COLUMNS
from gemm_report.record import read_record


def export(output: Path, *records: Path) -> int:
    return main(["export", *map(str, records), "-o", str(output)])


def test_csv_has_a_line_a_row_and_all_digits(
    gpu_path: Path, ladder_path: Path, tmp_path: Path
) -> None:
    assert export(tmp_path / "all.csv", gpu_path, ladder_path) == 0
    with (tmp_path / "all.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    rows = [row for path in (gpu_path, ladder_path) for row in read_record(path).rows]
    for line, row in zip(found, rows, strict=True):
        assert list(line) == [column.name for column in COLUMNS]
        assert line["name"] == str(row.identity)
        assert line["seconds"] == (str(row.seconds.median) if row.seconds else "")
        assert line["reason"] == (row.failed or row.skipped or "")
        assert line["variant"] == str(row.variant).lower()
    assert {line["status"] for line in found} == {"timed", "failed", "skipped"}


def test_bad_files_are_named_and_the_rest_is_written(
    gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Path(shutil.copy(gpu_path, tmp_path))
    (tmp_path / "bad.json").write_text("[]", encoding="utf-8")
    assert export(tmp_path / "out", tmp_path) == BAD_INPUT
    assert (tmp_path / "out").stat().st_size > 1000
    assert export(tmp_path / "none", tmp_path / "bad.json") == BAD_INPUT
    assert not (tmp_path / "none").exists()
    assert capsys.readouterr().err.count("\n") == 2
    before = record.read_bytes()
    assert export(record, record) == BAD_INPUT, "a record is never written over"
    assert record.read_bytes() == before
