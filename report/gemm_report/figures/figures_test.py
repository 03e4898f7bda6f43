"""Every figure of the records of tests: its data is a snapshot, its text legible."""

import csv
import dataclasses
import io
import itertools
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib.style
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from gemm_report.document import InputError
from gemm_report.figures import hierarchy, roofline, tokens
from gemm_report.figures.ladder import steps
from gemm_report.figures.page import Sheet, spread
from gemm_report.figures.palette import DARK, LIGHT, STYLE, Colors
from gemm_report.figures.roofs import MEASURED, NOMINAL, ROOF_COLOR, compute_roofs, kind
from gemm_report.figures.sizes import broken
from gemm_report.figures.write import MOST, drawings, write_figures
from gemm_report.record import Departure, Kernel, Record, Roof, Row, Traffic, rate
from gemm_report.standing import standings


def drawn(name: str, record: Record, chosen: str | None = None, colors: Colors = LIGHT) -> Figure:
    with matplotlib.style.context([STYLE, colors.style], after_reset=True):
        figure = drawings(record, chosen)[name].draw(record, colors)
        FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    return figure


def artists(figure: Figure) -> list[Text]:
    """All text but that of the ticks of axes, which these keep apart."""
    ticks = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for label in [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)]
    }
    found = [each for each in figure.findobj(Text) if isinstance(each, Text)]
    return [each for each in found if each.get_text() and each not in ticks]


def texts(figure: Figure) -> list[str]:
    return [each.get_text() for each in artists(figure)]


def check_text(figure: Figure) -> None:
    """No two texts overlap, none leaves the page, and all are legible in a page of a browser."""
    page, boxes = figure.bbox, [(e.get_text(), Text.get_window_extent(e)) for e in artists(figure)]
    assert min(float(each.get_fontsize()) for each in artists(figure)) * 1100 / page.width >= 1.2
    for text, box in boxes:
        assert page.x0 <= box.x0 and box.x1 <= page.x1 + 1, text
        assert page.y0 <= box.y0 and box.y1 <= page.y1 + 1, text
    for (one, its), (other, another) in itertools.combinations(boxes, 2):
        across = min(its.x1, another.x1) - max(its.x0, another.x0)
        along = min(its.y1, another.y1) - max(its.y0, another.y0)
        assert min(across, along) < 2.5, f"{one} | {other}"


def with_rows(record: Record, *rows: Row) -> Record:
    return dataclasses.replace(record, rows=rows)


def xs(line: Line2D) -> list[float]:
    return [float(x) for x in np.asarray(line.get_xdata())]


def ys(line: Line2D) -> list[float]:
    return [float(y) for y in np.asarray(line.get_ydata())]


@pytest.fixture(scope="module")
def shapes(gpu: Record) -> Record:
    """1 to 4096 rows, two k, a library, two kernels of ours of which one is best at 4096."""
    base = next(row for row in gpu.rows_with("timed") if row.kernel == "Naive")
    rows = []
    for kernel, speed in (("Naive", 3e12), ("DoubleBuffer", 2.5e12), ("cuBLAS", 4e12)):
        for m, n, k in itertools.product((1, 64, 4096), (1024, 4096, 28672), (4096, 14336)):
            if (m, n) != (64, 4096) and (kernel, m) != ("Naive", 4096):
                its: dict[str, Any] = {"kernel": kernel, "m": m, "n": n, "k": k}
                its["family"] = "library" if kernel == "cuBLAS" else "simt"
                its["flop_per_second"] = speed * m**0.3 * n**0.1
                rows.append(dataclasses.replace(base, **its))
    return with_rows(gpu, *rows)


