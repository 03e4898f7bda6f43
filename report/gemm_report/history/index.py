"""What history needs of every record of a folder, kept so that each is read once.

The records stay the truth: the index can be deleted at any time, and is made anew where it is
damaged or of another version. A file is read again when its size or its time of change differs.

It is one file: a checksum of all that follows, a line of JSON, and the points of all records, one
record behind another. Of two processes that write it the later one wins, and what only the other
one knew is read again.
"""

import contextlib
import hashlib
import json
import os
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gemm_report.collection import Refusals, record_names
from gemm_report.document import InputError, RecordError
from gemm_report.history.reading import Reading, Timing, read

# Raise it when the format, or what is read from a record, changes.
VERSION = 2
FOLDER = ".gemm_report"
# One row of a record. Seconds are NaN where it failed, the clock and the share where unknown.
POINT = np.dtype(
    [
        ("case", "<u4"),
        ("fingerprint", "<u4"),
        ("seconds", "<f8"),
        ("sm_hz", "<f4"),
        ("throttled", "<f4"),
    ]
)

State = tuple[int, int]


@dataclass(frozen=True)
class Entry:
    """A record, and the file that has it."""

    file: str
    date: str
    device: str
    complete: bool
    setting: tuple[str | None, ...]

    @property
    def path(self) -> Path:
        """Made when it is asked for: most are not."""
        return Path(self.file)


@dataclass(frozen=True)
class Content:
    """All records in the order of time; `points[i]` belongs to `entries[record[i]]`."""

    entries: tuple[Entry, ...]
    points: NDArray[Any]
    record: NDArray[np.int32]
    cases: Mapping[int, tuple[str, float]]
    fingerprints: Mapping[int, str]


