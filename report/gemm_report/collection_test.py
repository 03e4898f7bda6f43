import shutil
from pathlib import Path

import pytest

from gemm_report.collection import Refusals, record_paths, records_given
from gemm_report.document import RecordError
from gemm_report.record import Record


@pytest.fixture
def folder(gpu_path: Path, tmp_path: Path) -> Path:
    """Two records and what else may lie beside them."""
    device = tmp_path / "results" / "device"
    (device / "equal").mkdir(parents=True)
    (device / "explained").mkdir()
    (device / "other_implementations").mkdir()
    others = (
        "equal/d.json.gz",
        "other_implementations/e.json",
        ".hidden.json",
    )
    others += ("explained/f.json.gz",)
    for name in ("b.json", "a.json", *others):
        shutil.copy(gpu_path, device / name)
    (tmp_path / "results" / "schema.json").write_text("{}", encoding="utf-8")
    return tmp_path / "results"


def names(records: list[Record]) -> list[str]:
    return [record.path.name for record in records]


def test_a_folder_holds_its_records_and_those_of_its_devices(folder: Path) -> None:
    assert [path.name for path in record_paths(folder)] == ["a.json", "b.json"]
    assert record_paths(folder / "device") == record_paths(folder)


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    for folder, expected in ((tmp_path, "has no record"), (tmp_path / "none", "is no folder")):
        with pytest.raises(RecordError, match=expected):
            record_paths(folder)


def test_what_is_no_record_is_named_and_the_rest_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "device" / "aa.json").write_text("{", encoding="utf-8")
    refusals = Refusals()
    assert names(list(records_given([folder], refusals))) == ["a.json", "b.json"]
    assert refusals.count == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "aa.json: is not JSON (Input data was truncated)" in said


def test_a_link_that_leads_nowhere_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "device" / "c.json").symlink_to("nowhere")
    (folder / ".#lock").symlink_to("nowhere")
    refusals = Refusals()
    assert names(list(records_given([folder], refusals))) == ["a.json", "b.json"]
    said = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in said] == [str(folder / "device" / "c.json")]


def test_a_link_to_its_own_folder_is_not_followed_for_ever(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    (folder / "device" / "d.json").symlink_to(folder / "device" / "d.json")
    refusals = Refusals()
    assert names(list(records_given([folder], refusals))) == ["a.json", "b.json"]
    assert refusals.count == 1
