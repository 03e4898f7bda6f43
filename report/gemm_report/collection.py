"""Many records: those of a folder, in the order in which they were made."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gemm_report.document import BAD_INPUT, InputError, RecordError
from gemm_report.record import Record, read_record
from gemm_report.terminal import complain

# Folders whose files are not part of a device's history.
_APART = ("equal", "explained", "limit", "other_implementations")


def record_paths(folder: Path) -> list[Path]:
    """Files in `folder`, or in its folders of devices, that should be records, oldest name first.

    RecordError where there is no such folder, or none in it.
    """
    if not folder.is_dir():
        raise RecordError(f"{folder}: is no folder: give one with records, such as results")
    apart = folder.name in _APART
    inner = [each for each in folder.glob("*/") if each.name not in _APART and not apart]
    found = [
        path
        for place in (folder, *inner)
        for end in ("json", "json.gz")
        for path in place.glob(f"*.{end}")
        # Beside the folders of devices lies the schema.
        if not path.name.startswith(".") and path.name != "schema.json"
    ]
    if not found:
        raise RecordError(f"{folder}: has no record: give a folder with records, such as results")
    return sorted(found, key=lambda path: (path.name, str(path)))


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
