"""Files that are there as a whole or not at all, whatever happens while they are written."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from gemm_report.document import InputError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write what becomes `path` in the end. Its folder is made; InputError for no file."""
    # What a link points to is replaced, not the link: it may be /dev/stdout.
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is no file to write to: give the name of one")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        yield part
        part.replace(path)
    except OSError as error:  # a full disk does not say which file
        error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)
