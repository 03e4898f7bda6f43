"""Tables: for a terminal, as Markdown, as CSV."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from gemm_report.terminal import printable


def columns(lines: Sequence[Sequence[str]], left: int) -> str:
    """Cells under each other: the first `left` columns flush left, the others flush right."""
    lines = [[printable(cell) for cell in line] for line in lines]
    padded = []
    for i, column in enumerate(zip(*lines, strict=True)):
        width = max(map(len, column))
        padded.append([c.ljust(width) if i < left else c.rjust(width) for c in column])
    return "\n".join(map("  ".join, zip(*padded, strict=True)))


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], left: int | None = None
) -> str:
    """A table whose cells may hold any text; all columns, or the first `left`, are flush left."""
    lines = [head, ["---" if left is None or i < left else "---:" for i in range(len(head))], *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Numbers with all their digits; an empty cell is not known; no text becomes a formula."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(cell, header))
        for row in rows:
            writer.writerow(map(cell, row))


def cell(value: object) -> object:
    """What is written for a value: a text that would be a formula gets an apostrophe."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
        try:
            float(value)
        except ValueError:
            return f"'{value}"
    return value
