import dataclasses

import pytest

from gemm_report.figures.end_to_end import table, transfer_rows
from gemm_report.figures.write import drawings
from gemm_report.figures.write_test import drawn, texts
from gemm_report.record import Record


def test_kernels_come_in_their_order_and_transfers_from_slow_to_fast(ladder: Record) -> None:
    names = [(row.kernel_label, row.transfer) for row in transfer_rows(ladder)]
    kinds = ("pageable", "pinned", "overlapped")
    assert names == [(kernel, kind) for kernel in ("Naive", "Tiled/tile:32") for kind in kinds]


def test_the_parts_lie_end_to_end_over_the_bar_of_all_together(ladder: Record) -> None:
    (axes,) = drawn("end_to_end", ladder).axes
    rows = table(ladder)
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    assert len(bars) == 4 * len(rows)
    first, second, third, together = bars[:4]
    assert first[0] == together[0] == 0
    assert second[0] == pytest.approx(first[1])
    assert third[0] == pytest.approx(first[1] + second[1])
    assert together[1] == pytest.approx(1000 * float(str(rows[0]["seconds"])))


def test_a_transfer_has_its_rates_and_what_is_hidden(ladder: Record) -> None:
    said = [text for text, _ in texts(drawn("end_to_end", ladder))]
    for fact in ("Naive, overlapped", "494 µs", "55.0 GB/s, 99.1 %", "53.9 GB/s, 97.3 %", "75.0 %"):
        assert fact in said
    assert "Measured bandwidths: PCIe to device 55.5 GB/s, PCIe to host 55.4 GB/s." in said
    assert "FP32, 1024" in said


def test_without_a_ceiling_there_is_no_share_of_it(ladder: Record) -> None:
    bare = dataclasses.replace(ladder, measured_ceilings=())
    said = [text for text, _ in texts(drawn("end_to_end", bare))]
    assert {"55.0 GB/s", "53.9 GB/s"} <= set(said)
    assert "PCIe's bandwidth was not measured." in said


def test_each_problem_is_a_panel(ladder: Record) -> None:
    rows = [row for row in ladder.rows if row.transfer]
    larger = [dataclasses.replace(row, m=2048, n=2048, k=2048) for row in rows]
    record = dataclasses.replace(ladder, rows=(*larger, *rows))
    titles = [axes.get_title(loc="left") for axes in drawn("end_to_end", record).axes]
    assert titles == ["FP32, 1024", "FP32, 2048"]


def test_a_record_without_transfers_has_no_such_figure(gpu: Record) -> None:
    assert "end_to_end" not in drawings(gpu)
