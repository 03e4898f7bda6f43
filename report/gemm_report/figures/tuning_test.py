import dataclasses
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.document import RecordError
from gemm_report.figures.tuning import leading_parameters, report, sweeps, table
from gemm_report.figures.write import drawings
from gemm_report.figures.write_test import drawn, texts
from gemm_report.record import Record, Row


def variants(record: Record, rates: dict[str, float]) -> list[Row]:
    """Rows of a grid with these settings and TFLOP/s."""
    row = next(row for row in record.rows if row.variant)
    return [
        dataclasses.replace(
            row,
            parameters=dict(part.split(":") for part in each.split("/")),
            flop_per_second=rate * 1e12,
        )
        for each, rate in rates.items()
    ]


def test_the_fastest_of_each_problem_is_compared_with_the_others(ladder: Record) -> None:
    small, large = sweeps(ladder)
    assert small.best.settings == "BM:64/BN:128/NR:8"
    assert large.best.settings == "BM:128/BN:128/NR:16"
    assert len(large.rows) == 4, "the skipped one is not among them"
    assert large.default
    assert large.default.label == "BlockTile1D"
    lines = report(ladder).splitlines()
    assert lines[0].split()[:5] == ["kernel", "precision", "size", "best", "variants"]
    assert lines[2].split()[:6] == ["BlockTile1D", "f32", "4096", large.best.settings, "4", "20.4"]
    assert lines[2].split()[6:] == ["×1.11", "×1.18", "×1.41"]


def test_without_a_default_there_is_nothing_to_compare_with(ladder: Record) -> None:
    rows = tuple(row for row in ladder.rows if row.variant)
    record = dataclasses.replace(ladder, rows=rows)
    assert sweeps(record)[0].over_default == "-"
    said = " ".join(text for text, _ in texts(drawn("tuning", record)))
    assert "of the default" not in said


def test_a_record_without_a_grid_is_refused(
    gpu: Record, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RecordError, match="--gemm_variants=all"):
        report(gpu)
    assert "tuning" not in drawings(gpu)
    assert main(["tune", str(gpu_path), "-o", str(tmp_path / "new")]) == BAD_INPUT
    output = capsys.readouterr()
    assert output.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_axes_are_what_the_best_rate_depends_on_most(ladder: Record) -> None:
    rates = {
        f"BM:{bm}/BK:{bk}/NR:{nr}": 10 + bm / 64 + nr + 0.01 * bk
        for bm in (64, 128)
        for bk in (8, 16)
        for nr in (4, 8)
    }
    assert leading_parameters(variants(ladder, rates)) == ("BM", "NR")
    assert leading_parameters(variants(ladder, {"BM:64": 1, "BM:128": 2})) == ("BM", "")


def test_a_cell_has_the_best_over_the_other_parameters(ladder: Record) -> None:
    rates = {"BM:64/BK:8/NR:4": 1.0, "BM:64/BK:16/NR:4": 1.01}
    rates |= {"BM:128/BK:8/NR:8": 3.0, "BM:128/BK:16/NR:8": 2.99}
    record = dataclasses.replace(ladder, rows=tuple(variants(ladder, rates)))
    said = [text for text, _ in texts(drawn("tuning", record))]
    assert "1.01" in said
    assert "1.00" not in said
    assert "BM:128/BK:8/NR:8: 3.00 TFLOP/s" in said
    assert len(table(record)) == 4


def test_one_parameter_is_a_line(ladder: Record) -> None:
    rows = variants(ladder, {"BM:8": 1.0, "BM:16": 2.0})
    (axes,) = drawn("tuning", dataclasses.replace(ladder, rows=tuple(rows))).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["8", "16"]


def test_the_command_shows_and_draws(
    ladder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", str(ladder_path), "-o", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        f"tuning.{end}" for end in ("png", "svg", "csv")
    }
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("kernel ")
    assert said[-1] == str(tmp_path / "tuning.csv")