class Index:
    """The index of a folder, read when it is made and written when it is left.

    What goes wrong with it is told in `remarks`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remarks: list[str] = []
        self._path = _place(folder)
        if self._path is None:
            self.remarks.append(f"{folder}: there is no place for an index: it is made for once")
        self._files: dict[str, list[Any]] = {}  # size, time of change, key of record, complaint
        self._records: dict[str, list[Any]] = {}  # date, device, complete, setting
        self._cases: dict[str, list[Any]] = {}  # number, FLOP
        self._fingerprints: dict[str, int] = {}  # from 1: 0 is what has none
        self._findings: dict[str, list[int]] = {}
        self._points: dict[str, bytes] = {}  # of each record
        self._changed = False
        self._load()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._save()

    def update(self, refusals: Refusals) -> int:
        """Reads what is new, forgets what is gone, and tells what is no record; how many it read.

        RecordError where the folder has no file that could be one.
        """
        found: dict[str, State] = {}
        for name in record_names(self.folder):
            if not name.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in name):
                refusals.add(RecordError(f"{self.folder / name}: its name is no UTF-8: rename it"))
            elif state := _state(f"{self.folder}/{name}"):
                found[name] = state
            elif (self.folder / name).is_symlink():
                refusals.add(RecordError(f"{self.folder / name}: a link to no file: remove it"))
        new = []
        for path, state in found.items():
            size, changed, _, complaint = self._files.get(path, [None] * 4)
            if (size, changed) != state:
                new.append(path)
            elif complaint is not None:
                refusals.add(RecordError(f"{self.folder / path}: {complaint}"))
        gone = self._files.keys() - found.keys()
        self._changed |= bool(new or gone)
        for path in gone:
            del self._files[path]
        for path, reading in _read_all(self.folder, new):
            if isinstance(reading, Reading):
                self._files[path] = [*found[path], self._added(reading), None]
            elif reading is not None:
                self._files[path] = [*found[path], None, reading]
                refusals.add(RecordError(f"{self.folder / path}: {reading}"))
        return len(new)

    def content(self) -> Content:
        """All that is known of the records."""
        # Of copies the first.
        paths = {key: path for path, (*_, key, _) in sorted(self._files.items(), reverse=True)}
        paths.pop(None, None)
        keys = sorted(paths, key=lambda key: (self._records[key][0], paths[key]))
        points = [self._points[key] for key in keys]
        counts = [len(each) // POINT.itemsize for each in points]
        return Content(
            entries=tuple(
                Entry(f"{self.folder}/{paths[key]}", *self._records[key]) for key in keys
            ),
            points=np.frombuffer(b"".join(points), POINT),
            record=np.repeat(np.arange(len(keys), dtype=np.int32), counts),
            cases={number: (key, flop) for key, (number, flop) in self._cases.items()},
            fingerprints={number: text for text, number in self._fingerprints.items()},
        )

    def findings(self) -> dict[bytes, tuple[int, ...]]:
        """What was proposed for windows of points, by `window_key`."""
        return {bytes.fromhex(key): tuple(places) for key, places in self._findings.items()}

    def keep_findings(
        self, new: Mapping[bytes, Sequence[int]], outdated: Collection[bytes] = ()
    ) -> None:
        """For the next time."""
        self._findings |= {key.hex(): [int(each) for each in new[key]] for key in new}
        for key in outdated:
            del self._findings[key.hex()]
        self._changed |= bool(new or outdated)

    def _added(self, reading: Reading) -> str:
        """Under which key the record is kept now."""
        key = reading.digest.hex()
        self._records[key] = [reading.date, reading.device, reading.complete, reading.setting]
        self._points[key] = np.array([self._point(t) for t in reading.timings], POINT).tobytes()
        return key

    def _point(self, timing: Timing) -> tuple[float, ...]:
        case, _ = self._cases.setdefault(timing.case, [len(self._cases), timing.flop])
        code = 0
        if timing.fingerprint is not None:
            code = self._fingerprints.setdefault(timing.fingerprint, len(self._fingerprints) + 1)
        known = (timing.seconds, timing.sm_hz, timing.throttled_share)
        return case, code, *(float("nan") if each is None else each for each in known)

    def _load(self) -> None:
        if self._path is None or not self._path.is_file():
            return
        try:
            content = self._path.read_bytes()
        except OSError as error:
            self.remarks.append(f"{self._path}: the index cannot be read ({error.strerror})")
            return
        line, _, points = content[_CHECKSUM:].partition(b"\n")
        if _checksum(content[_CHECKSUM:]) != content[:_CHECKSUM]:
            self.remarks.append(f"{self._path}: the index is damaged: it is made anew")
        elif (kept := json.loads(line))["version"] != VERSION:
            self.remarks.append(
                f"{self._path}: the index is of another version of gemm_report: it is made anew"
            )
        else:
            self._files, self._cases = kept["files"], kept["cases"]
            self._fingerprints, self._findings = kept["fingerprints"], kept["findings"]
            start = 0
            for key, (*record, setting, size) in kept["records"].items():
                self._records[key] = [*record, tuple(setting)]
                self._points[key] = points[start : start + size]
                start += size

    def _save(self) -> None:
        if self._path is None or not self._changed:
            return
        used = {key for *_, key, _ in self._files.values()}
        keys = [key for key in self._records if key in used]
        kept = {
            "version": VERSION,
            "files": self._files,
            "records": {key: [*self._records[key], len(self._points[key])] for key in keys},
            "cases": self._cases,
            "fingerprints": self._fingerprints,
            "findings": self._findings,
        }
        content = b"\n".join([json.dumps(kept).encode(), b"".join(self._points[k] for k in keys)])
        # It can be made again: where it cannot be written, the next time is slower.
        part = self._path.with_name(f"{self._path.name}.part{os.getpid()}")
        with contextlib.suppress(OSError):
            try:
                part.write_bytes(_checksum(content) + content)
                part.replace(self._path)
            finally:
                part.unlink(missing_ok=True)


_CHECKSUM = 16


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM).digest()


def window_key(values: NDArray[np.float64]) -> bytes:
    """By which what was found in a window of points is found again."""
    return hashlib.blake2b(np.ascontiguousarray(values), digest_size=16).digest()


def _place(folder: Path) -> Path | None:
    """Beside the records; where that cannot be written, in the cache of the user, or nowhere."""
    if not folder.is_dir():
        # Whoever looks for records in it refuses it.
        return None
    name = hashlib.blake2b(os.fsencode(folder.resolve()), digest_size=8).hexdigest()
    places = [folder / FOLDER / "index"]
    # Whoever runs a container need have no home.
    with contextlib.suppress(RuntimeError):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        places.append(cache / "gemm_report" / f"{name}.index")
    for place in places:
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            # A new one is written beside it.
            if all(os.access(each, os.W_OK) for each in (place.parent, place) if each.exists()):
                return place
    return None


def _state(path: str) -> State | None:
    # It may be gone since the folder was read.
    with contextlib.suppress(OSError):
        # Path.stat takes three times as long.
        status = os.stat(path)  # noqa: PTH116
        return status.st_size, status.st_mtime_ns
    return None


def forked() -> BaseContext:
    """For processes that begin with all that is in memory, which is not Python 3.14's default."""
    return get_context("fork" if "fork" in get_all_start_methods() else None)


def _read_all(folder: Path, paths: Sequence[str]) -> Iterator[tuple[str, Reading | str | None]]:
    """Each with what it holds, or what is wrong with it; None where it is gone."""
    workers = len(os.sched_getaffinity(0))
    if workers == 1 or len(paths) < 32:
        yield from ((path, _read_one(folder / path)) for path in paths)
        return
    # Ctrl-C reaches them as well; where one dies of it, the pool may wait for it for ever.
    ignore = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(workers, forked(), signal.signal, ignore) as pool:
        readings = pool.map(_read_one, [folder / path for path in paths], chunksize=16)
        yield from zip(paths, readings, strict=True)


def _read_one(path: Path) -> Reading | str | None:
    try:
        return read(path)
    except InputError as error:
        return str(error).removeprefix(f"{path}: ") if path.exists() else None
