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
from gemm_report.figures.page import ROOF_COLOR
from gemm_report.figures.palette import STYLE, looks
from gemm_report.figures.write import Choice, drawings, write_figures
from gemm_report.record import Ceiling, Record

AS_IT_IS = Choice()


def drawn(name: str, record: Record, choice: Choice = AS_IT_IS) -> Figure:
    shown = [*([choice.versus] if choice.versus else []), record]
    with matplotlib.style.context(STYLE, after_reset=True):
        figure = drawings(record, choice)[name].draw(record, looks(shown))
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
    turned = box @ Affine2D().rotate_deg(angle).get_matrix()[:2, :2].T
    # Slanting moves the middle of the box to that of its hull.
    return (
        turned
        - turned.mean(axis=0)
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


def colors(figure: Figure, labels: set[str]) -> dict[str, set[str]]:
    lines = [line for axes in figure.axes for line in axes.lines if line.get_label() in labels]
    return {
        label: {line.get_color() for line in lines if line.get_label() == label} for label in labels
    }


# What each of the records has figures of.
# Of every record; the others are of those that have something for them.
FIGURES = ("throughput", "roofline")
OF_LADDERS = (*FIGURES, "ladder", "ladder_roofline", "of_library")
DRAWN = {
    "gpu": (*FIGURES, "ladder", "of_library", "energy", "distribution"),
    "cpu": (*FIGURES, "ladder", "distribution"),
    "crowd": (*FIGURES, "ladder", "of_library", "distribution"),
    "ladder": (*OF_LADDERS, "end_to_end", "tuning"),
    "tower": (*OF_LADDERS, "distribution"),
    "bare": (*OF_LADDERS, "distribution"),
    "epyc": (*FIGURES, "ladder", "of_library", "distribution"),
    "three": (*FIGURES, "ladder", "of_library", "energy", "distribution"),
    "h200": (
        *(*OF_LADDERS, "energy", "distribution"),
        *(f"ladder_{precision}" for precision in ("bf16", "f16", "f64", "s32")),
    ),
}


@pytest.fixture(scope="module")
def written(gpu: Record, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_figures(gpu, looks([gpu]), tmp_path_factory.mktemp("figures") / "new" / "folder")


def content(written: list[Path], name: str) -> str:
    (path,) = (path for path in written if path.name == name)
    return path.read_text(encoding="utf-8")


def test_every_figure_is_written_with_its_data(written: list[Path]) -> None:
    paths = written
    assert [path.name for path in paths] == [
        *("throughput.png", "throughput.svg", "throughput.csv"),
        *("roofline.png", "roofline.svg", "roofline.csv"),
        *("ladder.png", "ladder.svg", "ladder.csv"),
        *("of_library.png", "of_library.svg", "of_library.csv"),
        *("energy.png", "energy.svg", "energy.csv"),
        *("distribution.png", "distribution.svg", "distribution.csv"),
    ]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths if path.suffix == ".png")
    assert all(path.stat().st_size > 300 for path in paths)


@pytest.mark.parametrize("name", FIGURES)
def test_figure_names_kernels_roofs_and_conditions(
    name: str, gpu: Record, written: list[Path]
) -> None:
    svg = content(written, f"{name}.svg")
    for label in {row.label for row in gpu.rows_with("timed")}:
        assert label in svg
    for fact in (
        *("Test GPU", "driver 550.54.15", "0123456789ab", "2025-01-31"),
        *("CUDA events", "fixed power, uniform[-1,1], 3 operand sets, settled after 0.5 to 3.1 s"),
        *("  560, 56.6 % *" if name == "roofline" else "  560 *", "* Something held the clocks"),
        "† Departs from the measurement guideline: the median is known to 0.8 %",
        "FP32 FMA: 66.9 TFLOP/s (queried at 1980 MHz)",
        "BF16 tensor core: 989 TFLOP/s (table at 1830 MHz)",
        "Not drawn: 1 skipped, 1 failed",
    ):
        assert fact in svg, fact
    assert "FP16 tensor core" not in svg, "the roof of a precision that was not run"
    assert "Tiled/tile:32" not in svg, "a kernel with a wrong result has no speed"
    assert "incomplete" not in svg
    assert "clock policy" not in svg


def test_measured_roofs_are_thinner_and_named_with_their_clock(gpu: Record) -> None:
    figure = drawn("roofline", gpu)
    said = [text for text, _ in texts(figure)]
    for fact in (
        "DRAM: 4.81 TB/s (queried)",
        "DRAM_read: 4.59 TB/s (measured)",
        "FP32_FMA: 65.6 TFLOP/s (measured at 1980 MHz)",
        "TF32_mma: 315 TFLOP/s (measured at 1755 MHz)",
        "BF16_wgmma: 700 TFLOP/s (measured at 1410 MHz)",
    ):
        assert fact in said
    assert not [text for text in said if "960" in text], "zeros are no roof for a kernel"
    widths = {
        line.get_ydata()[1]: line.get_linewidth()
        for axes in figure.axes
        for line in axes.lines
        if line.get_color() == ROOF_COLOR and line.get_ydata()[0] == line.get_ydata()[1]
    }
    assert widths[700e12] < widths[989.4e12]
    assert widths[65.6e12] < widths[66.9e12]


def test_a_roof_that_is_measured_already_has_no_second_one(gpu: Record) -> None:
    measured = tuple(
        dataclasses.replace(ceiling, origin="measured", clock_hz=1.9e9) for ceiling in gpu.ceilings
    )
    said = [
        text for text, _ in texts(drawn("roofline", dataclasses.replace(gpu, ceilings=measured)))
    ]
    assert "DRAM: 4.81 TB/s (measured at 1900 MHz)" in said
    assert not [text for text in said if "_" in text]


def test_measured_roofs_are_drawn_where_nothing_else_is_known(gpu: Record, cpu: Record) -> None:
    record = dataclasses.replace(cpu, measured_ceilings=gpu.measured_ceilings)
    said = [text for text, _ in texts(drawn("roofline", record))]
    assert "FP32_FMA: 65.6 TFLOP/s (measured at 1980 MHz)" in said
    assert "DRAM_read: 4.59 TB/s (measured)" in said


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_not_known_is_said(name: str, cpu: Record) -> None:
    said = " ".join(text for text, _ in texts(drawn(name, cpu)))
    assert "(incomplete run)" in said
    assert "Roof not known: FP32 FMA (f32): no table of CPU peaks" in said
    assert "clock policy not known" in said


def test_the_same_record_gives_the_same_files(
    gpu: Record, written: list[Path], tmp_path: Path
) -> None:
    for first, second in zip(written, write_figures(gpu, looks([gpu]), tmp_path), strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


@pytest.mark.parametrize(("which", "name"), [(w, n) for w in DRAWN for n in DRAWN[w]])
def test_no_text_overlaps_another_or_leaves_the_page(
    which: str, name: str, request: pytest.FixtureRequest
) -> None:
    check_text(drawn(name, request.getfixturevalue(which)))


def check_text(figure: Figure) -> None:
    """No two texts overlap, and none leaves the page."""
    found = artists(figure)
    assert len(found) > 4
    boxes = [(text, corners(text)) for text in found]
    for (one, its_box), (other, other_box) in itertools.combinations(boxes, 2):
        apart = its_box.min(axis=0) > other_box.max(axis=0)
        if not (apart | (its_box.max(axis=0) < other_box.min(axis=0))).any():
            assert overlap(its_box, other_box) < 0.5, f"{one} | {other}"
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


@pytest.mark.parametrize("name", FIGURES)
def test_labels_stand_beside_the_points(name: str, crowd: Record) -> None:
    figure = drawn(name, crowd)
    (axes,) = figure.axes
    labels = [box for text, box in texts(figure) if text.startswith("Kernel")]
    assert len(labels) == 25
    assert all(box.x0 > axes.get_window_extent().x1 for box in labels)


def test_a_kernel_has_the_same_colour_in_every_figure(gpu: Record) -> None:
    labels = {row.label for row in gpu.rows_with("timed")}
    throughput, roofline = (colors(drawn(name, gpu), labels) for name in FIGURES)
    assert throughput == roofline
    assert all(len(found) == 1 for found in throughput.values())
    kernels = {label.split("/")[0]: found.pop() for label, found in throughput.items()}
    assert len(set(kernels.values())) == len(kernels)


def test_the_compute_roof_is_the_top_edge_of_its_panel(gpu: Record) -> None:
    tops = {
        axes.get_title(loc="left"): axes.get_ylim()[1] for axes in drawn("throughput", gpu).axes
    }
    assert tops == {"f32": 66.9, "tf32": 494.7, "bf16": 989.4}


def test_a_kernel_above_its_roof_is_still_inside_the_panel(gpu: Record) -> None:
    low = Ceiling("low", "f32", 1e12, None, "given", "a typing error")
    axes = drawn("throughput", dataclasses.replace(gpu, ceilings=(low,))).axes[0]
    assert axes.get_ylim()[1] > 48


@pytest.mark.parametrize("name", FIGURES)
def test_a_record_without_any_time_is_drawn(name: str, gpu: Record, tmp_path: Path) -> None:
    for rows in ((), tuple(gpu.rows_with("skipped"))):
        empty = dataclasses.replace(gpu, rows=rows)
        said = [text for text, _ in texts(drawn(name, empty))]
        assert "No row of this record has a time." in said
        write_figures(empty, looks([empty]), tmp_path)


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
    assert roofs == computed | {"FP32_FMA", "TF32_mma", "BF16_mma", "BF16_wgmma", "DRAM_read"}
    assert {row["name"] for row in roofline if row["origin"] == "measured"} == roofs - computed


def test_names_that_are_formulas_paths_or_no_text_are_only_names(
    gpu: Record, tmp_path: Path
) -> None:
    name = "$\\frac{$../../up\x00<b>\n&"
    rows = tuple(
        dataclasses.replace(row, kernel=name) if row.kernel == "Tiled" else row for row in gpu.rows
    )
    record = dataclasses.replace(gpu, rows=rows)
    paths = write_figures(record, looks([record]), tmp_path / "out")
    assert {path.parent for path in paths} == {tmp_path / "out"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    for path in paths:
        if path.suffix == ".svg":
            ElementTree.parse(path)
    shown = (tmp_path / "out" / "throughput.svg").read_text(encoding="utf-8")
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
    assert write_figures(record, looks([record]), tmp_path, only=["energy", "roofline"])
