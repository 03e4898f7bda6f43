import dataclasses
import re

from gemm_report.record import DeviceCode, Record, Row
from gemm_report.site.row_table import row_table


def head(made: str) -> list[str]:
    return re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", made)


def cells(made: str, row: Row, record: Record) -> dict[str, str]:
    """What the table shows of a row, by column."""
    bodies = re.findall(r"<tbody.*?</tbody>", made, re.DOTALL)
    (body,) = (b for b in bodies if f">{row.label}<" in b and f">{row.precision}<" in b
               and f">{row.shape}<" in b)  # fmt: skip
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
    assert shown["SM MHz"] == "1980"
    assert shown["samples"] == str(len(row.samples_seconds))
    assert shown["of bound"] == f"{100 * (row.verification.of_bound or 0):.1f} %"


def test_a_row_without_a_time_has_no_numbers(gpu: Record) -> None:
    failed = dataclasses.replace(timed(gpu, "Naive", 4096), failed="wrong", of_roof_nominal=None)
    record = dataclasses.replace(gpu, rows=(failed,))
    shown = cells(row_table(record), failed, record)
    assert {shown[name] for name in ("time", "FLOP/s", "J", "of roof")} == {"-"}
    assert shown["status"] == "failed"


def test_a_throttled_row_is_marked_and_says_why(gpu: Record) -> None:
    throttled = [row for row in gpu.rows if row.throttled and row.status == "timed"]
    assert throttled
    made = row_table(gpu)
    assert made.count(">throttled</span>") == len(throttled)
    assert "of the time: " in made


def test_compiled_code_has_columns_where_it_is_known(gpu: Record) -> None:
    assert "registers" not in head(row_table(gpu))
    code = DeviceCode("naive<float>", "abc123", 40, 0, 16, 256, 64, 0.75)
    row = dataclasses.replace(timed(gpu, "Naive", 4096), device_code=(code,))
    record = dataclasses.replace(gpu, rows=(row,))
    made = row_table(record)
    shown = cells(made, row, record)
    assert (shown["registers"], shown["occupancy"]) == ("40", "75 %")
    assert "<code>naive&lt;float&gt;</code>: 40 registers, 0 bytes of shared memory" in made
    assert "16 bytes of local memory" in made


def test_device_kernels_are_named_without_compiled_code(gpu: Record) -> None:
    row = dataclasses.replace(timed(gpu, "Naive", 4096), device_kernels=("void f<int>()",))
    assert "<code>void f&lt;int&gt;()</code>" in row_table(dataclasses.replace(gpu, rows=(row,)))