@pytest.fixture(scope="module")
def sets(gpu: Record) -> Record:
    """Groups, batches, and seven weights at 1 to 8192 tokens with scales of blocks."""
    base = next(row for row in gpu.rows_with("timed") if row.kernel == "Naive")
    e4m3 = next(each for each in gpu.precisions if each.name == "e4m3")
    blocks: dict[str, Any] = {"precision": "e4m3block", "layout": "nt"}
    cases: list[tuple[int, int, int, dict[str, Any]]] = [
        *((m, 4096, 7168, {"batch_count": 8, "tokens": "zipf"}) for m in (32, 256)),
        (512, 3072, 4096, {"batch_count": 128, "tokens": "band"}),
        *((m, m, m, {"batch_count": 16}) for m in (512, 256)),
        (2048, 2048, 128, {"batch_count": 32}),
        *itertools.starmap(
            lambda m, n: (m, n, 7168, blocks),
            itertools.product((1, 16, 64, 8192), range(4096, 11264, 1024)),
        ),
    ]
    rows = []
    for i, (m, n, k, changes) in enumerate(cases):
        for kernel, of in (("Naive", (0.9, 1.2, 1.0)[i % 3]), ("cuBLAS", 1.0)):
            doubt = (Departure("clock-drift", 0.1, doubt=True),) if i % 5 == 1 else ()
            its = {"m": m, "n": n, "k": k, "kernel": kernel, "departures": doubt} | changes
            its |= {"clocks": None, "flop_per_second": of * 1e12 * m**0.5, "median_interval": 0.0}
            its |= {"family": "library"} if kernel == "cuBLAS" else {}
            its |= {"roof": Roof("r", 2e12 * m**0.5), "of_roof_nominal": of / 2, "library": None}
            if kernel == "Naive" or m > 1:
                rows.append(dataclasses.replace(base, of_library=None, **its))
    known = (*gpu.precisions, dataclasses.replace(e4m3, name="e4m3block"))
    return dataclasses.replace(gpu, precisions=known, rows=tuple(rows))


@pytest.mark.parametrize("which", ["gpu", "cpu", "ladder", "shapes", "sets"])
def test_the_data_of_every_figure(
    which: str, request: pytest.FixtureRequest, snapshot: Any
) -> None:
    record = request.getfixturevalue(which)
    found = {}
    for name, drawing in drawings(record).items():
        file = io.StringIO()
        rows = drawing.table(record)
        lines = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        lines.writeheader()
        for row in rows:
            lines.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
        found[name] = file.getvalue().splitlines()
    assert found == snapshot


@pytest.mark.parametrize(
    "which",
    ["gpu", "cpu", "ladder", "shapes", "sets", "tower", "bare", "epyc", "h200"],
)
def test_all_text_is_legible(which: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(which)
    for name in list(drawings(record))[:MOST]:
        check_text(drawn(name, record))


def test_every_figure_is_written_alike_each_time_and_on_dark_paper(
    gpu: Record, tmp_path: Path
) -> None:
    written = write_figures(gpu, tmp_path / "new" / "folder")
    names = list(drawings(gpu))[:MOST]
    ends = ("png", "svg", "csv")
    assert [path.name for path in written] == [f"{name}.{end}" for name in names for end in ends]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in written if path.suffix == ".png")
    for first, second in zip(written, write_figures(gpu, tmp_path, only=names[:1]), strict=False):
        assert first.read_bytes() == second.read_bytes(), first.name
    light, dark = (
        write_figures(gpu, tmp_path, only=[f"headline{paper}"], formats=["svg"])[0].read_text()
        for paper in ("", "_dark")
    )
    assert LIGHT.paper in light and LIGHT.paper not in dark and DARK.ours in dark


def test_at_most_eight_are_drawn_and_the_others_by_name(h200: Record, tmp_path: Path) -> None:
    found = list(drawings(h200))
    assert found[:MOST] == [
        *("headline", "ladder_bf16", "ladder_f32"),
        *(f"sizes_{precision}" for precision in ("bf16", "e4m3", "s8", "tf32", "f32")),
    ]
    assert {"ladder_s8", "sizes_f64", "hierarchy"} < set(found)
    (path,) = write_figures(h200, tmp_path, only=["ladder_s8"], formats=["csv"])
    assert path.name == "ladder_s8.csv"


