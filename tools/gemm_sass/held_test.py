"""The reference figures: what counts as worse, and their file."""

from dataclasses import replace
from pathlib import Path

import pytest
from gemm_report.document import InputError

from gemm_sass import held
from gemm_sass.held import Held
from gemm_sass.kernels import Kernel
from gemm_sass.loop import Figures

THEN = Held("13.0", 1000, instructions=1100, moved=40, narrow_loads=20, local=0)
KEY = ("simt/tiled", "tiled<float, 32>", "sm_90a")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"instructions": 1090, "moved": 30, "narrow_loads": 0}, ""),
        # Two in a thousand are noise.
        ({"instructions": 1102, "moved": 42, "narrow_loads": 22}, ""),
        ({"instructions": 1103}, "1103 instructions for 1000 multiply-adds"),
        ({"moved": 43}, "43 FFMA that move their accumulator"),
        ({"narrow_loads": 23}, "23 LDS of less than 128 bits"),
        ({"local": 1}, "1 LDL and STL"),
        # A loop that is unrolled twice as far, and one that is half as long.
        ({"multiply_adds": 2000, "instructions": 2200, "moved": 80, "narrow_loads": 40}, ""),
        ({"multiply_adds": 500, "moved": 20, "narrow_loads": 10}, "1100 instructions for 500"),
        ({"multiply_adds": 0}, "the hot loop is gone"),
    ],
)
def test_each_figure_may_be_worse(change: dict[str, int], says: str) -> None:
    found = replace(THEN, **change).worse_than(THEN)
    assert len(found) == bool(says)
    assert says in "".join(found)


def test_the_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "sass.json"
    table = {KEY: THEN, (*KEY[:2], "sm_80"): replace(THEN, local=3), ("a/b", "c", "sm_75"): THEN}
    held.write(path, table)
    assert held.read(path) == table
    lines = path.read_text().splitlines()
    assert sum('"compiler"' in line and '"local"' in line for line in lines) == 3


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": {"b": {"sm_80": {}}}}'])
def test_a_damaged_table_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sass.json"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"\A.*{path}.*\Z"):
        held.read(path)


def test_updates() -> None:
    has = Figures(64, 3, "FFMA", 1100, 1000, 40, {32: 20, 128: 50})
    one = Kernel(*KEY[:2], "symbol", "sm_90a", "13.0", 64, ())
    assert held.entries([(one, has)]) == {KEY: replace(THEN, local=3)}
    # Of a whole build: it adds nothing and keeps what was not built.
    older, another = (*KEY[:2], "sm_75"), ("a/b", "c", "sm_80")
    now = replace(THEN, compiler="13.1")
    new = held.renewed({KEY: THEN, older: THEN}, {KEY: now, (*KEY[:2], "sm_80"): now, another: now})
    assert new == {KEY: now, older: THEN}
    with pytest.raises(InputError, match="has no tiled<float, 32> any more"):
        held.renewed({KEY: THEN}, {another: THEN})
    # Of named kernels: what has no multiply-adds is added only where it would be seen as worse.
    idle = replace(THEN, multiply_adds=0)
    assert held.joined({}, {KEY: THEN, another: idle}) == {KEY: THEN}
    assert held.joined({KEY: THEN}, {KEY: idle}) == {KEY: idle}
