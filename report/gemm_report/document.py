"""JSON that somebody else wrote, taken apart so that a complaint names file, place and remedy."""

import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, NoReturn

from gemm_report.terminal import printable

# What is measured lies far inside, in any unit; and ratios and products of what lies inside are
# finite, so that no sum, axis or file of ours ever holds an infinity.
_SMALLEST, _LARGEST = 1e-60, 1e60
_LARGEST_INTEGER = 2**63 - 1

# The longest reasons have some hundred characters. A figure in which a name had a hundred thousand
# took minutes to draw.
_LONGEST_TEXT = 1000

# A record of a thousand rows has 10 MB; what is a dozen times larger is something else.
LARGEST_FILE = 128 * 2**20
_CHUNK = 2**20

# Where a pipe is that the shell made; one that lies in a folder may have nobody at its other end.
_OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


# With this the program ends where an InputError was the reason; 1 and 2 are verdicts.
BAD_INPUT = 3


class InputError(Exception):
    """What is wrong with which file, and what to do about it: one line."""

    def __str__(self) -> str:
        return printable(super().__str__())


class RecordError(InputError):
    """The file is a record or a calibration, or should be."""


@dataclass(frozen=True)
class Kind:
    """What a file should be, and what makes a new one."""

    name: str
    maker: str

    @property
    def advice(self) -> str:
        """For a file that was right once."""
        return f"the {self.name} is damaged, take another copy or run {self.maker} again"


