import dataclasses

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from gemm_report.figures.ladder_bars import table
from gemm_report.figures.palette import LIBRARY, OURS, STEP
from gemm_report.figures.write_test import drawn, texts
from gemm_report.record import Kernel, Record


def bars(figure: Figure) -> list[float]:
    """Lengths of the bars from the top."""
    found = [p for p in figure.axes[0].patches if isinstance(p, Rectangle)]
    return [bar.get_width() for bar in sorted(found, key=lambda bar: bar.get_y())]


def test_rungs_come_in_their_order_and_libraries_last(ladder: Record) -> None:
    rows = table(ladder, "f32")
    names = [row["kernel"] for row in rows]
    assert names[:2] == ["NaiveUncoalesced", "Naive"]
    assert names[-2:] == ["BlockTile1D", "cuBLAS/math:pedantic"]
    assert bars(drawn("ladder", ladder)) == [
        pytest.approx(float(str(row["flop_per_second"])) / 1e12) for row in rows
    ]


def test_a_rung_has_rate_step_and_shares(ladder: Record) -> None:
    said = [text for text, _ in texts(drawn("ladder", ladder))]
    assert "Test GPU: optimization ladder, FP32 at 4096" in said
    for head in ("TFLOP/s", "step", "% of peak", "% of library"):
        assert head in said
    for cell in ("Naive", "6.08", "×12.3", "9.1 %", "11.9 %"):
        assert cell in said
    assert "FP32 FMA: 66.9 TFLOP/s (from device, 1980 MHz)" in said
    assert "×0.39" in said, "a step down is a step"


def test_a_roof_that_is_measured_already_has_no_second_one(ladder: Record) -> None:
    seen = tuple(dataclasses.replace(ceiling, origin="measured") for ceiling in ladder.ceilings)
    said = [text for text, _ in texts(drawn("ladder", dataclasses.replace(ladder, ceilings=seen)))]
    assert "FP32 FMA: 66.9 TFLOP/s (measured, 1980 MHz)" in said
    assert not [text for text in said if text.count("FMA") and "66.9" not in text]


def test_what_has_no_time_at_the_size_is_named(ladder: Record) -> None:
    rows = tuple(row for row in ladder.rows if (row.kernel, row.m) != ("Naive", 4096))
    said = [text for text, _ in texts(drawn("ladder", dataclasses.replace(ladder, rows=rows)))]
    assert "Not timed at this size: Naive." in said


def test_every_unit_that_a_rung_uses_has_its_peak(ladder: Record, gpu: Record) -> None:
    rows = [dataclasses.replace(row, precision="bf16") for row in ladder.rows]
    naive = next(row for row in rows if (row.kernel, row.m) == ("Naive", 4096))
    tensor = dataclasses.replace(naive, kernel="Wgmma", family="tensor")
    record = dataclasses.replace(ladder, rows=(*rows, tensor), ceilings=gpu.ceilings)
    figure = drawn("ladder_bf16", record)
    said = [text for text, _ in texts(figure)]
    assert "BF16 tensor core: 989 TFLOP/s (spec, 1830 MHz)" in said
    assert "FP32 FMA: 66.9 TFLOP/s (from device, 1980 MHz)" in said
    assert figure.axes[0].get_xlim()[1] == pytest.approx(989.4, abs=0.1)


def test_the_largest_step_has_a_colour_of_its_own(h200: Record) -> None:
    figure = drawn("ladder", h200)
    found = [p for p in figure.axes[0].patches if isinstance(p, Rectangle)]
    colors = [to_hex(bar.get_facecolor()) for bar in sorted(found, key=lambda bar: bar.get_y())]
    names = [row["kernel"] for row in table(h200, "f32")]
    assert names[colors.index(STEP.lower())] == "BlockTile1D", "from 9.21 to 22.6 TFLOP/s"
    assert colors.count(LIBRARY) == 1
    assert colors.count(OURS.lower()) == 1


def test_other_implementations_come_last_and_are_hatched(ladder: Record) -> None:
    rows = [
        dataclasses.replace(row, kernel="Numba", family="peer", parameters={"kernel": "matmul"})
        for row in ladder.rows
        if row.kernel == "Naive"
    ]
    kernels = (Kernel("Numba", "peer", 1, ""), *ladder.kernels)
    both = dataclasses.replace(ladder, kernels=kernels, rows=(*rows, *ladder.rows))
    names = [row["kernel"] for row in table(both, "f32")]
    assert names[-2:] == ["cuBLAS/math:pedantic", "Numba/kernel:matmul"]
    assert names[:-1] == [row["kernel"] for row in table(ladder, "f32")]
    figure = drawn("ladder", both)
    found = [p for p in figure.axes[0].patches if isinstance(p, Rectangle)]
    hatches = [bar.get_hatch() for bar in sorted(found, key=lambda bar: bar.get_y())]
    assert hatches[-1] and not any(hatches[:-1])
    assert "other implementations" in " ".join(text for text, _ in texts(figure))
