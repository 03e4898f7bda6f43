"""Figures of hand-made machine code."""

from collections.abc import Sequence

import pytest

from gemm_sass.instruction import RZ
from gemm_sass.instruction_test import EXIT, branch, decoded, ffma, other, printed
from gemm_sass.kernels import Kernel
from gemm_sass.loop import Figures, figures, hot_loop, natural_loops

CLEAN = ffma(8, 0, 1, 8)


def of(lines: Sequence[str]) -> Figures:
    return figures(Kernel("simt/k", "k", "k", "sm_90a", "13.0", 64, decoded(lines)))


def loop_of(*body: str) -> list[str]:
    """A kernel with one loop of these instructions."""
    return [*body, branch(0, "@P1"), EXIT]


# What it shows -> the code, and the indices of its hot loop.
LOOPS = {
    "the one with most multiply-adds": (
        [
            *[CLEAN, branch(0, "@P1")],
            *[CLEAN, CLEAN, branch(2, "@P1")],
            *[CLEAN, other(), other(), other(), branch(5, "@P1")],
            EXIT,
        ],
        [2, 3, 4],
    ),
    "the innermost, though the outer has more": (
        [CLEAN, CLEAN, CLEAN, branch(2, "@P1"), CLEAN, branch(0, "@P1"), EXIT],
        [2, 3],
    ),
    "an inner loop with an eighth of the outer one": (
        [*[CLEAN] * 8, branch(7, "@P1"), branch(0, "@P1"), EXIT],
        [7, 8],
    ),
    "not a remainder loop with less": (
        [*[CLEAN] * 9, branch(8, "@P1"), branch(0, "@P1"), EXIT],
        [*range(11)],
    ),
    "a loop that waits inside does not hide it": (
        [other(), branch(0, "@P1"), CLEAN, branch(0, "@P2"), EXIT],
        [0, 1, 2, 3],
    ),
    # 1 leaves for 5 where it has to wait; from there one comes back to 2, across the epilogue.
    "not code behind the end that seldom runs": (
        [CLEAN, branch(5, "@P1"), CLEAN, branch(0, "@P2"), EXIT, other("SYNCS"), branch(2)],
        [0, 1, 2, 3],
    ),
    "code behind the end with multiply-adds": (
        [CLEAN, branch(4, "@P1"), branch(0, "@P2"), EXIT, CLEAN, branch(2)],
        [0, 1, 2, 4, 5],
    ),
    "none: a branch back into the middle of straight code": (
        [branch(3, "@P1"), CLEAN, EXIT, other(), branch(1)],
        [],
    ),
    "one that a jump by register enters": (
        [printed("BRX R2 -0x100"), CLEAN, branch(1, "@P1"), EXIT],
        [1, 2],
    ),
}


@pytest.mark.parametrize("shows", LOOPS)
def test_the_hot_loop_is(shows: str) -> None:
    code, loop = LOOPS[shows]
    assert hot_loop(decoded(code)) == ("FFMA" if loop else "", loop)


def test_a_loop_has_all_from_which_its_head_is_reached() -> None:
    code, _ = LOOPS["not code behind the end that seldom runs"]
    assert natural_loops(decoded(code)) == {frozenset({0, 1, 2, 3, 5, 6})}


@pytest.mark.parametrize(
    ("body", "kind", "multiply_adds", "moved"),
    [
        ([CLEAN, CLEAN, other("IADD3", 2, 2, 2)], "FFMA", 2, 0),
        ([ffma(8, 0, 1, 10), CLEAN], "FFMA", 2, 1),
        ([ffma(8, 8, 1, 10), CLEAN], "FFMA", 2, 1),
        ([ffma(8, 0, 1, RZ), printed("FFMA R8, R0, R1, 1")], "FFMA", 2, 0),
        ([CLEAN, CLEAN, other("HMMA", 8, 0, 1, 9)], "HMMA", 1, 0),
        ([CLEAN, other("IMAD", 1, 2, 3, 4)], "FFMA", 1, 0),
        ([other("HFMA2.MMA", 8, 0, 1, 8)], "HFMA2", 1, 0),
        # a move
        ([other("IMAD", 8, 1, 2, 3), other("IMAD", 8, RZ, RZ, 3)], "IMAD", 1, 0),
        ([other("IMAD", 8, RZ, RZ, 3)], "", 0, 0),
    ],
)
def test_multiply_adds_are_counted(
    body: list[str], kind: str, multiply_adds: int, moved: int
) -> None:
    has = of(loop_of(*body))
    assert (has.kind, has.multiply_adds, has.moved_accumulators) == (kind, multiply_adds, moved)
    assert has.share == (multiply_adds / (len(body) + 1) if kind else 0)
    assert has.moved_share == (moved / multiply_adds if kind == "FFMA" else None)


def test_loads_are_counted_by_width_and_spills_outside_the_loop_too() -> None:
    loads = [printed(f"LDS{width} R4, [R2]") for width in (".U16", "", "", ".64", ".128")]
    never = printed("LDS RZ, [RZ]", "@!PT")
    spills = [printed("LDL R3, [R1]"), printed("STL [R1], R3")]
    has = of([*loop_of(CLEAN, *loads, never), *spills])
    assert has.loads == {16: 1, 32: 2, 64: 1, 128: 1}
    assert (has.narrow_loads, has.local, has.instructions) == (4, 2, 8)
    assert of([]) == Figures(64, 0)
