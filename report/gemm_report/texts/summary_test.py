import dataclasses

from gemm_report.record import Record
from gemm_report.texts.summary import summary
from gemm_report.writing.tables import markdown_table


def test_every_row_of_the_record_is_on_the_page(gpu: Record) -> None:
    page = summary(gpu)
    lines = page.splitlines()
    for row in gpu.rows_with("timed"):
        assert any(line.startswith(f"| {row.shape} | {row.label}") for line in lines)
    results = [line for line in lines if line.startswith("| ") and "x" in line.split(" ")[1]]
    assert len(results) == len(gpu.rows_with("timed"))
    assert "3 aggregate rows are left out" in page


def test_a_row_says_how_fast_how_near_and_how_right(gpu: Record) -> None:
    row = next(line for line in summary(gpu).splitlines() if "1024x1024x768 | cuBLAS" in line)
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells[5] == "FP32 FMA"
    assert cells[7] == "100.0 %"
    assert cells[9] == "5"
    assert all(cell for cell in cells)


def test_a_row_says_what_the_device_did_meanwhile(gpu: Record) -> None:
    lines = summary(gpu).splitlines()
    (tf32,) = (line for line in lines if "4096 | cuBLAS" in line and "302" in line)
    assert tf32.endswith("| 1560 MHz | 693 W | 87.5 % | - |")
    (naive,) = (line for line in lines if "4096x4096x4096 | Naive |" in line)
    assert "| 1980 MHz | 412 W | 0.0 % | 11.31 % (11.28 to 11.35) of cuBLAS/math:default |" in naive


def test_deviations_are_listed_by_row(gpu: Record) -> None:
    page = summary(gpu)
    assert "## Deviations from the measurement guideline (1)" in page
    assert "- NaiveUncoalesced, f32, 4096x4096x4096: the median is known to 0.8 %" in page
    none = dataclasses.replace(gpu, rows=gpu.rows[:3])
    assert "Departures" not in summary(none)


def test_the_run_says_how_it_was_measured_and_where_the_time_went(gpu: Record) -> None:
    page = summary(gpu)
    assert gpu.conformance
    assert f"timed with CUDA events  \n{gpu.conformance}  \n40 s, 73.0 % of them in" in page


def test_what_replaces_fp32_stands_beside_its_fastest_library(gpu: Record) -> None:
    (library,) = (
        row
        for row in gpu.rows_with("timed")
        if (row.label, row.precision, row.m) == ("cuBLAS/math:default", "f32", 4096)
    )
    assert library.flop_per_second and library.verification and library.verification.max_error
    slower = dataclasses.replace(
        library,
        parameters={"math": "pedantic"},
        flop_per_second=library.flop_per_second / 2,
    )
    ours = dataclasses.replace(
        library,
        kernel="3xTF32",
        family="tensor",
        parameters={},
        precision="tf32x3",
        flop_per_second=2.25 * library.flop_per_second,
        verification=dataclasses.replace(
            library.verification, max_error=0.75 * library.verification.max_error
        ),
    )
    both = dataclasses.replace(gpu, rows=(library, slower, ours))
    assert f"| 3xTF32 | {library.label} | 2.25 | " in summary(both)
    (line,) = (line for line in summary(both).splitlines() if "| 2.25 |" in line)
    assert line.endswith("| 0.75 |")
    assert "Beside the fastest" not in summary(dataclasses.replace(gpu, rows=(slower,)))
    assert "Beside the fastest" not in summary(dataclasses.replace(gpu, rows=(ours,)))


def test_measured_ceilings_have_their_clock(gpu: Record, cpu: Record) -> None:
    wgmma = "| BF16_wgmma | bf16 | random | 700 TFLOP/s | 70.7 % | 1410 MHz | 698 W | 100.0 % |"
    assert wgmma in summary(gpu)
    assert "Measured ceilings" not in summary(cpu)


def test_skipped_and_failed_rows_are_listed_with_their_reason(gpu: Record) -> None:
    page = summary(gpu)
    skipped, failed = page.index("## Skipped (1)"), page.index("## Failed (1)")
    assert "NaiveUncoalesced, f32, 8192x8192x8192: the row needs about 9 s" in page[skipped:failed]
    assert "Tiled/tile:32, f32, 4096x4096x4096: c[17,3] = nan" in page[failed:]


def test_a_row_with_neither_time_nor_reason_is_listed(gpu: Record) -> None:
    row = dataclasses.replace(gpu.rows[0], seconds=None, flop_per_second=None)
    page = summary(dataclasses.replace(gpu, rows=(row,)))
    assert "## Untimed (1)" in page
    assert "No row has a time." in page


def test_roofs_come_with_origin_and_reason(gpu: Record, cpu: Record) -> None:
    assert "| FP32 FMA | f32 | 66.9 TFLOP/s | queried |" in summary(gpu)
    assert "| DRAM |  | not known | unknown | not measured in this run |" in summary(cpu)


def test_an_incomplete_record_says_so(gpu: Record, cpu: Record) -> None:
    assert "incomplete" in summary(cpu)
    assert "incomplete" not in summary(gpu)


def test_a_cell_cannot_break_the_table() -> None:
    assert markdown_table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"


def test_grids_and_transfers_have_tables_of_their_own(ladder: Record, gpu: Record) -> None:
    ladder_part, rest = summary(ladder).split("## Parameter grids")
    grids, transfers = rest.split("## End to end")
    assert "| BlockTile1D |" in ladder_part
    assert "BM:64" not in ladder_part
    assert "EndToEnd" not in ladder_part
    assert grids.count("| BlockTile1D/BM:") == 8
    assert "| Naive | f32 | pinned | 670 µs | 153 µs | 437 µs | 77.8 µs |" in transfers
    assert "| 55.0 GB/s, 99.1 % | 53.9 GB/s, 97.3 % | -1.2 % |" in transfers
    for title in ("Parameter grids", "End to end"):
        assert title not in summary(gpu)


def test_without_a_ceiling_a_transfer_has_its_rate_only(ladder: Record) -> None:
    page = summary(dataclasses.replace(ladder, measured_ceilings=()))
    assert "| 55.0 GB/s | 53.9 GB/s | -1.2 % |" in page
