"""Many records: those of a folder, in the order in which they were made."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from gemm_report.document import BAD_INPUT, InputError, RecordError
from gemm_report.record import Record, read_record
from gemm_report.terminal import complain

# Folders whose files are not part of a device's history.
_APART = ("equal", "explained", "other_implementations")


def record_paths(folder: Path) -> list[Path]:
    """Files in `folder`, or in its folders of devices, that should be records, oldest name first.

    RecordError where there is no such folder, or none in it.
    """
    if not folder.is_dir():
        raise RecordError(f"{folder}: is no folder: give one with records, such as results")
    inner = [each for each in _entries(folder) if each.is_dir() and each.name not in _APART]
    places = inner if folder.name in _APART else [folder, *inner]
    found = [path for place in places for path in _entries(place) if _should_be_record(path)]
    if not found:
        raise RecordError(f"{folder}: has no record: give a folder with records, such as results")
    return sorted(found, key=lambda path: (path.name, str(path)))


def _entries(folder: Path) -> list[Path]:
    # What may not be looked into has nothing to offer.
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def _should_be_record(path: Path) -> bool:
    # Beside the folders of devices lie the schemas.
    if path.name.startswith(".") or path.name.endswith("schema.json"):
        return False
    # A link that leads nowhere may have led to records: whoever reads it says so.
    return path.name.endswith((".json", ".json.gz")) or (path.is_symlink() and not path.exists())


class Refusals:
    """Tells what is wrong with files that cannot be used: of any InputError in its `with` block."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if is_told := isinstance(error, InputError):
            self.count += 1
            complain(error)
        return is_told

    @property
    def exit_code(self) -> int:
        """With which a command ends that has nothing worse to say."""
        return BAD_INPUT if self.count else 0


def records_given(paths: Sequence[Path], refusals: Refusals) -> Iterator[Record]:
    """The records that are named, and those of the folders that are; what is none is told."""
    for path in paths:
        with refusals:
            for each in record_paths(path) if path.is_dir() else [path]:
                with refusals:
                    yield read_record(each)
