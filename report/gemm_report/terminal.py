"""What goes to the terminal."""

import os
import sys
from enum import Enum


class Tone(Enum):
    """A colour of ANSI."""

    NONE = ""
    BAD = "31"
    GOOD = "32"
    WARN = "33"


def printable(text: str) -> str:
    r"""On one line: what is no visible character becomes its escape, such as \x1b, \n or \ud800."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def toned(text: str, tone: Tone) -> str:
    """In colour, where standard output is a terminal and NO_COLOR is not set."""
    if not tone.value or os.environ.get("NO_COLOR") or not (sys.stdout and sys.stdout.isatty()):
        return text
    return f"\x1b[{tone.value}m{text}\x1b[0m"


def called(command: str | None = None) -> str:
    """How the program can be typed, or its command: where nothing is installed, by tools' names."""
    program = os.environ.get("GEMM_REPORT_AS", "gemm-report")
    if command == "explain" and program == "tools/report":
        return "tools/explain"
    return f"{program} {command}" if command else program


def complain(message: object) -> None:
    """One line on standard error."""
    print(f"{called()}: {printable(str(message))}", file=sys.stderr)
