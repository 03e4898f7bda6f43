from pathlib import Path

import pytest

from gemm_report.cli import main
from gemm_report.document import BAD_INPUT


def test_the_best_point_of_each_grid_is_told(
    ladder_path: Path, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", str(ladder_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["BlockTile1D", "f32", "1024", "BM:64/BN:128/NR:8", "4", "13.4", "×0.90", "×1.04", "×1.08"],
        [
            "BlockTile1D",
            "f32",
            "4096",
            "BM:128/BN:128/NR:16",
            "4",
            "20.4",
            "×1.11",
            "×1.18",
            "×1.41",
        ],
    ]
    assert main(["tune", str(gpu_path)]) == BAD_INPUT
    assert "--gemm_variants=all" in capsys.readouterr().err
