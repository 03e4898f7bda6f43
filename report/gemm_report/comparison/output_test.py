import json
import math
import re
from typing import Any

import pytest

from gemm_report.comparison.conftest import processes, side
from gemm_report.comparison.output import as_json, console, markdown, means, power_line
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


def comparison(names: list[str], change: float = math.log(2.0), count: int = 1) -> Comparison:
    base = side(dict.fromkeys(names, 0.0) | {"broken": 0.0})
    new = side(dict.fromkeys(names, change), {"broken": NASTY[0]})
    return compare([base] * count, [new] * count, across={"driver": "1 in BASE, 2 in NEW"})


def parsed(found: Comparison) -> Any:
    """Its JSON, which has only numbers."""
    return json.loads(as_json(found), parse_constant=lambda constant: pytest.fail(constant))


@pytest.mark.parametrize("count", [8, 5000])
def test_markdown_fits_a_comment_and_holds_no_markup_whatever_the_names(count: int) -> None:
    text = markdown(comparison([f"{NASTY[i % len(NASTY)]}{i}" for i in range(count)]))
    assert len(text.encode("utf-16-le")) // 2 < 65_536
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) > min(count, 100)
    assert {line.count("|") for line in table} == {9}, "every row has eight cells"
    first, second = text.splitlines()[:2]
    assert first.startswith(f"### WRONG RESULTS: of {count + 1} cases 1 wrong, {count} slower")
    assert "across driver: 1 in BASE, 2 in NEW" in second
    assert bool(re.search(r"- and \d+ more: the JSON has all of them", text)) == (count > 100)
    assert set(re.findall(r"<[^>]*>", text)) == {"<code>", "</code>"}
    assert not re.search(r"[`*_~\[\]\x00-\x09\x0b-\x1f]|@\w", text.replace("**", ""))


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("width", [72, 200])
def test_a_terminal_gets_no_control_characters_and_no_line_that_is_too_wide(
    width: int, every: bool
) -> None:
    text = console(comparison([f"{name}{i}" for i in range(9) for name in NASTY]), every, width)
    assert all(c.isprintable() or c == "\n" for c in text)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert any("BASE" in line and "interval" in line for line in lines) == (width >= 120)
    assert "\\x1b[31mred" in text
    assert "wrong now  broken: <script>" in text


def test_json_has_every_case_and_only_numbers() -> None:
    document = parsed(comparison([f"{name}{i}" for i, name in enumerate(NASTY)]))
    assert {case["name"] for case in document["cases"]} == {
        f"{name}{i}" for i, name in enumerate(NASTY)
    }
    assert document["regression"] is True
    assert document["counts"]["slower"] == 8
    assert document["failed"] == [{"name": "broken", "reason": NASTY[0]}]
    assert document["across"] == {"driver": "1 in BASE, 2 in NEW"}
    for case in document["cases"]:
        assert case["time"]["low"] <= case["time"]["ratio"] <= case["time"]["high"]
        assert case["new_seconds"] == pytest.approx(case["ratio"] * case["base_seconds"])
    far = comparison(["far"], change=math.log(1e100))
    assert parsed(far)["cases"] and "×1e+100" in console(far)


def test_cases_that_are_the_same_are_counted_or_all_told() -> None:
    found = comparison(["one", "two", "three"], change=0.0)
    counted = "3 ambiguous cases that changed by less than 1 % so far"
    assert counted in " ".join(console(found).split())
    assert ("one" in console(found).split(), "one" in console(found, True).split()) == (0, 1)


def test_the_verdict_has_a_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert console(comparison(["one"])).startswith(toned("WRONG RESULTS", Tone.BAD))


def test_ambiguous_cases_do_not_bury_the_others() -> None:
    found = compare(*processes([0.03 * (-1) ** i for i in range(99)] + [math.log(2.0)], 2))
    text = console(found)
    assert (text.count("Kernel"), console(found, every=True).count("Kernel")) == (21, 100)
    assert re.findall(r"Kernel\d+", text)[0] == "Kernel99"
    assert "79 ambiguous cases" in text


def test_what_could_be_seen_is_told() -> None:
    said = power_line(found := comparison(["one", "two"], change=0.0))
    assert re.match(r"detectable: with 90 % probability, a slowdown of \d+ % in any of 95 %", said)
    assert "10 % might pass unseen in 2: 3 runs per side are needed" in said
    assert said in " ".join(console(found, width=300).split())
    assert parsed(found)["detectable"] == found.detectable > 0.1
    assert parsed(found)["unseen"] == 2
    assert "unseen" not in power_line(comparison(["one", "two"], 0.0, 3))
    wild = [[side({"one": i * math.log(10)}) for i in order] for order in ((0, 3, 1), (2, 0, 4))]
    assert "a slowdown of more than factor 10 in any" in power_line(compare(*wild))


def test_means_are_geometric() -> None:
    ((name, count, mean),) = means(comparison(["one", "two"]))
    assert (name, count, mean) == ("FP32", 2, pytest.approx(2.0))
