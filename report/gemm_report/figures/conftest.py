"""Records that were measured, and what is cut out of them."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest

from gemm_report.record import Kernel, Record, Traffic, read_record

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(scope="session")
def h200() -> Record:
    """The default suite: 372 rows in eight precisions."""
    return read_record(RESULTS / "nvidia-h200" / "20261122T190535Z-ffd85c8f2be2.json.gz")


@pytest.fixture(scope="session")
def epyc() -> Record:
    """A processor: roofs measured, no power known."""
    return read_record(RESULTS / "amd-epyc" / "20261121T105640Z-937303dac991.json.gz")


@pytest.fixture(scope="session")
def tower(gpu: Record, ladder: Record) -> Record:
    """25 kernels, all but one equally fast, with modelled bytes."""
    row = next(row for row in gpu.rows if row.kernel == "Tiled" and row.status == "timed")
    kernels = [Kernel(f"Kernel{i}", "simt", i, "") for i in range(25)]
    rows = []
    for kernel, size in itertools.product(kernels, (1024, 4096)):
        its: dict[str, Any] = {"m": size, "n": size, "k": size, "kernel": kernel.name}
        its["flop_per_second"] = 2e13 if kernel.rung else 1e11
        its["traffic"] = Traffic(row.flop / 600, row.flop / (1 + kernel.rung), row.flop / 2)
        rows.append(dataclasses.replace(row, **its))
    return dataclasses.replace(ladder, kernels=tuple(kernels), rows=tuple(rows))


@pytest.fixture(scope="session")
def bare(tower: Record) -> Record:
    """The same without any roof."""
    return dataclasses.replace(tower, ceilings=(), measured_ceilings=())
