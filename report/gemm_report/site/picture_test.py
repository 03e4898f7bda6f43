import re
from pathlib import Path

import matplotlib.style
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gemm_report.figures.palette import STYLE, colors
from gemm_report.figures.write import write_figures
from gemm_report.record import Record
from gemm_report.site.picture import Picture, figure, inline, spots

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


def test_greys_turn_in_the_dark_and_marks_keep_their_colour(svg: str) -> None:
    made = inline(Picture("one", "", svg, frozenset({"#0072b2"})))
    assert "light-dark(#ffffff, #1b1e21)" in made
    assert "light-dark(#555555, " in made
    assert "stroke: #0072b2" in made
    assert 'class="picture"' in made


def test_a_colour_that_is_too_dark_for_dark_paper_gets_lighter(svg: str) -> None:
    made = inline(Picture("one", "", svg.replace("#0072b2", "#4a2fbd"), frozenset({"#4a2fbd"})))
    ((red, green, blue),) = {
        tuple(int(part, 16) for part in found)
        for found in re.findall(r"light-dark\(#4a2fbd, #(..)(..)(..)\)", made)
    }
    # An indigo still: all three are as much nearer to white.
    parts = zip((red, green, blue), (0x4A, 0x2F, 0xBD), strict=True)
    (share,) = {round(20 * (new - old) / (255 - old)) for new, old in parts}
    assert 0 < share < 10


def test_the_paper_in_the_dark_is_that_of_the_page(svg: str) -> None:
    page = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    assert "--paper: light-dark(#ffffff, #1b1e21);" in page
    assert "--ink: light-dark(#1b2126, #e4e6e8);" in page
    made = inline(Picture("one", "", svg, frozenset({"#0072b2"})))
    assert "light-dark(#ffffff, #1b1e21)" in made
    assert "light-dark(#000000, #e4e6e8)" in made


def test_a_figure_with_colours_of_its_own_keeps_its_white_paper(svg: str) -> None:
    made = inline(Picture("one", "", svg, frozenset()))
    assert 'class="picture paper"' in made
    assert "light-dark" not in made


@pytest.mark.parametrize("name", ["throughput", "roofline", "ladder"])
def test_our_figures_turn_in_the_dark(name: str, gpu: Record, tmp_path: Path) -> None:
    from gemm_report.figures.palette import looks

    (path,) = write_figures(gpu, looks([gpu]), tmp_path, only=[name], formats=["svg"])
    palette = frozenset(color.lower() for color in colors())
    assert 'class="picture"' in inline(
        Picture("one", "", path.read_text(encoding="utf-8"), palette)
    )


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
        (72, 108, "<Naive>: 50.0 TFLOP/s at 1.00"),
        (144, 72, "<Naive>: 100 TFLOP/s at 2.00"),
    ], "in points from the upper left of 288 x 144"
    made = inline(Picture("x", "", "<svg/>", spots=found))
    assert '<circle cx="72.0" cy="108.0" r="6"><title>&lt;Naive&gt;: 50.0 TFLOP/s' in made


def test_a_figure_has_a_name_for_screen_readers() -> None:
    made = inline(Picture("roofline", "What it shows.", "<svg/>"))
    assert 'role="img" aria-label="Roofline: What it shows."' in made
