import io
import sys

import pytest

from gemm_report.document import InputError
from gemm_report.terminal import Tone, printable, printable_output, toned
from gemm_report.text import columns


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


@pytest.mark.parametrize(
    ("is_terminal", "no_colour", "shown"),
    [
        (True, "", "\x1b[31mslower\x1b[0m a\\x1b[31m\\ufdd0 \x1b[32mfaster\x1b[0m\n"),
        (True, "1", "slower a\\x1b[31m\\ufdd0 faster\n"),
        (False, "", "slower a\\x1b[31m\\ufdd0 faster\n"),
    ],
)
def test_only_a_terminal_gets_colours_and_only_ours(
    is_terminal: bool, no_colour: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.StringIO()
    content.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stdout", content)
    monkeypatch.setenv("NO_COLOR", no_colour)
    with printable_output():
        print(toned("slower", Tone.BAD), "a\x1b[31m\ufdd0", toned("faster", Tone.GOOD))
    assert content.getvalue() == shown
    assert toned("same", Tone.NONE) == "same"


def test_output_fits_the_terminals_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding="ascii"))
    with printable_output():
        print("×1.31")
        sys.stdout.flush()
    assert content.getvalue() == b"\\xd71.31\n"
