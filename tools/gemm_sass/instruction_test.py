"""Decoding of lines of cuobjdump, and such lines for the other tests."""

from collections.abc import Iterable

import pytest

from gemm_sass.instruction import RZ, Instruction, instructions_in


def printed(text: str, guard: str = "", stall: int = 1) -> str:
    """An instruction as cuobjdump prints it."""
    bits = f"/* 0x000000ff00ff7624 */\n{' ' * 60}/* 0x{stall << 41:016x} */\n"
    return f"        /*0010*/ {guard:>18} {text} ;   {bits}"


def ffma(d: int, a: int, b: int, c: int) -> str:
    """An FFMA of four registers."""
    return other("FFMA", d, a, b, c)


def branch(target: int, guard: str = "") -> str:
    """A branch to the instruction with this index."""
    return printed(f"BRA {16 * target:#x}", guard)


def other(name: str = "NOP", *registers: int) -> str:
    """Any other instruction with register operands."""
    return printed(f"{name} {', '.join('RZ' if one == RZ else f'R{one}' for one in registers)}")


def decoded(lines: Iterable[str]) -> tuple[Instruction, ...]:
    return tuple(instructions_in("".join(lines)))


EXIT = printed("EXIT")


@pytest.mark.parametrize(
    ("text", "name", "registers"),
    [
        ("FFMA R182, R44.reuse, R93, R65", "FFMA", [182, 44, 93, 65]),
        ("FFMA R196, -R196, R252.reuse, 1", "FFMA", [196, 196, 252, None]),
        ("HFMA2.MMA R2, -RZ, RZ, 0, 0", "HFMA2", [2, RZ, RZ, None]),
        ("IMAD.WIDE R10, R7.reuse, c[0x0][0x168], R8", "IMAD", [10, 7, None, 8]),
        ("HGMMA.64x8x8.F32.TF32 R24, R32, gdesc[UR4], R24, gsb0", "HGMMA", [24, 32, None, 24]),
        ("EXIT", "EXIT", [None] * 4),
    ],
)
def test_registers_of_operands(text: str, name: str, registers: list[int | None]) -> None:
    (one,) = decoded([printed(text)])
    assert (one.name, [one.register(at) for at in range(4)]) == (name, registers)


@pytest.mark.parametrize(
    ("text", "guard", "target", "ends"),
    [
        ("BRA 0x190", "", 0x19, True),
        ("BRA 0x190", "@P1", 0x19, False),
        ("BRA P2, 0x190", "", 0x19, False),
        ("BRA.DIV ~URZ, 0x190", "", 0x19, False),
        ("EXIT", "", None, True),
        ("EXIT", "@!P0", None, False),
        ("BRX R4 -0x190", "", None, True),
        ("BSSY B0, 0x190", "", None, False),
    ],
)
def test_branches(text: str, guard: str, target: int | None, ends: bool) -> None:
    (one,) = decoded([printed(text, guard)])
    assert (one.target, one.ends_flow) == (target, ends)


def test_instructions_are_read_as_cuobjdump_prints_them() -> None:
    listing = """\
		Function : _Z1kPfPKfi
	.headerflags	@"EF_CUDA_SM75 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM75)"
        /*0020*/              @!P0 IMAD.MOV.U32 R5, RZ, RZ, RZ ;          /* 0x000000ffff058224 */
                                                                          /* 0x000fe200078e00ff */
        /*0030*/              @!PT LDS.U.128 R4, [R5.X4+0x280] ;          /* 0x000000ffff058224 */
                                                                          /* 0x000ff600078e00ff */
        /*152a0*/                  NOP;                                   /* 0x0000000000007918 */
                                                                          /* 0x000fc00000000000 */
		..........
"""
    move, load, nop = instructions_in(listing)
    assert (move.guard, move.opcode, move.stall) == ("@!P0", "IMAD.MOV.U32", 1)
    assert move.operands == ("R5", "RZ", "RZ", "RZ")
    assert (load.never_runs, load.width, load.stall) == (True, 128, 11)
    assert (nop.guard, nop.opcode, nop.operands, nop.stall) == ("", "NOP", ("",), 0)
