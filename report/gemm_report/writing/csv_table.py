"""Tables as CSV. In a spreadsheet that opens one, no text of ours becomes a formula."""

import csv
from collections.abc import Iterable
from pathlib import Path


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Numbers with all their digits; an empty cell is what is not known."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(cell, header))
        for row in rows:
            writer.writerow(map(cell, row))


def cell(value: object) -> object:
    """What is written for a value: before a text that would be a formula stands an apostrophe."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) and not _is_number(value):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
