import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from gemm_report.comparison.noise.within import LogMedian
from gemm_report.comparison.output import (
    as_json,
    console,
    markdown,
    means,
    power_line,
    remarks,
    summary_line,
)
from gemm_report.comparison.run import Run, Timed
from gemm_report.comparison.trials import Known
from gemm_report.comparison.verdict import Comparison, Verdict, compare
from gemm_report.terminal import Tone, toned

NASTY = (
    "<script>alert(1)</script>",
    "a|b\\|c",
    "`code` and ``more``",
    "@everybody #1",
    "\x1b[31mred\x07\r\n\u202eright",
    "[link](javascript:1) ![x](y)",
    "*bold* _under_ ~~gone~~",
    "k" * 5000,
)


def side(logs: dict[str, float], untimed: dict[str, str] | None = None) -> Run:
    timed = {
        name: Known(name, (1.0,) * 9, medians=(LogMedian(each, 1e-8, 20), None))
        for name, each in logs.items()
    }
    untimed = untimed or {}
    return Run(Path("made.json"), "Test GPU", timed, untimed, failed=frozenset(untimed))


def comparison(names: list[str], change: float = math.log(2.0)) -> Comparison:
    base = side(dict.fromkeys(names, 0.0) | {"broken": 0.0})
    return compare([base], [side(dict.fromkeys(names, change), {"broken": NASTY[0]})])


@pytest.mark.parametrize("count", [8, 5000])
def test_markdown_fits_a_comment_whatever_the_names(count: int) -> None:
    names = [f"{NASTY[i % len(NASTY)]}{i}" for i in range(count)]
    text = markdown(comparison(names))
    assert len(text) < 65_536
    assert len(text.encode("utf-16-le")) // 2 < 65_536
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) > 8
    assert {line.count("|") for line in table} == {9}, "every row has eight cells"
    if count > 100:
        assert re.search(r"- and \d+ more: the JSON has all of them", text)
        assert len(table) > 100


def test_markdown_holds_no_markup_of_names() -> None:
    text = markdown(comparison(list(NASTY)))
    assert set(re.findall(r"<[^>]*>", text)) == {"<code>", "</code>"}
    assert not re.search(
        r"[`*_~\[\]\x00-\x09\x0b-\x1f]|@\w", text.replace("**The", "").replace("now:**", "")
    )


def test_a_terminal_gets_no_control_characters() -> None:
    text = console(comparison(list(NASTY)), every=True)
    for tone in ("\ufdd031\ufdd1", "\ufdd2"):
        text = text.replace(tone, "")
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "\\x1b[31mred" in text
    assert "wrong now  broken: <script>" in text


def test_json_has_every_case_and_only_numbers() -> None:
    found = comparison([f"{name}{i}" for i, name in enumerate(NASTY)])

    def refuse(constant: str) -> None:
        pytest.fail(constant)

    document = json.loads(as_json(found), parse_constant=refuse)
    assert {case["name"] for case in document["cases"]} == {case.name for case in found.cases}
    assert document["regression"] is True
    assert document["counts"]["slower"] == 8
    assert document["failed"] == [{"name": "broken", "reason": NASTY[0]}]
    for case in document["cases"]:
        assert case["time"]["low"] <= case["time"]["ratio"] <= case["time"]["high"]
        assert case["new_seconds"] == pytest.approx(case["ratio"] * case["base_seconds"])
        assert set(case) == set(document["cases"][0])


def test_json_is_finite_where_nothing_is_known() -> None:
    found = comparison(["far"], change=math.log(1e100))
    json.loads(as_json(found), parse_constant=lambda constant: pytest.fail(constant))
    assert "×1e+100" in console(found)


def test_cases_that_are_the_same_are_counted_or_all_told() -> None:
    found = comparison(["one", "two", "three"], change=0.0)
    narrow: Any = dataclasses.replace(found, threshold=0.5)
    assert "one" not in console(narrow).split()
    counted = "3 ambiguous cases that changed by less than 50 % so far"
    assert counted in " ".join(console(narrow).split())
    assert "one" in console(narrow, every=True).split()


def test_the_first_line_is_the_verdict() -> None:
    found = comparison(["one"])
    words = summary_line(found).replace("REGRESSION", toned("REGRESSION", Tone.BAD)).split()
    assert console(found).split()[: len(words)] == words
    assert summary_line(found).startswith("REGRESSION: of 2 cases 1 wrong, 1 slower")
    calm = compare([side({"one": 0.0})], [side({"one": 0.0})])
    assert summary_line(calm).startswith("no regression seen: of 1 cases 0 slower, 1 ambiguous")


@pytest.mark.parametrize("width", [72, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    names = [f"{name}{i}" for i in range(9) for name in NASTY]
    for every in (False, True):
        lines = console(comparison(names), every, width).splitlines()
        assert max(map(len, lines)) <= width + 5, "but for the signs of a colour"
        assert any("BASE" in line and "interval" in line for line in lines) == (width >= 120)


def test_ambiguous_cases_do_not_bury_the_others() -> None:
    many = {f"maybe{i}": 0.5 for i in range(100)}
    base = side(dict.fromkeys(many, 0.0) | {"sure": 0.0})
    new = side(many | {"sure": math.log(2.0)})
    found = compare([base], [new])
    cases = [
        dataclasses.replace(c, verdict=Verdict.AMBIGUOUS) if c.name != "sure" else c
        for c in found.cases
    ]
    found = dataclasses.replace(found, cases=tuple(cases))
    text = console(found)
    assert text.count("maybe") == 20
    assert text.index("sure") < text.index("maybe")
    assert "80 ambiguous cases" in text
    assert console(found, every=True).count("maybe") == 100


def test_the_second_line_says_what_could_be_seen() -> None:
    found = comparison(["one", "two"], change=0.0)
    said = power_line(found)
    assert re.match(r"detectable: slowdowns of \d+ % with 90 % probability; excluded: more", said)
    assert said in " ".join(console(found, width=300).split())
    assert json.loads(as_json(found))["detectable"] == found.detectable > 0.1
    assert json.loads(as_json(found))["excluded"] > 0.15, "two speeds may hide so much"
    assert markdown(found).splitlines()[2].startswith("detectable: ")


def test_files_of_other_tools_say_what_their_spread_is() -> None:
    timed = {"one": Timed("one", (1.0,)), "many": Timed("many", (1.0, 1.1, 1.2))}
    runs = [Run(Path(f"{i}.json"), None, timed, {}) for i in range(2)]
    told = " ".join(remarks(compare(runs[:1], runs[1:])))
    said = "0.json: 1 of 2 cases have samples, with a spread of 7.4 % at median; of 1 the spread"
    assert said in told


@pytest.mark.parametrize(("processes", "told"), [(1, "not calibrated"), (2, "give 3"), (3, None)])
def test_few_processes_are_warned_of(processes: int, told: str | None) -> None:
    found = compare(*[[side({"one": 0.0})] * processes] * 2)
    said = " ".join(remarks(found))
    assert told is None or told in said
    assert ("not calibrated" in said) == (processes == 1)


def test_means_are_geometric() -> None:
    ((name, count, mean),) = means(comparison(["one", "two"]))
    assert (name, count, mean) == ("all cases", 2, pytest.approx(2.0))
