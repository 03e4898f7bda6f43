import math
import re

from gemm_report.comparison.conftest import side
from gemm_report.comparison.output_test import NASTY, comparison
from gemm_report.comparison.page import page
from gemm_report.comparison.verdict import compare


def test_the_verdict_comes_first() -> None:
    made = page(comparison(["one", "two"]))
    answer = re.search(r'class="answer">(.*?)<', made)
    assert answer and answer[1].startswith("WRONG RESULTS: of ")
    assert "<h1>Wrong results: exit code 5</h1>" in made and "<title>Wrong results: exit" in made
    differs = made.index("across driver: 1 in BASE")
    assert made.index("<h1>") < differs < made.index('class="answer"') < made.index("<table")
    assert "geometric mean of the times, FP32: +100.00 % (2 cases)" in made


def test_changed_cases_are_a_table_by_change_and_the_others_a_count() -> None:
    new = side({"a": 0.0, "b": math.log(2), "c": 0.0, "d": 0.2})
    made = page(compare([side(dict.fromkeys("abcd", 0.0))], [new]))
    first, _, others = made.partition("<details")
    assert re.findall(r">([abcd])</(?:a|td)>", first) == ["b", "d"]
    assert set(re.findall(r">([abcd])</(?:a|td)>", others)) == {"a", "c"}
    assert re.search(r"<summary>2 (ambiguous )?cases", others)
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', first)]
    assert 120 < places[1] < places[0] < 240
    assert '<a href="#verdict=slower"' in made or '<a href="#verdict=significant only"' in made
    assert re.search(r'<option value="significant only">significant only \(\d\)', made)


def test_names_full_of_html_stay_text() -> None:
    made = page(comparison(list(NASTY)))
    assert made.count("<script") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in made
    assert "\x1b" not in made