def test_a_record_without_any_time_says_so(gpu: Record) -> None:
    empty = with_rows(gpu, *gpu.rows_with("skipped"))
    assert list(drawings(empty)) == ["headline"]
    assert "No row of this record has a time." in " ".join(texts(drawn("headline", empty)))


def test_names_that_are_formulas_paths_or_no_text_are_only_names(
    gpu: Record, tmp_path: Path
) -> None:
    name = "$\\frac{$../../up\x00<b>&"
    rows = (dataclasses.replace(r, kernel=name) if r.kernel == "Tiled" else r for r in gpu.rows)
    device = dataclasses.replace(gpu.device, name="Processor " * 12)
    record = dataclasses.replace(gpu, rows=tuple(rows), device=device)
    paths = write_figures(record, tmp_path / "out", formats=["svg"])
    assert {path.parent for path in paths} == {tmp_path / "out"}
    for path in paths:
        ElementTree.parse(path)
    assert "&lt;b&gt;&amp;" in (tmp_path / "out" / "sizes_f32.svg").read_text(encoding="utf-8")
    check_text(drawn("headline", record))


@pytest.mark.parametrize("name", ["WarpSpecialized", "x" * 70, "MmaF64StreamK", ""])
def test_no_name_is_cut(name: str) -> None:
    lines = broken(name, 12)
    assert "".join(lines) == name and max(map(len, lines)) <= 12


def test_labels_keep_their_order_apart() -> None:
    assert spread([0.3, 0.1, 0.2], 0.1) == pytest.approx([0.3, 0.1, 0.2])
    assert spread([0.5, 0.5], 0.1) == [0.5, 0.6]
    assert spread([1.0, 1.0, 0.95], 0.1) == pytest.approx([0.9, 1.0, 0.8])


def test_bars_and_marks_of_the_headline_stand_at_their_shares(h200: Record) -> None:
    axes, cells = drawn("headline", h200).axes
    found = standings(h200)
    assert [each.precision for each in found] == ["bf16", "e4m3", "s8", "tf32", "f32", "f64"]
    peaks = [(each.peak and each.peak.flop_per_second) or 0 for each in found]
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    ours = [bar.get_width() for bar in bars if to_hex(bar.get_facecolor()) == LIGHT.ours]
    shares = [rate(each.lead.ours) / peak for each, peak in zip(found, peaks, strict=True)]
    assert ours == pytest.approx([100 * share for share in shares])
    said = [each.get_text() for each in cells.texts]
    assert sum("no library" in each or "no fast kernel" in each for each in said) == 2
    assert len(said) == 4 * 4 + 2 and not any(each.startswith("9.") for each in said)


