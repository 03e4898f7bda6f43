import shutil
from pathlib import Path

import pytest

from gemm_report.collection import Refusals, record_paths, records_given
from gemm_report.document import RecordError

APART = ("equal", "explained", "limit", "other_implementations")


@pytest.fixture
def folder(gpu_path: Path, tmp_path: Path) -> Path:
    """Two records and what else may lie beside them."""
    results = tmp_path / "results"
    for name in ("b.json", "a.json", ".hidden.json", *(f"{each}/c.json.gz" for each in APART)):
        path = results / "device" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(gpu_path, path)
    (results / "schema.json").write_text("{}", encoding="utf-8")
    (results / "loop").symlink_to(results)
    return results


def test_a_folder_holds_its_records_and_those_of_its_devices(folder: Path) -> None:
    assert [path.name for path in record_paths(folder)] == ["a.json", "b.json"]
    assert record_paths(folder / "device") == record_paths(folder)
    for each in APART:
        assert [path.name for path in record_paths(folder / "device" / each)] == ["c.json.gz"]
    for none, expected in (
        (folder / "loop" / "none", "is no folder"),
        (Path("/proc"), "no record"),
    ):
        with pytest.raises(RecordError, match=expected):
            record_paths(none)


def test_what_is_no_record_is_named_and_the_rest_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "device" / "aa.json").write_text("{", encoding="utf-8")
    (folder / "device" / "c.json").symlink_to("nowhere")
    (folder / "device" / "d.json").symlink_to(folder / "device" / "d.json")
    refusals = Refusals()
    found = [record.path.name for record in records_given([folder], refusals)]
    assert (found, refusals.count) == (["a.json", "b.json"], 3)
    told = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1].rpartition("/")[2] for line in told] == [
        *("aa.json", "c.json", "d.json")
    ]
    assert "is not JSON (Input data was truncated)" in told[0]
