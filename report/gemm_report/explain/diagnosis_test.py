"""Kernels with one known fault each, as observations: each fault is named first."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from own_files import own_files

from gemm_report.explain.diagnosis import STEPS, diagnose
from gemm_report.explain.metrics import WORDS
from gemm_report.explain.observations import Level, Observations

REPOSITORY = Path(__file__).parents[3]

# At 1024 on an H200: it has warps enough and nothing is busy.
SLOW = Observations(
    "Slow",
    "f32",
    family="user",
    flop=2 * 1024.0**3,
    seconds=200e-6,
    sm_count=132,
    sm_hz=1.98e9,
    power_w=500.0,
    power_limit_w=700.0,
    throttled_share=0.0,
    unit="FP32 FMA",
    unit_flop_per_second=66.9e12,
    unit_hz=1.98e9,
    levels=(
        Level("DRAM", 12.6e6, 9.91e6, 4.63e12, "DRAM_read, measured"),
        Level("L2", 75e6, 2505914 * 32.0, 9.76e12, "L2_read, measured"),
        Level("shared memory", 450e6, 460e6, 33.4e12, "Shared_read, measured"),
    ),
    blocks=10560,
    local_bytes=0,
    occupancy=1.0,
    waves=40.0,
    counted_kernel="slow",
    kernel_seconds=200e-6,
    issue_active=0.25,
    ffma_share=1073741824 / 32 / 36865916,
    counted_flop=2 * 1073741824.0,
    warps_active=0.9,
    idle_share=0.02,
    sectors_per_load=4.0,
    conflict_share=0.0,
    local_share=0.0,
    stalls=(
        ("dispatch_stall", 0.15),
        ("no_instruction", 0.14),
        ("short_scoreboard", 0.13),
        ("long_scoreboard", 0.26),
        ("not_selected", 0.90),
        ("selected", 1.0),
    ),
)

WAITS_FOR_MEMORY = (("long_scoreboard", 12.0), ("lg_throttle", 6.0), ("selected", 1.0))
TENSOR = {
    "precision": "bf16",
    "unit": "BF16 tensor core",
    "unit_flop_per_second": 989.4e12,
    "unit_hz": 1.83e9,
    "tensor_share": 0.2,
    "ffma_share": None,
    "tensor_unit": "wgmma",
    "issue_active": 0.2,
    "flop": 2 * 8192.0**3,
    "counted_flop": 2 * 8192.0**3,
}


def level(name: str, used: float, seen: Observations) -> tuple[Level, ...]:
    """The memories of `seen`, of which one is busy for such a share of the time."""
    return tuple(
        replace(each, counted_bytes=used * each.roof_bytes_per_second * seen.seconds)
        if each.name == name
        else each
        for each in seen.levels
    )


TENSOR_SECONDS = 2 * 8192.0**3 / (0.93 * 989.4e12)
ONE_FAULT = {
    "uncoalesced": replace(SLOW, sectors_per_load=16.5, sector_use=0.125, stalls=WAITS_FOR_MEMORY),
    "bank conflicts": replace(
        SLOW,
        conflict_share=0.9,
        levels=level("shared memory", 0.95, SLOW),
        stalls=(("mio_throttle", 9.0), ("short_scoreboard", 9.0), ("selected", 1.0)),
    ),
    "spills": replace(
        SLOW,
        local_bytes=448,
        local_share=0.6,
        registers=32,
        stalls=WAITS_FOR_MEMORY,
    ),
    "low occupancy": replace(
        SLOW,
        occupancy=0.0625,
        occupancy_limits=("shared memory",),
        warps_active=0.06,
        stalls=(("long_scoreboard", 3.0), ("selected", 1.0)),
    ),
    "tail wave": replace(SLOW, waves=2.02, blocks=533, idle_share=0.31, issue_active=0.55),
    "host-bound": replace(SLOW, kernel_seconds=60e-6),
    "power-capped": replace(
        SLOW,
        **TENSOR,
        seconds=TENSOR_SECONDS * 1.83 / 1.34,
        kernel_seconds=TENSOR_SECONDS * 1.83 / 1.34,
        sm_hz=1.34e9,
        power_w=699.0,
        throttled_share=1.0,
        reasons=("sw_power_cap",),
    ),
    "DRAM-bound": replace(SLOW, levels=level("DRAM", 0.93, SLOW), stalls=WAITS_FOR_MEMORY),
    "L2-bound": replace(SLOW, levels=level("L2", 0.9, SLOW), stalls=WAITS_FOR_MEMORY),
    "bound by shared memory": replace(SLOW, levels=level("shared memory", 0.97, SLOW)),
    "bound by the load/store units": replace(SLOW, requests_per_clock=0.78, sectors_per_load=2.5),
    "issue-bound": replace(
        SLOW, seconds=65e-6, kernel_seconds=65e-6, issue_active=0.95, ffma_share=0.5
    ),
    "arithmetic-bound": replace(
        SLOW, seconds=33.5e-6, kernel_seconds=33.5e-6, issue_active=0.99, ffma_share=0.97
    ),
    "tensor-bound": replace(
        SLOW, **TENSOR, seconds=TENSOR_SECONDS, kernel_seconds=TENSOR_SECONDS, sm_hz=1.83e9
    ),
    "latency-bound": replace(SLOW, stalls=(("wait", 5.0), ("selected", 1.0))),
    "local array": replace(
        SLOW, local_bytes=256, local_share=0.6, local_indexed=1.0, stalls=WAITS_FOR_MEMORY
    ),
    "barriers": replace(SLOW, stalls=(("barrier", 5.0), ("selected", 1.0))),
    "branches": replace(SLOW, stalls=(("branch_resolving", 2.0), ("selected", 1.0))),
    "divergence": replace(SLOW, lanes=9.0, lanes_on=8.0),
    "FP64 arithmetic": replace(
        SLOW,
        pipes=(("FMA", 0.1), ("FP64", 0.9), ("XU", 0.8)),
        fp64_pace=0.3,
        conversions_per_product=2.0,
        conversion_share=0.2,
    ),
    "type conversions": replace(
        SLOW, pipes=(("XU", 0.55),), conversions_per_product=2.0, conversion_share=0.3
    ),
    "integer work": replace(SLOW, issue_active=0.9, integers_per_product=20.0, integer_share=0.8),
    "atomics": replace(SLOW, atomic_share=0.8, stalls=WAITS_FOR_MEMORY),
    "bound by the ALU pipe": replace(SLOW, pipes=(("FMA", 0.2), ("ALU", 0.9))),
    "bound by the XU pipe": replace(SLOW, pipes=(("FMA", 0.2), ("XU", 0.9))),
}


@pytest.mark.parametrize("kind", ONE_FAULT)
def test_one_fault_is_named_first(kind: str) -> None:
    findings = diagnose(ONE_FAULT[kind]).findings
    assert findings[0].kind == kind, [(f.kind, f.share) for f in findings]
    assert findings[0].evidence
    assert not findings[0].modelled


def test_the_power_cap_says_what_the_energy_goes_into() -> None:
    capped = ONE_FAULT["power-capped"]
    assert capped.power_w and capped.seconds
    whole = capped.power_w * capped.seconds
    for tensor, said in ((0.5, "rest 25.0 %"), (0.8, "5.0 % too much")):
        parts = (
            ("idle power", 0.2 * whole),
            ("tensor cores", tensor * whole),
            ("L2", 0.05 * whole),
        )
        evidence = diagnose(replace(capped, energy=parts)).findings[0].evidence
        assert f"L2 5.0 %, {said} (from the power of probes, with counted bytes)" in evidence[-1]
    assert not any("a launch:" in each for each in diagnose(capped).findings[0].evidence)


def test_every_kind_has_its_observations() -> None:
    assert ONE_FAULT.keys() | {"unknown"} == STEPS.keys()
    relieves = WORDS["relieves"]
    named = {*WORDS["titles"], *relieves, *(kind for kinds in relieves.values() for kind in kinds)}
    assert named <= STEPS.keys()


def test_two_causes_are_both_named_with_what_each_could_save() -> None:
    both = replace(
        ONE_FAULT["divergence"], stalls=(("barrier", 1.0), ("selected", 1.0), ("wait", 1.0))
    )
    first, second = diagnose(both).findings[:2]
    assert (first.kind, first.share) == ("divergence", pytest.approx(0.72, abs=0.01))
    assert (second.kind, second.share) == ("barriers", pytest.approx(0.25, abs=0.01))


def test_conversions_of_divisions_and_of_fp64_are_not_named_apart() -> None:
    division = replace(
        ONE_FAULT["type conversions"],
        integers_per_product=40.0,
        integer_share=0.7,
        issue_active=0.8,
    )
    for seen, kind in (
        (division, "integer work"),
        (ONE_FAULT["FP64 arithmetic"], "FP64 arithmetic"),
    ):
        found = diagnose(seen).findings
        assert found[0].kind == kind
        assert "type conversions" not in {finding.kind for finding in found}


def test_persistent_blocks_that_end_apart_are_a_tail() -> None:
    apart = replace(SLOW, waves=1.0, blocks=132, idle_share=0.25)
    first = diagnose(apart).findings[0]
    assert (first.kind, first.share) == ("tail wave", 0.25)
    longer = diagnose(replace(apart, kernel_seconds=apart.seconds / 0.9)).findings[0]
    assert longer.share == pytest.approx(0.15)


def test_a_fault_gains_no_more_than_the_next_limit_leaves() -> None:
    tail = ONE_FAULT["tail wave"]
    busy = replace(tail, levels=level("DRAM", 0.95, tail))
    first, *rest = diagnose(busy).findings
    assert first.kind == "DRAM-bound"
    assert [(f.kind, round(f.share, 2)) for f in rest if f.is_fault] == [("tail wave", 0.05)]


def test_what_nobody_waits_for_is_no_fault() -> None:
    conflicts = replace(SLOW, conflict_share=0.5, stalls=(("wait", 9.0),))
    assert diagnose(conflicts).findings[0].kind == "latency-bound"
    for use in (1.0, None):
        wide = replace(SLOW, sectors_per_load=16.0, sector_use=use, stalls=WAITS_FOR_MEMORY)
        assert diagnose(wide).findings[0].kind == "latency-bound"
    unseen = replace(SLOW, sectors_per_load=32.0, stalls=WAITS_FOR_MEMORY)
    assert diagnose(unseen).findings[0].kind == "uncoalesced"


def test_few_warps_are_no_fault_of_a_kernel_that_is_busy() -> None:
    few = ONE_FAULT["low occupancy"]
    busy = replace(few, issue_active=0.8, seconds=60e-6, kernel_seconds=60e-6)
    assert "low occupancy" not in {finding.kind for finding in diagnose(busy).findings}


# As gemm_bench records it, without a model and without ncu.
BARE = Observations(
    "Faulty",
    "f32",
    flop=2 * 1024.0**3,
    seconds=4.42e-3,
    sm_count=132,
    sm_hz=1.98e9,
    unit="FP32 FMA",
    unit_flop_per_second=66.9e12,
    unit_hz=1.98e9,
    levels=(Level("DRAM"), Level("L2"), Level("shared memory")),
    blocks=1024,
    local_bytes=0,
    waves=3.88,
)
SHORT = replace(
    BARE, unit=None, unit_flop_per_second=None, seconds=200e-6, waves=2.02, local_bytes=64
)
MANY = replace(BARE, seconds=40e-6, flop=1e9, waves=None, launches=10, launch="stream")
MANY = replace(MANY, launch_seconds=3e-6, unit=None, unit_flop_per_second=None)
CAPPED = replace(BARE, sm_hz=1.783e9, throttled_share=1.0, reasons=("power cap",), waves=41.37)


def of_l2(count: float) -> tuple[Level, ...]:
    return (Level("L2", count, None, 9.76e12, "L2_read, measured"),)


@pytest.mark.parametrize(
    ("seen", "kinds"),
    [
        # What asks for more than the L2 can bring.
        (replace(SHORT, levels=of_l2(3e9)), ["spills", "L2-bound"]),
        (replace(SHORT, levels=of_l2(1e8)), ["tail wave", "spills", "unknown"]),
        (
            replace(SHORT, unit="FP32 FMA", unit_flop_per_second=12e12, waves=1.0),
            ["arithmetic-bound", "spills"],
        ),
        (BARE, ["tail wave", "unknown"]),
        (CAPPED, ["power-capped", "unknown"]),
        (replace(CAPPED, throttled_share=0.4), ["unknown"]),
        (MANY, ["host-bound", "unknown"]),
        (replace(MANY, launches=2), ["unknown"]),
        (replace(MANY, launch="graph"), ["unknown"]),
    ],
)
def test_without_counters_findings_say_that_they_are_modelled(
    seen: Observations, kinds: list[str]
) -> None:
    findings = diagnose(seen, ladder()).findings
    assert [each.kind for each in findings] == kinds
    sure = ("power-capped", "arithmetic-bound")  # by clocks and times alone
    assert {each.kind for each in findings if not each.modelled} <= set(sure)


def test_what_only_counters_tell_is_not_guessed() -> None:
    for levels, said in (
        (BARE.levels, ": DRAM, L2, shared memory, the load/store units, the issue slots"),
        (of_l2(1e9), ": the load/store units, the issue slots"),
    ):
        last = diagnose(replace(BARE, levels=levels)).findings[-1]
        assert (last.kind, last.share, last.modelled) == ("unknown", 0, True)
        assert f"not observed{said}" in last.evidence
    (first,) = (f for f in diagnose(replace(SHORT, levels=of_l2(3e9))).findings if not f.is_fault)
    assert "L1 hits" in first.title


def ladder() -> list[tuple[str, str, int]]:
    """Every rung, as its file says it."""
    found = []
    for path in own_files("kernels/*/**/*.cu"):
        text = path.read_text(encoding="utf-8")
        rungs = re.findall(r'\.name = "(\w+)".*?\.rung = (\d+)', text, re.DOTALL)
        # Those that a shared launcher registers give name and rung as arguments.
        rungs += re.findall(r'"(\w+)",.*?\.rung = (\d+)', text, re.DOTALL) if not rungs else []
        found += [
            (name, "tensor" if path.parent.name == "tensor" else "simt", int(rung))
            for name, rung in rungs
        ]
    return found


def test_steps_name_rungs_that_exist() -> None:
    told = (REPOSITORY / "kernels" / "README.md").read_text(encoding="utf-8")
    for steps in STEPS.values():
        for rung in (rung for rung, _ in steps if rung):
            assert f"[{rung}](" in told, rung


@pytest.mark.parametrize("kind", ONE_FAULT)
def test_there_are_two_steps_of_which_one_is_a_rung(kind: str) -> None:
    steps = diagnose(ONE_FAULT[kind], ladder()).steps
    assert len(set(steps)) == 2
    assert any(step.rung for step in steps) or kind == "tensor-bound"


def test_steps_lie_above_the_kernel_and_in_its_precision() -> None:
    naive = replace(ONE_FAULT["L2-bound"], kernel="Naive", family="simt", rung=11)
    assert [step.rung for step in diagnose(naive, ladder()).steps] == ["Tiled", "BlockTile1D"]
    tiled = replace(naive, kernel="Tiled", rung=18)
    assert diagnose(tiled, ladder()).steps[0].rung == "BlockTile1D"
    issue = replace(ONE_FAULT["issue-bound"], family="simt", rung=31)
    assert "3xTF32" in [step.rung for step in diagnose(issue, ladder()).steps]
    double = replace(issue, precision="f64")
    assert {step.rung for step in diagnose(double, ladder()).steps} == {None}
