"""Decoding of lines of cuobjdump, and such lines for the other tests."""

from collections.abc import Collection, Iterable

import pytest

from gemm_sass.instruction import RZ, Instruction, instructions_in


def printed(text: str, guard: str = "", stall: int = 1) -> str:
    """An instruction as cuobjdump prints it."""
    bits = f"/* 0x000000ff00ff7624 */\n{' ' * 60}/* 0x{stall << 41:016x} */\n"
    return f"        /*0010*/ {guard:>18} {text} ;   {bits}"


def ffma(d: int, a: int, b: int, c: int, keep: Collection[int] = (), stall: int = 1) -> str:
    """An FFMA of four registers, with reuse flags for some slots."""
    factors = [f"{register(r)}{'.reuse' * (slot in keep)}" for slot, r in enumerate((a, b, c))]
    return printed(f"FFMA {', '.join([register(d), *factors])}", stall=stall)


def lds(d: int, address: int, width: int = 128, guard: str = "") -> str:
    """A load from shared memory."""
    modifier = {8: ".U8", 16: ".U16", 32: ""}.get(width, f".{width}")
    return printed(f"LDS{modifier} {register(d)}, [{register(address)}]", guard)


def branch(target: int, guard: str = "") -> str:
    """A branch to the instruction with this index."""
    return printed(f"BRA {16 * target:#x}", guard)


def other(name: str = "NOP", *registers: int) -> str:
    """Any other instruction with register operands."""
    return printed(f"{name} {', '.join(map(register, registers))}")


def register(number: int) -> str:
    return "RZ" if number == RZ else f"R{number}"


def decoded(lines: Iterable[str]) -> tuple[Instruction, ...]:
    return tuple(instructions_in("".join(lines)))


EXIT = printed("EXIT")

# --- The test ------------------------------------------------------------------------------------

PRINTED = [
    ("LOP3.LUT R3, R2, 0xffffffe0, RZ, 0xc0, !PT", "LOP3", "R3", "R2"),
    ("BRA 0x2240", "BRA", "", ""),
    ("LDS.U.128 R44, [R5.X4+0x280]", "LDS", "R44", "R5"),
    ("FFMA R182, R44.reuse, R93, R65", "FFMA", "R182", "R44.reuse R93 R65"),
    ("FFMA R196, -R196, R252.reuse, 1", "FFMA", "R196", "R196 R252.reuse"),
    ("HFMA2.MMA R2, -RZ, RZ, 0, 0", "HFMA2", "R2", ""),
    ("LDGSTS.E.BYPASS.128 [R27], [R14.64], !P2", "LDGSTS", "", "R27 R14"),
    ("ULOP3.LUT UR7, URZ, UR11, URZ, 0x33, !UPT", "ULOP3", "", ""),
    ("IMAD.WIDE R10, R7.reuse, c[0x0][0x168], R8", "IMAD", "R10", "R7.reuse R8"),
    ("STS [R95.X4], R12", "STS", "", "R95 R12"),
    ("STG.E.64 desc[UR4][R2.64+0x10], R12", "STG", "", "R2 R12"),
    ("HADD2.F32 R53, -RZ, R32.reuse.H0_H0", "HADD2", "R53", "R32.reuse"),
    ("ISETP.GE.AND P0, PT, R0, c[0x0][0x168], PT", "ISETP", "", "R0"),
    ("HGMMA.64x8x8.F32.TF32 R24, R32, gdesc[UR4], R24, gsb0", "HGMMA", "R24", "R32 R24"),
    ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R16+URZ], R7", "SYNCS", "", "R16 R7"),
    ("UTMALDG.2D [UR12], [UR4]", "UTMALDG", "", ""),
    ("SHFL.BFLY PT, R5, R4, 0x10, 0x1f", "SHFL", "", "R4"),
    ("ATOMG.E.ADD.STRONG.GPU PT, R5, [R2.64], R7", "ATOMG", "", "R2 R7"),
    ("BAR.SYNC R6, 0x80", "BAR", "", "R6"),
    ("RET.REL.NODEC R4 0x0", "RET", "", "R4"),
    ("S2R R0, SR_TID.X", "S2R", "R0", ""),
    ("EXIT", "EXIT", "", ""),
]


@pytest.mark.parametrize(("text", "name", "result", "read"), PRINTED, ids=lambda it: it[:30])
def test_registers_are_read(text: str, name: str, result: str, read: str) -> None:
    (one,) = decoded([printed(text)])
    assert one.name == name
    assert (register(one.result) if one.result is not None else "") == result
    sources = [f"R{it}{'.reuse' * kept}" for _, it, kept in one.sources if it != RZ]
    assert sources == read.split()


def test_slots_count_the_operands_after_the_result() -> None:
    (one,) = decoded([printed("FFMA R6, R14, 0.75, R6.reuse")])
    assert one.sources == ((0, 14, False), (2, 6, True))
    (one,) = decoded([printed("STS.128 [R4+0x10], R8")])
    assert one.sources == ((0, 4, False), (1, 8, False))


def test_loads_have_widths() -> None:
    for width in (8, 16, 32, 64, 128):
        assert decoded([lds(4, 2, width)])[0].width == width


def test_guards_and_stalls() -> None:
    plain, guarded, never = decoded(
        [other(), printed("ISETP.GE P1, R2, R3", "@!UP0", 11), lds(RZ, RZ, 32, "@!PT")]
    )
    assert (plain.guard, plain.stall, plain.never_runs) == ("", 1, False)
    assert (guarded.guard, guarded.opcode, guarded.stall) == ("@!UP0", "ISETP.GE", 11)
    assert never.never_runs


@pytest.mark.parametrize(
    ("text", "guard", "target", "ends"),
    [
        ("BRA 0x190", "", 0x19, True),
        ("BRA 0x190", "@P1", 0x19, False),
        ("BRA P2, 0x190", "", 0x19, False),
        ("BRA.U UP0, 0x190", "", 0x19, False),
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
        /*152a0*/                  NOP;                                   /* 0x0000000000007918 */
                                                                          /* 0x000fc00000000000 */
		..........
"""
    move, nop = instructions_in(listing)
    assert (move.guard, move.opcode, move.stall) == ("@!P0", "IMAD.MOV.U32", 1)
    assert move.operands == ("R5", "RZ", "RZ", "RZ")
    assert (nop.guard, nop.opcode, nop.operands, nop.stall) == ("", "NOP", ("",), 0)
