import dataclasses

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from gemm_report.figures.bars.ladder_bars import table
from gemm_report.figures.marks import PEERS
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
    assert "GEMM ladder, f32 at 4096: Test GPU" in said
    for head in ("TFLOP/s", "step", "of roof", "of library"):
        assert head in said
    for cell in ("Naive", "6.08", "×12.3", "9.1 %", "11.9 %"):
        assert cell in said
    assert "FP32 FMA: 66.9 TFLOP/s (queried at 1980 MHz)" in said
    assert "×0.39" in said, "a step down is a step"


def test_a_roof_that_is_measured_already_has_no_second_one(ladder: Record) -> None:
    seen = tuple(dataclasses.replace(ceiling, origin="measured") for ceiling in ladder.ceilings)
    said = [text for text, _ in texts(drawn("ladder", dataclasses.replace(ladder, ceilings=seen)))]
    assert "FP32 FMA: 66.9 TFLOP/s (measured at 1980 MHz)" in said
    assert not [text for text in said if text.startswith("FP32_FMA")]


def test_what_has_no_time_at_the_size_is_named(ladder: Record) -> None:
    rows = tuple(row for row in ladder.rows if (row.kernel, row.m) != ("Naive", 4096))
    said = [text for text, _ in texts(drawn("ladder", dataclasses.replace(ladder, rows=rows)))]
    assert "Without a time at this size: Naive." in said


def test_a_library_beyond_the_roof_of_the_rungs_has_an_arrow(ladder: Record, gpu: Record) -> None:
    rows = [
        dataclasses.replace(row, precision="bf16", flop_per_second=400e12)
        if row.family == "library"
        else dataclasses.replace(row, precision="bf16")
        for row in ladder.rows
    ]
    record = dataclasses.replace(ladder, rows=tuple(rows), ceilings=gpu.ceilings)
    figure = drawn("ladder_bf16", record)
    said = [text for text, _ in texts(figure)]
    assert "→ " in said
    assert "BF16 tensor core: 989 TFLOP/s (table at 1830 MHz) →" in said
    assert "FP32 FMA: 66.9 TFLOP/s (queried at 1980 MHz)" in said
    assert bars(figure)[-1] == figure.axes[0].get_xlim()[1] == pytest.approx(66.9)
    naive = next(row for row in rows if (row.kernel, row.m) == ("Naive", 4096))
    tensor = dataclasses.replace(naive, kernel="Wgmma", family="tensor")
    figure = drawn("ladder_bf16", dataclasses.replace(record, rows=(*rows, tensor)))
    assert figure.axes[0].get_xlim()[1] == pytest.approx(989.4, abs=0.1), "the highest rung's"
    assert "→ " not in [text for text, _ in texts(figure)]


def test_peers_come_last_and_are_hatched(ladder: Record) -> None:
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
    assert PEERS in [text for text, _ in texts(figure)]
