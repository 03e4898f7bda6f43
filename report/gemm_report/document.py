"""JSON that somebody else wrote, taken apart so that a complaint names file, place and remedy."""

import gzip
import json
import re
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

# An integer of JSON can be larger than any double.
_LARGEST = sys.float_info.max

# A record of a thousand rows has 10 MB; what is a hundred times larger is something else.
LARGEST_FILE = 256 * 2**20


class InputError(Exception):
    """What is wrong with which file, and what to do about it: one line."""


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
        return value

    def positive(self, key: str) -> float:
        """A number that is more than 0 and not infinite."""
        value = self.take(key, int, float)
        if not (0 < value <= _LARGEST):
            self.complain(key, f"is {str(value)[:20]}, not a positive number")
        return value

    def positive_or_none(self, key: str) -> float | None:
        """The same, or null."""
        return None if self.take(key, int, float, NoneType) is None else self.positive(key)

    def nonnegative(self, key: str) -> float:
        """A number that is at least 0 and not infinite."""
        value = self.take(key, int, float)
        if not (0 <= value <= _LARGEST):
            self.complain(key, f"is {str(value)[:20]}, not a number of at least 0")
        return value

    def nonnegative_or_none(self, key: str) -> float | None:
        """The same, or null."""
        return None if self.take(key, int, float, NoneType) is None else self.nonnegative(key)

    def positives(self, key: str) -> tuple[float, ...]:
        """A list of positive numbers."""
        values = self.take(key, list)
        for value in values:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and 0 < value <= _LARGEST):
                self.complain(key, "has something other than positive numbers")
        return tuple(values)

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
            self.complain(key, f"is {value!r}, not one of {', '.join(allowed)}")
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

    def or_else(self, **defaults: Any) -> "Object":
        """The same with what it has for keys that earlier files lack."""
        return Object(self.path, self.kind, self.place, {**defaults, **self.values})

    def complain(self, key: str, what: str) -> NoReturn:
        """Refuses the file."""
        raise RecordError(f"{self.path}: {self.place}.{key} {what}: {self.kind.advice}")

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
    return _parse(path, kind, _text(path, kind))


def _text(path: Path, kind: Kind) -> str:
    name = kind.name
    try:
        text = _bytes(path).decode("utf-8")
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file: give the path of a {name}") from None
    except IsADirectoryError:
        raise RecordError(f"{path}: is a folder: give the path of a {name} in it") from None
    except (EOFError, zlib.error):
        raise RecordError(f"{path}: the compressed file ends too early: {kind.advice}") from None
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise RecordError(f"{path}: cannot be read ({reason}): check the path") from None
    except UnicodeDecodeError:
        raise RecordError(f"{path}: is no {name} (not UTF-8 text): give a {name}") from None
    if not text.strip():
        raise RecordError(f"{path}: the file is empty: run {kind.maker} again")
    return text


def _bytes(path: Path) -> bytes:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise RecordError(
            f"{path}: has more than {LARGEST_FILE >> 20} MiB, which no record has: "
            "give another file, or run fewer cases at once"
        )
    return content


def _parse(path: Path, kind: Kind, text: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        place = re.search(rf"[:\[,]\s*{re.escape(constant)}", text)
        line = text.count("\n", 0, place.end()) + 1 if place else "?"
        raise RecordError(
            f"{path}: line {line} has {constant}, which is not JSON and never in a {kind.name}: "
            f"run {kind.maker} again"
        )

    try:
        return json.loads(text, parse_constant=refuse)
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
