"""Writes the figures of a record: each as PNG and SVG, with the plotted data as CSV beside them."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gemm_report.figures import (
    end_to_end,
    ladder_bars,
    ladder_roofline,
    roofline,
    throughput,
    tuning,
)
from gemm_report.figures.palette import STYLE, Look
from gemm_report.record import Part, Record
from gemm_report.rungs import ladder_precisions


@dataclass(frozen=True)
class Drawing:
    """How a figure is made of a record, and the data that it shows."""

    draw: Callable[[Record, Mapping[str, Look]], Figure]
    table: Callable[[Record], list[dict[str, object]]]

    @property
    def caption(self) -> str:
        """What the figure shows, in one sentence: what is said of the function that draws it."""
        return (getattr(self.draw, "func", self.draw).__doc__ or "").partition("\n")[0]


# Of every record; the others are of those that have something for them.
FIGURES: Mapping[str, Drawing] = {
    "throughput": Drawing(throughput.draw, throughput.table),
    "roofline": Drawing(roofline.draw, roofline.table),
}


def drawings(record: Record) -> dict[str, Drawing]:
    """The figures of `record`, by name."""
    found = dict(FIGURES)
    for precision in ladder_precisions(record):
        suffix = "" if precision == "f32" else f"_{precision}"
        found[f"ladder{suffix}"] = _of_precision(ladder_bars, precision)
        if ladder_roofline.has_model(record, precision):
            found[f"ladder_roofline{suffix}"] = _of_precision(ladder_roofline, precision)
    if end_to_end.transfer_rows(record):
        found["end_to_end"] = Drawing(end_to_end.draw, end_to_end.table)
    if any(row.part is Part.TUNING for row in record.rows_with("timed")):
        found["tuning"] = Drawing(tuning.draw, tuning.table)
    return found


def write_figures(record: Record, looks: Mapping[str, Look], folder: Path) -> list[Path]:
    """Every figure of `record` with its data; the paths written."""
    written = (write_with_data(name, record, looks, folder) for name in drawings(record))
    return [path for paths in written for path in paths]


def write_with_data(
    name: str, record: Record, looks: Mapping[str, Look], folder: Path
) -> list[Path]:
    """One figure, and the data that it shows."""
    paths = write_figure(name, record, looks, folder)
    return [*paths, _write_csv(folder / f"{name}.csv", drawings(record)[name].table(record))]


def write_figure(
    name: str,
    record: Record,
    looks: Mapping[str, Look],
    folder: Path,
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """One figure in each of `formats`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{each}" for each in formats]
    # What a user's own matplotlibrc says must not change a figure.
    with matplotlib.style.context(STYLE, after_reset=True):
        figure = drawings(record)[name].draw(record, looks)
        FigureCanvasAgg(figure)
        for path in paths:
            # Without its date the same data gives the same SVG.
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _of_precision(figure: ModuleType, precision: str) -> Drawing:
    return Drawing(
        partial(figure.draw, precision=precision), partial(figure.table, precision=precision)
    )


def _write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path
