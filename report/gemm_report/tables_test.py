from pathlib import Path

import pytest

from gemm_report.text import columns, markdown_table, write_csv


def test_names_are_flush_left_and_numbers_flush_right() -> None:
    lines = [("kernel", "rate"), ("Naive", "6.08"), ("Tiled", "10.1")]
    assert columns(lines, left=1).splitlines() == ["kernel  rate", "Naive   6.08", "Tiled   10.1"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=HYPERLINK(A1)", "'=HYPERLINK(A1)"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+1+cmd", "'+1+cmd"),
        ("-1+cmd", "'-1+cmd"),
        ("-1.5", "-1.5"),
        (-1.5, "-1.5"),
        (1e-7, "1e-07"),
        (None, ""),
        (True, "true"),
        ("a=b", "a=b"),
        ("a,b", '"a,b"'),
    ],
)
def test_no_text_is_a_formula(value: object, written: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_csv(path, ["a", "=b"], [["x", value]])
    assert path.read_text(encoding="utf-8") == f"a,'=b\nx,{written}\n"


def test_a_cell_cannot_break_a_table_of_markdown() -> None:
    assert markdown_table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"
