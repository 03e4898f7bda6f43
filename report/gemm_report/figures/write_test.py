import csv
import dataclasses
import itertools
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.style
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox

from gemm_report.conftest import clocks
from gemm_report.figures.palette import LIBRARY, NAIVE, OURS, REST, STYLE
from gemm_report.figures.roofs import ROOF_COLOR
from gemm_report.figures.write import Choice, drawings, write_figures
from gemm_report.record import Ceiling, Record

AS_IT_IS = Choice()


def drawn(name: str, record: Record, choice: Choice = AS_IT_IS) -> Figure:
    with matplotlib.style.context(STYLE, after_reset=True):
        figure = drawings(record, choice)[name].draw(record)
        FigureCanvasAgg(figure).draw()
    return figure


def texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """All text but that of the ticks, and its boxes."""
    return [(text.get_text(), text.get_window_extent()) for text in artists(figure)]


def artists(figure: Figure) -> list[Text]:
    """All text but that of the ticks, which an axis keeps apart by itself."""
    ticks = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        for label in (tick.label1, tick.label2)
    }
    return [t for t in figure.findobj(Text) if t.get_text() and t not in ticks]


def corners(text: Text) -> np.ndarray:
    """The box of `text`, which may be slanted."""
    slanted, angle = text.get_window_extent(), text.get_rotation()
    if not angle % 90:
        return slanted.corners()[[0, 1, 3, 2]]
    text.set_rotation(0)
    box = text.get_window_extent().corners()[[0, 1, 3, 2]]
    text.set_rotation(angle)
    rotated = box @ Affine2D().rotate_deg(angle).get_matrix()[:2, :2].T
    # Slanting moves the middle of the box to that of its hull.
    return (
        rotated
        - rotated.mean(axis=0)
        + [(slanted.x0 + slanted.x1) / 2, slanted.y0 / 2 + slanted.y1 / 2]
    )


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """How deep two rectangles lie in each other: 0 or less if a line fits between them."""
    sides = [b - a for each in (one, other) for a, b in itertools.pairwise(each[:3])]
    depths = []
    for side in sides:
        (low, high), (other_low, other_high) = (
            (ends.min(), ends.max())
            for ends in (each @ (side / np.linalg.norm(side)) for each in (one, other))
        )
        depths.append(min(high, other_high) - max(low, other_low))
    return min(depths)


# What each of the records has figures of.
# Of every record; the others are of those that have something for them.
FIGURES = ("headline", "roofline", "throughput")
OF_LADDERS = (*FIGURES, "ladder", "ladder_roofline", "of_library")
DRAWN = {
    "gpu": (*FIGURES, "ladder", "of_library", "energy", "distribution"),
    "cpu": (*FIGURES, "ladder", "distribution"),
    "crowd": (*FIGURES, "ladder", "of_library", "distribution"),
    "equal": (*FIGURES, "ladder", "of_library", "distribution"),
    "ladder": (*OF_LADDERS, "end_to_end", "tuning"),
    "tower": (*OF_LADDERS, "distribution"),
    "bare": (*OF_LADDERS, "distribution"),
    "epyc": (*FIGURES, "ladder", "of_library", "distribution"),
    "three": (*FIGURES, "ladder", "of_library", "energy", "distribution"),
    "h200": (
        *(*OF_LADDERS, "energy", "distribution", "ladder_roofline_bf16"),
        *(f"ladder_{precision}" for precision in ("tf32", "bf16", "f64", "s32", "s8")),
    ),
}
ALL = [(which, name) for which, names in DRAWN.items() for name in names]
# Pixels of a page, and of its smallest letters.
PAGE, LEGIBLE = 1100, 11


@pytest.fixture(scope="module")
def written(gpu: Record, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_figures(gpu, tmp_path_factory.mktemp("figures") / "new" / "folder")


def content(written: list[Path], name: str) -> str:
    (path,) = (path for path in written if path.name == name)
    return path.read_text(encoding="utf-8")


def test_every_figure_is_written_with_its_data(written: list[Path]) -> None:
    paths = written
    names = dict.fromkeys(path.stem for path in paths)
    assert tuple(names) == DRAWN["gpu"], "the headline is the first"
    ends = ("png", "svg", "csv")
    assert [path.name for path in paths] == [f"{name}.{end}" for name in names for end in ends]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths if path.suffix == ".png")
    assert all(path.stat().st_size > 200 for path in paths)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_names_precisions_and_conditions(name: str, written: list[Path]) -> None:
    svg = content(written, f"{name}.svg")
    for fact in (
        *("Test GPU", "driver 550.54.15", "0123456789ab", "2025-01-31", "FP32"),
        *("CUDA events", "fixed power, uniform[-1,1], 3 operand sets, settled after 0.5 to 3.1 s"),
    ):
        assert fact in svg, fact
    has_kernels = name == "headline"  # of ours, which TF32 and BF16 have not
    assert all((text in svg) != has_kernels for text in ("TF32", "BF16"))
    assert "FP16" not in svg, "a precision that was not run"
    assert "Tiled/tile:32" not in svg, "a kernel with a wrong result has no speed"
    assert "incomplete" not in svg
    assert "clock policy" not in svg


