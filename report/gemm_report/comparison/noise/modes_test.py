import numpy as np
import pytest

from gemm_report.comparison.noise.modes import scatter

# Logarithms of what six processes measured on an H200.
VECTORIZED = [-9.4205, -9.3030, -9.4190, -9.3062, -9.4196, -9.4192]
CAPPED = [-8.4827, -8.4805, -8.4815, -8.4827, -8.4648, -8.4798]


def test_two_levels_and_the_scatter_around_each() -> None:
    found = scatter(VECTORIZED)
    assert [mode.processes for mode in found.modes] == [4, 2]
    assert found.modes[1].value - found.modes[0].value == pytest.approx(0.115, abs=0.002)
    assert found.variance.degrees == 4
    assert found.variance.value**0.5 < 0.002


def test_what_a_power_cap_does_is_no_level() -> None:
    found = scatter(CAPPED)
    assert [mode.processes for mode in found.modes] == [6]
    assert found.variance.value == pytest.approx(np.var(CAPPED, ddof=1))


def test_two_processes_show_no_levels() -> None:
    assert len(scatter([0.0, 0.1]).modes) == 1
    assert len(scatter([0.0, 0.1, 0.2]).modes) == 1


def test_normal_noise_has_no_levels() -> None:
    rng = np.random.default_rng(1)
    found = [scatter(rng.normal(scale=0.01, size=6)) for _ in range(300)]
    assert sum(len(each.modes) > 1 for each in found) <= 6
