import dataclasses
import re
import shlex

from gemm_report.pages.markup import html
from gemm_report.pages.row_table import anchors, repeating, row_table, states
from gemm_report.record import DeviceCode, Record, Row
from gemm_report.text import precision_name


def head(made: str) -> list[str]:
    return re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", made)


def cells(made: str, row: Row, record: Record) -> dict[str, str]:
    """What the table shows of a row, by column."""
    bodies = re.findall(r"<tbody.*?</tbody>", made, re.DOTALL)
    (body,) = (b for b in bodies if f">{row.label}<" in b and f">{row.size}<" in b
               and f">{precision_name(row.precision)}<" in b)  # fmt: skip
    shown = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", body.partition("</tr>")[0], re.DOTALL)
    return dict(zip(head(made), (re.sub("<.*?>", "", cell) for cell in shown), strict=True))


def timed(record: Record, label: str, size: int) -> Row:
    return next(
        row
        for row in record.rows
        if row.label == label and row.k == size and row.status == "timed" and row.precision == "f32"
    )


def test_every_row_is_there(gpu: Record) -> None:
    assert row_table(gpu).count("<tbody") == len(gpu.rows)
    assert f"{len(gpu.rows)} rows" in row_table(gpu)


def test_a_row_says_how_fast_how_near_how_right_and_at_what_cost(gpu: Record) -> None:
    row = timed(gpu, "Naive", 4096)
    shown = cells(row_table(gpu), row, gpu)
    assert row.seconds and row.power_w and row.verification
    joule = row.seconds.median * row.power_w
    assert shown["J"] == f"{joule:.1f} J"
    assert shown["W"] == "412"
    assert shown["MHz"] == "1980"
    assert shown["error / bound"] == f"{100 * (row.verification.of_bound or 0):.1f} %"
    assert shown["precision"] == "FP32"
    assert f"{len(row.samples_seconds)} samples in order" in row_table(gpu)


def test_a_row_without_a_time_has_no_numbers(gpu: Record) -> None:
    failed = dataclasses.replace(timed(gpu, "Naive", 4096), failed="wrong", of_roof_nominal=None)
    record = dataclasses.replace(gpu, rows=(failed,))
    shown = cells(row_table(record), failed, record)
    assert {shown[name] for name in ("time", "FLOP/s", "J", "% of peak")} == {"-"}
    assert shown["state"] == "failed"


def test_a_throttled_row_is_marked_and_says_why(gpu: Record) -> None:
    throttled = [row for row in gpu.rows if row.throttled and row.status == "timed"]
    assert throttled
    made = row_table(gpu)
    assert made.count(">throttled</span>") == len(throttled)
    assert "of the time: " in made


def test_compiled_code_is_told_where_it_is_known(gpu: Record) -> None:
    assert "registers" not in row_table(gpu)
    code = DeviceCode("naive<float>", "abc123", 40, 0, 16, 256, 64, 0.75)
    row = dataclasses.replace(timed(gpu, "Naive", 4096), device_code=(code,))
    record = dataclasses.replace(gpu, rows=(row,))
    made = row_table(record)
    assert "<code>naive&lt;float&gt;</code>: 40 registers, 0 bytes of shared memory" in made
    assert "16 bytes of local memory" in made
    assert "occupancy 75 %" in made


def test_device_kernels_are_named_without_compiled_code(gpu: Record) -> None:
    row = dataclasses.replace(timed(gpu, "Naive", 4096), device_kernels=("void f<int>()",))
    assert "<code>void f&lt;int&gt;()</code>" in row_table(dataclasses.replace(gpu, rows=(row,)))


def test_a_row_tells_the_idea_and_the_source_of_its_kernel(gpu: Record) -> None:
    made = row_table(gpu)
    for kernel in gpu.kernels:
        assert f"<dt>idea</dt><dd>{html(kernel.idea)}</dd>" in made
    sourced = [kernel for kernel in gpu.kernels if kernel.source]
    assert all(f"<dt>source</dt><dd>{html(k.source or '')}</dd>" in made for k in sourced)


def test_a_row_has_an_anchor_that_stays(gpu: Record) -> None:
    row = timed(gpu, "Naive", 4096)
    again = dataclasses.replace(row, repetition=1)
    odd = dataclasses.replace(row, kernel="a b&c=d", m=7, parameters={"tile": "8"})
    names = anchors([row, again, odd])
    assert names == ["f32-4096-Naive", "f32-4096-Naive-2", "f32-7x4096x4096-a_b_c_d/tile:8"]
    record = dataclasses.replace(gpu, rows=(row,))
    assert '<tbody id="f32-4096-Naive">' in row_table(record)
    assert '<a href="#f32-4096-Naive">Naive</a>' in row_table(record)


def test_a_suspect_row_has_not_failed(gpu: Record) -> None:
    (failed,) = gpu.rows_with("failed")
    assert states(failed) == ("failed",)
    suspect = dataclasses.replace(failed, suspect=True)
    assert states(suspect) == ("suspect",)


def test_a_clean_row_is_neither_throttled_nor_off_guideline(gpu: Record) -> None:
    for row in gpu.rows_with("timed"):
        assert (states(row) == ("clean",)) == (not row.throttled and not row.departures)


def test_a_row_can_be_repeated(gpu: Record) -> None:
    row = timed(gpu, "Naive", 4096)
    options = ["--gemm_seed=7", "--benchmark_filter=x y", "--benchmark_out=out.json"]
    record = dataclasses.replace(gpu, command=("gemm_bench", *options))
    assert repeating(record) == "gemm_bench --gemm_seed=7 '--benchmark_filter=x y' " + options[2]
    words = shlex.split(repeating(record, row))
    assert words[:2] == ["gemm_bench", "--gemm_seed=7"]
    (pattern,) = (word.partition("=")[2] for word in words[2:])
    names = [f"{each.identity}/manual_time" for each in gpu.rows]
    assert [n for n in names if re.search(pattern, n)] == [f"{row.identity}/manual_time"]
    assert repeating(dataclasses.replace(gpu, command=("other", "x")), row) == ""


def test_points_of_rates_stand_under_each_other(gpu: Record) -> None:
    row = timed(gpu, "Naive", 4096)
    rows = [dataclasses.replace(row, m=i, flop_per_second=f) for i, f in enumerate((6e12, 5e14), 1)]
    made = row_table(dataclasses.replace(gpu, rows=tuple(rows)))
    assert ">6.00\N{FIGURE SPACE}</td>" in made
    assert ">500\N{PUNCTUATION SPACE}" + 3 * "\N{FIGURE SPACE}" + "</td>" in made
