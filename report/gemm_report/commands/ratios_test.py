from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import main
from gemm_report.document import BAD_INPUT


def shapes(shares: list[float], kernel: str = "Best") -> Callable[[Any], None]:
    """As many shapes, each so many times as fast as the library."""

    def change(document: Any) -> None:
        timed = (b for b in document["benchmarks"] if (b.get("gemm") or {}).get("of_library"))
        (base, *_) = (b for b in timed if b["gemm"]["kernel"] == "Naive")
        document["benchmarks"] = [
            base | {"gemm": base["gemm"] | {"kernel": kernel, "m": 16 * (i + 1), "of_library": it}}
            for i, it in enumerate(shares)
        ]

    return change


@pytest.mark.parametrize(
    ("shares", "kernel", "options", "told"),
    [
        ([2.0, 0.5, *[1.0] * 18], "Best", [], ["20", "1.000", "1.000", "0.500", "32x256x256"]),
        ([0.1, 0.1, *[1.0] * 18], "Best", [], ["20", "0.794", "0.910", "0.100", "16x256x256"]),
        ([0.5] * 5, "Best", [], None),
        ([0.5] * 20, "Tiled", [], None),
        ([0.5], "Best", ["--kernels=^Best/"], ["1", "0.500", "0.500", "0.500", "16x256x256"]),
    ],
)
def test_shapes_are_summed_up_by_mean_percentile_and_worst(
    shares: list[float],
    kernel: str,
    options: list[str],
    told: list[str] | None,
    rewritten: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = rewritten("many.json", 1.0, shapes(shares, kernel))
    assert main(["ratios", str(record), *options]) == (BAD_INPUT if told is None else 0)
    said = capsys.readouterr()
    if told is None:
        assert "--gemm_shapes=random:60:1" in said.err
    else:
        assert said.out.splitlines()[1].split() == ["FP32", kernel, *told]
