import sys

import pytest

from gemm_report.document import InputError
from gemm_report.terminal import Tone, complain, printable, toned
from gemm_report.text import columns


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("66.9 TFLOP/s · naïve 行列 🙂", "66.9 TFLOP/s · naïve 行列 🙂"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("two\r\nlines\t", r"two\r\nlines\t"),
        ("\ud800\u202e", r"\ud800\u202e"),
    ],
)
def test_what_is_not_visible_is_escaped(
    text: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printable(text) == shown
    assert str(InputError(f"{text}: is bad")) == f"{shown}: is bad"
    assert columns([[text, "1"], ["b", "2"]], left=1).splitlines()[0].startswith(f"{shown} ")
    complain(text)
    assert capsys.readouterr().err == f"gemm-report: {shown}\n"


@pytest.mark.parametrize(("is_terminal", "no_colour"), [(True, ""), (True, "1"), (False, "")])
def test_only_a_terminal_gets_colours(
    is_terminal: bool, no_colour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("NO_COLOR", no_colour)
    in_colour = is_terminal and not no_colour
    assert toned("slower", Tone.BAD) == ("\x1b[31mslower\x1b[0m" if in_colour else "slower")
    assert toned("same", Tone.NONE) == "same"
