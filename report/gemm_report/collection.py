"""Many records: those of a folder, in the order in which they were made."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gemm_report.document import BAD_INPUT, InputError, RecordError
from gemm_report.record import Record, read_record
from gemm_report.terminal import complain

# Folders whose files are not part of a device's history.
_APART = ("calibration", "explained", "tuning", "other_implementations")


def record_paths(folder: Path) -> list[Path]:
    """Files in `folder`, or in its folders of devices, that should be records, oldest name first.

    RecordError where there is no such folder, or none in it.
    """
    if not folder.is_dir():
        raise RecordError(f"{folder}: is no folder: give one with records, such as results")
    names, inner = _listed(folder)
    found = [] if folder.name in _APART else [(name, name) for name in names]
    for place in sorted(inner.difference(_APART)):
        found += [(name, f"{place}/{name}") for name in _listed(folder / place)[0]]
    if not found:
        raise RecordError(f"{folder}: has no record: give a folder with records, such as results")
    return [folder / name for _, name in sorted(found)]


def _listed(folder: Path) -> tuple[list[str], set[str]]:
    """Names of what should be a record, and of folders."""
    names, inner = [], set()
    # What may not be looked into has nothing to offer.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            # A link that leads nowhere may have led to records: whoever reads it says so.
            lost = entry.is_symlink() and not Path(entry).exists()
            # Beside the folders of devices lie the schemas.
            if lost or name.endswith((".json", ".json.gz")):
                if not name.startswith(".") and not name.endswith("schema.json"):
                    names.append(name)
            elif entry.is_dir():
                inner.add(name)
    return names, inner


class Refusals:
    """Tells what is wrong with files that cannot be used: of any InputError in its `with` block."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, error: InputError) -> None:
        """One line on standard error."""
        self.count += 1
        complain(error)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, InputError):
            self.add(error)
        return isinstance(error, InputError)

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
