from gemm_report.writing.columns import columns


def test_names_are_flush_left_and_numbers_flush_right() -> None:
    lines = [("kernel", "rate"), ("Naive", "6.08"), ("Tiled", "10.1")]
    assert columns(lines, left=1).splitlines() == ["kernel  rate", "Naive   6.08", "Tiled   10.1"]
