from pathlib import Path

import pytest

from gemm_report.writing.csv_table import write_csv


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
