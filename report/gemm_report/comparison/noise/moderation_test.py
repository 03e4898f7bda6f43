import numpy as np
import pytest

from gemm_report.comparison.noise.moderation import Variance, moderated, pooled, prior


def observed(d0: float | None, degrees: int, count: int = 4000) -> list[Variance]:
    """Variances whose true values scatter around 4 with d0 degrees, or not at all."""
    rng = np.random.default_rng(1)
    true = 4.0 if d0 is None else 4.0 * d0 / rng.chisquare(d0, count)
    values = true * rng.chisquare(degrees, count) / degrees
    return [Variance(value, degrees) for value in values]


def test_finds_the_level_and_the_scatter_of_variances() -> None:
    found = prior(observed(3, 5))
    assert found.value == pytest.approx(4.0, rel=0.1)
    assert found.degrees == pytest.approx(3, rel=0.2)


def test_equal_variances_are_known_as_well_as_can_be() -> None:
    found = prior(observed(None, 5))
    assert found.value == pytest.approx(4.0, rel=0.15)
    assert found.degrees == pytest.approx(6, rel=0.01), "no more is believed"


def test_a_few_wild_cases_do_not_widen_the_others() -> None:
    tame = observed(6, 5, 100)
    wild = [Variance(4e4, 5)] * 5
    assert prior([*tame, *wild]).value < 2 * prior(tame).value


def test_a_case_is_drawn_to_its_group_by_degrees_of_freedom() -> None:
    assert moderated(Variance(1.0, 3), Variance(4.0, 6)) == Variance(3.0, 9)
    assert moderated(Variance(9.0, 3), Variance(4.0, 6)) == Variance(9.0, 9), "its own is larger"
    assert pooled([Variance(1.0, 1), Variance(3.0, 1)]) == Variance(2.0, 2)


def test_medians_that_a_coarse_timer_made_equal_have_a_variance() -> None:
    for variances in ([Variance(0.0, 5)] * 8, [Variance(0.0, 5), *observed(6, 5, 20)]):
        found = prior(variances)
        assert 0 < found.value < 10
        assert 0 < found.degrees < 1000
