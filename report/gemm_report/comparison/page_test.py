import math
import re
from pathlib import Path
from typing import Any

import pytest

from gemm_report.comparison.output_test import NASTY, side
from gemm_report.comparison.page import page
from gemm_report.comparison.run import Run, run_of
from gemm_report.comparison.verdict import compare
from gemm_report.pages.browser_test import axe_findings
from gemm_report.record import Record, read_record


def text(markup: str) -> str:
    return " ".join(re.sub("<.*?>", " ", markup).split())


@pytest.fixture
def slower(gpu: Record, rewritten: Any) -> Run:
    def driver(document: Any) -> None:
        document["context"]["gemm"]["device"]["driver"] = "999.1"

    return run_of(read_record(rewritten("new.json", 1.5, driver)))


def test_the_verdict_comes_first(gpu: Record, slower: Run) -> None:
    made = page(compare([run_of(gpu)], [slower], across={"driver": "driver 1 in BASE"}))
    answer = re.search(r'class="answer">(.*?)<', made)
    assert answer and answer[1].startswith("WRONG RESULTS: of ")
    assert "<h1>Wrong results: exit code 5</h1>" in made and "<title>Wrong results: exit" in made
    differs = made.index("across driver: driver 1 in BASE")
    assert made.index("<h1>") < differs < made.index('class="answer"') < made.index("<table")


def test_changed_cases_are_a_table_and_the_others_a_count() -> None:
    speeds = {"a": 0.0, "b": 0.0, "c": 0.0}
    made = page(compare([side(speeds)], [side(speeds | {"b": math.log(2)})]))
    first, _, others = made.partition("<details")
    assert re.findall(r">([abc])</(?:a|td)>", first) == ["b"]
    assert set(re.findall(r">([abc])</(?:a|td)>", others)) == {"a", "c"}
    assert re.search(r"<summary>2 (ambiguous )?cases", others)


def test_it_tells_what_differs(gpu: Record, slower: Run) -> None:
    told = {"driver": f"driver {gpu.device.driver} in BASE, 999.1 in NEW"}
    made = page(compare([run_of(gpu)], [slower], across=told))
    assert f"across driver: {told['driver']}" in text(made)


def test_every_case_has_its_interval_by_change() -> None:
    made = page(compare([side({"a": 0.0, "b": 0.0})], [side({"a": 0.1, "b": math.log(2)})]))
    assert re.findall(r">([ab])</(?:a|td)>", made) == ["b", "a"]
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', made)]
    assert 120 < places[1] < places[0] < 240
    assert '<a href="#verdict=slower"' in made or '<a href="#verdict=significant only"' in made
    assert re.search(r'<option value="significant only">significant only \(\d\)', made)


def test_means_are_told_for_each_precision(gpu: Record, slower: Run) -> None:
    made = page(compare([run_of(gpu)], [slower]))
    assert re.search(r"geometric mean of the times, FP32: \+50\.00 % \(\d+ cases\)", text(made))


def test_names_full_of_html_stay_text() -> None:
    made = page(compare([side(dict.fromkeys(NASTY, 0.0))], [side(dict.fromkeys(NASTY, 1.0))]))
    assert made.count("<script") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in made
    assert "\x1b" not in made


def test_axe_finds_nothing_serious(gpu: Record, slower: Run, tmp_path: Path, chromium: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="pip install axe-playwright-python")
    path = tmp_path / "index.html"
    path.write_text(page(compare([run_of(gpu)], [slower])), encoding="utf-8")
    chromium.get_log("browser")
    chromium.get(path.as_uri())
    assert axe_findings(chromium, axe) == []
    assert chromium.get_log("browser") == []
