"""Who wins, by how much beyond the noise, and what bounds a row."""

import dataclasses
from typing import Any

import pytest

from gemm_report.conftest import clocks
from gemm_report.record import Departure, DeviceCode, Record, Row, Versus
from gemm_report.standing import Pair, bound, standings, winners


def of(record: Record, *rows: Row) -> Record:
    return dataclasses.replace(record, rows=rows)


def row_of(record: Record, rate: float, kernel: str = "Naive", **changes: Any) -> Row:
    found = (r for r in record.rows_with("timed") if r.kernel == "Naive" and r.m == 4096)
    family = {"family": "library"} if kernel == "cuBLAS" else {}
    cleared = {"of_library": None, "library": None, "clocks": None, "median_interval": 0.0}
    given: dict[str, Any] = {**cleared, **family, **changes}
    return dataclasses.replace(next(found), kernel=kernel, flop_per_second=rate, **given)


def cube(size: int) -> dict[str, Any]:
    return {"m": size, "n": size, "k": size}


@pytest.mark.parametrize(
    ("ratio", "changes", "verdict"),
    [
        (1.05, {}, "win"),
        (0.95, {}, "loss"),
        (1.004, {}, "tie"),
        (1.012, {"clocks": clocks(1.3e9, 700, 1.0, "power cap")}, "tie"),
        (1.05, {"median_interval": 0.2}, "tie"),
        (2.0, {"departures": (Departure("clock-drift", 0.1, doubt=True),)}, "doubt"),
        (2.0, {"departures": (Departure("not-settled", 0.1),)}, "win"),
    ],
)
def test_a_difference_within_the_noise_is_a_tie(
    gpu: Record, ratio: float, changes: dict[str, Any], verdict: str
) -> None:
    pair = Pair(row_of(gpu, ratio, **changes), row_of(gpu, 1.0, "cuBLAS"), "gpu")
    assert pair.verdict == verdict
    low, high = pair.interval
    assert low < ratio < high
    assert Pair(pair.ours, None, "gpu").verdict == "none"


def test_an_interleaved_ratio_goes_before_two_rates(gpu: Record) -> None:
    versus = Versus("cuBLASLt/algo:first", 0.9, 0.89, 0.91, library=True, seconds=1.0)
    ours = row_of(gpu, 2.0, versus=versus, departures=(Departure("clock-drift", 0.1, doubt=True),))
    pair = Pair(ours, row_of(gpu, 1.0, "cuBLAS"), "gpu")
    assert (pair.ratio, pair.verdict) == (0.9, "loss")
    assert Pair(ours, None, "gpu").library_rate == ours.flop
    assert Pair(ours, None, "gpu").opponent == "cuBLASLt"
    wide = dataclasses.replace(versus, low=0.7, high=1.1)
    assert Pair(dataclasses.replace(ours, versus=wide), None, "gpu").verdict == "tie"


def test_one_in_doubt_wins_only_by_a_twentieth(gpu: Record) -> None:
    doubt = {"departures": (Departure("too-few-samples", None, doubt=True),)}
    clean, close, far = (
        row_of(gpu, 100),
        row_of(gpu, 104, "A", **doubt),
        row_of(gpu, 106, "B", **doubt),
    )
    assert winners([close, clean]) == [clean]
    assert winners([clean, close, far]) == [far]


def test_the_layout_with_a_library_goes_before_a_faster_one(gpu: Record) -> None:
    alone = row_of(gpu, 9e13, layout="tn")
    both, library = row_of(gpu, 1e13, layout="tt"), row_of(gpu, 2e13, "cuBLAS", layout="tt")
    (found,) = standings(of(gpu, alone, both, library))
    assert (found.layout, found.mean) == ("tt", pytest.approx(0.5))
    (found,) = standings(of(gpu, alone))
    assert (found.lead.ours, found.mean, found.worst) == (alone, None, None)
    plain = [dataclasses.replace(row, layout="nn") for row in (both, library)]
    assert standings(of(gpu, *plain, both, library))[0].layout == "nn", "the plain one of two"


def test_sizes_are_summed_up_by_mean_and_worst_and_lead_at_4096(gpu: Record) -> None:
    rows = [row_of(gpu, share, **cube(m)) for m, share in ((64, 0.5), (4096, 2.0), (8192, 9.0))]
    libraries = [row_of(gpu, 1.0, "cuBLAS", **cube(m)) for m in (64, 4096)]
    (found,) = standings(of(gpu, *rows, *libraries))
    assert [pair.ours.m for pair in found.pairs] == [64, 4096, 8192]
    assert (found.mean, found.lead.ours.m) == (pytest.approx(1.0), 4096)
    assert found.worst and found.worst.ours.m == 64


def test_nothing_is_compared_with_a_library_on_its_slow_path(gpu: Record) -> None:
    ours, slow = row_of(gpu, 9e12), row_of(gpu, 1e12, "cuBLAS")
    fast = dataclasses.replace(slow, layout="nt", flop_per_second=9e12)
    for rows, is_slow in (((ours, slow), False), ((ours, slow, fast), True)):
        (found,) = standings(of(gpu, *rows))
        assert found.slow_library == is_slow and bool(found.compared) != is_slow
    bytes_ = [dataclasses.replace(row, precision="s8") for row in (ours, slow)]
    (found,) = standings(of(gpu, *bytes_))
    assert found.slow_library, "tensor cores read operands of one byte along k"


def test_libraries_alone_have_no_standing_and_minor_precisions_only_alone(gpu: Record) -> None:
    assert {each.precision for each in standings(gpu)} == {"f32"}
    assert standings(of(gpu)) == []
    kinds = [dataclasses.replace(each, name="s32") for each in gpu.precisions if each.name == "f16"]
    known = dataclasses.replace(gpu, precisions=(*gpu.precisions, *kinds))
    main, minor = row_of(gpu, 1.0), row_of(gpu, 1.0, precision="s32")
    assert [each.precision for each in standings(of(known, main, minor))] == ["f32"]
    assert [each.precision for each in standings(of(known, minor))] == ["s32"]


def test_a_row_is_bound_by_what_the_record_tells(gpu: Record, ladder: Record, cpu: Record) -> None:
    base = row_of(gpu, 3e12)
    assert base.seconds
    short = dataclasses.replace(base.seconds, median=5e-6, q1=5e-6, q3=5e-6, min=5e-6)
    assert bound(gpu, dataclasses.replace(base, seconds=short)) == "launch"
    assert base.roof
    roof = dataclasses.replace(base.roof, flop_per_second=4e12)
    assert bound(gpu, dataclasses.replace(base, roof=roof, of_roof_nominal=0.8)) == "DRAM"
    sms = gpu.device.sm_count or 0
    code = DeviceCode("k", None, None, None, None, None, sms // 2, None)
    assert bound(gpu, dataclasses.replace(base, device_code=(code,))) == "tiles"
    held = clocks(1.3e9, 700, 0.9, "power cap")
    assert bound(gpu, dataclasses.replace(base, clocks=held)) == "power cap"
    stale = clocks(2.5e9, 500, 0.9, "power cap")  # said of what ran before it
    assert bound(gpu, dataclasses.replace(base, clocks=stale)) == "-"
    tiled = next(row for row in ladder.rows if row.kernel == "Tiled" and row.traffic)
    assert bound(ladder, tiled) == "shared memory"
    assert {bound(cpu, row) for row in cpu.rows} == {"-"}
