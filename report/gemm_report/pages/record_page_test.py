import dataclasses
import re

from gemm_report.pages.picture import Picture
from gemm_report.pages.record_page import record_page
from gemm_report.pages.row_table import GLOSSARY
from gemm_report.record import (
    BUSY_HOST,
    Departure,
    Environment,
    Health,
    Host,
    Library,
    Readings,
    Record,
)


def section(page: str, name: str) -> str:
    found = re.search(rf"<section [^>]*id=\"{name}\".*?</section>", page, re.DOTALL)
    assert found
    return found[0]


def text(markup: str) -> str:
    return " ".join(re.sub("<.*?>", " ", markup).split())


def picture(path: str, caption: str = "") -> Picture:
    return Picture(path, caption, "<svg/>")


def test_the_answer_comes_first(gpu: Record) -> None:
    head = text(record_page(gpu, []).partition("</header>")[0])
    assert gpu.device.name in head
    assert f"driver {gpu.device.driver}" in head
    assert "Our best kernel reaches" in head


def test_the_conditions_are_told_with_the_command(gpu: Record) -> None:
    told = text(section(record_page(gpu, []), "conditions"))
    assert gpu.conformance
    for said in (
        f"Driver {gpu.device.driver}",
        f"CUDA runtime {gpu.device.runtime}",
        f"Power limit {gpu.device.power_limit_w:.0f} W",
        f"Commit {gpu.commit}",
        "Complete yes",
        f"Input data {gpu.method.fill}",
        gpu.path.name,
        gpu.conformance,
        " ".join(gpu.command),
    ):
        assert said in told, said


def test_what_was_unusual_around_the_run_is_one_line(gpu: Record) -> None:
    assert "Environment" not in text(section(record_page(gpu, []), "conditions"))
    environment = Environment(
        {"OMP_NUM_THREADS": "4"},
        {"CUBLAS_EMULATION_STRATEGY": "eager"},
        ("libToolsInjection64.so",),
    )
    row = dataclasses.replace(gpu.rows[0], departures=(Departure(BUSY_HOST, 0.6, "busy"),))
    unusual = dataclasses.replace(
        gpu,
        environment=environment,
        host=Host(cpus=2, busy_share=0.6, steal_share=0.0),
        health=Health(Readings(other_processes=2), Readings(other_processes=0)),
        rows=(row, *gpu.rows[1:]),
    )
    assert (
        "Environment OMP_NUM_THREADS=4; removed: CUBLAS_EMULATION_STRATEGY=eager; "
        "injected: libToolsInjection64.so; busy host: others had 60.0 % of its CPUs; "
        "other processes on the GPU: 2"
    ) in text(section(record_page(unusual, []), "conditions"))


def test_the_libraries_are_told_where_the_record_names_them(gpu: Record) -> None:
    libraries = (Library("cuBLAS", "13.1.0", "libcublas.so.13"), Library("X", "2", None, "one"))
    page = record_page(dataclasses.replace(gpu, libraries=libraries), [])
    assert "Libraries cuBLAS 13.1.0, X 2 (one)" in text(section(page, "conditions"))
    assert "Libraries" not in text(section(record_page(gpu, []), "conditions"))


def test_rows_are_counted_by_state_and_the_counts_filter(gpu: Record) -> None:
    failed = gpu.rows_with("failed")[0]
    rows = (*gpu.rows, dataclasses.replace(failed, k=3, suspect=True))
    page = record_page(dataclasses.replace(gpu, rows=rows), [])
    head = page.partition("</header>")[0]
    chips = re.findall(r"<a href=\"#state=([a-z-]+)\"[^>]*><strong>(\d+)<", head)
    throttled = [row for row in gpu.rows_with("timed") if row.throttled]
    counts = {state: int(count) for state, count in chips}
    assert counts["failed"] == counts["suspect"] == counts["skipped"] == 1
    assert counts["throttled"] == len(throttled)
    assert counts["off-guideline"] == 1
    assert "untimed" not in head
    without = record_page(dataclasses.replace(gpu, rows=(throttled[0],)), [])
    assert "<span><strong>0</strong> failed</span>" in without
    for state, count in counts.items():
        assert f'<option value="{state}">{state} ({count})</option>' in page


def test_an_interrupted_run_says_so(cpu: Record) -> None:
    page = text(record_page(cpu, []))
    assert "incomplete The run was interrupted" in page
    assert "Complete no" in page


def test_a_record_without_a_time_has_a_page(gpu: Record) -> None:
    page = record_page(dataclasses.replace(gpu, rows=tuple(gpu.rows_with("failed"))), [])
    assert "Nothing was timed: 1 failed, 0 skipped." in page
    assert "0 rows" in record_page(dataclasses.replace(gpu, rows=()), [])


def test_headline_and_roofline_come_first_and_a_tab_has_what_is_of_one_precision(
    gpu: Record,
) -> None:
    names = ["energy", "throughput", "of_library", "ladder", "ladder_roofline_bf16"]
    names += ["bf16/of_library", "bf16/throughput", "ladder_bf16", "roofline", "headline"]
    page = record_page(gpu, [picture(name, f"caption of {name}.") for name in names])
    captions = re.findall(r"<figcaption>caption of (.*?)\. ", page)
    assert captions == [
        *("headline", "roofline", "ladder"),
        *("ladder_bf16", "bf16/throughput", "bf16/of_library", "ladder_roofline_bf16", "energy"),
    ], "what is of all precisions is left out where each has its own"
    assert re.findall(r"role=\"tab\" id=\"tab-(\w+)\"", page) == ["f32", "bf16"]
    assert page.index("caption of roofline") < page.index('id="precisions"')
    assert '<a href="#energy">Energy</a>' in page


def test_a_figure_that_is_missing_costs_nothing(gpu: Record) -> None:
    page = record_page(gpu, [])
    assert "<figure" not in page
    assert 'id="precisions"' not in page
    assert "caption of x" in section(record_page(gpu, [picture("new", "caption of x")]), "new")


def test_peaks_say_where_they_are_from(gpu: Record) -> None:
    told = text(section(record_page(gpu, []), "peaks"))
    for ceiling in gpu.ceilings:
        assert ceiling.origin in told
    assert "BF16 wgmma" in told


def test_peaks_show_block_scaled_fp8_and_where_table_and_probe_disagree(gpu: Record) -> None:
    assert "disagree" not in section(record_page(gpu, []), "peaks")
    first, second, *others = gpu.ceilings
    scaled = dataclasses.replace(first, limit_flop_per_second=838e12)
    wrong = dataclasses.replace(second, contradiction="X_mma reaches 0.25 of the table's rate")
    changed = dataclasses.replace(gpu, ceilings=(scaled, wrong, wrong, *others))
    told = text(section(record_page(changed, []), "peaks"))
    assert f"{first.name}, block-scaled 838 TFLOP/s" in told
    assert told.count("X_mma reaches 0.25 of the table") == 1


def test_the_terms_are_explained(gpu: Record) -> None:
    told = section(record_page(gpu, []), "glossary")
    assert all(f"<dt>{term}</dt>" in told for term in GLOSSARY)


def test_what_is_of_the_only_precision_is_in_its_tab(gpu: Record) -> None:
    rows = tuple(row for row in gpu.rows if row.precision == "bf16")
    page = record_page(dataclasses.replace(gpu, rows=rows), [picture("throughput", "here.")])
    assert "here." in section(page, "precisions")
