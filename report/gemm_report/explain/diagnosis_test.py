"""Kernels with one known fault each, as observations: each fault is named first."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from own_files import own_files

from gemm_report.explain.diagnosis import _STEPS, Kind, diagnose
from gemm_report.explain.observations import Level, Observations

REPOSITORY = Path(__file__).parents[3]

# StreamK at 1024 on an H200 as ncu counted it: nothing is wrong with it, and the slots bind.
STREAM_K = Observations(
    kernel="StreamK",
    precision="f32",
    family="simt",
    rung=32,
    flop=2 * 1024.0**3,
    seconds=58.69e-6,
    device="NVIDIA H200",
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
    registers=168,
    threads=288,
    blocks=132,
    shared_bytes=150000,
    local_bytes=0,
    occupancy=0.14,
    occupancy_limits=("registers",),
    waves=1.0,
    counted_kernel="stream_k",
    kernel_seconds=58.69e-6,
    issue_active=0.7324,
    ffma_share=1073741824 / 32 / 36865916,
    counted_flop=2 * 1073741824.0,
    warps_active=0.139,
    idle_share=0.02,
    sectors_per_load=4.0,
    conflict_share=0.12,
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

# It has warps enough and nothing is busy: what a fault leaves behind.
SLOW = replace(
    STREAM_K,
    kernel="Slow",
    rung=None,
    family="user",
    seconds=200e-6,
    kernel_seconds=200e-6,
    occupancy=1.0,
    warps_active=0.9,
    waves=40.0,
    blocks=10560,
    issue_active=0.25,
    conflict_share=0.0,
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
    Kind.UNCOALESCED: replace(
        SLOW, sectors_per_load=16.5, sector_use=0.125, stalls=WAITS_FOR_MEMORY
    ),
    Kind.BANK_CONFLICTS: replace(
        SLOW,
        conflict_share=0.9,
        levels=level("shared memory", 0.95, SLOW),
        stalls=(("mio_throttle", 9.0), ("short_scoreboard", 9.0), ("selected", 1.0)),
    ),
    Kind.SPILLS: replace(
        SLOW,
        local_bytes=448,
        local_share=0.6,
        registers=32,
        stalls=WAITS_FOR_MEMORY,
    ),
    Kind.OCCUPANCY: replace(
        SLOW,
        occupancy=0.0625,
        occupancy_limits=("shared memory",),
        warps_active=0.06,
        stalls=(("long_scoreboard", 3.0), ("selected", 1.0)),
    ),
    Kind.TAIL: replace(SLOW, waves=2.02, blocks=533, idle_share=0.31, issue_active=0.55),
    Kind.HOST: replace(SLOW, kernel_seconds=60e-6),
    Kind.POWER: replace(
        SLOW,
        **TENSOR,
        seconds=TENSOR_SECONDS * 1.83 / 1.34,
        kernel_seconds=TENSOR_SECONDS * 1.83 / 1.34,
        sm_hz=1.34e9,
        power_w=699.0,
        throttled_share=1.0,
        reasons=("sw_power_cap",),
    ),
    Kind.DRAM: replace(SLOW, levels=level("DRAM", 0.93, SLOW), stalls=WAITS_FOR_MEMORY),
    Kind.L2: replace(SLOW, levels=level("L2", 0.9, SLOW), stalls=WAITS_FOR_MEMORY),
    Kind.SHARED: replace(SLOW, levels=level("shared memory", 0.97, SLOW)),
    Kind.LSU: replace(SLOW, requests_per_clock=0.78, sectors_per_load=2.5),
    Kind.ISSUE: replace(
        SLOW, seconds=65e-6, kernel_seconds=65e-6, issue_active=0.95, ffma_share=0.5
    ),
    Kind.FMA: replace(
        SLOW, seconds=33.5e-6, kernel_seconds=33.5e-6, issue_active=0.99, ffma_share=0.97
    ),
    Kind.TENSOR: replace(
        SLOW, **TENSOR, seconds=TENSOR_SECONDS, kernel_seconds=TENSOR_SECONDS, sm_hz=1.83e9
    ),
    Kind.LATENCY: replace(SLOW, stalls=(("wait", 5.0), ("selected", 1.0))),
    Kind.LOCAL_ARRAY: replace(
        SLOW, local_bytes=256, local_share=0.6, local_indexed=1.0, stalls=WAITS_FOR_MEMORY
    ),
    Kind.BARRIERS: replace(SLOW, stalls=(("barrier", 5.0), ("selected", 1.0))),
    Kind.BRANCHES: replace(SLOW, stalls=(("branch_resolving", 2.0), ("selected", 1.0))),
    Kind.DIVERGENCE: replace(SLOW, lanes=9.0, lanes_on=8.0),
    Kind.FP64: replace(
        SLOW,
        pipes=(("FMA", 0.1), ("FP64", 0.9), ("XU", 0.8)),
        fp64_pace=0.3,
        conversions_per_product=2.0,
        conversion_share=0.2,
    ),
    Kind.CONVERSIONS: replace(
        SLOW, pipes=(("XU", 0.55),), conversions_per_product=2.0, conversion_share=0.3
    ),
    Kind.INTEGERS: replace(SLOW, issue_active=0.9, integers_per_product=20.0, integer_share=0.8),
    Kind.ATOMICS: replace(SLOW, atomic_share=0.8, stalls=WAITS_FOR_MEMORY),
    Kind.ALU: replace(SLOW, pipes=(("FMA", 0.2), ("ALU", 0.9))),
    Kind.XU: replace(SLOW, pipes=(("FMA", 0.2), ("XU", 0.9))),
}


@pytest.mark.parametrize("kind", ONE_FAULT, ids=lambda kind: kind.value)
def test_one_fault_is_named_first(kind: Kind) -> None:
    findings = diagnose(ONE_FAULT[kind]).findings
    assert findings[0].kind is kind, [(f.kind, f.share) for f in findings]
    assert findings[0].evidence
    assert not findings[0].modelled


def test_every_kind_has_its_observations() -> None:
    assert ONE_FAULT.keys() | {Kind.UNKNOWN} == set(Kind) == _STEPS.keys()


def test_two_causes_are_both_named_with_what_each_could_save() -> None:
    both = replace(
        ONE_FAULT[Kind.DIVERGENCE], stalls=(("barrier", 1.0), ("selected", 1.0), ("wait", 1.0))
    )
    first, second = diagnose(both).findings[:2]
    assert (first.kind, first.share) == (Kind.DIVERGENCE, pytest.approx(0.72, abs=0.01))
    assert (second.kind, second.share) == (Kind.BARRIERS, pytest.approx(0.25, abs=0.01))


def test_conversions_of_divisions_and_of_fp64_are_not_named_apart() -> None:
    division = replace(
        ONE_FAULT[Kind.CONVERSIONS], integers_per_product=40.0, integer_share=0.7, issue_active=0.8
    )
    for seen, kind in ((division, Kind.INTEGERS), (ONE_FAULT[Kind.FP64], Kind.FP64)):
        found = diagnose(seen).findings
        assert found[0].kind is kind
        assert Kind.CONVERSIONS not in {finding.kind for finding in found}


def test_persistent_blocks_that_end_apart_are_a_tail() -> None:
    apart = replace(SLOW, waves=1.0, blocks=132, idle_share=0.25)
    first = diagnose(apart).findings[0]
    assert (first.kind, first.share) == (Kind.TAIL, 0.25)
    longer = diagnose(replace(apart, kernel_seconds=apart.seconds / 0.9)).findings[0]
    assert longer.share == pytest.approx(0.15)


def test_a_fault_gains_no_more_than_the_next_limit_leaves() -> None:
    tail = ONE_FAULT[Kind.TAIL]
    busy = replace(tail, levels=level("DRAM", 0.95, tail))
    first, *rest = diagnose(busy).findings
    assert first.kind is Kind.DRAM
    assert [(f.kind, round(f.share, 2)) for f in rest if f.is_fault] == [(Kind.TAIL, 0.05)]


def test_what_nobody_waits_for_is_no_fault() -> None:
    conflicts = replace(SLOW, conflict_share=0.5, stalls=(("wait", 9.0),))
    assert diagnose(conflicts).findings[0].kind is Kind.LATENCY
    for use in (1.0, None):
        wide = replace(SLOW, sectors_per_load=16.0, sector_use=use, stalls=WAITS_FOR_MEMORY)
        assert diagnose(wide).findings[0].kind is Kind.LATENCY
    unseen = replace(SLOW, sectors_per_load=32.0, stalls=WAITS_FOR_MEMORY)
    assert diagnose(unseen).findings[0].kind is Kind.UNCOALESCED


def test_few_warps_are_no_fault_of_a_kernel_that_is_busy() -> None:
    few = ONE_FAULT[Kind.OCCUPANCY]
    busy = replace(few, issue_active=0.8, seconds=60e-6, kernel_seconds=60e-6)
    assert Kind.OCCUPANCY not in {finding.kind for finding in diagnose(busy).findings}


def test_without_counters_findings_say_that_they_are_modelled() -> None:
    bare = Observations(
        "Slow",
        "f32",
        seconds=200e-6,
        flop=2 * 1024.0**3,
        sm_count=132,
        waves=2.02,
        blocks=533,
        local_bytes=64,
        levels=(Level("L2", 3e9, None, 9.76e12, "L2_read, measured"),),
    )
    findings = diagnose(bare).findings
    assert [f.kind for f in findings] == [Kind.SPILLS, Kind.L2]
    assert "L1 hits" in findings[1].title, "what asks for more than the L2 can bring"
    less = replace(bare, levels=(Level("L2", 1e8, None, 9.76e12, "L2_read, measured"),))
    findings = diagnose(less).findings
    assert [f.kind for f in findings if f.is_fault] == [Kind.TAIL, Kind.SPILLS]
    assert all(f.modelled for f in findings)
    unit = replace(less, unit="FP32 FMA", unit_flop_per_second=12e12, waves=1.0)
    assert [f.kind for f in diagnose(unit).findings] == [Kind.FMA, Kind.SPILLS]


# The three that follow as gemm_bench recorded them on an H200, without a model and without ncu.
BARE = Observations(
    "Faulty",
    "f32",
    family="bench",
    flop=2 * 1024.0**3,
    seconds=4.42e-3,
    sm_count=132,
    sm_hz=1.98e9,
    power_w=182.0,
    power_limit_w=700.0,
    throttled_share=0.0,
    unit="FP32 FMA",
    unit_flop_per_second=66.9e12,
    unit_hz=1.98e9,
    levels=(Level("DRAM"), Level("L2"), Level("shared memory")),
    launch="stream",
    launch_seconds=3.4e-6,
    threads=1024,
    blocks=1024,
    local_bytes=0,
    occupancy=1.0,
    waves=3.88,
)


def test_what_only_counters_tell_is_not_guessed() -> None:
    *faults, last = diagnose(BARE, ladder()).findings
    assert last.kind is Kind.UNKNOWN
    assert last.share == 0
    assert last.modelled
    unseen = next(each for each in last.evidence if each.startswith("not observed"))
    assert unseen.endswith(": DRAM, L2, shared memory, the load/store units, the issue slots")
    assert [fault.kind for fault in faults] == [Kind.TAIL]
    assert faults[0].share < 0.1
    modelled = replace(BARE, levels=(Level("L2", 1e9, None, 9.76e12, "L2_read, measured"),))
    last = diagnose(modelled).findings[-1]
    assert "not observed: the load/store units, the issue slots" in last.evidence


def test_a_power_cap_is_seen_without_counters() -> None:
    capped = replace(
        BARE,
        flop=2 * 2048.0**3,
        seconds=22.1e-3,
        sm_hz=1.783e9,
        power_w=695.0,
        throttled_share=1.0,
        reasons=("power cap",),
        waves=41.37,
        blocks=16384,
    )
    first, last = diagnose(capped).findings
    assert first.kind is Kind.POWER
    assert not first.modelled
    assert last.kind is Kind.UNKNOWN


def test_launches_from_a_stream_are_the_host_s_where_its_time_is_most_of_it() -> None:
    seen = replace(
        Observations("Many", "f32", seconds=40e-6, flop=1e9),
        launches=10,
        launch="stream",
        launch_seconds=3e-6,
    )
    first = diagnose(seen).findings[0]
    assert first.kind is Kind.HOST
    assert first.modelled
    assert diagnose(replace(seen, launches=2)).findings[0].kind is not Kind.HOST
    assert diagnose(replace(seen, launch="graph")).findings[0].kind is not Kind.HOST


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
    for steps in _STEPS.values():
        for rung in (rung for rung, _ in steps if rung):
            assert f"[{rung}](" in told, rung


@pytest.mark.parametrize("kind", ONE_FAULT, ids=lambda kind: kind.value)
def test_there_are_two_steps_of_which_one_is_a_rung(kind: Kind) -> None:
    steps = diagnose(ONE_FAULT[kind], ladder()).steps
    assert len(set(steps)) == 2
    assert any(step.rung for step in steps) or kind is Kind.TENSOR


def test_steps_lie_above_the_kernel_and_in_its_precision() -> None:
    naive = replace(ONE_FAULT[Kind.L2], kernel="Naive", family="simt", rung=11)
    assert [step.rung for step in diagnose(naive, ladder()).steps] == ["Tiled", "BlockTile1D"]
    tiled = replace(naive, kernel="Tiled", rung=18)
    assert diagnose(tiled, ladder()).steps[0].rung == "BlockTile1D"
    issue = replace(ONE_FAULT[Kind.ISSUE], family="simt", rung=31)
    assert "3xTF32" in [step.rung for step in diagnose(issue, ladder()).steps]
    double = replace(issue, precision="f64")
    assert {step.rung for step in diagnose(double, ladder()).steps} == {None}
