"""A table as lines of text."""

from collections.abc import Sequence

from gemm_report.terminal import printable


def columns(lines: Sequence[Sequence[str]], left: int) -> str:
    """Cells under each other: the first `left` columns flush left, the others flush right."""
    lines = [[printable(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def padded(line: Sequence[str]) -> str:
        cells = zip(line, widths, range(len(line)), strict=True)
        return "  ".join(c.ljust(width) if i < left else c.rjust(width) for c, width, i in cells)

    return "\n".join(map(padded, lines))
