"""Every figure of the records of tests: its data and its texts are a snapshot, its text legible."""

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

from gemm_report.cli import main
from gemm_report.document import BAD_INPUT, InputError, RecordError
from gemm_report.figures import burst, hierarchy, ratios, roofline, tuning
from gemm_report.figures.conftest import RESULTS
from gemm_report.figures.page import spread
from gemm_report.figures.palette import LIBRARY, OTHERS, OURS, PALE, REST, STYLE
from gemm_report.figures.roofs import MEASURED, NOMINAL, ROOF_COLOR, compute_roofs, kind
from gemm_report.figures.versus import check_device, versus_notes
from gemm_report.figures.write import MOST, Choice, drawings, write_figures
from gemm_report.record import Ceiling, Kernel, Record, Row, Traffic, rate, read_record


def drawn(name: str, record: Record, choice: Choice | None = None) -> Figure:
    with matplotlib.style.context(STYLE, after_reset=True):
        figure = drawings(record, choice or Choice())[name].draw(record)
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


def slower(record: Record, factor: float) -> Record:
    rows = (
        dataclasses.replace(row, flop_per_second=row.flop_per_second / factor)
        if row.flop_per_second
        else row
        for row in record.rows
    )
    return dataclasses.replace(record, rows=tuple(rows), commit="fedcba9876543210")


def xs(line: Line2D) -> list[float]:
    return [float(x) for x in np.asarray(line.get_xdata())]


def ys(line: Line2D) -> list[float]:
    return [float(y) for y in np.asarray(line.get_ydata())]


def bars_of(figure: Figure) -> list[Rectangle]:
    found = [each for each in figure.axes[0].patches if isinstance(each, Rectangle)]
    return sorted(found, key=lambda bar: bar.get_y())


@pytest.fixture(scope="module")
def shapes(gpu: Record) -> Record:
    """1 to 4096 rows, two k, a library, two kernels of ours of which one is best at 4096."""
    base = next(row for row in gpu.rows_with("timed") if row.kernel == "Naive")
    rows = [
        dataclasses.replace(
            base,
            kernel=kernel,
            family="library" if kernel == "cuBLAS" else "simt",
            **{"m": m, "n": n, "k": k, "flop_per_second": speed * m**0.3 * n**0.1},
            of_roof_nominal=speed * m**0.3 * n**0.1 / 66.9e12,
        )
        for kernel, speed in (("Naive", 3e12), ("DoubleBuffer", 2.5e12), ("cuBLAS", 4e12))
        for m in (1, 64, 4096)
        for n in (1024, 4096, 28672)
        for k in (4096, 14336)
        if not (m == 64 and n == 4096) and not (kernel == "Naive" and m == 4096)
    ]
    return with_rows(gpu, *rows)


@pytest.fixture(scope="module")
def many(gpu: Record) -> Record:
    """Best at 20 shapes: twice as fast as the library, half as fast, and 18 times equal."""
    base = next(row for row in gpu.rows_with("timed") if row.kernel == "Naive")
    rows = [
        dataclasses.replace(base, kernel="Best", m=16 * (i + 1), of_library=share)
        for i, share in enumerate([2.0, 0.5, *[1.0] * 18])
    ]
    return with_rows(gpu, *rows)


