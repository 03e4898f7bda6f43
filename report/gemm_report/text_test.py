import pytest

from gemm_report.text import (
    megahertz,
    percent,
    prefix_for,
    quantity,
    significant,
    times,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (66.9e12, "66.9 TFLOP/s"),
        (4.814e12, "4.81 TFLOP/s"),
        (989.4e12, "989 TFLOP/s"),
        (999.9e9, "1.00 TFLOP/s"),
        (1.0, "1.00 FLOP/s"),
        (0.25, "250 mFLOP/s"),
        (0.0, "0.00 FLOP/s"),
        (1.485e15, "1485 TFLOP/s"),
        (1.5e-15, "0.00150 pFLOP/s"),
    ],
)
def test_quantity(value: float, text: str) -> None:
    assert quantity(value, "FLOP/s") == text


def test_the_largest_value_chooses_the_prefix() -> None:
    assert prefix_for([3e9, 5e12]) == "T"
    assert prefix_for([]) == ""


def test_significant_and_percent() -> None:
    assert [significant(v) for v in (0.0, 0.0619, 7.356, 51.28, 681.4, 1234.5)] == [
        *("0.00", "0.0619", "7.36", "51.3", "681", "1234")
    ]
    assert [percent(v) for v in (None, 0.7304, 1.003)] == ["-", "73.0 %", "100.3 %"]
    assert megahertz(1.755e9) == "1755 MHz"


@pytest.mark.parametrize(
    ("factor", "text"),
    [(0.5, "×0.50"), (1.314, "×1.31"), (0.00451, "×0.00451"), (12.34, "×12.3"), (None, "")],
)
def test_factors(factor: float | None, text: str) -> None:
    assert times(factor) == text
