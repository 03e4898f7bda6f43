"""What other tools are given is what they read: their formats, and each number of the record."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.exchange.cases import COLUMNS
from gemm_report.record import read_record

NEXT_YEAR = "2026-01-31T12:00:00+01:00"


def export(form: str, output: Path, *records: Path) -> int:
    return main(["export", *map(str, records), "--format", form, "-o", str(output)])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def changed(record: Path, path: Path, **values: Any) -> Path:
    """A copy whose run has other values, by key of the context or of its gemm."""
    document = json.loads(record.read_text(encoding="utf-8"))
    for key, value in values.items():
        if key == "drop":
            document["benchmarks"] = [
                row for row in document["benchmarks"] if not row["name"].startswith(value)
            ]
        else:
            (document["context"] if key == "date" else document["context"]["gemm"])[key] = value
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_csv_has_a_line_a_row_and_all_digits(
    gpu_path: Path, ladder_path: Path, tmp_path: Path
) -> None:
    assert export("csv", tmp_path / "all.csv", gpu_path, ladder_path) == 0
    found = table(tmp_path / "all.csv")
    rows = [row for path in (gpu_path, ladder_path) for row in read_record(path).rows]
    assert len(found) == len(rows)
    for line, row in zip(found, rows, strict=True):
        assert list(line) == [column.name for column in COLUMNS]
        assert line["name"] == str(row.identity)
        assert line["seconds"] == (str(row.seconds.median) if row.seconds else "")
        assert line["reason"] == (row.failed or row.skipped or "")
        assert line["variant"] == str(row.variant).lower()
    assert {line["status"] for line in found} == {"timed", "failed", "skipped"}


def test_parquet_has_types_and_samples(ladder_path: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert export("parquet", tmp_path / "all.parquet", ladder_path) == 0
    found = parquet.read_table(tmp_path / "all.parquet")
    types = {field.name: str(field.type) for field in found.schema}
    assert types["m"] == "int64"
    assert types["complete"] == "bool"
    assert types["flop_per_second"] == "double"
    assert types["reason"] == "string"
    assert types["samples_seconds"].startswith("list<")
    assert found.schema.field("flop").metadata == {b"meaning": b"2 m n k"}
    rows = read_record(ladder_path).rows
    for line, row in zip(found.to_pylist(), rows, strict=True):
        assert line["samples_seconds"] == list(row.samples_seconds)
        assert line["seconds"] == (row.seconds and row.seconds.median)
        assert line["of_library"] == row.of_library


@pytest.fixture
def years(ladder_path: Path, tmp_path: Path) -> Path:
    """Two records of a device, the older one last by name, each with rows that the other lacks."""
    folder = tmp_path / "device"
    folder.mkdir()
    changed(ladder_path, folder / "a.json", date=NEXT_YEAR, commit="new", drop="Naive/")
    changed(ladder_path, folder / "b.json", commit="old", drop="Tiled/tile:16")
    return folder


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_is_no_record_is_named_and_the_rest_goes_on(
    form: str, years: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (years / "aa.json").write_text("[]", encoding="utf-8")
    output = tmp_path / "out"
    assert export(form, output, years) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1
    assert output.stat().st_size > 1000


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_without_a_record_nothing_is_written(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.json").write_text("[]", encoding="utf-8")
    assert export(form, tmp_path / "out" / "file", tmp_path) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_record_is_never_written_over(
    form: str, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Path(shutil.copy(gpu_path, tmp_path))
    before = record.read_bytes()
    assert export(form, record, record) == BAD_INPUT
    assert "is one of the records" in capsys.readouterr().err
    assert record.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [record.name]


def test_help_says_what_each_column_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    said = capsys.readouterr().out
    for column in COLUMNS:
        assert re.search(rf"^  {column.name} +\S", said, re.MULTILINE), column.name
