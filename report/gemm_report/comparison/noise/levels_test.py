import numpy as np
import pytest

from gemm_report.comparison.noise.levels import levels, scatter

# Logarithms of what six processes measured on an H200.
VECTORIZED = [-9.4205, -9.3030, -9.4190, -9.3062, -9.4196, -9.4192]
CAPPED = [-8.4827, -8.4805, -8.4815, -8.4827, -8.4648, -8.4798]
QUIET, NOISY = 0.001**2, 0.004**2


def test_two_levels_and_the_scatter_around_each() -> None:
    fast, slow = levels(VECTORIZED, QUIET)
    assert sorted(fast) == [0, 2, 4, 5]
    assert sorted(slow) == [1, 3]
    found = scatter([VECTORIZED], QUIET)
    assert found and found.degrees == 4
    assert found.value**0.5 < 0.002


def test_what_a_power_cap_does_is_no_level() -> None:
    assert len(levels(CAPPED, NOISY)) == 1
    found = scatter([CAPPED], NOISY)
    assert found and found.value == pytest.approx(np.var(CAPPED, ddof=1))


def test_many_levels_are_none() -> None:
    assert len(levels([0.0, 0.1, 0.2], QUIET)) == 1
    assert scatter([[0.0], [0.1], []], QUIET) is None


def test_sides_are_not_compared() -> None:
    found = scatter([[0.0, 0.001], [0.5, 0.501]], QUIET)
    assert found and found.degrees == 2
    assert found.value == pytest.approx(0.0005**2 * 2)


def test_normal_noise_has_no_levels() -> None:
    rng = np.random.default_rng(1)
    found = [levels(rng.normal(scale=0.004, size=6), NOISY) for _ in range(300)]
    assert sum(len(each) > 1 for each in found) <= 3
