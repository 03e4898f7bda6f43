"""The index of a folder of records."""

import re
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import main
from gemm_report.document import BAD_INPUT


def test_a_site_has_each_device_its_page_and_history(
    rewritten: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def renamed(document: Any) -> None:
        document["context"]["gemm"]["device"]["name"] = "<b>Other"

    for i in range(2):
        rewritten(f"in/{i}.json", 1 + i / 10)
    rewritten("in/other.json", 1.0, renamed)
    (tmp_path / "in" / "bad.json").write_text("{", encoding="utf-8")
    assert main(["site", str(tmp_path / "in"), "-o", str(tmp_path / "out")]) == BAD_INPUT
    assert "bad.json" in capsys.readouterr().err
    index = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="([^"#]+\.html)"', index)
    assert len(links) == 3 and all((tmp_path / "out" / link).is_file() for link in links)
    assert index.count("<circle") == 2 and "&lt;b&gt;Other" in index and "<b>" not in index


def test_a_folder_without_a_time_has_no_site(tmp_path: Path) -> None:
    assert main(["site", str(tmp_path), "-o", str(tmp_path / "out")]) == BAD_INPUT
    assert not (tmp_path / "out").exists()
