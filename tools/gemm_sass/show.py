"""Figures as a table for the terminal, as Markdown and as JSON; and the code itself, readable."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from gemm_report.columns import columns

from gemm_sass.instruction import RZ, Instruction
from gemm_sass.loop import Figures, decoded, generation, hot_loop, of_one_bank, unserved
from gemm_sass.objects import Named

Row = tuple[Named, Figures]

# fmt: off
HEAD = [
    "registers", "loop", "math", "share", "one-bank", "conflicts", "LDS.32", "64", "128", "/math",
    "LDGSTS", "TMA", "STS", "BAR", "SYNCS", "use", "shortest", "stalls", "LDL", "STL",
]
# fmt: on


def cells(figures: Figures) -> list[str]:
    """What stands under HEAD."""
    numbers = [str(figures.local_loads), str(figures.local_stores)]
    if not figures.instructions:
        return [str(figures.registers), *("-" for _ in HEAD[1:-2]), *numbers]
    per, ffma = figures.multiply_adds, figures.count("FFMA")
    loads = [figures.loads.get(width, 0) for width in (32, 64, 128)]
    return [
        str(figures.registers),
        str(figures.instructions),
        f"{per} {figures.kind}",
        f"{100 * figures.share:.1f} %",
        *(
            f"{100 * count / ffma:.1f} %" if ffma else "-"
            for count in (figures.one_bank, figures.conflicts)
        ),
        *map(str, loads),
        f"{sum(figures.loads.values()) / per:.3f}",
        str(figures.count("LDGSTS")),
        str(figures.count("UTMALDG") + figures.count("UBLKCP")),
        *(str(figures.count(name)) for name in ("STS", "BAR", "SYNCS")),
        "-" if figures.median_use is None else f"{figures.median_use:g}",
        "-" if figures.shortest_use is None else str(figures.shortest_use),
        str(figures.stalls),
        *numbers,
    ]


def table(rows: Sequence[Row]) -> str:
    """A line for each architecture under the name of its function."""
    lines = [["", *HEAD], *([f"  {one.kernel.architecture}", *cells(has)] for one, has in rows)]
    head, *body = columns(lines, left=1).splitlines()
    text, last = [head], ("", "")
    for (one, _), line in zip(rows, body, strict=True):
        if last != (one.source, one.function):
            last = (one.source, one.function)
            text.append(f"{one.source}: {one.function}")
        text.append(line)
    return "\n".join(text)


def markdown(rows: Sequence[Row]) -> str:
    """The table for a page of notes, with fewer columns."""
    head = ["kernel", "on", *HEAD[:6], "LDS 32/64/128", "copies", "use", "shortest", "stalls"]
    lines = [head, ["---"] * 2 + ["---:"] * (len(head) - 2)]
    for one, has in rows:
        cell = dict(zip(HEAD, cells(has), strict=True))
        ways = [name for name in ("LDGSTS", "TMA", "STS") if cell[name] not in ("0", "-")]
        cell["kernel"], cell["on"] = f"`{one.function}`", one.kernel.architecture
        cell["LDS 32/64/128"] = f"{cell['LDS.32']}/{cell['64']}/{cell['128']}"
        cell["copies"] = ", ".join(f"{cell[name]} {name}" for name in ways) or "-"
        lines.append([cell[name] for name in head])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_json(rows: Sequence[Row]) -> str:
    """All figures, with all opcodes of the loop."""

    def entry(one: Named, has: Figures) -> dict[str, Any]:
        named = {"source": one.source, "function": one.function}
        named |= {"architecture": one.kernel.architecture, "compiler": one.kernel.compiler}
        return named | dataclasses.asdict(has) | {"share": has.share}

    return json.dumps([entry(*row) for row in rows], indent=2)


def listing(one: Named) -> str:
    """The instructions of a kernel: `|` marks the hot loop, `!` three sources of one bank."""
    code = decoded(one.kernel)
    _, loop = hot_loop(code, generation(one.kernel.architecture))
    hot = set(loop)
    lines = [f"{one.source}: {one.function}, {one.kernel.architecture}"]
    for at, each in enumerate(code):
        bank = "!" if each.name == "FFMA" and of_one_bank(unserved(code, at)) else " "
        text = spelled(each, at, generation(one.kernel.architecture))
        mark = "|" if at in hot else " "
        lines.append(f"{16 * at:6x} {mark}{bank} {each.stall:2} {each.guard:5} {text}".rstrip())
    return "\n".join(lines)


def spelled(each: Instruction, at: int, generation: int) -> str:
    """Its mnemonic, with the registers of a product, the width of a load, the aim of a branch."""

    def register(number: int, kept: bool = False) -> str:
        return f"{'RZ' if number == RZ else f'R{number}'}{'.reuse' if kept else ''}"

    sources = ", ".join(register(number, each.keeps(slot)) for slot, number in each.sources)
    if each.name in ("FFMA", "DFMA"):
        return f"{each.name} {register(each.result)}, {sources}"
    if each.name == "LDS":
        return f"LDS.{each.width} {register(each.result)}, [{sources}]"
    if (target := each.target(at, generation)) is not None:
        return f"{each.name} {16 * target:x}"
    return each.name
