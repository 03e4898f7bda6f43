"""JSON files, read so that a complaint names file, place and remedy."""

import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from gemm_report.terminal import printable

try:
    from msgspec import Meta as Meta
except ModuleNotFoundError:  # who reads a file says so; --help needs nothing

    def Meta(**limits: Any) -> Any:  # type: ignore[no-redef]  # noqa: N802
        """In its place."""
        return str(limits)


# What is measured lies far inside, in any unit; and ratios and products of what lies inside are
# finite, so that no sum, axis or file of ours ever holds an infinity.
_SMALLEST, _LARGEST = 1e-60, 1e60
_LARGEST_INTEGER = 2**63 - 1

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


def check_schema(path: Path, kind: Kind, values: Any, oldest: int, newest: int) -> None:
    """Refuses files of a version that is not known yet, or no longer."""
    schema = values.get("schema") if isinstance(values, dict) else None
    if isinstance(schema, int) and not oldest <= schema <= newest:
        advice = "update gemm_report" if schema > newest else f"run {kind.maker} again"
        raise RecordError(
            f"{path}: {kind.name} has schema {cut(str(schema), 40)}, this gemm_report knows "
            f"{oldest} to {newest}: {advice}"
        )


def cut(text: str, longest: int = _LONGEST_TEXT) -> str:
    """Its beginning, where it is longer."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def require_no_pipe(path: Path) -> None:
    """RecordError for what could be read without end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise RecordError(f"{path}: is no file but a device or a pipe: give the path of a file")


def read_json(path: Path, kind: Kind) -> Any:
    """What a file holds, packed by gzip or not; RecordError where that is not JSON."""
    import msgspec

    try:
        require_no_pipe(path)
        content = path.read_bytes()
        # What a name ends with is no proof.
        return msgspec.json.decode(
            gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        )
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file: give the path of a {kind.name}") from None
    except IsADirectoryError:
        raise RecordError(f"{path}: is a folder: give the path of a {kind.name} in it") from None
    except (EOFError, zlib.error):
        raise RecordError(f"{path}: the compressed file ends too early: {kind.advice}") from None
    except OSError as error:
        raise RecordError(
            f"{path}: cannot be read ({error.strerror or error}): check the path"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{path}: is not JSON ({error}): {kind.advice}") from None
