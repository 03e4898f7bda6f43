import json
import re
import shutil
from pathlib import Path

import pytest

from gemm_report.cli import main
from gemm_report.figures.write import MOST, drawings
from gemm_report.record import Record


@pytest.fixture
def files(gpu: Record) -> set[str]:
    """What there is of the record in gpu_path."""
    names = list(drawings(gpu))[:MOST]
    return {f"{name}.{end}" for name in names for end in ("png", "svg", "csv")} | {"index.html"}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_pages_are_next_to_their_records_with_what_they_link(
    gpu_path: Path, files: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Path(shutil.copy(gpu_path, tmp_path / "2025-0123.json"))
    assert main(["report", str(record)]) == 0
    folder = tmp_path / "2025-0123"
    assert names(folder) == files
    assert capsys.readouterr().out == f"{folder / 'index.html'}\n"
    page = (folder / "index.html").read_text(encoding="utf-8")
    linked = {link for link in re.findall(r"href=\"([^#\"]+)\"", page) if link != "data:,"}
    assert linked == files - {"index.html"}


def test_names_with_folders_and_control_characters_write_nowhere_else(
    gpu_path: Path, files: set[str], tmp_path: Path
) -> None:
    text = gpu_path.read_text(encoding="utf-8")
    for name, hostile in (("Tiled", "../../\x1b<b>\0"), ("Test GPU", "/etc/\n<script>")):
        text = text.replace(json.dumps(name), json.dumps(hostile))
    record = tmp_path / "in" / "record.json"
    record.parent.mkdir()
    record.write_text(text, encoding="utf-8")
    assert main(["report", str(record)]) == 0
    assert names(tmp_path) == {"in"}
    assert names(record.parent / "record") == files
    page = (record.parent / "record" / "index.html").read_text(encoding="utf-8")
    assert "../../" in page and "&lt;b&gt;" in page
    assert not {"\0", "\x1b"} & set(page)
    assert "<b>" not in page and page.count("<script>") == 1
