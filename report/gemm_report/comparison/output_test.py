import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from gemm_report.comparison.output import (
    as_json,
    console,
    markdown,
    means,
    power_line,
    summary_line,
)
from gemm_report.comparison.rule import Verdict
from gemm_report.comparison.run import Run, Timed
from gemm_report.comparison.verdict import Comparison, compare
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
    timed = {name: Timed(name, (math.exp(each),)) for name, each in logs.items()}
    untimed = untimed or {}
    return Run(Path("made.json"), "Test GPU", timed, untimed, failed=frozenset(untimed))


def comparison(names: list[str], change: float = math.log(2.0), processes: int = 1) -> Comparison:
    base = side(dict.fromkeys(names, 0.0) | {"broken": 0.0})
    new = side(dict.fromkeys(names, change), {"broken": NASTY[0]})
    return compare([base] * processes, [new] * processes, across={"driver": "1 in BASE, 2 in NEW"})


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
    assert not re.search(r"[`*_~\[\]\x00-\x09\x0b-\x1f]|@\w", text.replace("**", ""))


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


@pytest.mark.parametrize(
    ("change", "broken", "processes", "words"),
    [
        (0.7, True, 3, "WRONG RESULTS: of 2 cases 1 wrong, 1 slower, 0 ambiguous, 0 faster"),
        (0.7, False, 3, "REGRESSION: of 2 cases 2 slower, 0 ambiguous, 0 faster, 0 same"),
        (0.0, False, 1, "NOT ENOUGH DATA: of 2 cases 0 slower, 2 ambiguous"),
        (0.0, False, 3, "no regression: of 2 cases 0 slower, 2 ambiguous"),
    ],
)
def test_the_first_line_says_what_the_exit_code_says(
    change: float, broken: bool, processes: int, words: str
) -> None:
    new = side({"one": change, "two": change})
    if broken:
        new = side({"one": change}, {"two": "c[0] = nan"})
    found = compare([side({"one": 0.0, "two": 0.0})] * processes, [new] * processes)
    assert summary_line(found).startswith(words)
    first = console(found).splitlines()[0]
    tones = (Tone.BAD, Tone.WARN, Tone.GOOD)
    assert any(first.startswith(toned(words.partition(":")[0], tone)) for tone in tones)


def test_the_second_line_names_what_may_differ() -> None:
    told = "across driver: 1 in BASE, 2 in NEW"
    found = comparison(["one"])
    assert console(found, width=200).splitlines()[1] == told
    assert told in markdown(found).splitlines()[1]
    assert json.loads(as_json(found))["across"] == {"driver": "1 in BASE, 2 in NEW"}


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


def test_what_could_be_seen_is_told() -> None:
    found = comparison(["one", "two"], change=0.0)
    said = power_line(found)
    assert re.match(r"detectable: with 90 % probability, a slowdown of \d+ % in any of 95 %", said)
    assert "10 % might pass unseen in 2: 3 runs per side are needed" in said
    assert said in " ".join(console(found, width=300).split())
    assert json.loads(as_json(found))["detectable"] == found.detectable > 0.1
    assert json.loads(as_json(found))["unseen"] == 2
    assert "unseen" not in power_line(comparison(["one", "two"], 0.0, 3))


def test_no_absurd_number_is_told() -> None:
    sides = [
        [Run(Path(f"{i}"), None, {"one": Timed("one", (10.0**i,))}, {}) for i in order]
        for order in ((0, 3, 1), (2, 0, 4))
    ]
    assert "a slowdown of more than factor 10 in any" in power_line(compare(*sides))


def test_means_are_geometric() -> None:
    ((name, count, mean),) = means(comparison(["one", "two"]))
    assert (name, count, mean) == ("all cases", 2, pytest.approx(2.0))
