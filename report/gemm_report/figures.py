"""Writes the figures of a record: each as PNG and SVG, with the plotted data as CSV beside them."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gemm_report import roofline, throughput
from gemm_report.palette import STYLE, Look
from gemm_report.record import Record

FIGURES: Mapping[str, ModuleType] = {"throughput": throughput, "roofline": roofline}


def write_figures(record: Record, looks: Mapping[str, Look], folder: Path) -> list[Path]:
    """Every figure of `record`; the paths written."""
    paths: list[Path] = []
    for name in FIGURES:
        paths += write_figure(name, record, looks, folder)
        paths.append(_write_csv(folder / f"{name}.csv", FIGURES[name].table(record)))
    return paths


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
        figure: Figure = FIGURES[name].draw(record, looks)
        FigureCanvasAgg(figure)
        for path in paths:
            # Without its date the same data gives the same SVG.
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path
