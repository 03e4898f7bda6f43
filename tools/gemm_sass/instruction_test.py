"""What the bits say: instructions that nvcc 13.0 made, and what nvdisasm 13 prints of them."""

import pytest

from gemm_sass.assembler import branch, ffma, lds, made, other
from gemm_sass.instruction import OPCODES, RZ, Instruction

PRINTED = [
    # LOP3.LUT R3, R2, 0xffffffe0, RZ, 0xc0, !PT
    (0x000FE400078EC0FFFFFFFFE002037812, "", "LOP3", "R2"),
    # @P0 BRA `(.L_x_0)
    (0x000FEA00038000000000042000000947, "@P0", "BRA", ""),
    # LDS.U.128 R44, [R5.X4+0x280]
    (0x000FE20000005C0000028000052C7984, "", "LDS", "R5"),
    # FFMA R182, R44.reuse, R93, R65
    (0x040FE400000000410000005D2CB67223, "", "FFMA", "R44.reuse R93 R65"),
    # HFMA2.MMA R2, -RZ, RZ, 0, 0
    (0x002FE200000001FF00000000FF027435, "", "HFMA2.MMA", ""),
    # LDGSTS.E.BYPASS.128 [R27], [R14.64], !P2
    (0x0003E2000D101C48000000000E1B7FAE, "", "LDGSTS", "R14 R27"),
    # @!PT LDS RZ, [RZ]
    (0x000FE2000000080000000000FFFFF984, "@!PT", "LDS", ""),
    # LDS.128 R84, [R16.X4+0x140]
    (0x002FE20000004C000001400010547984, "", "LDS", "R16"),
    # @!UP0 ULOP3.LUT UR7, URZ, UR11, URZ, 0x33, !UPT
    (0x000FC4000F8E333F0000000B3F078292, "@!UP0", "ULOP3", ""),
    # IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]
    (0x000FE400078E00FF00000A00FF017624, "", "IMAD", ""),
    # STS [R95.X4], R12
    (0x008FE800000048000000000C5F007388, "", "STS", "R95 R12"),
    # HADD2.F32 R53, -RZ, R32.reuse.H0_H0
    (0x104FE4000000410020000020FF357230, "", "HADD2", "R32.reuse"),
    # ISETP.GE.AND P0, PT, R0, c[0x0][0x168], PT
    (0x000FC80003F0627000005A0000007A0C, "", "ISETP", "R0"),
    # IMAD.WIDE R10, R7.reuse, c[0x0][0x168], R8
    (0x040FE400078E020800005A00070A7A25, "", "IMAD.WIDE", "R7.reuse R8"),
    # SHF.R.U64 R17, R6, 0x1e, R18
    (0x000FE200000012120000001E06117819, "", "SHF", "R6 R18"),
    # FFMA R11, R11, R11, UR5
    (0x000FE2000800000B000000050B0B7E23, "", "FFMA", "R11 R11"),
    # FFMA R6, R14, 0.75, R6
    (0x004FE200000000063F4000000E067823, "", "FFMA", "R14 R6"),
    # DADD R32, R32, R36
    (0x001E2200000000240000000020207229, "", "DADD", "R32 R36"),
    # HGMMA.64x256x16.F32 R24, gdesc[UR8], R24, UP0
    (0x000FE2000BF0081803E00000081879F0, "", "HGMMA", "R24"),
    # FFMA R196, R196, R252.reuse, 1
    (0x080FE400000000FC3F800000C4C47423, "", "FFMA", "R196 R252.reuse"),
    # SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R16+URZ], R7
    (0x000E22000800017F00000007100075A7, "", "SYNCS", "R16 R7"),
    # UTMALDG.2D [UR12], [UR4]
    (0x0001D800080080000000000C040075B4, "", "UTMALDG", ""),
    # HGMMA.64x8x8.F32.TF32 R24, R32, gdesc[UR4], R24, gsb0
    (0x000FE600080028180400000420187DF0, "", "HGMMA", "R32 R24"),
    # USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xd8
    (0x000E240008000600000000D8000079C8, "", "USETMAXREG", ""),
    # @P0 BREAK B2
    (0x000FEA00038000000000000000020942, "@P0", "BREAK", ""),
    # ENDCOLLECTIVE
    (0x01DFE20003800000000000000000791B, "", "ENDCOLLECTIVE", ""),
]


@pytest.mark.parametrize(("bits", "guard", "name", "read"), PRINTED, ids=lambda it: str(it)[:40])
def test_reads_what_nvdisasm_prints(bits: int, guard: str, name: str, read: str) -> None:
    one = Instruction(bits)
    assert (one.guard, one.name) == (guard, name)
    text = [
        f"R{register}{'.reuse' * one.keeps(slot)}"
        for slot, register in one.sources
        if register != RZ
    ]
    assert text == read.split()


def test_loads_have_widths() -> None:
    for width in (8, 16, 32, 64, 128):
        assert Instruction(lds(4, 2, width)).width == width
    assert Instruction(lds(4, 2)).result == 4


def test_control_bits() -> None:
    around = {"yields": (109, 1, 1), "read_barrier": (113, 3, 7), "keep": (122, 3, 7)}
    one = Instruction(made("FFMA", stall=11, waits=(116, 6, 0b100001), **around))
    assert (one.stall, one.waits) == (11, 0b100001)


@pytest.mark.parametrize("generation", [75, 80, 89, 90])
@pytest.mark.parametrize(("at", "target"), [(100, 3), (3, 100), (7, 7), (0, 70000), (70000, 0)])
def test_branches_lead_where_they_were_made_to(generation: int, at: int, target: int) -> None:
    one = Instruction(branch(at, target, generation=generation))
    assert one.target(at, generation) == target


def test_a_loop_of_sm_75_and_one_of_sm_90_as_nvcc_made_them() -> None:
    # sm_75 at 0x500: @P1 BRA 0x190; sm_90 at 0x550: @P1 BRA 0x1e0
    assert Instruction(0x000FEA000383FFFFFFFFFC8000001947).target(0x500 // 16, 75) == 0x190 // 16
    assert Instruction(0x000FEC000383FFFFFFFFFFFC00201947).target(0x550 // 16, 90) == 0x1E0 // 16


def test_what_runs_on_after_a_branch() -> None:
    assert Instruction(branch(3, 1)).ends_flow
    assert not Instruction(branch(3, 1, guard=2)).ends_flow
    assert not Instruction(branch(3, 1) ^ 1 << 91).ends_flow, "BRA.DIV leaves the loop or does not"
    assert Instruction(made("EXIT", 4)).ends_flow
    assert not Instruction(made("EXIT", 4, guard=1)).ends_flow
    assert not Instruction(other("NOP")).ends_flow


def test_a_load_that_never_runs_is_known() -> None:
    assert Instruction(lds(RZ, RZ, 32, guard=15)).never_runs
    assert not Instruction(lds(RZ, RZ, 32)).never_runs
    assert not Instruction(lds(RZ, RZ, 32, guard=9)).never_runs


def test_an_unknown_opcode_is_a_number_and_reads_nothing() -> None:
    assert 0x1FF not in OPCODES
    one = Instruction(0x1FF | ffma(1, 2, 3, 4))
    assert (one.name, one.sources) == ("0x1ff", ())
