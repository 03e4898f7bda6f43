"""The model of register banks, on loops whose cycles were computed by hand."""

import itertools
import random

import pytest

from gemm_sass.instruction import RZ
from gemm_sass.instruction_test import decoded, ffma, lds, other, printed
from gemm_sass.ports import unserved, waits

EVEN, ODD = ffma(9, 0, 2, RZ), ffma(9, 1, 3, RZ)  # two reads of one bank


def cycles(*body: str) -> int:
    """Cycles per iteration of a loop."""
    return len(body) + sum(waits(decoded(body)))


def read(*body: str) -> set[int]:
    """The registers that the last instruction reads."""
    return unserved(decoded(body))[-1]


def snake(first_sum: int) -> list[str]:
    """4 x 4 accumulators and eight even operands, of which one changes between FFMAs."""
    order = [(i, j if i % 2 == 0 else 3 - j) for i in range(4) for j in range(4)]
    sums = itertools.count(first_sum, 2)
    return [
        ffma(c, 2 * i, 8 + 2 * j, c, keep=[0, 1]) for (i, j), c in zip(order, sums, strict=False)
    ]


# --- What is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("slot", [0, 1, 2])
def test_the_reuse_cache_serves_the_same_register_in_the_same_slot(slot: int) -> None:
    before = [11, 13, 15]
    before[slot] = (0, 2, 4)[slot]
    last = ffma(9, 0, 2, 4)
    assert read(ffma(7, *before, keep=[slot]), last) == {0, 2, 4} - {before[slot]}
    assert read(ffma(7, *before), last) == {0, 2, 4}, "without the flag nothing is kept"
    assert read(ffma(7, *before, keep=[(slot + 1) % 3]), last) == {0, 2, 4}, "of another slot"
    swapped = before[-1:] + before[:-1]
    assert read(ffma(7, *swapped, keep=[0, 1, 2]), last) == {0, 2, 4}, "kept for another slot"


def test_reuse_survives_other_instructions_but_no_ffma() -> None:
    keeps, last = ffma(7, 0, 11, 13, keep=[0]), ffma(9, 0, 2, 4)
    assert read(keeps, lds(20, 18), other("IADD3", 21, 22, 23), last) == {2, 4}
    assert read(keeps, ffma(7, 15, 17, 19), last) == {0, 2, 4}


def test_reuse_continues_in_the_next_iteration() -> None:
    first, last = ffma(7, 0, 11, 13), ffma(9, 0, 2, 4, keep=[0])
    assert unserved(decoded([first, last, other()])) == [{11, 13}, {0, 2, 4}, set()]


def test_a_register_is_read_once_and_rz_never() -> None:
    assert read(ffma(9, 0, 0, 4)) == {0, 4}
    assert read(ffma(9, 0, RZ, RZ)) == {0}
    assert read(printed("FFMA R9, R0, 0.5, R4")) == {0, 4}
    assert read(lds(20, 18)) == read(other("IADD3", 21, 22, 23, 24)) == set()


# --- What it costs -------------------------------------------------------------------------------


def test_accumulators_in_the_other_bank_cost_one_cycle_each() -> None:
    assert [len(one) for one in unserved(decoded(snake(first_sum=31)))] == [2] * 16
    assert cycles(*snake(first_sum=31)) == 16


def test_accumulators_in_the_bank_of_the_operands_cost_two() -> None:
    assert cycles(*snake(first_sum=30)) == 2 * 16


def test_a_snake_without_reuse_costs_two() -> None:
    # Two even factors and an odd sum.
    assert cycles(*(one.replace(".reuse", "") for one in snake(first_sum=31))) == 2 * 16


def test_three_reads_cost_one_and_a_half_if_the_banks_share_them() -> None:
    assert cycles(ffma(9, 0, 2, 1), ffma(9, 1, 3, 0)) == 3
    assert cycles(*[ffma(9, 0, 2, 1), ffma(9, 1, 3, 0)] * 50) == 150


def test_three_reads_of_one_bank_cost_three() -> None:
    assert cycles(*[ffma(9, 0, 2, 4)] * 50) == 150


@pytest.mark.parametrize("pair", [EVEN, ODD])
def test_two_reads_of_one_bank_cost_two_in_a_long_run(pair: str) -> None:
    assert cycles(*[pair] * 50) == 100


def test_banks_that_alternate_pair_by_pair_cost_one() -> None:
    assert cycles(*[EVEN, ODD] * 50) == 100


def test_banks_that_alternate_after_two_pairs_overflow_the_queue() -> None:
    # The second of each two waits a cycle.
    assert cycles(*[EVEN, EVEN, ODD, ODD] * 50) == 300
    assert waits(decoded([EVEN, EVEN, ODD, ODD])) == [0, 1, 0, 1]


def test_another_instruction_takes_a_cycle_in_which_the_banks_catch_up() -> None:
    assert cycles(*[EVEN, lds(20, 18)] * 50) == 100
    assert cycles(*[EVEN, EVEN, lds(20, 18)] * 50) == 200
    assert cycles(*[ffma(9, 0, 1, RZ), lds(20, 18)] * 50) == 100


def test_an_ffma_that_reads_less_lets_the_banks_catch_up() -> None:
    assert cycles(*[EVEN, ffma(9, 1, RZ, RZ)] * 50) == 100


def test_the_first_iteration_is_not_counted() -> None:
    # From idle banks a single pair does not wait; in a loop that has nothing else it always does.
    assert waits(decoded([EVEN])) == [1]


def test_a_loop_without_ffma_never_waits() -> None:
    assert waits(decoded([other(), other()])) == [0, 0]
    assert waits([]) == []


def test_every_loop_reaches_steady_state() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        body = [
            ffma(
                *(chance.choice([*range(8), RZ]) for _ in range(4)), keep=chance.sample(range(3), 1)
            )
            for _ in range(chance.randint(1, 12))
        ]
        reads = sum(map(len, unserved(decoded(body))))
        assert max(len(body), reads / 2) <= cycles(*body) <= len(body) + reads
