"""One instruction as cuobjdump prints it: its text, and the stall count of its 128 bits."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

RZ = 255
BYTES = 16  # of an instruction

_PRINTED = re.compile(
    r"/\*[0-9a-f]{4,}\*/ +(?:(@\S+) +)?([\w.]+) *(.*?) *; +/\* 0x[0-9a-f]{16} \*/\s+"
    r"/\* 0x([0-9a-f]{16}) \*/"
)
_STALL = 41  # bit 105 of the instruction: cycles until the warp may issue again
_REGISTER = re.compile(r"\bR(\d+|Z)\b")
_WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128}


@dataclass(frozen=True)
class Instruction:
    """A decoded instruction."""

    guard: str  # the predicate under which it runs, "@!P0"; empty if always
    opcode: str  # with its modifiers: "LDS.U.128"
    operands: tuple[str, ...]
    stall: int  # cycles

    @cached_property
    def name(self) -> str:
        """The mnemonic without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def never_runs(self) -> bool:
        """Under "@!PT": loads that the compiler inserts as padding."""
        return self.guard == "@!PT"

    def register(self, operand: int) -> int | None:
        """The number of the register in this operand; None without one."""
        found = _REGISTER.search(self.operands[operand]) if operand < len(self.operands) else None
        return (RZ if found[1] == "Z" else int(found[1])) if found else None

    @property
    def width(self) -> int:
        """Bits that a load or store moves per lane."""
        return next((_WIDTHS[each] for each in self.opcode.split(".") if each in _WIDTHS), 32)

    @property
    def target(self) -> int | None:
        """The index of the instruction that a BRA jumps to; None for others."""
        return int(self.operands[-1], 16) // BYTES if self.name == "BRA" else None

    @property
    def ends_flow(self) -> bool:
        """Whether the next instruction is reached only by a jump."""
        if self.guard:
            return False
        if self.name == "BRA":  # not BRA.DIV, nor one with a second predicate
            return self.opcode == "BRA" and len(self.operands) == 1
        return self.name in ("EXIT", "RET", "BRX")


def instructions_in(listing: str) -> Iterator[Instruction]:
    """The instructions of a function, in the order of their addresses."""
    for guard, opcode, operands, control in _PRINTED.findall(listing):
        stall = int(control, 16) >> _STALL & 15
        yield Instruction(guard, opcode, tuple(re.split(", *", operands)), stall)
