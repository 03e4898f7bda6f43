"""The reference figures: what counts as worse, and their file."""

from dataclasses import replace
from pathlib import Path

import pytest
from gemm_report.document import InputError

from gemm_sass import held
from gemm_sass.held import Held
from gemm_sass.kernels import Kernel
from gemm_sass.loop import Figures

THEN = Held("13.0", 100, instructions=110, moved=4, narrow_loads=2, local=0)
KEY = ("simt/tiled", "tiled<float, 32>", "sm_90a")


def test_equal_or_better_is_not_worse() -> None:
    assert THEN.worse_than(THEN) == []
    better = Held("13.0", 100, instructions=109, moved=3, narrow_loads=0, local=0)
    assert better.worse_than(THEN) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"instructions": 111}, "111 instructions for 100 multiply-adds"),
        ({"multiply_adds": 99}, "110 instructions for 99"),
        ({"moved": 5}, "5 FFMA that move their accumulator"),
        ({"narrow_loads": 3}, "3 LDS of less than 128 bits"),
        ({"local": 1}, "1 LDL and STL"),
    ],
)
def test_each_figure_may_be_worse(change: dict[str, int], says: str) -> None:
    assert any(says in text for text in replace(THEN, **change).worse_than(THEN))


def test_two_in_a_thousand_are_noise_and_three_are_not() -> None:
    long = Held("13.0", 1000, instructions=1100, moved=4, narrow_loads=0, local=0)
    assert replace(long, instructions=1102, narrow_loads=2).worse_than(long) == []
    assert len(replace(long, instructions=1103).worse_than(long)) == 1


def test_a_loop_that_is_unrolled_twice_as_far_is_not_worse() -> None:
    twice = Held("13.0", 200, instructions=220, moved=8, narrow_loads=4, local=0)
    assert twice.worse_than(THEN) == []
    assert len(replace(twice, moved=9).worse_than(THEN)) == 1


def test_a_loop_that_is_gone_is_worse() -> None:
    assert Held("13.0", 0, 0, 0, 0, 0).worse_than(THEN) == ["the hot loop is gone"]


def test_the_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "sass.json"
    table = {KEY: THEN, (*KEY[:2], "sm_80"): replace(THEN, local=3), ("a/b", "c", "sm_75"): THEN}
    held.write(path, table)
    assert held.read(path) == table
    lines = path.read_text().splitlines()
    assert sum('"compiler"' in line and '"local"' in line for line in lines) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"a": 1}',
        '{"a": {"b": {"sm_80": {}}}}',
        '{"a": {"b": {"sm_80": {"compiler": "13.0", "multiply_adds": "1"}}}}',
    ],
)
def test_a_damaged_table_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sass.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        held.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_entries_are_those_of_what_was_built() -> None:
    has = Figures(64, 3, "FFMA", 110, 100, 4, {32: 2, 128: 5})
    one = Kernel(*KEY[:2], "symbol", "sm_90a", "13.0", 64, ())
    assert held.entries([(one, has)]) == {KEY: replace(THEN, local=3)}


def test_an_update_adds_nothing_and_keeps_what_was_not_built() -> None:
    older = (*KEY[:2], "sm_75")
    table = {KEY: THEN, older: THEN}
    now = replace(THEN, compiler="13.1", moved=0)
    new = held.renewed(table, {KEY: now, (*KEY[:2], "sm_80"): now, ("a/b", "c", "sm_80"): now})
    assert new == {KEY: now, older: THEN}


def test_a_function_that_is_gone_is_reported() -> None:
    with pytest.raises(InputError, match="has no tiled<float, 32> any more"):
        held.renewed({KEY: THEN}, {("simt/tiled", "tiled<float, 16>", "sm_90a"): THEN})


def test_kernels_without_multiply_adds_are_not_added() -> None:
    copies = ("simt/tiled", "lay_along_x", "sm_90a")
    idle = replace(THEN, multiply_adds=0)
    assert held.joined({}, {KEY: THEN, copies: idle}) == {KEY: THEN}
    assert held.joined({KEY: THEN}, {KEY: idle}) == {KEY: idle}  # it would be seen as worse