@dataclass(frozen=True)
class Object:
    """A JSON object that knows its place in the file."""

    path: Path
    kind: Kind
    place: str
    values: Mapping[str, Any]

    def take(self, key: str, *kinds: type) -> Any:
        """The value, if it is of one of these types."""
        if key not in self.values:
            self.complain(key, "is missing")
        value = self.values[key]
        # In Python True is an int; in a record it is not a number.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.complain(key, f"has the wrong type ({type(value).__name__})")
        if len(key) > _LONGEST_TEXT or (isinstance(value, str) and len(value) > _LONGEST_TEXT):
            self.complain(key, f"has a text of more than {_LONGEST_TEXT} characters")
        # One that may have a point as well is held against the range of what can be measured.
        if isinstance(value, int) and float not in kinds and not abs(value) <= _LARGEST_INTEGER:
            self.complain(key, f"is {_short(value)}, not a number of 64 bits")
        return value

    def reason_or_none(self, key: str) -> str | None:
        """A text that somebody else wrote, such as an exception's, cut where it is too long."""
        value = self.values.get(key)
        if isinstance(value, str) and len(value) > _LONGEST_TEXT:
            return f"{value[: _LONGEST_TEXT - 3]}..."
        return self.take(key, str, NoneType)

    def count(self, key: str) -> int:
        """A whole number that is at least 1."""
        value = self.take(key, int)
        if not value >= 1:
            self.complain(key, f"is {_short(value)}, not a positive number")
        return value

    def positive(self, key: str) -> float:
        """A number that is more than 0 and of this world."""
        value = self.take(key, int, float)
        if not _is_positive(value):
            self.complain(key, f"is {_short(value)}, not a positive number that can be measured")
        return value

    def positive_or_none(self, key: str) -> float | None:
        """The same, or null."""
        return None if self.take(key, int, float, NoneType) is None else self.positive(key)

    def nonnegative(self, key: str) -> float:
        """A number that is at least 0 and of this world."""
        value = self.take(key, int, float)
        if not (value == 0 or _is_positive(value)):
            self.complain(key, f"is {_short(value)}, not a number of at least 0")
        return value

    def finite_or_none(self, key: str) -> float | None:
        """A number of either sign that is of this world, or null."""
        value = self.take(key, int, float, NoneType)
        if not (value is None or abs(value) <= _LARGEST):
            self.complain(key, f"is {_short(value)}, not a number that can be measured")
        return value

    def nonnegative_or_none(self, key: str) -> float | None:
        """The same, or null."""
        return None if self.take(key, int, float, NoneType) is None else self.nonnegative(key)

    def positives(self, key: str) -> tuple[float, ...]:
        """A list of positive numbers."""
        values = self.take(key, list)
        for value in values:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and _is_positive(value)):
                self.complain(key, "has something other than positive numbers")
        return tuple(map(float, values))

    def positives_where_known(self, key: str) -> tuple[float, ...]:
        """Those of a list in which null stands for what is not known."""
        known = [value for value in self.take(key, list) if value is not None]
        return replace(self, values={key: known}).positives(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        values = self.take(key, list)
        if not all(isinstance(value, str) for value in values):
            self.complain(key, "has something other than texts")
        return tuple(values)

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        """One of these texts."""
        value = self.take(key, str)
        if value not in allowed:
            self.complain(key, f"is {_short(value)!r}, not one of {', '.join(allowed)}")
        return value

    def child(self, key: str) -> "Object":
        """The object under `key`."""
        return Object(self.path, self.kind, f"{self.place}.{key}", self.take(key, dict))

    def child_or_none(self, key: str) -> "Object | None":
        """The same, or null."""
        return None if self.take(key, dict, NoneType) is None else self.child(key)

    def children(self, key: str) -> list["Object"]:
        """A list of objects."""
        places = [(f"{self.place}.{key}[{i}]", v) for i, v in enumerate(self.take(key, list))]
        for place, value in places:
            if not isinstance(value, dict):
                raise RecordError(f"{self.path}: {place} is not an object: {self.kind.advice}")
        return [Object(self.path, self.kind, place, value) for place, value in places]

    def children_or_empty(self, key: str) -> list["Object"]:
        """The same; none where there is no such key, or null."""
        return [] if self.values.get(key) is None else self.children(key)

    def or_else(self, **defaults: Any) -> "Object":
        """The same with what it has for keys that earlier files lack."""
        return Object(self.path, self.kind, self.place, {**defaults, **self.values})

    def complain(self, key: str, what: str) -> NoReturn:
        """Refuses the file."""
        place = f"{self.place}.{_short(key)}"
        raise RecordError(f"{self.path}: {place} {what}: {self.kind.advice}")

    def check_schema(self, known: int) -> None:
        """Refuses files of a version that is not known yet."""
        schema = self.take("schema", int)
        if schema > known:
            raise RecordError(
                f"{self.path}: {self.kind.name} has schema {schema}, this gemm_report knows up to "
                f"{known}: update gemm_report"
            )
        if schema < 1:
            raise RecordError(
                f"{self.path}: {self.kind.name} has schema {schema}, the first is 1: "
                f"{self.kind.advice}"
            )


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


def read_bytes(path: Path, kind: Kind, unpack: bool = True) -> bytearray:
    """The same without looking at it."""
    name = kind.name
    try:
        return _bytes(path, unpack)
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
    """What `text` says, every string in it printable; RecordError where it is not JSON.

    `constant` gives the value of NaN and Infinity, which are refused without it.
    """

    def refuse(constant: str) -> NoReturn:
        place = re.search(rf"[:\[,]\s*{re.escape(constant)}", text)
        line = text.count("\n", 0, place.end()) + 1 if place else "?"
        raise RecordError(
            f"{path}: line {line} has {constant}, which is not JSON and never in a {kind.name}: "
            f"run {kind.maker} again"
        )

    try:
        values = json.loads(text, parse_constant=constant or refuse)
        # JSON has other control characters as escapes only.
        is_plain = text.isascii() and "\\" not in text and "\x7f" not in text
        return values if is_plain else _printable(values)
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


def _bytes(path: Path, unpack: bool) -> bytearray:
    content = bytearray()
    with open(path, "rb", opener=_without_waiting) as raw:
        _check_kind_and_size(path, raw)
        # What a name ends with is no proof.
        packed = unpack and raw.peek(2).startswith(b"\x1f\x8b")
        file = gzip.GzipFile(fileobj=raw) if packed else raw
        # By pieces: a small packed file can hold very much.
        while piece := file.read(_CHUNK):
            content += piece
            if len(content) > LARGEST_FILE:
                raise _too_large(path)
    return content


def _without_waiting(name: str, flags: int) -> int:
    # To open a pipe that lies in a folder waits for somebody who writes into it.
    return os.open(name, flags | os.O_NONBLOCK)


def _check_kind_and_size(path: Path, file: BinaryIO) -> None:
    status = os.fstat(file.fileno())
    if stat.S_ISFIFO(status.st_mode) and str(path).startswith(_OPEN_ALREADY):
        os.set_blocking(file.fileno(), True)
    elif not stat.S_ISREG(status.st_mode):
        raise RecordError(f"{path}: is no file but a device or a pipe: give the path of a file")
    elif status.st_size > LARGEST_FILE:
        raise _too_large(path)


def _too_large(path: Path) -> RecordError:
    return RecordError(
        f"{path}: has more than {LARGEST_FILE >> 20} MiB, which no record has: "
        "give another file, or run fewer cases at once"
    )


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable(each) for each in value]
    if isinstance(value, dict):
        return {printable(key): _printable(each) for key, each in value.items()}
    return value


def _is_positive(value: float) -> bool:
    return _SMALLEST <= value <= _LARGEST


def _short(value: object) -> str:
    """Enough of it to recognise it by."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
