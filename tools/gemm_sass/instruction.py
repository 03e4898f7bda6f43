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
_REGISTER = re.compile(r"\bR(\d+|Z)\b((?:\.\w+)*)")
_WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128}
# Mnemonics whose first operand is read, and those whose result follows a predicate.
_NO_RESULT = ("BAR", "BRX", "NANOSLEEP", "RET", "WARPSYNC")
_RESULT_BEHIND = ("ATOM", "ATOMG", "ATOMS", "SHFL")


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

    @cached_property
    def result(self) -> int | None:
        """The first register that it writes; None if that is not its first operand."""
        found = _REGISTER.fullmatch(self.operands[0])
        return _number(found[1]) if found and self.name not in _NO_RESULT else None

    @cached_property
    def sources(self) -> tuple[tuple[int, int, bool], ...]:
        """The registers that it reads: slot, number, and whether the reuse cache keeps it.

        Slots count the operands after the result: an FFMA's accumulator is slot 2.
        """
        first = 1 if self.result is not None else 2 if self.name in _RESULT_BEHIND else 0
        return tuple(
            (slot, _number(number), ".reuse" in modifiers)
            for slot, operand in enumerate(self.operands[first:])
            for number, modifiers in _REGISTER.findall(operand)
        )

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


def _number(register: str) -> int:
    return RZ if register == "Z" else int(register)
