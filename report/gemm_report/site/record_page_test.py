import dataclasses
import re

from gemm_report.ladder.rungs import rate
from gemm_report.record import Record
from gemm_report.site.picture import Picture
from gemm_report.site.record_page import highlights, record_page


def section(page: str, name: str) -> str:
    found = re.search(rf"<section [^>]*id=\"{name}\".*?</section>", page, re.DOTALL)
    assert found
    return found[0]


def text(markup: str) -> str:
    return " ".join(re.sub("<.*?>", " ", markup).split())


def test_the_conditions_stand_on_top(gpu: Record) -> None:
    top = text(record_page(gpu, []).partition("<section")[0])
    assert gpu.conformance
    for said in (
        gpu.device.name,
        f"Driver {gpu.device.driver}",
        f"CUDA runtime {gpu.device.runtime}",
        f"Power limit {gpu.device.power_limit_w:.0f} W",
        f"Commit {gpu.commit[:12]}",
        "Complete yes",
        f"Fill {gpu.method.fill}",
        "Rows that depart 1 of",
        gpu.path.name,
    ):
        assert said in top, said


def test_failed_skipped_and_throttled_rows_are_told_with_their_reasons(gpu: Record) -> None:
    told = text(section(record_page(gpu, []), "attention"))
    (failed,), (skipped,) = gpu.rows_with("failed"), gpu.rows_with("skipped")
    throttled = [row for row in gpu.rows_with("timed") if row.throttled]
    assert f"1 failed {failed.failed}" in text(told).replace("&#x27;", "'")
    assert f"1 skipped {skipped.skipped}" in told
    assert f"{len(throttled)} throttled" in told
    for row in throttled:
        assert ", ".join(row.held_by) in told
        assert f"{row.label} {row.precision}" in told
    assert "1 depart from the guideline median not known as well as was asked" in told


def test_each_of_them_is_a_link_to_its_row(gpu: Record) -> None:
    page = record_page(gpu, [])
    links = re.findall(r"href=\"#(row-\d+)\"", section(page, "attention"))
    assert len(links) > 3
    assert all(f'<tbody id="{link}"' in page for link in links)


def test_that_nothing_failed_is_told_too(gpu: Record) -> None:
    row = next(row for row in gpu.rows_with("timed") if not row.throttled and not row.departures)
    told = text(section(record_page(dataclasses.replace(gpu, rows=(row,)), []), "attention"))
    assert told == "0 failed 0 skipped 0 throttled 0 depart from the guideline"


def test_an_interrupted_run_says_so(cpu: Record) -> None:
    page = text(record_page(cpu, []))
    assert "incomplete The run was interrupted" in page
    assert "Complete no" in page


def test_the_best_of_a_precision_is_held_against_its_library(gpu: Record) -> None:
    found = {each.precision: each for each in highlights(gpu)}
    f32 = found["f32"]
    assert f32.best and f32.library
    assert not f32.best.is_library
    assert f32.best.size == f32.library.size == "4096"
    rows = [r for r in gpu.rows_with("timed") if r.size == "4096" and r.precision == "f32"]
    assert rate(f32.best) == max(rate(row) for row in rows if not row.is_library)
    share = f"{100 * rate(f32.best) / rate(f32.library):.1f} % of {f32.library.label}"
    assert share in record_page(gpu, [])


def test_a_record_without_a_time_has_a_page(gpu: Record) -> None:
    page = record_page(dataclasses.replace(gpu, rows=tuple(gpu.rows_with("failed"))), [])
    assert "No row has a time." in page
    assert "0 rows" in record_page(dataclasses.replace(gpu, rows=()), [])


def test_figures_have_sections_and_are_in_the_contents(gpu: Record) -> None:
    page = record_page(gpu, [Picture("ladder", "Rungs.", "<svg/>")])
    assert '<a href="#ladder">Ladder</a>' in page
    assert "Rungs." in section(page, "ladder")


def test_roofs_say_where_they_are_from(gpu: Record) -> None:
    told = text(section(record_page(gpu, []), "roofs"))
    for ceiling in gpu.ceilings:
        assert ceiling.name in told
        assert ceiling.origin in told
    assert "BF16_wgmma" in told
