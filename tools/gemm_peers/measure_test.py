"""Which results are judged, and which are known already."""

import numpy as np
import pytest

from gemm_peers import measure
from gemm_peers.measure import Judged, WrongResultError
from gemm_peers.problem import Problem
from gemm_peers.verdict import judge, operands

CUBE = Problem("f32", "nn", 20, 24, 40)


class Result:
    """A C that is on the host already."""

    def __init__(self, c: np.ndarray, outside: str | None = None) -> None:
        self._c, self._outside = c, outside

    def fetch(self) -> np.ndarray:
        return self._c

    def outside(self) -> str | None:
        return self._outside


def test_equal_bits_are_judged_once_and_others_each(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr(measure, "judge", lambda *given: looked.append(1) or judge(*given))
    which = operands(CUBE, 1)
    right = which.expected.astype(np.float32)
    nearly, wrong = np.nextafter(right, np.float32(9)), right.copy()
    wrong[3, 4] = np.nan
    judged = Judged(CUBE, which)
    first = judged.verdict([Result(right), Result(right.copy())])
    assert judged.verdict([Result(right)]) == first
    assert len(looked) == 1
    assert judged.verdict([Result(nearly)]).passed
    assert len(looked) == 2
    with pytest.raises(WrongResultError, match=r"c\[3,4\] = nan"):
        judged.verdict([Result(right), Result(wrong)])
    with pytest.raises(WrongResultError, match="outside"):
        judged.verdict([Result(right), Result(right, "wrote outside C")])


def test_a_result_that_changes_in_place_is_judged_again() -> None:
    which = operands(CUBE, 1)
    c = which.expected.astype(np.float32)
    judged = Judged(CUBE, which)
    assert judged.verdict([Result(c)]).passed
    c[0, 0] = 1e9
    with pytest.raises(WrongResultError):
        judged.verdict([Result(c)])
