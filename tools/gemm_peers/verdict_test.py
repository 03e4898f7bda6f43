from pathlib import Path

import numpy as np
import pytest

from gemm_peers.elements import STORAGE, _to_bf16, as_double
from gemm_peers.problem import Problem
from gemm_peers.verdict import Operands, judge, operands

CUBE = Problem("f32", "nn", 20, 24, 40)


def product(p: Problem, which: Operands) -> np.ndarray:
    """As a right peer would have it."""
    return which.expected.astype(STORAGE[p.traits.output])


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_the_reference_is_that_of_the_layout(layout: str) -> None:
    p = Problem("f64", layout, 5, 7, 23)
    which = operands(p, 1)
    a = which.a if layout[0] == "n" else which.a.T
    b = which.b if layout[1] == "n" else which.b.T
    assert which.expected == pytest.approx(a @ b)
    assert which.magnitude == pytest.approx(np.abs(a) @ np.abs(b))


def test_a_right_product_passes_and_says_how_far_it_is() -> None:
    which = operands(CUBE, 1)
    verdict = judge(CUBE, product(CUBE, which), which)
    assert verdict.passed
    assert verdict.complaint is None
    assert 0 < verdict.max_error < 1e-5
    assert 0 < verdict.max_of_bound < 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e9, 0.0])
def test_one_wrong_element_is_found_and_named(wrong: float) -> None:
    which = operands(CUBE, 1)
    c = product(CUBE, which)
    c[17, 3] = wrong
    verdict = judge(CUBE, c, which)
    assert not verdict.passed
    assert verdict.complaint
    assert verdict.complaint.startswith(f"c[17,3] = {np.float32(wrong):.9g}, expected ")
    assert verdict.complaint.endswith("(1 of 480 elements are wrong)")
    assert not verdict.max_of_bound <= 1


def test_what_is_just_beyond_the_bound_fails_and_what_is_within_passes() -> None:
    p = Problem("f64", "nn", 4, 4, 64)
    which = operands(p, 1)
    verdict = judge(p, which.expected, which)
    limit = 2.0**-52 * 64 * which.magnitude[1, 2]
    for share, passes in ((0.9, True), (1.1, False)):
        c = which.expected.copy()
        c[1, 2] += share * limit
        assert judge(p, c, which).passed is passes
    assert verdict.max_error == 0


@pytest.mark.parametrize("name", ["bf16", "e4m3", "s8"])
def test_elements_without_a_type_in_numpy_are_judged(name: str) -> None:
    p = Problem(name, "nt", 8, 8, 32)
    which = operands(p, 1)
    if name == "s8":
        c = which.expected.astype(np.int32)
        assert np.array_equal(as_double("s32", c), which.expected), "exact"
    else:
        c = _to_bf16(which.expected.astype(np.float32))
    assert judge(p, c, which).passed
    c[0, 0] += 64
    assert not judge(p, c, which).passed


def test_operands_and_their_product_are_kept_for_the_next_one(tmp_path: Path) -> None:
    first = operands(CUBE, 1, tmp_path)
    (kept,) = tmp_path.iterdir()
    again = operands(CUBE, 1, tmp_path)
    for name in ("a", "b", "expected", "magnitude"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    other = operands(CUBE, 2, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert not np.array_equal(first.expected, other.expected)
    assert kept.exists()
