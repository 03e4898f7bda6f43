import errno
import os
from pathlib import Path

import pytest

from gemm_report.document import InputError
from gemm_report.writing.whole_file import whole_file


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


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for taken in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError), whole_file(taken):
            pytest.fail("it has a part")
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_an_error_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space") as error, whole_file(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename == str(tmp_path / "file")
