import re

import pytest

from gemm_report.pages.markup import Html, tag
from gemm_report.pages.table import Cell, Column, Line, table

COLUMNS = [Column("kernel", filtered=True), Column("TFLOP/s", True, "the <rate>")]
LINES = [
    Line([Cell("Tiled/tile:8", choices=("Tiled",)), Cell("6.58", 6.58)], anchor="row-0"),
    Line([Cell("<b>&\x1b"), Cell("668", 668.0, bar=0.25)], tag("p", "more"), "x", "bad"),
    Line([Cell("Tiled/tile:16", choices=("Tiled",)), Cell("-")]),
]


@pytest.fixture(scope="module")
def made() -> str:
    return table(COLUMNS, LINES, "rows")


def test_every_line_is_there_in_its_order(made: str) -> None:
    shown = re.sub(r"<thead>.*</thead>|<div class=\"tools.*?</div>", "", made)
    assert re.findall(r"(Tiled/tile:\d+|&lt;b&gt;)", shown) == [
        *("Tiled/tile:8", "&lt;b&gt;", "Tiled/tile:16")
    ]
    assert made.count("<tbody") == 3
    assert '<tbody id="row-0">' in made
    assert '<tbody id="x" class="bad">' in made


def test_cells_are_text(made: str) -> None:
    assert "&lt;b&gt;&amp;␛" in made
    assert "<b>" not in made
    assert 'title="the &lt;rate&gt;"' in made


def test_numbers_have_what_they_are_sorted_by(made: str) -> None:
    assert '<td class="n" data-value="6.58">6.58</td>' in made
    assert '<td class="n">-</td>' in made
    assert '<td class="n" style="--bar:25%" data-value="668">' in made


def test_a_list_offers_what_there_is_to_choose(made: str) -> None:
    assert re.findall(r"<option value=\"(.*?)\">(.*?)</option>", made) == [
        ("", "kernel: all"),
        ("Tiled", "Tiled (2)"),
        ("&lt;b&gt;&amp;␛", "&lt;b&gt;&amp;␛ (1)"),
    ]
    assert "<select" not in table(COLUMNS, LINES, "rows", tools=False)


def test_only_a_line_with_details_unfolds(made: str) -> None:
    assert made.count('<a href="#x">&lt;b&gt;&amp;␛</a>') == made.count("<a ") == 1
    assert '<tr class="details"><td colspan="2"><p>more</p></td></tr>' in made
    assert "<a " not in table(COLUMNS, LINES[:1], "rows")


def test_markup_in_a_cell_stays_markup() -> None:
    made = table([Column("a")], [Line([Cell(Html("<em>x</em>"))])], "rows")
    assert "<td><em>x</em></td>" in made


def test_an_empty_table_has_its_head() -> None:
    assert "0 rows" in table(COLUMNS, [], "rows")
