"""What a page says, and that a text in it is only a text."""

import base64
import dataclasses
import hashlib
import re
import shlex
from pathlib import Path
from typing import Any

import matplotlib.style
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from gemm_report.figures.page import Sheet
from gemm_report.figures.palette import LIGHT, STYLE
from gemm_report.pages.answer import answer
from gemm_report.pages.picture import Picture, inline, spots
from gemm_report.pages.record_page import record_page
from gemm_report.pages.render import (
    Cell,
    Column,
    Html,
    Line,
    chip,
    document,
    joined,
    rendered,
    table,
    tag,
)
from gemm_report.pages.row_table import anchors, repeating, row_table, states
from gemm_report.record import (
    BUSY_HOST,
    Departure,
    Environment,
    Health,
    Host,
    Library,
    Readings,
    Record,
    Row,
)

HOSTILE = "</text><script>alert(1)</script>\"' &amp; $\\frac{$ \x1b"


def text(markup: str) -> str:
    """What a reader sees of it."""
    markup = re.sub(r"<(style|script|svg)\b.*?</\1>", "", markup, flags=re.DOTALL)
    return " ".join(re.sub("<.*?>", " ", markup).split())


def section(page: str, name: str) -> str:
    found = re.search(rf"<section id=\"{name}\".*?</section>", page, re.DOTALL)
    assert found
    return found[0]


def timed(record: Record, kernel: str = "Naive", **changes: Any) -> Row:
    found = (r for r in record.rows_with("timed") if r.kernel == kernel and r.is_cube)
    row = next(r for r in found if (r.precision, r.m) == ("f32", 4096))
    return dataclasses.replace(row, **changes)


def of(record: Record, *rows: Row) -> Record:
    return dataclasses.replace(record, rows=rows)


@pytest.mark.parametrize("which", ["gpu", "cpu", "ladder", "unusual"])
def test_a_page_tells(which: str, request: pytest.FixtureRequest, snapshot: Any) -> None:
    page = record_page(
        request.getfixturevalue(which), [Picture("ladder_bf16", "x.", Html("<i></i>"))]
    )
    lines = re.sub(r"</?(?:tbody|section|h\d|p|dl|nav|tr|option|figure)\b", "\n\\g<0>", page)
    found = [text(line) for line in re.sub(r"(?s)<head>.*</head>", "", lines).split("\n")]
    assert [line for line in found if line] == snapshot


