import errno
import os
from pathlib import Path

import pytest

from gemm_report.document import InputError
from gemm_report.text import (
    columns,
    markdown_table,
    megahertz,
    percent,
    prefix_for,
    quantity,
    significant,
    times,
    visible,
    whole_file,
    write_csv,
)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (quantity(66.9e12, "FLOP/s"), "66.9 TFLOP/s"),
        (quantity(4.814e12, "FLOP/s"), "4.81 TFLOP/s"),
        (quantity(999.9e9, "FLOP/s"), "1.00 TFLOP/s"),
        (quantity(0.25, "FLOP/s"), "250 mFLOP/s"),
        (quantity(0.0, "FLOP/s"), "0.00 FLOP/s"),
        (quantity(1.485e15, "FLOP/s"), "1485 TFLOP/s"),
        (quantity(1.5e-15, "FLOP/s"), "0.00150 pFLOP/s"),
        (prefix_for([3e9, 5e12]), "T"),
        (prefix_for([]), ""),
        (significant(0.0619), "0.0619"),
        (significant(1234.5), "1234"),
        (percent(None), "-"),
        (percent(1.003), "100.3 %"),
        (megahertz(1.755e9), "1755 MHz"),
        (times(0.5), "×0.50"),
        (times(0.00451), "×0.00451"),
        (times(12.34), "×12.3"),
        (times(None), ""),
        (visible("a\0\x1b[31m\u202e\ud800\n"), "a\ufffd\ufffd[31m\ufffd\ufffd\n"),
    ],
)
def test_numbers_and_names(made: str, text: str) -> None:
    assert made == text


def test_tables_are_aligned_and_no_cell_breaks_them() -> None:
    lines = [("kernel", "rate"), ("Naive", "6.08"), ("Tiled", "10.1")]
    assert columns(lines, left=1).splitlines() == ["kernel  rate", "Naive   6.08", "Tiled   10.1"]
    assert markdown_table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"


def test_a_csv_has_all_digits_and_no_cell_breaks_it(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", "abcd", [[1e-7, None, True, "a,b"]])
    assert (tmp_path / "a.csv").read_text("utf-8") == 'a,b,c,d\n1e-07,,true,"a,b"\n'


def test_a_file_is_replaced_when_it_is_whole_and_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "new" / "file", tmp_path / "link"
    link.symlink_to(path)
    with whole_file(link) as part:
        part.write_text("content", encoding="utf-8")
        assert not path.exists()
    with pytest.raises(KeyError), whole_file(path) as part:
        part.write_text("other", encoding="utf-8")
        raise KeyError
    for taken in (tmp_path, Path("/dev/null")):
        with pytest.raises(InputError), whole_file(taken):
            pytest.fail("it has a part")
    assert link.is_symlink() and path.read_text(encoding="utf-8") == "content"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_an_error_while_writing_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError) as told, whole_file(tmp_path / "file"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert told.value.filename == str(tmp_path / "file")
