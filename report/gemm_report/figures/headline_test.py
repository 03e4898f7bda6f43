import dataclasses

import pytest
from matplotlib.colors import to_hex

from gemm_report.conftest import clocks
from gemm_report.figures.headline import table
from gemm_report.figures.palette import LIBRARY, ON_BAR, OURS
from gemm_report.figures.write_test import check_text, drawn, texts
from gemm_report.record import Record


def test_each_precision_is_one_line_with_bar_tick_and_words(h200: Record) -> None:
    figure = drawn("headline", h200)
    (axes,) = figure.axes
    rows = table(h200)
    names = [row["precision"] for row in rows]
    assert names == ["f32", "tf32", "tf32x3", "bf16", "e4m3", "f64", "s32", "s8"]
    bars = [p.get_width() for p in axes.patches if to_hex(p.get_facecolor()) == OURS.lower()]
    rates, peaks = (
        [float(str(row[f"{of}flop_per_second"])) for row in rows] for of in ("", "peak_")
    )
    shares = [rate / peak for rate, peak in zip(rates, peaks, strict=True)]
    assert bars == [pytest.approx(100 * share) for share in shares]
    ticks = [line for line in axes.lines if line.get_color() == LIBRARY]
    assert len(ticks) == sum(1 for row in rows if row["library"]) == 5
    said = [text for text, _ in texts(figure)]
    for fact in (
        *("FP32", "FP8 E4M3", "INT8", "4096, layout nn", "53.7 TFLOP/s", "1173 TOP/s", "StreamK"),
        *("101.6 % of cuBLASLt", "no library timed · power-capped", "no library timed"),
        *("9.2× cuBLASLt · power-capped", "% of nominal peak"),
    ):
        assert fact in said, fact


def test_the_dashed_mark_is_the_peak_at_the_clock_held(gpu: Record) -> None:
    rows = tuple(dataclasses.replace(row, clocks=clocks(990e6)) for row in gpu.rows)
    (axes,) = drawn("headline", dataclasses.replace(gpu, rows=rows)).axes
    (dashed,) = (line for line in axes.lines if line.is_dashed())
    assert dashed.get_xdata()[0] == pytest.approx(50)


def test_without_any_peak_bars_are_rates(cpu: Record) -> None:
    figure = drawn("headline", cpu)
    said = [text for text, _ in texts(figure)]
    assert "GFLOP/s" in said
    assert "No peak is known for this device." in said
    fastest = max(float(str(row["flop_per_second"])) for row in table(cpu))
    assert figure.axes[0].get_xlim()[1] == pytest.approx(1.01 * fastest / 1e9)


def test_a_measured_peak_is_called_so(epyc: Record) -> None:
    assert "% of measured peak" in [text for text, _ in texts(drawn("headline", epyc))]


def test_the_rate_is_hidden_by_no_mark_wherever_the_library_is(gpu: Record) -> None:
    row = next(r for r in gpu.rows_with("timed") if r.is_ours and r.m == 4096 and r.of_library)
    for percent in range(1, 100, 14):
        rows = (dataclasses.replace(row, flop_per_second=66.9e10 * percent),)
        for share in (0.2, 0.5, 0.9, 1.0, 1.1, 3.0):
            rows = (dataclasses.replace(rows[0], of_library=share),)
            figure = drawn("headline", dataclasses.replace(gpu, rows=rows))
            check_text(figure)
            (axes,) = figure.axes
            (text,) = (t for t in axes.texts if t.get_text().endswith("FLOP/s"))
            box = text.get_window_extent()
            for line in axes.lines:
                x = axes.transData.transform((line.get_xdata()[0], 0))[0]
                assert not box.x0 <= x <= box.x1
            (bar,) = (p for p in axes.patches if to_hex(p.get_facecolor()) == OURS.lower())
            end = axes.transData.transform((bar.get_width(), 0))[0]
            assert not box.x0 < end < box.x1
            assert (text.get_color() == ON_BAR) == (box.x1 < end)
