"""What the energy of a launch goes into."""

from dataclasses import replace
from pathlib import Path

import pytest

from gemm_report.explain.energy import parts
from gemm_report.explain.observations import observe
from gemm_report.record import Health, MeasuredCeiling, Precision, Readings, Record, read_record

H200 = Path(__file__).parents[3] / "results" / "nvidia-h200"
BYTES = {"L2": 2e9, "DRAM": 1e9, "shared memory": 4e9}


@pytest.fixture(scope="module")
def record() -> Record:
    return read_record(H200 / "20261128T230235Z-69ba7f50b353.json.gz")


def probe(name: str, watts: float, rate: float, arithmetic: str | None = None) -> MeasuredCeiling:
    """At 1 GHz."""
    return MeasuredCeiling(
        name=name,
        arithmetic=arithmetic,
        fill="random" if arithmetic else None,
        what="",
        flop_per_second=rate if arithmetic else None,
        bytes_per_second=None if arithmetic else rate,
        of_nominal=None,
        sm_hz=1e9,
        power_w=watts,
        throttled_share=0.0,
    )


# Beside 100 W of an idle GPU: 1 and 2 pJ a FLOP, 40 pJ a byte of the L2 and 100 of DRAM with it.
PROBES = (
    probe("BF16_wgmma", 600.0, 500e12, "bf16"),
    probe("BF16_mma", 500.0, 200e12, "bf16"),
    probe("L2_read", 500.0, 10e12),
    probe("DRAM_read", 600.0, 5e12),
    probe("Shared_read", 200.0, 20e12),
)


@pytest.fixture
def made(record: Record) -> Record:
    before = Readings(power_w=100.0, other_processes=0)
    health = Health(before, before)
    return replace(record, measured_ceilings=PROBES, health=health)


def test_a_part_is_its_amount_at_the_energy_of_the_probe(made: Record) -> None:
    found = dict(parts(made, "bf16", "wgmma", (1e12, 2e-3, 1e9), BYTES))
    expected = {"idle power": 0.2, "tensor cores": 1.0, "L2": 0.08, "DRAM": 0.06}
    assert found == pytest.approx(expected)
    # Operands of mma.sync come from registers: what fills them is apart.
    found = dict(parts(made, "bf16", "mma.sync", (1e12, 2e-3, 1e9), BYTES))
    assert found == pytest.approx({**expected, "tensor cores": 2.0, "shared memory": 0.02})
    # At half the clock the voltage is lower, but for DRAM and what an idle GPU draws.
    found = dict(parts(made, "bf16", "wgmma", (1e12, 2e-3, 0.5e9), BYTES))
    half = 0.5**1.1
    assert found == pytest.approx({**expected, "tensor cores": half, "L2": 0.08 * half})


def test_a_product_of_three_takes_the_energy_of_three(made: Record) -> None:
    one, three = Precision("tf32", "tf32", 1), Precision("tf32x3", "tf32", 3)
    probes = (*PROBES, probe("TF32_wgmma", 600.0, 250e12, "tf32"))
    both = replace(made, precisions=(one, three), measured_ceilings=probes)
    launch = 1e12, 2e-3, 1e9
    joules = [dict(parts(both, each.name, "wgmma", launch, {})) for each in (one, three)]
    assert [each["tensor cores"] for each in joules] == pytest.approx([2.0, 6.0])


def test_without_the_idle_power_or_a_probe_nothing_is_told(made: Record) -> None:
    launch = 1e12, 2e-3, 1e9
    assert parts(made, "bf16", "wgmma", launch, BYTES)
    busy = Readings(power_w=100.0, other_processes=1)
    for other in (
        replace(made, health=None),
        replace(made, health=Health(busy, busy)),
        replace(made, measured_ceilings=PROBES[1:]),
    ):
        assert parts(other, "bf16", "wgmma", launch, BYTES) == ()
    for unknown in ((None, 2e-3, 1e9), (1e12, None, 1e9), (1e12, 2e-3, None)):
        assert parts(made, "bf16", "wgmma", unknown, BYTES) == ()
    assert dict(parts(made, "bf16", None, launch, {})).keys() == {"idle power", "tensor cores"}


def test_the_parts_of_wgmma_kernels_are_all_but_some_of_what_was_drawn(record: Record) -> None:
    rests = {}
    for row in record.rows:
        seen = observe(record, row)
        if row.kernel.startswith("Wgmma") and row.m == 4096 and seen.power_w and seen.seconds:
            whole = seen.power_w * seen.seconds
            rests[row.label] = 1 - sum(joules for _, joules in seen.energy) / whole
    assert len(rests) >= 9
    assert all(-0.05 < rest < 0.1 for rest in rests.values()), rests
