"""Figures of hand-made machine code."""

from collections.abc import Sequence

import pytest

from gemm_sass.instruction import RZ
from gemm_sass.instruction_test import EXIT, branch, decoded, ffma, lds, other, printed
from gemm_sass.kernels import Kernel
from gemm_sass.loop import Figures, figures, hot_loop, natural_loops

CLEAN = ffma(8, 0, 1, 8)  # of two banks


def of(lines: Sequence[str]) -> Figures:
    return figures(Kernel("simt/k", "k", "k", "sm_90a", "13.0", 64, decoded(lines)))


def loop_of(*body: str) -> list[str]:
    """A kernel with one loop of these instructions."""
    return [*body, branch(0, "@P1"), EXIT]


# --- Shares and moves ----------------------------------------------------------------------------


def test_the_share_is_of_all_instructions_of_the_loop() -> None:
    has = of(loop_of(CLEAN, CLEAN, CLEAN, other("IADD3", 2, 2, 2)))
    assert (has.kind, has.instructions, has.multiply_adds, has.share) == ("FFMA", 5, 3, 0.6)
    assert has.opcodes == {"FFMA": 3, "IADD3": 1, "BRA": 1}


@pytest.mark.parametrize(
    ("product", "moved"),
    [
        (ffma(8, 0, 1, 8), 0),
        (ffma(8, 0, 1, 10), 1),
        (ffma(8, 8, 1, 10), 1),
        (ffma(8, 0, 1, RZ), 0),
        (printed("FFMA R8, R0, R1, 1"), 0),
    ],
)
def test_a_result_in_another_register_is_a_move(product: str, moved: int) -> None:
    has = of(loop_of(product, CLEAN))
    assert has.moved_accumulators == moved
    assert has.per_ffma(moved) == moved / 2


def test_moves_are_of_ffma_alone() -> None:
    has = of(loop_of(ffma(8, 0, 2, 4), other("HMMA", 8, 0, 1, 8)))
    assert (has.per_ffma(1), has.moved_accumulators) == (None, 0)
    assert of([EXIT]).per_ffma(1) is None


# --- Which loop ----------------------------------------------------------------------------------


def test_the_loop_with_most_multiply_adds_is_hot() -> None:
    code = [
        *[CLEAN, branch(0, "@P1")],
        *[CLEAN, CLEAN, branch(2, "@P1")],
        *[CLEAN, other(), other(), other(), branch(5, "@P1")],
        EXIT,
    ]
    assert hot_loop(decoded(code)) == ("FFMA", [2, 3, 4])


def test_the_innermost_loop_is_hot_though_the_outer_has_more() -> None:
    code = [CLEAN, CLEAN, CLEAN, branch(2, "@P1"), CLEAN, branch(0, "@P1"), EXIT]
    assert hot_loop(decoded(code)) == ("FFMA", [2, 3])


@pytest.mark.parametrize(("straight", "hot"), [(7, "inner"), (8, "outer")])
def test_a_remainder_loop_is_not_hot(straight: int, hot: str) -> None:
    rest = [CLEAN, branch(straight, "@P1")]
    code = [*[CLEAN] * straight, *rest, branch(0, "@P1"), EXIT]
    assert hot_loop(decoded(code))[1][0] == (straight if hot == "inner" else 0)


def test_a_loop_that_waits_inside_does_not_hide_the_one_that_multiplies() -> None:
    code = [other(), branch(0, "@P1"), CLEAN, branch(0, "@P2"), EXIT]
    assert hot_loop(decoded(code)) == ("FFMA", [0, 1, 2, 3])


def test_code_behind_the_end_belongs_to_its_loop() -> None:
    # 1 leaves for 5 where it has to wait; from there one comes back to 2, across the epilogue.
    code = [
        *[CLEAN, branch(5, "@P1"), CLEAN, branch(0, "@P2")],
        EXIT,
        *[other("SYNCS"), branch(2)],
    ]
    assert natural_loops(decoded(code)) == {frozenset({0, 1, 2, 3, 5, 6})}
    assert hot_loop(decoded(code)) == ("FFMA", [0, 1, 2, 3]), "it seldom runs"


def test_code_behind_the_end_with_multiply_adds_is_hot() -> None:
    code = [CLEAN, branch(4, "@P1"), branch(0, "@P2"), EXIT, CLEAN, branch(2)]
    assert hot_loop(decoded(code)) == ("FFMA", [0, 1, 2, 4, 5])


def test_a_branch_back_into_the_middle_of_straight_code_is_no_loop() -> None:
    code = [branch(3, "@P1"), CLEAN, EXIT, other(), branch(1)]
    assert natural_loops(decoded(code)) == set()
    assert of(code).instructions == 0


def test_jumps_by_register_may_enter_anywhere() -> None:
    code = [printed("BRX R2 -0x100"), CLEAN, branch(1, "@P1"), EXIT]
    assert hot_loop(decoded(code)) == ("FFMA", [1, 2])


@pytest.mark.parametrize("name", ["HMMA", "IMMA", "DFMA", "HFMA2.MMA", "IMAD"])
def test_other_kinds_of_multiply_adds_count(name: str) -> None:
    has = of(loop_of(other(name, 8, 0, 1, 8), other()))
    assert (has.kind, has.multiply_adds) == (name.removesuffix(".MMA"), 1)


def test_tensor_cores_come_before_ffma_and_that_before_integers() -> None:
    both = loop_of(CLEAN, CLEAN, other("IMAD", 1, 2, 3, 4))
    assert of(both).kind == "FFMA"
    assert of(loop_of(CLEAN, CLEAN, other("HMMA", 8, 0, 1, 8))).kind == "HMMA"


def test_a_move_is_no_multiply_add() -> None:
    assert of(loop_of(other("IMAD", 8, RZ, RZ, 3))).kind == ""
    assert of(loop_of(other("IMAD", 8, 1, 2, 3), other("IMAD", 8, RZ, RZ, 3))).multiply_adds == 1


def test_a_kernel_without_a_loop_has_no_figures_of_one() -> None:
    has = of([CLEAN, EXIT])
    assert (has.kind, has.instructions, has.share, has.registers) == ("", 0, 0.0, 64)
    assert of([]) == Figures(64, 0)


# --- Loads, spills, stalls -----------------------------------------------------------------------


def test_loads_are_counted_by_width() -> None:
    has = of(loop_of(CLEAN, *(lds(4, 2, width) for width in (8, 32, 32, 64, 128))))
    assert has.loads == {8: 1, 32: 2, 64: 1, 128: 1}
    assert has.narrow_loads == 4


def test_a_load_that_never_runs_is_an_instruction_and_no_load() -> None:
    has = of(loop_of(CLEAN, lds(RZ, RZ, 32, "@!PT")))
    assert (has.loads, has.opcodes["LDS"], has.instructions) == ({}, 1, 3)


def test_spills_are_counted_outside_the_loop_too() -> None:
    code = [
        *loop_of(CLEAN, printed("LDL R3, [R1]")),
        printed("STL [R1], R3"),
        printed("STL [R1], R3"),
    ]
    has = of(code)
    assert has.local == 3


def test_stalls_are_of_the_loop_alone() -> None:
    code = [ffma(8, 0, 1, 8, stall=15), ffma(8, 0, 1, 8, stall=3), ffma(8, 0, 1, 8, stall=4)]
    assert of([*code, branch(1, "@P1"), EXIT]).stalls == 3 + 4 + 1
