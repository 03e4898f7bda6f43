"""What goes to the terminal: names in files can hold escape sequences and half characters."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, TextIO

# What the runners of GitHub and Azure take for a command to them: `::stop-commands::x` at the start
# of a line, `##[add-mask]x` and `##vso[task.complete]x` anywhere.
_COMMAND = re.compile(r"^ *:(?=:)|#(?=#(?:vso)?\[)")

# Around a tone's number and a text. No name can hold them: printable() escapes them.
_TONED = re.compile("\ufdd0(\\d*)\ufdd1(.*?)\ufdd2")


class Tone(Enum):
    """A colour of ANSI."""

    NONE = ""
    BAD = "31"
    GOOD = "32"
    WARN = "33"


class OutputError(Exception):
    """Standard output or standard error takes nothing more: one line."""


def printable(text: str) -> str:
    r"""On one line: what is no visible character becomes its escape, such as \x1b, \n or \ud800."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def toned(text: str, tone: Tone) -> str:
    """In colour, where printable_output() writes to a terminal and NO_COLOR is not set."""
    return f"\ufdd0{tone.value}\ufdd1{text}\ufdd2" if tone.value else text


def called(command: str | None = None) -> str:
    """How the program can be typed, or its command: where nothing is installed, by tools' names."""
    program = os.environ.get("GEMM_REPORT_AS", "gemm-report")
    if command == "explain" and program == "tools/report":
        return "tools/explain"
    return f"{program} {command}" if command else program


def complain(message: object) -> None:
    """One line on standard error."""
    print(f"{called()}: {message}", file=sys.stderr)


@contextlib.contextmanager
def printable_output() -> Iterator[None]:
    """Until it ends, standard output and standard error get printable lines, whoever writes.

    No line is a command to the runner of a CI service. OutputError where a line cannot be written.
    """
    with (
        contextlib.redirect_stdout(_Printable(sys.stdout)),
        contextlib.redirect_stderr(_Printable(sys.stderr)),
    ):
        yield


class _Printable:
    """A stream to which only printable lines go, in characters that it can encode."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._in_colour = False
        with contextlib.suppress(AttributeError, ValueError):  # closed
            self._in_colour = stream.isatty() and not os.environ.get("NO_COLOR")

    def write(self, text: str) -> int:
        shown = "\n".join(_line(line, self._in_colour) for line in text.split("\n"))
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        shown = shown.encode(encoding, "backslashreplace").decode(encoding)
        self._try(lambda stream: stream.write(shown))
        return len(text)

    def flush(self) -> None:
        self._try(lambda stream: stream.flush())

    def _try(self, do: Callable[[TextIO], object]) -> None:
        if self._stream is None:
            raise OutputError("standard output is closed: send it to a file, or to /dev/null")
        try:
            do(self._stream)
        except OSError as error:
            # Else Python tries again when it ends, and complains in its own words.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if isinstance(error, BrokenPipeError):
                raise OutputError("output: its reader has gone") from None
            raise OutputError(f"output: {error.strerror}: send it to another place") from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _line(text: str, in_colour: bool) -> str:
    plain, *toned = _TONED.split(text)
    shown = [_shown(plain)]
    for tone, said, after in zip(*[iter(toned)] * 3, strict=True):
        shown.append(f"\x1b[{tone}m{_shown(said)}\x1b[0m" if in_colour else _shown(said))
        shown.append(_shown(after))
    return "".join(shown)


def _shown(text: str) -> str:
    return _COMMAND.sub(
        lambda found: found[0][:-1] + f"\\x{ord(found[0][-1]):02x}", printable(text)
    )
