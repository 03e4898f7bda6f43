"""JSON that somebody else wrote, taken apart so that a complaint names file, place and remedy."""

import contextlib
import gzip
import json
import re
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from gemm_report.terminal import printable

try:
    from msgspec import Meta
except ModuleNotFoundError:  # who reads a file says so; --help needs nothing

    def Meta(**limits: Any) -> Any:  # noqa: N802
        """In its place."""
        return str(limits)


# What is measured lies far inside, in any unit; and ratios and products of what lies inside are
# finite, so that no sum, axis or file of ours ever holds an infinity.
_SMALLEST, _LARGEST = 1e-60, 1e60
_LARGEST_INTEGER = 2**63 - 1
_TINY = [re.compile(rf"{e}-(?:[6-9]\d|\d{{3}})") for e in "eE"]  # each fast by its prefix

# The longest reasons have some hundred characters. A figure in which a name had a hundred thousand
# took minutes to draw.
_LONGEST_TEXT = 1000

Number = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
Positive = Annotated[float, Meta(ge=_SMALLEST, le=_LARGEST)]
Nonnegative = Annotated[float, Meta(ge=0, le=_LARGEST)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Whole = Annotated[int, Meta(ge=0, le=_LARGEST_INTEGER)]
Count = Annotated[int, Meta(ge=1, le=_LARGEST_INTEGER)]
Text = Annotated[str, Meta(min_length=1, max_length=_LONGEST_TEXT)]

T = TypeVar("T")

# A record of a thousand rows has 10 MB; what is a dozen times larger is something else.
LARGEST_FILE = 128 * 2**20

# Where a pipe is that the shell made; one that lies in a folder may have nobody at its other end.
_OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


# With this the program ends where an InputError was the reason; 1 and 2 are verdicts.
BAD_INPUT = 3


class InputError(Exception):
    """What is wrong with which file, and what to do about it: one line."""

    def __str__(self) -> str:
        return printable(super().__str__())


class RecordError(InputError):
    """The file is a record, or should be."""


@dataclass(frozen=True)
class Kind:
    """What a file should be, and what makes a new one."""

    name: str
    maker: str

    @property
    def advice(self) -> str:
        """For a file that was right once."""
        return f"the {self.name} is damaged, take another copy or run {self.maker} again"


def decoded(path: Path, kind: Kind, values: Any, of: type[T]) -> T:
    """What JSON says, as the types say that it must be; RecordError where it is not so."""
    import msgspec

    try:
        return msgspec.convert(values, of)
    except msgspec.ValidationError as error:
        # A value that is quoted may be very long.
        said = re.sub(r"'([^']{40})[^']*'", r"'\1...'", str(error))
        raise RecordError(f"{path}: {said[0].lower()}{said[1:]}: {kind.advice}") from None


def check_schema(path: Path, kind: Kind, values: Any, known: int) -> None:
    """Refuses files of a version that is not known yet."""
    schema = values.get("schema") if isinstance(values, dict) else None
    if isinstance(schema, int) and not isinstance(schema, bool) and schema > known:
        raise RecordError(
            f"{path}: {kind.name} has schema {cut(str(schema), 40)}, this gemm_report knows up to "
            f"{known}: update gemm_report"
        )


def cut(text: str, longest: int = _LONGEST_TEXT) -> str:
    """Its beginning, where it is longer."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def read_json(path: Path, kind: Kind) -> Any:
    """What `path` holds; RecordError where that is not JSON."""
    return parse_json(path, kind, read_text(path, kind))


def read_text(path: Path, kind: Kind) -> str:
    """What a file or a pipe holds, packed or not; RecordError where it is no text, or too much."""
    try:
        # Programs of Windows put a mark before UTF-8.
        text = read_bytes(path, kind).decode("utf-8-sig")
    except UnicodeDecodeError:
        name = kind.name
        raise RecordError(f"{path}: is no {name} (not UTF-8 text): give a {name}") from None
    if not text.strip():
        raise RecordError(f"{path}: the file is empty: run {kind.maker} again")
    return text


def read_bytes(path: Path, kind: Kind, unpack: bool = True) -> bytes:
    """The same without looking at it."""
    name = kind.name
    try:
        status = path.stat()
        is_pipe = stat.S_ISFIFO(status.st_mode) and str(path).startswith(_OPEN_ALREADY)
        if not (is_pipe or path.is_file() or path.is_dir()):
            raise RecordError(f"{path}: is no file but a device or a pipe: give the path of a file")
        with path.open("rb") as raw:
            if status.st_size <= LARGEST_FILE:
                # What a name ends with is no proof, and a small packed file can hold very much.
                packed = unpack and raw.peek(2).startswith(b"\x1f\x8b")
                file = gzip.GzipFile(fileobj=raw) if packed else raw
                if len(content := file.read(LARGEST_FILE + 1)) <= LARGEST_FILE:
                    return content
        raise RecordError(
            f"{path}: has more than {LARGEST_FILE >> 20} MiB, which no record has: "
            "give another file, or run fewer cases at once"
        )
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file: give the path of a {name}") from None
    except IsADirectoryError:
        raise RecordError(f"{path}: is a folder: give the path of a {name} in it") from None
    except (EOFError, zlib.error):
        raise RecordError(f"{path}: the compressed file ends too early: {kind.advice}") from None
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise RecordError(f"{path}: cannot be read ({reason}): check the path") from None


def parse_json(
    path: Path, kind: Kind, text: str, constant: Callable[[str], Any] | None = None
) -> Any:
    """What `text` says; RecordError where it is not JSON.

    Every string in it is printable, and a number that is too small to be measured is 0.

    `constant` gives the value of NaN and Infinity, which are refused without it.
    """

    def refuse(constant: str) -> NoReturn:
        place = re.search(rf"[:\[,]\s*{re.escape(constant)}", text)
        line = text.count("\n", 0, place.end()) + 1 if place else "?"
        raise RecordError(
            f"{path}: line {line} has {constant}, which is not JSON and never in a {kind.name}: "
            f"run {kind.maker} again"
        )

    import msgspec

    # Whether every string is printable, and no number too small: JSON has other control characters
    # as escapes only. To look at each value would take longer than to parse them.
    plain = text.isascii() and not any(each in text for each in ("\\", "\x7f", "0" * 60))
    plain = plain and not any(tiny.search(text) for tiny in _TINY)
    if plain:
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            return msgspec.json.decode(text)  # faster; what it refuses is worded below
    try:
        values = json.loads(text, parse_constant=constant or refuse)
        return values if plain else _tamed(values)
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        what = "the file ends too early" if at_end else f"is not JSON ({error.msg})"
        raise RecordError(f"{path}: {what}, line {error.lineno}: {kind.advice}") from None
    except ValueError:
        raise RecordError(f"{path}: has a number of thousands of digits: {kind.advice}") from None
    except RecursionError:
        raise RecordError(
            f"{path}: is no {kind.name} (nested too deeply): give a {kind.name}"
        ) from None


def _tamed(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_tamed(each) for each in value]
    if isinstance(value, dict):
        return {printable(key): _tamed(each) for key, each in value.items()}
    return 0.0 if isinstance(value, float) and abs(value) < _SMALLEST else value
