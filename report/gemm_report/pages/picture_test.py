import re

import matplotlib.style
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gemm_report.figures.palette import STYLE
from gemm_report.pages.picture import Picture, figure, inline, spots

HOSTILE = "</text><script>alert(1)</script>\"' &amp; $x^2$ $\\frac{$ \x1b"


@pytest.fixture(scope="module")
def svg(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A figure with a clip path, marks that are used again, text, and two neutral colours."""
    folder = tmp_path_factory.mktemp("picture")
    with matplotlib.style.context(STYLE, after_reset=True):
        drawn = Figure()
        FigureCanvasAgg(drawn)
        axes = drawn.add_subplot()
        axes.plot([1, 2], [1, 2], "o-", color="#0072B2")
        axes.set_title(HOSTILE)
        drawn.savefig(folder / "figure.svg")
    return (folder / "figure.svg").read_text(encoding="utf-8")


def test_two_of_them_on_a_page_have_no_id_in_common(svg: str) -> None:
    one, other = inline(Picture("one", "", svg)), inline(Picture("other", "", svg))
    ids = [re.findall(r"\bid=\"([^\"]*)\"", each) for each in (one, other)]
    assert ids[0]
    assert all(len(set(each)) == len(each) for each in ids)
    assert not set(ids[0]) & set(ids[1])


def test_what_refers_finds(svg: str) -> None:
    made = inline(Picture("one", "", svg))
    ids = set(re.findall(r"\bid=\"([^\"]*)\"", made))
    targets = set(re.findall(r"href=\"#([^\"]*)\"|url\(#([^)]*)\)", made))
    assert len(targets) > 1
    assert {href or url for href, url in targets} == ids


def test_text_stays_text(svg: str) -> None:
    made = inline(Picture("one", "", svg))
    assert "&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;\"' &amp;amp; $x^2$" in made
    assert "<script" not in made
    assert "␛" in made
    assert "\x1b" not in made


def test_places_are_given_to_a_tenth_of_a_point(svg: str) -> None:
    made = inline(Picture("one", "", svg))
    assert len(made) < len(svg)
    drawn = re.findall(r" (?:d|x|y|transform)=\"([^\"]*)\"", made)
    assert len(drawn) > 10
    assert not any(re.search(r"\.\d{2}", each) for each in drawn)


def test_nothing_is_left_that_holds_for_the_whole_page(svg: str) -> None:
    assert "DejaVu" in svg
    made = inline(Picture("one", "", svg))
    (sheet,) = re.findall("<style>(.*?)</style>", made)
    assert sheet
    assert all(rule.startswith(".one-s") for rule in sheet.split("}")[:-1])
    assert "http" not in made
    assert "<metadata" not in made


def test_a_map_keeps_its_white_paper(svg: str) -> None:
    assert 'class="picture"' in inline(Picture("one", "", svg))
    mapped = svg.replace("</svg>", "<image/></svg>")
    assert 'class="picture paper"' in inline(Picture("one", "", mapped))


def test_a_figure_links_its_data() -> None:
    made = figure(Picture("ladder_roofline_bf16", "What it <shows>.", "<svg/>"))
    assert re.findall(r"href=\"(.*?)\"", made) == [
        f"ladder_roofline_bf16.{end}" for end in ("csv", "png", "svg")
    ]
    assert "What it &lt;shows&gt;." in made


def test_a_figure_has_a_name_for_people() -> None:
    assert Picture("ladder_roofline_bf16", "", "").title == "Ladder on the roofline, BF16"
    assert Picture("bf16/of_library", "", "").title == "Relative to library"
    assert Picture("end_to_end", "", "").title == "End to end"


def test_a_mark_has_its_value_where_it_is() -> None:
    with matplotlib.style.context(STYLE, after_reset=True):
        drawn = Figure(figsize=(4, 2), dpi=200)
        axes = drawn.add_axes((0, 0, 1, 1), xlim=(0, 4), ylim=(0, 200), ylabel="TFLOP/s")
        axes.plot([1, 2], [50, 100], "o", label="<Naive>")
        axes.plot([1, 2], [50, 100], "-", label="a roof, without marks")
        axes.plot([1, 2], [50, 100], "o")
    found = spots(drawn)
    assert [(round(x), round(y), said) for x, y, said in found] == [
        (72, 108, "<Naive>, TFLOP/s: 50.0 at 1"),
        (144, 72, "<Naive>, TFLOP/s: 100 at 2"),
    ], "in points from the upper left of 288 x 144"
    made = inline(Picture("x", "", "<svg/>", spots=found))
    assert '<circle cx="72.0" cy="108.0" r="6"><title>&lt;Naive&gt;, TFLOP/s: 50.0' in made


def test_a_figure_has_a_name_for_screen_readers() -> None:
    made = inline(Picture("roofline", "What it shows.", "<svg/>"))
    assert 'role="img" aria-label="Roofline: What it shows."' in made
