"""Source pages of ncu, as it prints them."""

import pytest

from gemm_report.explain.collect import with_code
from gemm_report.explain.observations import Observations
from gemm_report.explain.source import Spot, hottest, indexed_share, spots
from gemm_report.record import Record

INSTRUCTIONS = """"Kernel Name","gemm::naive(float const *)"
"#","Address","Source","Warp Stall Sampling (All Samples)","Instructions Executed"
"0","7f00","      LDL R5, [R1+0x10] ;","10","1,000"
"1","7f10","      FFMA R1, R2, R3, R1 ;","5","3,000"
"2","7f20","@P0   STL.64 [R7.X4+0x8], R5 ;","1,085","3,000"
"Kernel Name","gemm::naive(float const *)"
"#","Address","Source","Warp Stall Sampling (All Samples)","Instructions Executed"
"0","7f00","      LDL R5, [R1+0x10] ;","1","2"
"""
LINES = """"Kernel Name","gemm::naive(float const *)"
"File Path","/home/someone/my.cu"
"#","Source","Warp Stall Sampling (All Samples)","Instructions Executed"
"7","  for (int l = 0; l < k; ++l)","100","5"
"8","    sum += a[l] * b[l];","900","9"
"""


def test_the_launch_with_most_samples_counts() -> None:
    found = spots(INSTRUCTIONS + LINES, ["naive", "memset"])
    assert [spot.executed for spot in found] == [1000, 3000, 3000]
    assert indexed_share(found) == 0.75
    assert spots(INSTRUCTIONS + LINES, ["other"]) == []
    assert spots("", ["naive"]) == []


def test_the_line_with_most_stalls_is_named_with_its_file() -> None:
    line, share = hottest(spots(INSTRUCTIONS + LINES, ["naive"], lines=True)) or pytest.fail()
    assert (line.place, line.text, share) == ("my.cu:8", "sum += a[l] * b[l];", 0.9)
    assert hottest([]) is None


def test_without_lines_an_instruction_is_named(gpu: Record) -> None:
    row = next(row for row in gpu.rows if row.status == "timed" and row.device_kernels)
    name = row.device_kernels[0]
    seen = Observations("Naive", "f32")
    told = with_code(seen, row, (INSTRUCTIONS + LINES).replace("naive", name))
    assert told.hot_line == "90.0 % of the stalls are at my.cu:8: sum += a[l] * b[l];"
    told = with_code(seen, row, INSTRUCTIONS.replace("naive", name))
    assert told.hot_line == "98.6 % of the stalls are at @P0   STL.64 [R7.X4+0x8], R5 ;"
    assert told.local_indexed == 0.75
    assert with_code(seen, row, "nothing") == seen


@pytest.mark.parametrize(
    ("address", "indexed"),
    [("R1", 0), ("R1+0x10", 0), ("R1+-0x8", 0), ("R12", 1), ("R1.X4+UR4", 1), ("R7+0x10", 1)],
)
def test_a_run_time_index_is_another_register(address: str, indexed: int) -> None:
    for text in (f"LDL.128 R4, [{address}] ;", f"@!P1 STL [{address}], R4 ;"):
        assert indexed_share([Spot(text, "", 0, 5)]) == indexed
    assert indexed_share([Spot("LDS R4, [R7]", "", 0, 5)]) is None