@pytest.mark.parametrize("which", ["gpu", "cpu", "ladder", "shapes", "many"])
def test_data_and_texts(which: str, request: pytest.FixtureRequest, snapshot: Any) -> None:
    record = request.getfixturevalue(which)
    found = {}
    for name, drawing in drawings(record).items():
        file = io.StringIO()
        rows = drawing.table(record)
        lines = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        lines.writeheader()
        lines.writerows(
            {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
        figure = drawn(name, record)
        found[name] = {"data": file.getvalue().splitlines(), "texts": texts(figure)}
        check_text(figure)
    assert found == snapshot


@pytest.mark.parametrize("which", ["crowd", "equal", "tower", "bare", "epyc", "three", "h200"])
def test_other_records_are_legible(which: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(which)
    for name in list(drawings(record))[:MOST]:
        check_text(drawn(name, record))


def test_every_figure_is_written_alike_each_time(gpu: Record, tmp_path: Path) -> None:
    written = write_figures(gpu, tmp_path / "new" / "folder")
    names = list(drawings(gpu))[:MOST]
    ends = ("png", "svg", "csv")
    assert [path.name for path in written] == [f"{name}.{end}" for name in names for end in ends]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in written if path.suffix == ".png")
    for first, second in zip(written, write_figures(gpu, tmp_path), strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_at_most_eight_are_drawn_and_the_others_by_name(h200: Record, tmp_path: Path) -> None:
    found = list(drawings(h200))
    assert found[:MOST] == [
        *("headline", "ladder_bf16", "ladder_f32"),
        *(f"throughput_{precision}" for precision in ("bf16", "f32", "tf32", "e4m3", "s8")),
    ]
    assert {"ladder_s8", "throughput_f64", "hierarchy"} < set(found)
    (path,) = write_figures(h200, tmp_path, only=["ladder_s8"], formats=["csv"])
    assert path.name == "ladder_s8.csv"


def test_a_record_without_any_time_says_so(gpu: Record, tmp_path: Path) -> None:
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
    paths = write_figures(record, tmp_path / "out")
    assert {path.parent for path in paths} == {tmp_path / "out"}
    for path in paths:
        if path.suffix == ".svg":
            ElementTree.parse(path)
    shown = (tmp_path / "out" / "ladder_f32.svg").read_text(encoding="utf-8")
    assert "../../up\ufffd&lt;b&gt;&amp;" in shown
    check_text(drawn("headline", record))


@pytest.mark.parametrize(
    ("wanted", "gap", "expected"),
    [
        ([0.3, 0.1, 0.2], 0.1, [0.3, 0.1, 0.2]),
        ([0.5, 0.5], 0.1, [0.5, 0.6]),
        ([1.0, 1.0, 0.95], 0.1, [0.9, 1.0, 0.8]),
    ],
)
def test_labels_keep_their_order_apart(
    wanted: list[float], gap: float, expected: list[float]
) -> None:
    assert spread(wanted, gap) == pytest.approx(expected)


def test_what_answers_has_a_colour_and_the_rest_is_grey(h200: Record) -> None:
    (axes,) = drawn("throughput_f32", h200).axes
    lines = [line for line in axes.lines if line.get_marker() != "None"]
    colors = {str(line.get_label()): line.get_color() for line in lines}
    colored = {label: color for label, color in colors.items() if color != REST}
    assert colored == {"StreamK": OURS, "cuBLASLt/algo:best": LIBRARY}
    assert len(colors) > 25
    heights = {line.get_label(): max(ys(line)) for line in lines}
    assert heights["StreamK"] == pytest.approx(53.7, abs=0.1)


@pytest.mark.parametrize(("peak", "top"), [(66.9e12, 66.9), (1e12, 52.7)])
def test_the_peak_or_what_is_above_it_is_the_top_edge(gpu: Record, peak: float, top: float) -> None:
    roof = Ceiling("given", "f32", peak, None, "given", "")
    (axes,) = drawn("throughput_f32", dataclasses.replace(gpu, ceilings=(roof,))).axes
    assert axes.get_ylim()[1] == pytest.approx(top, rel=0.01)


def test_bars_and_marks_of_the_headline_stand_at_their_shares(h200: Record) -> None:
    (axes,) = (figure := drawn("headline", h200)).axes
    rows = drawings(h200)["headline"].table(h200)
    assert [row["precision"] for row in rows] == ["f32", "tf32", "bf16", "e4m3", "f64", "s8"]

    def shares(key: str) -> list[Any]:
        return [
            pytest.approx(100 * float(str(row[key])) / float(str(row["peak_flop_per_second"])))
            for row in rows
            if row[key]
        ]

    bars = [b.get_width() for b in bars_of(figure) if to_hex(b.get_facecolor()) == OURS.lower()]
    assert bars == shares("flop_per_second")
    for color, of in ((LIBRARY, "library"), (PALE, "peak_at_clock")):
        marks = [xs(line)[0] for line in axes.lines if line.get_color() == color]
        assert marks == shares(f"{of}_flop_per_second")


def test_rungs_come_in_their_order_then_libraries_then_others(ladder: Record) -> None:
    rows = [row for row in ladder.rows if row.kernel == "Naive"]
    others = [dataclasses.replace(row, kernel="Numba", family="peer") for row in rows]
    kernels = (Kernel("Numba", "peer", 1, ""), *ladder.kernels)
    both = dataclasses.replace(ladder, kernels=kernels, rows=(*others, *ladder.rows))
    data = drawings(both)["ladder_f32"].table(both)
    names = [row["kernel"] for row in data]
    assert names[:2] == ["NaiveUncoalesced", "Naive"]
    assert names[-2:] == ["cuBLAS/math:pedantic", "Numba"]
    bars = bars_of(drawn("ladder_f32", both))
    assert [bar.get_width() for bar in bars] == [
        pytest.approx(float(str(row["flop_per_second"])) / 1e12) for row in data
    ]
    assert [to_hex(bar.get_edgecolor()) == OTHERS.lower() for bar in bars][-2:] == [False, True]


def test_every_unit_that_a_rung_uses_has_its_peak(ladder: Record, gpu: Record) -> None:
    rows = [dataclasses.replace(row, precision="bf16") for row in ladder.rows]
    naive = next(row for row in rows if (row.kernel, row.m) == ("Naive", 4096))
    tensor = dataclasses.replace(naive, kernel="Wgmma", family="tensor")
    record = dataclasses.replace(ladder, rows=(*rows, tensor), ceilings=gpu.ceilings)
    figure = drawn("ladder_bf16", record)
    assert "BF16 tensor core: 989 TFLOP/s (spec, 1830 MHz)" in texts(figure)
    assert "FP32 FMA: 66.9 TFLOP/s (from device, 1980 MHz)" in texts(figure)
    assert figure.axes[0].get_xlim()[1] == pytest.approx(989.4, abs=0.1)


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


def test_a_roofline_is_of_shapes_and_has_a_slope_and_a_roof(shapes: Record, gpu: Record) -> None:
    assert "roofline" not in drawings(gpu), "cubes differ in their size alone"
    (axes,) = drawn("roofline", shapes).axes
    roofs = [line for line in axes.lines if line.get_color() == ROOF_COLOR]
    ends = [(xs(line), ys(line), line.get_linewidth()) for line in roofs]
    slopes = {(round(y[0] / x[0], 2), width > 1) for x, y, width in ends if y[0] != y[1]}
    assert slopes == {(4.81, True), (4.59, False)}, "the nominal one is thick, in TB/s"
    levels = {(round(y[0], 1), width > 1) for _, y, width in ends if y[0] == y[1]}
    assert levels == {(66.9, True), (65.6, False)}
    marks = {
        (round(xs(line)[0], 3), round(ys(line)[0], 3))
        for line in axes.lines
        if line.get_marker() != "None"
    }
    rows = [row for its in roofline.points(shapes).values() for row in its]
    assert marks == {(round(r.flop_per_byte, 3), round(rate(r) / 1e12, 3)) for r in rows}
    assert len(rows) == 2 * 16, "ours and the library's"


def test_an_arrow_leads_from_the_old_mark_to_the_new_one(ladder: Record) -> None:
    old = slower(ladder, 2)
    figure = drawn("roofline", ladder, Choice(versus=old))
    check_text(figure)
    arrows = [text for text in figure.axes[0].texts if text.get_text() == ""]
    ends = {(round(float(a.xyann[1]), 3), round(float(a.xy[1]), 3)) for a in arrows}  # type: ignore[attr-defined]
    ours = roofline.points(ladder, old)[roofline.OURS]
    assert ends == {(round(rate(r) / 2e12, 3), round(rate(r) / 1e12, 3)) for r in ours}
    same = drawn("roofline", ladder, Choice(versus=ladder))
    assert not [text for text in same.axes[0].texts if text.get_text() == ""]


def test_two_runs_are_compared_by_cases_on_one_device(gpu: Record, cpu: Record) -> None:
    device = dataclasses.replace(gpu.device, driver="1.2.3", uuid_hash="another")
    rows = tuple(r for r in gpu.rows if r.kernel != "Tiled" and r.m != 256)
    said = versus_notes(gpu, dataclasses.replace(gpu, rows=rows, device=device))
    assert "The two runs differ in: GPU, driver." in said
    (alone,) = (note for note in said if note.startswith("Only in the new run"))
    assert "Tiled/tile:8 f32, Tiled/tile:16 f32" in alone
    assert alone.endswith("of the others the problems 256.")
    assert not [note for note in versus_notes(gpu, gpu) if "differ" in note or "Only" in note]
    check_device(gpu, gpu)
    with pytest.raises(RecordError, match="give two records of one device"):
        check_device(gpu, cpu)


def test_each_memory_is_a_panel_with_its_roof(ladder: Record, gpu: Record) -> None:
    assert "hierarchy" not in drawings(gpu), "no bytes are modelled"
    figure = drawn("hierarchy", ladder)
    grey = [line for line in figure.axes[1].lines if line.get_color() == ROOF_COLOR]
    (slope,) = (y[0] / x[0] for x, y in ((xs(g), ys(g)) for g in grey) if y[0] != y[1])
    assert slope == pytest.approx(9.89, rel=1e-3), "TFLOP/s for each FLOP/byte"
    at = {(r["memory"], r["kernel"]): r["flop_per_byte"] for r in hierarchy.table(ladder)}
    assert at["L2", "Tiled/tile:16"] == pytest.approx(4, rel=1e-4)
    assert at["Shared memory", "Tiled/tile:16"] == pytest.approx(0.24, rel=1e-4)
    assert ("Shared memory", "Naive") not in at, "it uses none"
    bare = dataclasses.replace(ladder, measured_ceilings=())
    said = " ".join(texts(drawn("hierarchy", bare)))
    assert "Bandwidth not measured: Shared memory, L2." in said and "Above the" not in said


def test_counted_bytes_have_hollow_marks_beside_the_modelled_ones(ladder: Record) -> None:
    row = next(r for r in ladder.rows if r.kernel == "Tiled" and r.traffic and r.is_cube)
    counted = dataclasses.replace(row, counted=Traffic(row.flop / 50, row.flop / 5, row.flop / 2))
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
    check_text(drawn("hierarchy", h200, Choice(hierarchy="Wgmma.*/bf16/")))
    for pattern, why in (("None", "matches no such row"), ("(", "is no regular expression")):
        with pytest.raises(InputError, match=why):
            drawings(h200, Choice(hierarchy=pattern))


def test_a_burst_is_compared_with_steady_state_whichever_comes_first() -> None:
    settled, fast = (
        read_record(RESULTS / "nvidia-h200" / f"20261121T{name}-e00744316788.json.gz")
        for name in ("073701Z", "074230Z")
    )
    cases = burst.pairs_of(settled, fast)
    assert [case.kept for case in burst.pairs_of(fast, settled)] == [case.kept for case in cases]
    assert all(0.8 < case.kept < 1 for case in cases) and len(cases) == 4
    assert "burst" not in drawings(settled, Choice(versus=settled))
    figure = drawn("burst", settled, Choice(versus=fast))
    check_text(figure)
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    rows = burst.table(settled, fast)
    assert [xs(dot)[0] for dot in dots] == [
        pytest.approx(100 * float(str(row["settled_of_roof"]))) for row in rows
    ]


def test_transfers_lie_end_to_end_over_the_bar_of_all_together(ladder: Record) -> None:
    bars = [b for b in drawn("end_to_end", ladder).axes[0].patches[:4] if isinstance(b, Rectangle)]
    first, second, third, together = ((bar.get_x(), bar.get_width()) for bar in bars)
    assert first[0] == together[0] == 0
    assert second[0] == pytest.approx(first[1])
    assert third[0] == pytest.approx(first[1] + second[1])


def test_the_axes_of_a_grid_are_what_the_best_rate_depends_on_most(ladder: Record) -> None:
    base = next(row for row in ladder.rows if row.variant)

    def grid(rates: dict[tuple[int, int, int], float]) -> list[Row]:
        return [
            dataclasses.replace(
                base,
                parameters={"BM": str(bm), "BK": str(bk), "NR": str(nr)},
                flop_per_second=speed * 1e12,
            )
            for (bm, bk, nr), speed in rates.items()
        ]

    rates = {
        (bm, bk, nr): 10 + bm / 64 + nr + 0.01 * bk
        for bm, bk, nr in itertools.product((64, 128), (8, 16), (4, 8))
    }
    assert tuning.leading_parameters(grid(rates)) == ("BM", "NR")
    best = {(64, 8, 4): 1.0, (64, 16, 4): 1.01, (128, 8, 8): 3.0, (128, 16, 8): 2.99}
    said = texts(drawn("tuning", with_rows(ladder, *grid(best))))
    assert "1.01" in said and "1.00" not in said, "a cell has the best over the other parameters"
    one = with_rows(ladder, *grid({(64, 8, 4): 1.0}))
    assert "tuning" not in drawings(one), "one variant is no grid"
    with pytest.raises(RecordError, match="--gemm_variants=all"):
        tuning.report(with_rows(ladder))


def test_shapes_are_summed_up_by_mean_percentile_and_worst(
    many: Record, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, line = ratios.report(many).splitlines()
    assert head.split()[:3] == ["precision", "kernel", "shapes"]
    assert line.split()[:6] == ["FP32", "Best", "20", "1.000", "1.000", "0.500"]
    (rows,) = ratios.groups(many)
    slow = [dataclasses.replace(row, of_library=0.1) for row in rows[:2]]
    assert ratios.summary([*slow, *rows[2:]])[1] == pytest.approx(0.91)
    few = with_rows(many, *many.rows[:5])
    assert "ratios" not in drawings(few) and len(ratios.groups(few, "^Best/")) == 1
    assert main(["ratios", str(gpu_path), "-o", str(tmp_path)]) == BAD_INPUT
    assert "--gemm_shapes=random:60:1" in capsys.readouterr().err
    assert main(["ratios", str(gpu_path), "-o", str(tmp_path), "--kernels", "Naive/f32"]) == 0
    assert (tmp_path / "ratios.png").exists()
