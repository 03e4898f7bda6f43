"""Records that were measured, and what is cut out of them."""

import dataclasses
from pathlib import Path

import pytest

from gemm_report.record import Record, read_record

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(scope="session")
def h200() -> Record:
    """The default suite: 372 rows in eight precisions, as if power was read for long enough."""
    record = read_record(RESULTS / "nvidia-h200" / "20261122T190535Z-ffd85c8f2be2.json.gz")
    rows = (
        dataclasses.replace(row, clocks=dataclasses.replace(row.clocks, readings=100))
        if row.clocks
        else row
        for row in record.rows
    )
    return dataclasses.replace(record, rows=tuple(rows))


@pytest.fixture(scope="session")
def epyc() -> Record:
    """A processor: roofs measured, no power known."""
    return read_record(RESULTS / "amd-epyc" / "20261121T105640Z-937303dac991.json.gz")


@pytest.fixture(scope="session")
def equal(crowd: Record) -> Record:
    """25 kernels that are equally fast."""
    rows = tuple(dataclasses.replace(row, flop_per_second=2e13) for row in crowd.rows)
    return dataclasses.replace(crowd, rows=rows)


@pytest.fixture(scope="session")
def bare(tower: Record) -> Record:
    """A crowd without any roof."""
    return dataclasses.replace(tower, ceilings=(), measured_ceilings=())
