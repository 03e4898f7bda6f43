import io
import sys

import pytest

from gemm_report.document import InputError
from gemm_report.terminal import printable, printable_output
from gemm_report.writing.tables import columns


def test_ordinary_text_stays() -> None:
    for text in ("", "Tiled/tile:16", "66.9 TFLOP/s · 12.7 µs", "naïve 行列 🙂"):
        assert printable(text) is text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("two\r\nlines\t", r"two\r\nlines\t"),
        ("\x00", r"\x00"),
        ("\ud800", r"\ud800"),
        ("\u202eright to left", r"\u202eright to left"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_what_is_not_visible_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert str(InputError(f"{text}: is bad")) == f"{shown}: is bad"
    assert columns([[text, "1"], ["b", "2"]], left=1).splitlines()[0] == f"{shown}  1"


def test_output_is_printable_whoever_writes(capsys: pytest.CaptureFixture[str]) -> None:
    with printable_output():
        print("a\x1b[2J\n\ud800")
        print("b\x07", file=sys.stderr)
    assert capsys.readouterr() == ("a\\x1b[2J\n\\ud800\n", "b\\x07\n")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::stop-commands::x", r"\x3a:stop-commands::x"),
        ("  ::error::x", r"  \x3a:error::x"),
        ("a ##[add-mask]x", r"a \x23#[add-mask]x"),
        ("##vso[task.complete]x", r"\x23#vso[task.complete]x"),
        ("gemm::Tiled: ## [1]", "gemm::Tiled: ## [1]"),
    ],
)
def test_no_line_is_a_command_to_the_runner_of_a_ci_service(
    line: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with printable_output():
        print(f"first\n{line}")
    assert capsys.readouterr().out == f"first\n{shown}\n"


def test_output_fits_the_terminals_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding="ascii"))
    with printable_output():
        print("×1.31")
        sys.stdout.flush()
    assert content.getvalue() == b"\\xd71.31\n"
