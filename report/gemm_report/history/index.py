"""What history needs of every record of a folder, kept so that each is read once.

The records stay the truth: the index can be deleted at any time, and is made anew where it is
damaged or of another version. A file is read again when its size or its time of change differs.

SQLite with the points of a record as one blob, measured on 10,000 records of 300 rows (seconds of
CPU time to write all, to add a record, to read all): 0.17, 0.00, 0.09. Parquet, which has to be
written anew to grow: 0.51, 0.49, 0.30, but 31 instead of 82 MB. SQLite with a row for each point:
2.41, 0.00, 1.37. And SQLite is in the standard library, and lets several processes write.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gemm_report.collection import Refusals, record_names
from gemm_report.document import InputError, RecordError
from gemm_report.history.reading import Reading, read

# Raise it when a table, or what is read from a record, changes.
VERSION = 1
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
# Records that are added at once: a run that is killed keeps the rest.
_BATCH = 256
_PATIENCE_SECONDS = 60.0
_TABLES = """
create table file (path text primary key, size int, changed_ns int, digest blob, complaint text);
create table record (digest blob primary key, date text, device text, complete int, setting text,
                     points blob);
create table "case" (id integer primary key, key text unique, flop real);
create table fingerprint (id integer primary key, text text unique);
create table finding (key blob primary key, places text);
"""

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
    """The index of a folder. What goes wrong with it is told in `remarks`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remarks: list[str] = []
        self._path = _place(folder)
        if self._path is None:
            self.remarks.append(f"{folder}: there is no place for an index: it is made for once")
        self._connection = self._opened()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def update(self, refusals: Refusals) -> int:
        """Reads what is new, forgets what is gone, and tells what is no record; how many it read.

        RecordError where the folder has no file that could be one.
        """
        try:
            return self._update(refusals)
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from None
        except sqlite3.DatabaseError:
            self._start_again("is damaged")
            return self._update(refusals)

    def content(self) -> Content:
        """All that is known of the records."""
        with self._telling():
            # As they lie on the disk: SQLite takes twice as long to join and sort them.
            files = self._connection.execute("select digest, path from file").fetchall()
            records = self._connection.execute(
                "select date, digest, device, complete, setting, points from record"
            ).fetchall()
            cases = self._connection.execute('select id, key, flop from "case"').fetchall()
            fingerprints = self._connection.execute("select id, text from fingerprint").fetchall()
        # Of copies the first.
        paths = dict(sorted(files, key=itemgetter(1), reverse=True))
        # Another process may have forgotten a file in between.
        rows = sorted((date, paths[key], *rest) for date, key, *rest in records if key in paths)
        of_record = [row[-1] for row in rows]
        counts = [len(each) // POINT.itemsize for each in of_record]
        return Content(
            entries=tuple(
                Entry(f"{self.folder}/{path}", date, device, bool(complete), _shared(setting))
                for date, path, device, complete, setting, _ in rows
            ),
            points=np.frombuffer(b"".join(of_record), POINT),
            record=np.repeat(np.arange(len(rows), dtype=np.int32), counts),
            cases={number: (key, flop) for number, key, flop in cases},
            fingerprints=dict(fingerprints),
        )

    def findings(self) -> dict[bytes, tuple[int, ...]]:
        """What was proposed for windows of points, by `window_key`."""
        with self._telling():
            rows = self._connection.execute("select key, places from finding").fetchall()
        places = json.loads(f"[{','.join(places for _, places in rows)}]")
        return {key: tuple(each) for (key, _), each in zip(rows, places, strict=True)}

    def keep_findings(
        self, new: Mapping[bytes, Sequence[int]], outdated: Iterable[bytes] = ()
    ) -> None:
        """For the next time."""
        with self._telling(), self._writing() as connection:
            connection.executemany(
                "insert or replace into finding values (?, ?)",
                [(key, json.dumps(list(places))) for key, places in new.items()],
            )
            connection.executemany("delete from finding where key = ?", [(k,) for k in outdated])

    def _update(self, refusals: Refusals) -> int:
        found: dict[str, State] = {}
        for name in record_names(self.folder):
            if not name.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in name):
                refusals.add(RecordError(f"{self.folder / name}: its name is no UTF-8: rename it"))
            elif state := _state(f"{self.folder}/{name}"):
                found[name] = state
        rows = self._connection.execute("select path, size, changed_ns, complaint from file")
        known = {path: ((size, changed), complaint) for path, size, changed, complaint in rows}
        for path, (state, complaint) in known.items():
            if complaint is not None and found.get(path) == state:
                refusals.add(RecordError(f"{self.folder / path}: {complaint}"))
        new = {path: s for path, s in found.items() if path not in known or known[path][0] != s}
        gone = known.keys() - found.keys()
        batch: list[tuple[str, Reading | str]] = []
        for path, reading in _read_all(self.folder, list(new)):
            if reading is None:
                continue
            if isinstance(reading, str):
                refusals.add(RecordError(f"{self.folder / path}: {reading}"))
            batch.append((path, reading))
            if len(batch) == _BATCH:
                self._add(batch, new)
                batch.clear()
        self._add(batch, new)
        if new or gone:
            self._forget(gone)
        return len(new)

    def _add(self, batch: Sequence[tuple[str, Reading | str]], states: Mapping[str, State]) -> None:
        with self._writing() as connection:
            for path, reading in batch:
                bad = isinstance(reading, str)
                digest, complaint = (None, reading) if bad else (reading.digest, None)
                connection.execute(
                    "insert or replace into file values (?, ?, ?, ?, ?)",
                    (path, *states[path], digest, complaint),
                )
                if not bad:
                    self._add_record(connection, reading)

    def _add_record(self, connection: sqlite3.Connection, reading: Reading) -> None:
        timings = reading.timings
        connection.executemany(
            'insert into "case" (key, flop) values (?, ?) on conflict do nothing',
            [(t.case, t.flop) for t in timings if t.case not in self._cases],
        )
        connection.executemany(
            "insert into fingerprint (text) values (?) on conflict do nothing",
            [(t.fingerprint,) for t in timings if t.fingerprint not in self._fingerprints],
        )
        points = np.empty(len(timings), POINT)
        nan = float("nan")
        points["case"] = [self._number("case", "key", t.case, self._cases) for t in timings]
        points["fingerprint"] = [
            self._number("fingerprint", "text", t.fingerprint, self._fingerprints) for t in timings
        ]
        points["seconds"] = [nan if t.seconds is None else t.seconds for t in timings]
        points["sm_hz"] = [nan if t.sm_hz is None else t.sm_hz for t in timings]
        points["throttled"] = [
            nan if t.throttled_share is None else t.throttled_share for t in timings
        ]
        connection.execute(
            "insert or replace into record values (?, ?, ?, ?, ?, ?)",
            (
                reading.digest,
                reading.date,
                reading.device,
                reading.complete,
                json.dumps(reading.setting),
                points.tobytes(),
            ),
        )

    def _number(self, table: str, column: str, text: str | None, known: dict[Any, int]) -> int:
        if text not in known:
            query = f'select id from "{table}" where "{column}" = ?'
            known[text] = self._connection.execute(query, (text,)).fetchone()[0]
        return known[text]

    def _forget(self, gone: Iterable[str]) -> None:
        with self._writing() as connection:
            connection.executemany("delete from file where path = ?", [(path,) for path in gone])
            connection.execute(
                "delete from record where digest not in"
                " (select digest from file where digest is not null)"
            )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that waits for those of other processes."""
        self._connection.execute("begin immediate")
        try:
            yield self._connection
        except BaseException:
            self._connection.rollback()
            # Numbers that this transaction gave out are not in the index.
            self._forget_numbers()
            raise
        self._connection.commit()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _unusable(self, error: sqlite3.Error) -> InputError:
        return InputError(f"{self._path}: the index cannot be used ({error}): delete it")

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._ready()
        except _OtherVersionError:
            self._start_again("is of another version of gemm_report")
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from None
        except sqlite3.DatabaseError:
            self._start_again("is damaged")
        return self._connection

    def _ready(self) -> sqlite3.Connection:
        self._forget_numbers()
        connection = sqlite3.connect(
            self._path or ":memory:", timeout=_PATIENCE_SECONDS, isolation_level=None
        )
        try:
            # Power that fails may cost the index, which is then made anew.
            connection.execute("pragma synchronous = off")
            connection.execute("begin immediate")
            version = connection.execute("pragma user_version").fetchone()[0]
            tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
            if version != VERSION and (version or tables):
                raise _OtherVersionError
            if not tables:
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"pragma user_version = {VERSION}")
            connection.execute("commit")
        except BaseException:
            connection.close()
            raise
        return connection

    def _start_again(self, why: str) -> None:
        self.remarks.append(f"{self._path}: the index {why}; it is made anew")
        with contextlib.suppress(AttributeError):
            self._connection.close()
        if self._path is not None:
            for suffix in ("", "-journal"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        try:
            self._connection = self._ready()
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _forget_numbers(self) -> None:
        self._cases: dict[Any, int] = {}
        # 0 is what no row of the table has.
        self._fingerprints: dict[Any, int] = {None: 0}


class _OtherVersionError(Exception):
    pass


def window_key(values: NDArray[np.float64]) -> bytes:
    """By which what was found in a window of points is found again."""
    return hashlib.blake2b(np.ascontiguousarray(values), digest_size=16).digest()


def _place(folder: Path) -> Path | None:
    """Beside the records; where that cannot be written, in the cache of the user, or nowhere."""
    if not folder.is_dir():
        # Whoever looks for records in it refuses it.
        return None
    name = hashlib.blake2b(os.fsencode(folder.resolve()), digest_size=8).hexdigest()
    places = [folder / FOLDER / "index.sqlite"]
    # Whoever runs a container need have no home.
    with contextlib.suppress(RuntimeError):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        places.append(cache / "gemm_report" / f"{name}.sqlite")
    for place in places:
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            # SQLite writes its journal beside it.
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


_settings: dict[str, tuple[str | None, ...]] = {}


def _shared(text: str) -> tuple[str | None, ...]:
    if text not in _settings:
        _settings[text] = tuple(json.loads(text))
    return _settings[text]


def _read_all(folder: Path, paths: Sequence[str]) -> Iterator[tuple[str, Reading | str | None]]:
    """Each with what it holds, or what is wrong with it; None where it is gone."""
    workers = len(os.sched_getaffinity(0))
    if workers == 1 or len(paths) < 32:
        yield from ((path, _read_one(folder / path)) for path in paths)
        return
    with ProcessPoolExecutor(workers) as pool:
        readings = pool.map(_read_one, [folder / path for path in paths], chunksize=16)
        yield from zip(paths, readings, strict=True)


def _read_one(path: Path) -> Reading | str | None:
    try:
        return read(path)
    except InputError as error:
        return str(error).removeprefix(f"{path}: ") if path.exists() else None
