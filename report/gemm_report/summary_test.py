import dataclasses

from gemm_report.record import Record
from gemm_report.summary import markdown_table, summary


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
