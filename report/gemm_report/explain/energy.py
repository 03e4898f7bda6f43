"""What the energy of a launch goes into, by what the record's probes drew.

A probe does one thing only. Its power without that of the idle GPU, over its rate, is the energy of
a FLOP or a byte at its clock. At another clock the voltage is another one: from 1.1 to 1.6 GHz the
dynamic power of an H100 and an H200 follows the clock by a power of 2.1, and the energy of an
operation therefore by 1.1. DRAM has a clock of its own.
"""

import math

from gemm_report.record import MeasuredCeiling, Record

_ENERGY_OVER_CLOCK = 1.1
_TENSOR = {"wgmma": ("_wgmma",), "mma.sync": ("_mma",)}


def parts(
    record: Record,
    precision: str,
    tensor_unit: str | None,
    launch: tuple[float | None, float | None, float | None],
    amounts: dict[str, float | None],
) -> tuple[tuple[str, float], ...]:
    """Names and joules of what is known; nothing without the idle GPU's power or a probe.

    `launch` is its FLOP, seconds and SM clock in Hz; `amounts` are bytes, by the memory's name.
    """
    flop, seconds, hz = launch
    health = record.health
    idle = health.before.power_w if health and not health.before.other_processes else None
    computes = next(each for each in record.precisions if each.name == precision)
    unit = _of_unit(record, computes.arithmetic, tensor_unit)
    if not (idle and flop and seconds and hz and unit):
        return ()
    probes = {each.name: each for each in record.measured_ceilings}
    l2, dram, shared = (probes.get(name) for name in ("L2_read", "DRAM_read", "Shared_read"))

    def joules(amount: float | None, probe: MeasuredCeiling | None) -> float:
        each = _each(probe, idle)
        if not (amount and each and probe and probe.sm_hz):
            return 0.0
        return amount * each * math.pow(hz / probe.sm_hz, _ENERGY_OVER_CLOCK)

    found = {
        "idle power": idle * seconds,
        "arithmetic" if unit.name.endswith("_FMA") else "tensor cores": joules(
            flop * computes.products, unit
        ),
        "L2": joules(amounts.get("L2"), l2),
    }
    each_l2, each_dram = _each(l2, idle), _each(dram, idle)
    if each_l2 and each_dram:  # what comes from DRAM has passed the L2, too
        found["DRAM"] = (amounts.get("DRAM") or 0.0) * max(0.0, each_dram - each_l2)
    if not unit.name.endswith("_wgmma"):  # whose probe reads its operands from there
        found["shared memory"] = joules(amounts.get("shared memory"), shared)
    return tuple((name, value) for name, value in found.items() if value > 0)


def _of_unit(record: Record, arithmetic: str, tensor_unit: str | None) -> MeasuredCeiling | None:
    """The fastest probe of the unit that multiplies."""
    ends = _TENSOR.get(tensor_unit or "", ("_wgmma", "_mma", "_FMA"))
    found = (
        each
        for each in record.measured_ceilings
        if (each.arithmetic, each.fill == "zeros") == (arithmetic, False)
        and each.name.endswith(ends)
    )
    return max(found, key=lambda each: each.flop_per_second or 0, default=None)


def _each(probe: MeasuredCeiling | None, idle: float) -> float | None:
    """Joules of a FLOP or a byte at the probe's clock."""
    if probe is None or not probe.power_w:
        return None
    rate = probe.flop_per_second or probe.bytes_per_second
    return max(0.0, probe.power_w - idle) / rate if rate else None