def test_throughput_names_marks_and_what_is_missing(written: list[Path]) -> None:
    svg = content(written, "throughput.svg")
    for fact in (
        *("560 †", "† Clocks limited by: power cap.", "peak  989", "Tiled/tile:16  "),
        "Not shown: 1 skipped, 1 failed",
    ):
        assert fact in svg, fact


@pytest.mark.parametrize("name", ["roofline", "throughput"])
def test_what_is_not_known_is_said(name: str, cpu: Record) -> None:
    said = " ".join(text for text, _ in texts(drawn(name, cpu)))
    assert "(incomplete run)" in said
    assert "Peak not known: FP32 FMA (FP32): no table of CPU peaks" in said
    assert "clock policy not known" in said


def test_the_same_record_gives_the_same_files(
    gpu: Record, written: list[Path], tmp_path: Path
) -> None:
    for first, second in zip(written, write_figures(gpu, tmp_path), strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


@pytest.mark.parametrize(("which", "name"), ALL)
def test_text_is_legible_and_overlaps_no_other(
    which: str, name: str, request: pytest.FixtureRequest
) -> None:
    check_text(drawn(name, request.getfixturevalue(which)))


@pytest.mark.parametrize(("which", "name"), [(w, n) for w, n in ALL if w in ("h200", "ladder")])
def test_no_mark_is_above_the_highest_roof(
    which: str, name: str, request: pytest.FixtureRequest
) -> None:
    for axes in drawn(name, request.getfixturevalue(which)).axes:
        roofs = [line for line in axes.lines if line.get_color() == ROOF_COLOR]
        if "roofline" in name or name == "throughput":
            top = max(y for line in roofs for y in line.get_ydata())
            marks = [line for line in axes.lines if line.get_marker() not in ("None", "")]
            assert marks
            assert max(y for line in marks for y in line.get_ydata()) <= top
        elif name.startswith("ladder"):
            right = max(line.get_xdata()[0] for line in roofs)
            assert max(bar.get_width() for bar in axes.patches) <= right


@pytest.mark.parametrize(
    ("which", "name"), [(w, n) for w, n in ALL if n in ("throughput", "of_library")]
)
def test_ticks_are_the_sizes_that_were_measured(
    which: str, name: str, request: pytest.FixtureRequest
) -> None:
    record = request.getfixturevalue(which)
    sizes = {row.m for row in record.rows_with("timed") if row.is_cube}
    for axes in drawn(name, record).axes:
        named = {
            float(tick): label.get_text()
            for tick, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        }
        assert named
        assert named.keys() <= sizes
        for size, text in named.items():
            odd = size % 64
            assert text in ("", f"({size:.0f})" if odd else f"{size:.0f}"), "unaligned: parentheses"
        assert named[max(named)], "the largest has a name"


def check_text(figure: Figure) -> None:
    """No two texts overlap, none leaves the page, and all are legible in a page of a browser."""
    found = artists(figure)
    assert len(found) > 4
    pixels = PAGE / figure.get_size_inches()[0] / 72
    assert min(text.get_size() for text in figure.findobj(Text)) * pixels >= LEGIBLE
    boxes = [(text, corners(text)) for text in found]
    for (one, its_box), (other, other_box) in itertools.combinations(boxes, 2):
        apart = its_box.min(axis=0) > other_box.max(axis=0)
        if not (apart | (its_box.max(axis=0) < other_box.min(axis=0))).any():
            assert overlap(its_box, other_box) < 0.5, f"{one} | {other}"
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        shown = [label for at, label in ticks if low <= at <= high and label.get_text()]
        for one, other in itertools.pairwise(map(corners, shown)):
            assert overlap(one, other) < 0.5, shown
    page = figure.bbox
    for text, box in texts(figure):
        assert box.x0 >= page.x0, text
        assert box.x1 <= page.x1, text
        assert box.y0 >= page.y0, text
        assert box.y1 <= page.y1, text


def test_slanted_text_that_overlaps_would_be_seen() -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    looks = {"rotation": 30, "rotation_mode": "anchor", "size": 20}
    first = figure.text(0.2, 0.2, "one text", **looks)
    inside = figure.text(0.25, 0.25, "another", **looks)
    beside = figure.text(0.3, 0.2, "a third", **looks)
    assert overlap(corners(first), corners(inside)) > 5
    assert overlap(corners(first), corners(beside)) < 0
    assert Bbox.intersection(first.get_window_extent(), beside.get_window_extent())


def test_every_figure_that_a_record_has_is_looked_at(request: pytest.FixtureRequest) -> None:
    for which, names in DRAWN.items():
        assert set(drawings(request.getfixturevalue(which))) == set(names), which


@pytest.mark.parametrize("name", FIGURES)
def test_a_long_device_name_fits_on_the_page(name: str, cpu: Record) -> None:
    device = dataclasses.replace(cpu.device, name="Processor " * 12)
    figure = drawn(name, dataclasses.replace(cpu, device=device))
    assert all(box.x1 <= figure.bbox.x1 for _, box in texts(figure))


def test_what_answers_has_a_colour_and_a_label_and_the_rest_is_grey(h200: Record) -> None:
    figure = drawn("throughput", h200)
    axes = figure.axes[0]
    lines = [line for line in axes.lines if line.get_marker() != "None"]
    colors = {str(line.get_label()): line.get_color() for line in lines}
    named = {label: color for label, color in colors.items() if not label.startswith("_")}
    colored = {label: color for label, color in named.items() if color != REST}
    assert colored == {"StreamK": OURS, "Naive": NAIVE, "cuBLASLt/algo:best": LIBRARY}
    assert len(named) > 30
    labels = [text.get_text() for text in axes.texts]
    assert labels == ["Naive  6.54", "StreamK  53.7", "cuBLASLt  52.9", "peak  66.9"]


def test_the_peak_is_the_top_edge_of_its_panel(gpu: Record) -> None:
    tops = {
        axes.get_title(loc="left"): axes.get_ylim()[1] for axes in drawn("throughput", gpu).axes
    }
    assert tops == {
        "FP32, TFLOP/s": 66.9,
        "TF32, TFLOP/s": 494.7,
        "BF16, TFLOP/s": 989.4,
    }


def test_a_kernel_above_its_peak_is_still_inside_the_panel(gpu: Record) -> None:
    low = Ceiling("low", "f32", 1e12, None, "given", "a typing error")
    axes = drawn("throughput", dataclasses.replace(gpu, ceilings=(low,))).axes[0]
    assert axes.get_ylim()[1] > 48


@pytest.mark.parametrize("name", FIGURES)
def test_a_record_without_any_time_is_drawn(name: str, gpu: Record, tmp_path: Path) -> None:
    for rows in ((), tuple(gpu.rows_with("skipped"))):
        empty = dataclasses.replace(gpu, rows=rows)
        said = [text for text, _ in texts(drawn(name, empty))]
        assert "No row of this record has a time." in said
        write_figures(empty, tmp_path)


def test_the_data_beside_a_figure_is_what_it_shows(gpu: Record, written: list[Path]) -> None:
    throughput = list(csv.DictReader(content(written, "throughput.csv").splitlines()))
    # Three repetitions are one point.
    assert len(throughput) == len(gpu.rows_with("timed")) - 2
    assert {row["on_line"] for row in throughput if row["m"] == "4092"} == {"false"}
    (slab,) = (r for r in throughput if r["k"] == "768" and r["kernel"] == "Tiled/tile:16")
    assert float(slab["size"]) == pytest.approx((1024 * 1024 * 768) ** (1 / 3))
    roofline = list(csv.DictReader(content(written, "roofline.csv").splitlines()))
    roofs = {row["name"] for row in roofline if row["kind"] == "roof"}
    computed = {"FP32 FMA", "TF32 tensor core", "BF16 tensor core", "DRAM"}
    assert roofs == computed | {"FP32_FMA", "TF32_mma", "BF16_wgmma", "DRAM_read"}
    assert {row["name"] for row in roofline if row["origin"] == "measured"} == roofs - computed


def test_names_that_are_formulas_paths_or_no_text_are_only_names(
    gpu: Record, tmp_path: Path
) -> None:
    name = "$\\frac{$../../up\x00<b>\n&"
    rows = tuple(
        dataclasses.replace(row, kernel=name) if row.kernel == "Tiled" else row for row in gpu.rows
    )
    record = dataclasses.replace(gpu, rows=rows)
    paths = write_figures(record, tmp_path / "out")
    assert {path.parent for path in paths} == {tmp_path / "out"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    for path in paths:
        if path.suffix == ".svg":
            ElementTree.parse(path)
    shown = (tmp_path / "out" / "ladder.svg").read_text(encoding="utf-8")
    assert "../../up\ufffd&lt;b&gt;\ufffd&amp;" in shown


def test_the_largest_numbers_that_are_read_over_the_smallest_are_drawn(
    gpu: Record, tmp_path: Path
) -> None:
    rows = tuple(
        dataclasses.replace(
            row, clocks=clocks(power_w=1e-60), flop_per_second=1e60 * (row.m / 4096)
        )
        for row in gpu.rows
        if row.status == "timed"
    )
    record = dataclasses.replace(gpu, rows=rows)
    assert write_figures(record, tmp_path, only=["energy", "roofline"])
