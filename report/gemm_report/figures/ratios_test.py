import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.document import InputError
from gemm_report.figures.ratios import groups, report, summary, table
from gemm_report.figures.write import drawings
from gemm_report.figures.write_test import check_text, drawn
from gemm_report.record import Record


def with_ratios(record: Record, shares: Sequence[float], kernel: str = "Best") -> Record:
    """Rows of one kernel at many shapes, with these speeds relative to the library."""
    base = next(row for row in record.rows if row.kernel == "Naive" and row.status == "timed")
    rows = [
        dataclasses.replace(base, kernel=kernel, m=16 * (i + 1), of_library=share)
        for i, share in enumerate(shares)
    ]
    return dataclasses.replace(record, rows=tuple(rows))


SHARES = [2.0, 0.5, *[1.0] * 18]


def test_the_mean_is_geometric_and_the_worst_shape_is_named(gpu: Record) -> None:
    (found,) = groups(with_ratios(gpu, SHARES))
    mean, _, worst = summary(found)
    assert mean == pytest.approx(1)
    assert worst == found[0].of_library == 0.5
    head, line = report(with_ratios(gpu, SHARES)).splitlines()
    assert head.split()[:3] == ["precision", "kernel", "shapes"]
    assert line.split()[:6] == ["FP32", "Best", "20", "1.000", "1.000", "0.500"]
    assert line.split()[6].startswith("32x")


def test_the_tenth_percentile_leaves_out_a_tenth(gpu: Record) -> None:
    (found,) = groups(with_ratios(gpu, [i / 100 for i in range(50, 71)]))
    assert summary(found)[1] == pytest.approx(0.52)


def test_the_line_rises_from_none_to_all_shapes(gpu: Record) -> None:
    figure = drawn("ratios", with_ratios(gpu, SHARES))
    check_text(figure)
    line = figure.axes[0].lines[0]
    assert list(line.get_xdata())[:2] == [0.5, 0.5]
    assert list(line.get_ydata())[:2] == [0, 0.05]
    assert line.get_ydata()[-1] == 1
    assert len(table(with_ratios(gpu, SHARES))) == 20


def test_few_shapes_have_a_figure_only_if_named(gpu: Record) -> None:
    few = with_ratios(gpu, SHARES[:5])
    assert "ratios" not in drawings(few)
    assert len(groups(few, "^Best/")) == 1
    assert not groups(with_ratios(gpu, SHARES, "Tiled"))
    with pytest.raises(InputError, match="matches no such row"):
        groups(few, "Wgmma")


def test_the_command_says_what_to_run(
    gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ratios", str(gpu_path), "-o", str(tmp_path)]) == BAD_INPUT
    assert "--gemm_shapes=random:60:1" in capsys.readouterr().err
    assert main(["ratios", str(gpu_path), "-o", str(tmp_path), "--kernels", "Naive/f32"]) == 0
    assert "geometric mean" in capsys.readouterr().out
    assert (tmp_path / "ratios.png").exists()
