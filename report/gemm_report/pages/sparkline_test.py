import re

import pytest

from gemm_report.pages.sparkline import sparkline
from gemm_report.record import Seconds


def points(samples: list[float], seconds: Seconds) -> list[tuple[int, int]]:
    *_, start, steps = re.findall(r"d=\"M0 (\d+)l(.*?)\"", sparkline(samples, seconds))[-1]
    found = [(0, int(start))]
    for x, y in zip(*[iter(map(int, re.findall(r"-?\d+", steps)))] * 2, strict=True):
        found.append((found[-1][0] + x, found[-1][1] + y))
    return found


def test_a_longer_sample_stands_higher() -> None:
    drawn = points([1.0, 3.0, 2.0], Seconds(2.0, 1.5, 2.5, 1.0))
    assert [x for x, _ in drawn] == [0, 1, 2]
    (_, shortest), (_, longest), (_, median) = drawn
    assert 0 < longest < median < shortest < 48
    assert f'd="M0 {median}h2"' in sparkline([1.0, 3.0, 2.0], Seconds(2.0, 1.5, 2.5, 1.0))


@pytest.mark.parametrize("samples", [[1.0], [1.0, 1.0, 1.0]])
def test_samples_that_do_not_differ_are_a_level_line(samples: list[float]) -> None:
    drawn = points(samples, Seconds(1.0, 1.0, 1.0, 1.0))
    assert {y for _, y in drawn} == {24}
    assert (drawn[0][0], drawn[-1][0]) == (0, max(len(samples) - 1, 1))


def test_quartiles_beyond_the_samples_stay_inside() -> None:
    made = sparkline([1.0, 2.0], Seconds(1.5, 0.5, 9.0, 0.5))
    ((y, height),) = re.findall(r"<rect y=\"(.*?)\" width=\"1\" height=\"(.*?)\"", made)
    assert (int(y), int(height)) == (2, 44)
