"""Text that a terminal can show: names in files can hold escape sequences and half characters."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO


def printable(text: str) -> str:
    r"""On one line: what is no visible character becomes its escape, such as \x1b, \n or \ud800."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


@contextlib.contextmanager
def printable_output() -> Iterator[None]:
    """Until it ends, standard output and standard error get printable lines, whoever writes."""
    with (
        contextlib.redirect_stdout(_Printable(sys.stdout)),
        contextlib.redirect_stderr(_Printable(sys.stderr)),
    ):
        yield


class _Printable:
    """A stream to which only printable lines go, in characters that it can encode."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        shown = "\n".join(map(printable, text.split("\n")))
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
