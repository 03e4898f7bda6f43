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


def code(text: str) -> list[str]:
    """F multiplies, `.` does something else, E ends, X jumps by register, 3? and 3! branch to 3."""
    words = {"F": CLEAN, ".": other(), "E": EXIT, "X": printed("BRX R2 -0x100")}
    return [words.get(w) or branch(int(w[:-1]), "@P1" * (w[-1] == "?")) for w in text.split()]


@pytest.mark.parametrize(
    ("text", "loop", "why"),
    [
        ("F 0? F F 2? F . . . 5? E", [2, 3, 4], "it has most multiply-adds"),
        ("F F F 2? F 0? E", [2, 3], "it is the innermost, though the outer has more"),
        ("F F F F F F F F 7? 0? E", [7, 8], "it has an eighth of the outer one"),
        ("F F F F F F F F F 8? 0? E", [*range(11)], "the inner one is a remainder"),
        (". 0? F 0? E", [0, 1, 2, 3], "what waits inside does not hide it"),
        # 1 leaves for 5 where it has to wait; from there one comes back to 2, across the epilogue.
        ("F 5? F 0? E . 2!", [0, 1, 2, 3], "code behind the end seldom runs"),
        ("F 4? 0? E F 2!", [0, 1, 2, 4, 5], "code behind the end multiplies"),
        ("3? F E . 1!", [], "a branch back into the middle of straight code is no loop"),
        ("X F 1? E", [1, 2], "a jump by register may enter it"),
    ],
)
def test_the_hot_loop(text: str, loop: list[int], why: str) -> None:
    assert hot_loop(decoded(code(text))) == ("FFMA" if loop else "", loop), why


def test_a_loop_has_all_from_which_its_head_is_reached() -> None:
    assert natural_loops(decoded(code("F 5? F 0? E . 2!"))) == {frozenset({0, 1, 2, 3, 5, 6})}


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