def test_a_page_is_one_file_that_loads_nothing_and_runs_its_script_alone() -> None:
    page = document("</title><b>", "</main><b>")
    assert page.startswith("<!doctype html>\n<html")
    assert not re.findall(r"(?:src|href)=\"(?!data:,|#)|https?:|@import|url\(", page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page and "default-src 'none'" in page
    assert "<title>&lt;/title&gt;&lt;b&gt;</title>" in page
    assert ">&lt;/main&gt;&lt;b&gt;</main>" in page
    assert "><b></b></main>" in document("", Html("<b></b>"))


def test_what_is_not_markup_is_escaped() -> None:
    assert tag("td", "<b>", Html("<b>x</b>"), class_="\"'>") == (
        '<td class="&#34;&#39;&gt;">&lt;b&gt;<b>x</b></td>'
    )
    assert joined(["<", tag("i", data_value=1.5, aria_label=None)], "&") == (
        '&lt;&amp;<i data-value="1.5"></i>'
    )
    assert "\x1b" not in tag("b", "\x1b") + rendered("row", line=None, facts=[], **_row("\x1b"))
    assert chip("failed", 0, "state", "bad") == ""
    assert chip("failed", 2, "state", "bad").startswith('<a href="#state=failed" class="bad">')


def _row(repeat: str) -> dict[str, Any]:
    return {"repeat": repeat, "row": {"device_kernels": [], "device_code": []}}


def test_a_table_sorts_by_values_filters_by_choices_and_unfolds_details() -> None:
    columns = [Column("kernel", filtered=True), Column("TFLOP/s", True, "the <rate>")]
    lines = [
        Line([Cell("Tiled/tile:8", choices=("Tiled",)), Cell("6.58", 6.58)], anchor="row-0"),
        Line([Cell("<b>&"), Cell("668", 668.0, bar=0.25)], tag("p", "more"), "x", "bad"),
        Line([Cell("Tiled/tile:16", choices=("Tiled",)), Cell("-")]),
    ]
    made = table(columns, lines, "rows")
    for part in (
        *('<tbody id="row-0">', '<tbody id="x" class="bad">', 'title="the &lt;rate&gt;"'),
        *('<td class="n" data-value="6.58">6.58</td>', '<td class="n">-</td>'),
        *('<td class="n" style="--bar:0.25" data-value="668">', '<a href="#x">&lt;b&gt;&amp;</a>'),
        *('<option value="Tiled">Tiled (2)</option>', "3 rows"),
        '<tr class="details"><td colspan="2"><p>more</p></td></tr>',
    ):
        assert part in made, part
    assert made.count("<a ") == 1 and "<b>" not in made
    assert "<select" not in table(columns, lines, "rows", tools=False)
    assert "0 rows" in table(columns, [], "rows")


def test_a_figure_of_matplotlib_is_an_element_of_the_page(tmp_path: Path) -> None:
    with matplotlib.style.context([STYLE, LIGHT.style], after_reset=True):
        drawn = Sheet(figsize=(4, 2), dpi=200)
        FigureCanvasAgg(drawn)
        axes = drawn.add_axes((0, 0, 1, 1), xlim=(0, 4), ylim=(0, 200), ylabel="TFLOP/s")
        axes.plot([1, 2], [50, 100], "o-", color=LIGHT.ours)
        axes.set_title(HOSTILE)
        drawn.tips = [(axes, 1, 50, "<Naive>: 50"), (axes, 2, 100, "<Naive>: 100")]
        drawn.savefig(tmp_path / "figure.svg")
    marks = spots(drawn)
    assert [(round(x), round(y), said) for x, y, said in marks] == [
        (72, 108, "<Naive>: 50"),
        (144, 72, "<Naive>: 100"),
    ], "in points from the upper left of 288 x 144"
    made = inline("ladder_f32", "What", (tmp_path / "figure.svg").read_text("utf-8"), marks)
    assert made.startswith('<svg class="picture" role="img" aria-label="Optimization ladder, FP32')
    assert '<circle cx="72.0" cy="108.0" r="7"><title>&lt;Naive&gt;: 50<' in made
    assert LIGHT.ours not in made and "var(--ours)" in made, "colours are those of the page"
    ids = set(re.findall(r"\bid=\"([^\"]*)\"", made))
    targets = re.findall(r"href=\"#([^\"]*)\"|url\(#([^)]*)\)", made)
    assert {href or url for href, url in targets} == ids, (
        "what refers finds, and nothing else has ids"
    )
    assert not re.search(r"<script|<style|<metadata|<\?xml|\x1b", made)
    assert "&lt;/text&gt;&lt;script&gt;" in made
    assert not re.search(r" (?:d|x|y|transform)=\"[^\"]*\.\d{2}", made)


def test_the_answer_compares_our_best_with_the_library(gpu: Record) -> None:
    row = timed(gpu, flop_per_second=5e12, median_interval=0.0, clocks=None)
    library = timed(gpu, "cuBLAS", flop_per_second=1e13, median_interval=0.0, clocks=None)
    bytes_ = [dataclasses.replace(each, precision="s8") for each in (row, library)]
    alone = dataclasses.replace(row, precision="tf32", of_library=None)
    said, rest = answer(of(gpu, row, library, *bytes_, alone))
    assert said.startswith(
        "FP32 at 4096: Naive reaches 5.00 TFLOP/s, 0.50 of cuBLAS (0.50 to 0.50)"
    )
    assert rest.startswith("Over 1 problems: 0 wins, 1 loss against cuBLAS.")
    assert "INT8: the library has no fast kernel in layout nn." in rest
    assert "TF32: no library timed in layout nn." in rest


def test_without_a_library_or_a_kernel_or_a_time_the_answer_says_so(gpu: Record) -> None:
    row = timed(gpu, of_library=None, library=None, of_roof_nominal=0.25)
    said, rest = answer(of(gpu, row))
    assert re.fullmatch(r"FP32 at 4096: Naive reaches .*FLOP/s, 25.0 % of its peak.*\.", said)
    assert rest == "FP32: no library timed in layout nn."
    library = of(gpu, timed(gpu, "cuBLAS"))
    assert answer(library)[0].startswith("The fastest timed in FP32 at 4096 is cuBLAS")
    nothing = of(gpu, *gpu.rows_with("failed"), *gpu.rows_with("skipped"))
    assert answer(nothing) == ("Nothing was timed: 1 failed, 1 skipped.", "")
    assert "All 0 results" in record_page(of(gpu), [])


def test_figures_come_in_their_order_and_problems_lead_to_their_rows(gpu: Record) -> None:
    names = ("sizes_f32", "ladder_bf16", "roofline", "headline")
    page = record_page(gpu, [Picture(name, f"of <{name}>.", Html("<svg/>")) for name in names])
    found = re.findall(r"<figure id=\"(.*?)\"", page)
    assert found == ["ladder_bf16", "roofline", "sizes_f32"], "the matrix is the headline"
    assert 'href="headline.csv"' in page
    assert re.findall(r"href=\"(ladder_bf16.*?)\"", page) == [
        f"ladder_bf16.{end}" for end in ("csv", "png", "svg")
    ]
    links = re.findall(r"href=\"#([^\"=]+)\"", section(page, "problems"))
    assert links and all(f'<tbody id="{link}"' in page for link in links)
    cell = re.search(r"<td class=\"c (win|tie|loss|doubt)\"[^>]*title=\"([^\"]*)\"", page)
    assert cell and " of cuBLAS" in cell[2]


@pytest.fixture
def unusual(gpu: Record) -> Record:
    """A busy host, another process, injected code, libraries; a suspect row and one in doubt."""
    (failed,) = gpu.rows_with("failed")
    busy = (Departure(BUSY_HOST, 0.6, doubt=True), Departure("few-launches", 1))
    doubted = dataclasses.replace(gpu.rows_with("timed")[0], k=5, departures=busy)
    first, *others = gpu.ceilings
    wrong = dataclasses.replace(first, contradiction="X_mma reaches 0.25 of the table's rate")
    return dataclasses.replace(
        gpu,
        environment=Environment({"OMP_NUM_THREADS": "4"}, {"CUBLAS_X": "eager"}, ("lib.so",)),
        host=Host(cpus=2, busy_share=0.6, steal_share=0.0),
        health=Health(Readings(other_processes=2), Readings(other_processes=0)),
        libraries=(Library("cuBLAS", "13.1.0", "libcublas.so.13"), Library("X", "2", None, "one")),
        ceilings=(wrong, wrong, *others),
        rows=(*gpu.rows, doubted, dataclasses.replace(failed, k=3, suspect=True)),
    )


def test_rows_are_counted_by_state_and_the_counts_filter(gpu: Record, unusual: Record) -> None:
    page = record_page(unusual, [])
    counts = dict(re.findall(r"<a href=\"#state=([a-z -]+)\"[^>]*><strong>(\d+)<", page))
    assert counts["verified"] == str(len(gpu.rows_with("timed")) + 1)
    assert (counts["failed"], counts["suspect"]) == ("1", "1")
    assert "untimed" not in counts, "what is not there has no count"
    for state, count in counts.items():
        assert f'<option value="{state}">{state} ({count})</option>' in page
    doubted = unusual.rows[-2]
    assert "in doubt" in states(unusual, doubted)
    setting = dataclasses.replace(doubted, departures=doubted.departures[1:])
    assert "in doubt" not in states(unusual, setting)


def test_a_row_without_a_time_has_no_numbers_and_points_are_aligned(gpu: Record) -> None:
    made = row_table(of(gpu, timed(gpu, failed="wrong", of_roof_nominal=None)))
    shown = re.findall(r"<td[^>]*>(.*?)</td>", made.partition("<tbody")[2].partition("</tr>")[0])
    assert shown[2:4] == ["-", "-"] and text(shown[-1]) == "failed"
    made = row_table(of(gpu, *(timed(gpu, m=int(f), flop_per_second=f) for f in (6e12, 5e14))))
    assert ">6.00\N{FIGURE SPACE}</td>" in made
    assert ">500\N{PUNCTUATION SPACE}" + 3 * "\N{FIGURE SPACE}" + "</td>" in made


@pytest.mark.parametrize(
    ("samples", "path"),
    [((1.0, 3.0, 2.0), "M0 46l1 -44 1 22"), ((1.0,), "M0 24l1 0"), ((1.0, 1.0), "M0 24l1 0")],
)
def test_samples_are_a_line_on_which_a_longer_one_stands_higher(
    gpu: Record, samples: tuple[float, ...], path: str
) -> None:
    made = row_table(of(gpu, timed(gpu, samples_seconds=samples, samples_throttled=())))
    assert f'd="{path}"' in made and f"{len(samples)} samples in order" in made


def test_rows_have_names_of_their_own_and_can_be_repeated(gpu: Record) -> None:
    row = timed(gpu)
    odd = dataclasses.replace(row, m=7, kernel="a b#c<d", parameters={"tile": "8"})
    assert anchors([row, row, odd]) == [
        *("f32-4096-Naive", "f32-4096-Naive-2", "f32-7x4096x4096-a_b_c_d/tile:8")
    ]
    options = ["--gemm_seed=7", "--benchmark_filter=x y", "--benchmark_out=out.json"]
    record = dataclasses.replace(gpu, command=("gemm_bench", *options))
    assert repeating(record) == "gemm_bench --gemm_seed=7 '--benchmark_filter=x y' " + options[2]
    words = shlex.split(repeating(record, row))
    assert words[:2] == ["gemm_bench", "--gemm_seed=7"]
    (pattern,) = (word.partition("=")[2] for word in words[2:])
    names = [f"{each.identity}/manual_time" for each in gpu.rows]
    assert [n for n in names if re.search(pattern, n)] == [f"{row.identity}/manual_time"]
    assert repeating(dataclasses.replace(gpu, command=("other", "x")), row) == ""
