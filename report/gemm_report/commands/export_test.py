"""What other tools are given is what they read: their formats, and each number of the record."""

import csv
import json
import math
import os
import re
import shutil
import subprocess
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


def test_github_action_benchmark_gets_what_its_code_reads(gpu_path: Path, tmp_path: Path) -> None:
    assert export("github-action-benchmark", tmp_path / "out.json", gpu_path) == 0

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    entries = json.loads(text, parse_constant=refuse)
    timed = read_record(gpu_path).rows_with("timed")
    assert len(entries) == len(timed)
    # It finds an entry of the run before by its name.
    assert len({entry["name"] for entry in entries}) == len(timed)
    for entry, row in zip(entries, timed, strict=True):
        assert entry.keys() == {"name", "unit", "value", "range", "extra"}
        assert entry["unit"] == "GFLOP/s"
        assert math.isclose(entry["value"] * 1e9, row.flop_per_second or 0)
        # Its extractRangeInfo takes a range apart like this.
        assert re.fullmatch(r"(\+-|±)\s*\d.*", entry["range"])
        assert "Test GPU" in entry["extra"]


def test_several_records_do_not_fit_into_one_action_file(
    gpu_path: Path, ladder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.json"
    assert export("github-action-benchmark", output, gpu_path, ladder_path) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1
    assert not output.exists()


@pytest.fixture
def years(ladder_path: Path, tmp_path: Path) -> Path:
    """Two records of a device, the older one last by name, each with rows that the other lacks."""
    folder = tmp_path / "device"
    folder.mkdir()
    changed(ladder_path, folder / "a.json", date=NEXT_YEAR, commit="new", drop="Naive/")
    changed(ladder_path, folder / "b.json", commit="old", drop="Tiled/tile:16")
    return folder


def test_otava_gets_a_line_a_record_and_no_gap(years: Path, tmp_path: Path) -> None:
    assert export("otava", tmp_path / "device.csv", years) == 0
    old, new = table(tmp_path / "device.csv")
    assert (old["commit"], new["commit"]) == ("old", "new")
    assert (old["time"], new["time"]) == ("2025-01-31T12:00:00+00:00", "2026-01-31T11:00:00+00:00")
    settings = json.loads((tmp_path / "device.csv.otava.yaml").read_text(encoding="utf-8"))
    test = settings["tests"]["device"]
    assert test["file"] == str(tmp_path / "device.csv")
    assert list(old) == [test["time_column"], *test["attributes"], *test["metrics"]]
    rows = {str(row.identity): row for row in read_record(years / "a.json").rows_with("timed")}
    rows |= {str(row.identity): row for row in read_record(years / "b.json").rows_with("timed")}
    assert test["metrics"].keys() == rows.keys()
    for name, row in rows.items():
        assert float(old[name]) == float(new[name]) == row.flop_per_second


def test_otava_reads_it(years: Path, tmp_path: Path) -> None:
    otava = os.environ.get("OTAVA") or shutil.which("otava")
    if otava is None:
        pytest.skip("apache-otava is not installed: have it on PATH, or name it by OTAVA")
    assert export("otava", tmp_path / "device.csv", years) == 0
    settings = tmp_path / "device.csv.otava.yaml"
    command = [otava, "analyze", "device", "--config-file", settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    assert "Naive/f32/1024x1024x1024" in done.stdout
    assert "2026-01-31 11:00:00" in done.stdout
    assert "error" not in (done.stdout + done.stderr).lower()


def test_records_of_two_devices_are_no_history(
    years: Path, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device = json.loads(gpu_path.read_text(encoding="utf-8"))["context"]["gemm"]["device"]
    other = changed(gpu_path, tmp_path / "other.json", device={**device, "name": "Another GPU"})
    assert export("otava", tmp_path / "device.csv", years, other) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "other.json: is of Another GPU, " in said
    assert len(table(tmp_path / "device.csv")) == 2


@pytest.mark.parametrize("form", ["csv", "parquet", "otava"])
def test_what_is_no_record_is_named_and_the_rest_goes_on(
    form: str, years: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (years / "aa.json").write_text("[]", encoding="utf-8")
    output = tmp_path / "out"
    assert export(form, output, years) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1
    assert output.stat().st_size > 1000


@pytest.mark.parametrize("form", ["csv", "parquet", "github-action-benchmark", "otava"])
def test_without_a_record_nothing_is_written(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.json").write_text("[]", encoding="utf-8")
    assert export(form, tmp_path / "out" / "file", tmp_path) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize("form", ["csv", "parquet", "github-action-benchmark", "otava"])
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