def test_a_cell_is_coloured_beyond_the_noise_and_hatched_in_doubt(gpu: Record) -> None:
    base = next(r for r in gpu.rows_with("timed") if r.kernel == "Naive" and r.m == 4096)
    rows = []
    for m, ratio in ((512, 1.5), (1024, 1.001), (2048, 0.7), (4096, 1.4)):
        doubt = (Departure("clock-drift", 0.1, doubt=True),) if m == 4096 else ()
        its: dict[str, Any] = {"m": m, "n": m, "k": m, "departures": doubt, "clocks": None}
        rows.append(dataclasses.replace(base, **its, flop_per_second=ratio * 1e12))
        library = dataclasses.replace(base, **its, flop_per_second=1e12, family="library")
        rows.append(dataclasses.replace(library, kernel="cuBLAS"))
    figure = drawn("headline", with_rows(gpu, *rows))
    cells = [each for each in figure.axes[1].patches if isinstance(each, Rectangle)]
    fills = [to_hex(each.get_facecolor()) for each in cells]
    blue, _, orange, _ = ([int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in fills)
    assert blue[2] > blue[0] and orange[0] > orange[2]
    assert fills[1] == fills[3] == LIGHT.track
    assert [bool(each.get_hatch()) for each in cells] == [False, False, False, True]
    assert "1 win, 1 tie, 1 loss, 1 in doubt against cuBLAS" in " ".join(texts(figure))


@pytest.mark.parametrize(("over", "is_step"), [(1.04, False), (1.06, True)])
def test_a_ladder_has_the_rungs_that_beat_all_before_by_a_twentieth(
    ladder: Record, over: float, is_step: bool
) -> None:
    found = steps(ladder, "f32")
    late = dataclasses.replace(
        found[-1].row, kernel="Late", flop_per_second=over * rate(found[-1].row)
    )
    numba = dataclasses.replace(found[1].row, kernel="Numba", family="peer")
    kernels = (Kernel("Numba", "peer", 1, ""), *ladder.kernels, Kernel("Late", "simt", 500, ""))
    more = dataclasses.replace(ladder, kernels=kernels, rows=(numba, *ladder.rows, late))
    names = [step.row.kernel for step in steps(more, "f32")]
    assert names == [*(step.row.kernel for step in found), *(["Late"] if is_step else [])]
    (axes,) = (figure := drawn("ladder_f32", more)).axes
    assert [each.get_text() for each in axes.get_yticklabels()][-1] == "Numba"
    check_text(figure)
    assert isinstance(figure, Sheet) and any("Tiled/tile:32: " in each[3] for each in figure.tips)


def test_a_precision_has_its_highest_nominal_and_its_highest_measured_peak(
    gpu: Record, cpu: Record
) -> None:
    def found(record: Record, precision: str) -> list[tuple[str, str]]:
        return [(kind(roof), roof.name) for roof in compute_roofs(record, precision)]

    both = [(NOMINAL, "BF16 tensor core"), (MEASURED, "BF16_wgmma")]
    assert found(gpu, "bf16") == both
    assert compute_roofs(gpu, "bf16")[1].flop_per_second == 700e12, "zeros are no peak of a kernel"
    seen = tuple(dataclasses.replace(each, origin="measured") for each in gpu.ceilings)
    assert found(dataclasses.replace(gpu, ceilings=seen), "f32") == [(MEASURED, "FP32 FMA")]
    alone = dataclasses.replace(cpu, measured_ceilings=gpu.measured_ceilings)
    assert found(alone, "f32") == [(MEASURED, "FP32_FMA")]


def test_a_roofline_is_of_shapes_and_shows_their_share_of_the_roof(
    shapes: Record, gpu: Record
) -> None:
    assert "roofline" not in drawings(gpu), "cubes differ in their size alone"
    figure = drawn("roofline", shapes)
    each = roofline.subject(shapes)
    assert each and len(each.pairs) == 16 and isinstance(figure, Sheet)
    compute, memory, _ = roofline.roofs(shapes, "f32")
    assert (compute.flop_per_second, memory.bytes_per_second) == (65.6e12, 4.588e12)
    marks = [line for line in figure.axes[1].lines if line.get_marker() == "o"]
    heights = sorted(ys(line)[0] for line in marks)
    least = sorted(100 * roofline.share(pair, compute, memory) for pair in each.pairs)
    assert heights == pytest.approx(least)
    row = dataclasses.replace(each.pairs[0].ours, flop_per_byte=1.0, flop_per_second=1e12)
    few = dataclasses.replace(each.pairs[0], ours=row)
    assert roofline.share(few, compute, memory) == pytest.approx(1e12 / 4.588e12), "by DRAM"
    assert len(figure.tips) == 2 * 16


def test_tokens_have_a_line_for_each_weight_and_the_library_beside_it(sets: Record) -> None:
    subjects = tokens.subjects(sets)
    assert list(subjects) == ["grouped_f32", "batched_f32", "rows_e4m3block"]
    found = tokens.lines(subjects["batched_f32"]).items()
    sizes = {label: [pair.ours.m for pair in its] for label, its in found}
    assert sizes == {"16 of\ncubes": [256, 512], "32 of\n2048x128": [2048]}
    above, below = (figure := drawn("grouped_f32", sets)).axes
    joined = [line for line in below.lines if line.get_marker() == "None" and len(xs(line)) == 2]
    ours = [line for line in below.lines if line.get_marker() == "o"]
    dashes = [line for line in below.lines if line.get_marker() == "_"]
    assert [ys(line)[0] for line in ours] == pytest.approx([45, 60, 50])
    assert [ys(line)[0] for line in dashes] == pytest.approx([50, 50, 50])
    assert [line.get_markerfacecolor() for line in ours] == [LIGHT.worse, LIGHT.paper, LIGHT.tie]
    assert [ys(line) for line in joined if line.get_color() == LIGHT.ours] == [[45, 60]]
    low, high = subjects["grouped_f32"].pairs[0].interval
    assert any(ys(line) == pytest.approx([50 * low, 50 * high]) for line in joined)
    assert [t.get_text() for t in below.get_xticklabels()][:3] == [
        "32",
        "256",
        "\n8 of\n4096x7168\nzipf",
    ]
    assert isinstance(figure, Sheet) and len(figure.tips) == 6 and above.get_yscale() == "log"


def test_ticks_of_tokens_are_apart_and_what_does_not_fit_is_told(sets: Record) -> None:
    figure = drawn("rows_e4m3block", sets)
    boxes = [
        t.get_window_extent() for t in figure.axes[1].get_xticklabels() if "x" not in t.get_text()
    ]
    assert len(boxes) == 28 and all(a.x1 + 2 < b.x0 for a, b in itertools.pairwise(boxes))
    assert sum(line.get_marker() == "_" for line in figure.axes[0].lines) == 21, "none for one row"
    more = [dataclasses.replace(row, n=row.n + 512) for row in sets.rows]
    said = texts(drawn("rows_e4m3block", with_rows(sets, *sets.rows, *more)))
    assert any("The first 28 of 56 problems." in each for each in said)
    bare = [dataclasses.replace(row, roof=None, of_roof_nominal=None) for row in sets.rows]
    assert len(drawn("grouped_f32", with_rows(sets, *bare)).axes) == 1


def test_each_memory_is_a_panel_with_its_roof(ladder: Record, gpu: Record) -> None:
    assert "hierarchy" not in drawings(gpu), "no bytes are modelled"
    figure = drawn("hierarchy", ladder)
    grey = [line for line in figure.axes[1].lines if line.get_color() == ROOF_COLOR]
    (slope,) = (y[0] / x[0] for x, y in ((xs(g), ys(g)) for g in grey) if y[0] != y[1])
    assert slope == pytest.approx(9.89, rel=1e-3), "TFLOP/s for each FLOP/byte"
    bare = dataclasses.replace(ladder, measured_ceilings=())
    said = " ".join(texts(drawn("hierarchy", bare)))
    assert "Bandwidth not measured: Shared memory, L2." in said and "Above the" not in said


def test_counted_bytes_have_hollow_marks_beside_the_modelled_ones(ladder: Record) -> None:
    row = next(r for r in ladder.rows if r.kernel == "Tiled" and r.traffic and r.is_cube)
    counted = dataclasses.replace(row, counted=Traffic(row.flop / 50, row.flop / 5, row.flop / 2))
    few = dataclasses.replace(row, counted=Traffic(1.0, 1000.0, 9.0))
    assert hierarchy.counted(few, "DRAM") and not hierarchy.counted(few, "shared memory"), "< 1 %"
    figure = drawn("hierarchy", with_rows(ladder, counted))
    check_text(figure)
    places = [
        xs(line)[0]
        for axes in figure.axes
        for line in axes.lines
        if line.get_markerfacecolor() == "white"
    ]
    assert places == pytest.approx([2, 5, 50])


def test_the_hierarchy_is_of_chosen_rows_of_one_precision(h200: Record) -> None:
    found = hierarchy.chosen(h200, "Wgmma.*/4096x")
    assert {row.precision for row in found} == {"tf32"}, "the first that matches"
    check_text(drawn("hierarchy", h200, "Wgmma.*/bf16/"))
    for pattern, why in (("None", "matches no such row"), ("(", "is no regular expression")):
        with pytest.raises(InputError, match=why):
            drawings(h200, pattern)
