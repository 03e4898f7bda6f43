"""Figures as a table, and listings of the code."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from gemm_report.text import columns, percent

from gemm_sass.instruction import BYTES
from gemm_sass.kernels import Kernel
from gemm_sass.loop import CACHE, Figures, hot_loop

Row = tuple[Kernel, Figures]

HEAD = ["registers", "loop", "KiB", "math", "share", "moved", "LDS.32/64/128", "local"]


def cells(figures: Figures) -> list[str]:
    """The cells under HEAD."""
    registers, local = str(figures.registers), str(figures.local)
    if not figures.instructions:
        return [registers, *("-" for _ in HEAD[1:-1]), local]

    size = BYTES * figures.instructions
    return [
        registers,
        str(figures.instructions),
        f"{size / 1024:.1f}{'!' if size > CACHE else ''}",
        f"{figures.multiply_adds} {figures.kind}",
        percent(figures.share),
        percent(figures.moved_share),
        "/".join(str(figures.loads[width]) for width in (32, 64, 128)),
        local,
    ]


def table(rows: Sequence[Row]) -> str:
    """One line for each architecture, under the name of the function."""
    lines = [["", *HEAD], *([f"  {one.architecture}", *cells(has)] for one, has in rows)]
    head, *body = columns(lines, left=1).splitlines()
    text = [head]
    titles = (f"{one.source}: {one.function}" for one, _ in rows)
    for title, its in groupby(zip(titles, body, strict=True), key=itemgetter(0)):
        text += [title, *(line for _, line in its)]
    return "\n".join(text)


def listing(one: Kernel) -> str:
    """The instructions of a kernel with their stall cycles: `|` marks the hot loop."""
    loop = set(hot_loop(one.code)[1])
    lines = [f"{one.source}: {one.function}, {one.architecture}"]
    for at, each in enumerate(one.code):
        text = f"{each.guard:5} {each.opcode} {', '.join(each.operands)}"
        lines.append(f"{BYTES * at:6x} {'|' if at in loop else ' '} {each.stall:2} {text}".rstrip())
    return "\n".join(lines)
