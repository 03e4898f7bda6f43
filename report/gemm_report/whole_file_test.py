import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gemm_report.document import InputError
from gemm_report.text import whole_file


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with whole_file(path) as part:
        part.write_text("content", encoding="utf-8")
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "content"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(KeyError), whole_file(path) as part:
        part.write_text("new", encoding="utf-8")
        raise KeyError
    assert path.read_text(encoding="utf-8") == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    with whole_file(link) as part:
        part.write_text("content", encoding="utf-8")
    assert link.is_symlink()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "content"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_replaced(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "taken"
    make(path)
    with pytest.raises(InputError), whole_file(path) as part:
        part.write_text("content", encoding="utf-8")
    assert not path.is_file()
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]
