"""What a run of gemm_bench that was killed left beside its record, made a record of.

The format is told in bench/record/journal.hpp: for each row a line of JSON behind its CRC-32, with what
changed in the record's context since the line before.
"""

import fcntl
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from gemm_report.document import LARGEST_FILE, InputError, RecordError, parse_json, read_json
from gemm_report.record import RECORD, Identity, record_of, utc

SUFFIX = ".journal"
# A run that is killed right after it made its journal leaves less than this: of that only the name
# can tell whose it is.
_FIRST_LINE = b'280b5df0 {"context":{"gemm":{}},"benchmarks":[]}\n'


class HeldError(InputError):
    """The run that writes the journal is still alive."""


def journal_paths(folder: Path) -> list[Path]:
    """Journals in `folder`, in its folders of devices and in theirs."""
    patterns = [f"{depth}*{SUFFIX}" for depth in ("", "*/", "*/*/")]
    return sorted(path for pattern in patterns for path in folder.glob(pattern) if path.is_file())


def recover(path: Path, complain: Callable[[InputError], object]) -> Path | None:
    """Makes a record of the journal, which is then gone; None where no row was finished.

    The record has the name that it was to have or, where that is taken, one that ends with
    -recovered. None, too, where the run had written it. What no reader of records takes is left
    out, and complained of. HeldError while the run is alive, InputError for what is no journal, or
    one of which no row can be read.
    """
    with _locked(path) as file:
        content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise RecordError(f"{path}: has more than {LARGEST_FILE >> 20} MiB: is no journal")
        document, damage = record_from(content, path)
        text = document and _text(document)
        wanted = path.with_name(path.name.removesuffix(SUFFIX))
        if document and _is_in(document, wanted):
            text = None
        try:
            target = _write(text, wanted)
            path.unlink()
        except OSError as error:
            raise InputError(
                f"{path}: stays, its record cannot be written ({error.strerror}): "
                "check that the folder is writable and has room"
            ) from None
    if damage:
        complain(
            RecordError(
                f"{path}: left out what is damaged, in {len(damage)} places, first {damage[0]}: "
                "run gemm_bench again for what is missing"
            )
        )
    return target


def record_from(content: bytes, path: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The record that the lines make, and what is wrong with what was left out of it.

    RecordError where something was left out, and there is no row besides.
    """
    # What follows the last end of line was never wholly written.
    pieces = [_piece(line) for line in content.split(b"\n")[:-1]]
    if not pieces and _FIRST_LINE.startswith(content) and path.name.endswith(f".json{SUFFIX}"):
        return None, []
    first = next(filter(None, pieces), None)
    if first is None or "gemm" not in first["context"]:
        raise RecordError(f"{path}: is no journal of gemm_bench: give one that a run left behind")
    context: dict[str, Any] = {}
    is_whole = False  # the first lines bring it by and by
    benchmarks: list[Any] = []
    cases: set[tuple[Identity, int]] = set()
    damage: list[str] = []
    for number, piece in enumerate(pieces, 1):
        if piece is None:
            damage.append(f"line {number} is not as it was written")
            continue
        merged, rows = _merged(context, piece["context"]), piece["benchmarks"]
        if not _wrong(path, merged, rows, cases):
            context, is_whole = merged, True
            benchmarks += rows
            continue
        wrong = _wrong(path, merged, [], cases)
        if wrong and is_whole:
            damage.append(f"line {number}: {wrong}")
        else:
            context, is_whole = merged, not wrong
        for row in rows:
            if wrong := _wrong(path, context, [row], cases):
                damage.append(f"line {number}: {wrong}")
            else:
                benchmarks.append(row)
    if damage and not benchmarks:
        raise RecordError(
            f"{path}: stays, no row of it can be read ({damage[-1]}): take another copy"
        )
    return ({"context": context, "benchmarks": benchmarks} if benchmarks else None), damage


def _wrong(
    path: Path, context: Mapping[str, Any], rows: list[Any], cases: set[tuple[Identity, int]]
) -> str | None:
    """Why no reader takes a record of these rows beside `cases`, to which it adds theirs."""
    try:
        text = _text({"context": context, "benchmarks": rows}).decode()
        record = record_of(path, parse_json(path, RECORD, text))
        utc(path, record.date)
    except RecordError as error:
        return str(error).removeprefix(f"{path}: ").removesuffix(f": {RECORD.advice}")
    except (ValueError, RecursionError):
        return "has half a character, a number that is none, or is nested too deeply"
    new = {(row.identity, row.repetition) for row in record.rows}
    if twice := new & cases:
        return f"has {twice.pop()[0]} twice"
    cases |= new
    return None


def _piece(line: bytes) -> dict[str, Any] | None:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    if not line.startswith(b"{"):  # as in journals of earlier versions
        check, _, line = line.partition(b" ")
        if check != b"%08x" % zlib.crc32(line):
            return None
    try:
        piece = json.loads(line, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    whole = (
        isinstance(piece, dict)
        and isinstance(piece.get("context"), dict)
        and isinstance(piece.get("benchmarks"), list)
    )
    return piece if whole else None


def _merged(old: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(old[key], value)
        for key, value in changed.items()
        if isinstance(value, dict) and isinstance(old.get(key), dict)
    }
    return {**old, **changed, **both}


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not path.is_file():
        # To read a pipe waits for whoever writes to it.
        raise RecordError(f"{path}: is no file: give a journal that a run left behind")
    try:
        file = path.open("rb+")
    except OSError as error:
        raise RecordError(f"{path}: cannot be opened ({error.strerror}): check the path") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError(f"{path}: its run is still alive") from None
        except OSError as error:
            raise RecordError(
                f"{path}: cannot be locked ({error.strerror}), so nobody knows whether its run is "
                "alive: copy it to another disk"
            ) from None
        if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
            raise HeldError(f"{path}: its run has just ended and wrote the record itself")
        yield file


def _text(document: dict[str, Any]) -> bytes:
    """ValueError for a number beyond all numbers, and for half a character."""
    return f"{json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()


def _write(text: bytes | None, wanted: Path) -> Path | None:
    for part in wanted.parent.glob(f"{escape(wanted.name)}.part*"):
        if re.fullmatch(r"\.part[0-9]+", part.name.removeprefix(wanted.name)):
            part.unlink(missing_ok=True)  # a record that the run had begun to write
    if text is None:
        return None
    part = wanted.with_name(f"{wanted.name}.part{os.getpid()}")
    try:
        with part.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return _name(part, wanted)
    finally:
        part.unlink(missing_ok=True)


def _is_in(document: dict[str, Any], record: Path) -> bool:
    """Did the run write its record, too? A power cut can bring the journal back."""
    rows = len(document["benchmarks"])

    def gist(whole: dict[str, Any]) -> list[Any]:
        entries = whole["benchmarks"][:rows]
        return [whole["context"]["date"], *((row["name"], row["real_time"]) for row in entries)]

    try:
        return gist(read_json(record, RECORD)) == gist(document)
    except (RecordError, KeyError, TypeError):
        return False


def _name(part: Path, wanted: Path) -> Path:
    """Names it `wanted`, or the first of the names beside that nobody has; replaces nothing."""
    endings = (f"-recovered-{n}" if n > 1 else "-recovered" if n else "" for n in count())
    for ending in endings:
        target = wanted.with_name(f"{wanted.stem}{ending}{wanted.suffix}")
        try:
            os.link(part, target)
        except FileExistsError:
            continue
        except OSError:  # a file system without links
            if target.exists():
                continue
            part.rename(target)
        return target
    raise AssertionError("count() does not end")
