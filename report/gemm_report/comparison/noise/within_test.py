import numpy as np
import pytest

from gemm_report.comparison.noise.within import effective_count, log_median


def hanging_together(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    """Samples with a relative scatter of 1 %, each like the one before."""
    noise = rng.normal(size=n)
    values = [noise[0]]
    for each in noise[1:]:
        values.append(phi * values[-1] + np.sqrt(1 - phi**2) * each)
    return np.exp(0.01 * np.array(values))


@pytest.mark.parametrize("phi", [0.0, 0.8])
def test_the_variance_is_that_of_medians_of_other_processes(phi: float) -> None:
    rng = np.random.default_rng(1)
    medians = [log_median(hanging_together(rng, 200, phi)) for _ in range(300)]
    true = np.var([each.value for each in medians])
    assert np.mean([each.variance for each in medians]) == pytest.approx(true, rel=0.3)


def test_samples_that_hang_together_count_less() -> None:
    rng = np.random.default_rng(2)
    independent = effective_count(hanging_together(rng, 1000, 0.0))
    assert independent == pytest.approx(1000, rel=0.2)
    assert effective_count(hanging_together(rng, 1000, 0.9)) < 0.15 * independent
    assert effective_count(np.full(7, 3.0)) == 7


def test_what_one_sample_and_equal_samples_tell() -> None:
    one, two, nine = (log_median([2.0] * n) for n in (1, 2, 9))
    assert one.variance > two.variance > 0.0001, "few equal samples are no certainty"
    assert nine.variance == 0
    assert log_median([2.0, 3.0]).value == pytest.approx(np.log([2.0, 3.0]).mean())


def test_the_same_samples_give_the_same_variance() -> None:
    samples = hanging_together(np.random.default_rng(3), 50, 0.5)
    assert log_median(samples) == log_median(samples)
