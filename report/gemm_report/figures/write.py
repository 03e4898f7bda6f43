"""Writes the figures of a record: each as PNG and SVG, and the plotted data as CSV."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.text import Text

from gemm_report.figures import (
    burst,
    distribution,
    end_to_end,
    energy,
    headline,
    hierarchy,
    ladder_bars,
    of_library,
    ratios,
    roofline,
    shapes,
    throughput,
    tuning,
)
from gemm_report.figures.page import printable
from gemm_report.figures.palette import STYLE
from gemm_report.record import Record
from gemm_report.rows import ladder_precisions
from gemm_report.text import write_csv

FORMATS = ("png", "svg", "csv")


@dataclass(frozen=True)
class Drawing:
    """How a figure is made of a record, and the data that it shows."""

    draw: Callable[[Record], Figure]
    table: Callable[[Record], list[dict[str, object]]]

    @property
    def caption(self) -> str:
        """What the figure shows, in one sentence: what is said of the function that draws it."""
        return (getattr(self.draw, "func", self.draw).__doc__ or "").partition("\n")[0]


@dataclass(frozen=True)
class Choice:
    """What was asked for: an older record to compare with, and rows by their names."""

    versus: Record | None = None
    hierarchy: str | None = None
    ratios: str | None = None


def drawings(record: Record, choice: Choice = Choice()) -> dict[str, Drawing]:
    """The figures of `record`, by name; the later ones where there is something to show."""
    found = {
        "headline": _with(headline),
        "roofline": _with(roofline, versus=choice.versus),
        "throughput": _with(throughput),
    }
    for precision in ladder_precisions(record):
        suffix = "" if precision == "f32" else f"_{precision}"
        found[f"ladder{suffix}"] = _with(ladder_bars, precision=precision)
        if hierarchy.has_model(record, precision):
            found[f"ladder_roofline{suffix}"] = Drawing(
                partial(hierarchy.draw_ladder, precision=precision),
                partial(hierarchy.table, precision=precision),
            )
    others = {
        "hierarchy": _with(hierarchy, pattern=choice.hierarchy),
        "of_library": _with(of_library),
        "ratios": _with(ratios, pattern=choice.ratios),
        "shapes": _with(shapes),
        "energy": _with(energy),
        "burst": _with(burst, versus=choice.versus),
        "distribution": _with(distribution),
        "end_to_end": _with(end_to_end),
        "tuning": _with(tuning),
    }
    return found | {name: each for name, each in others.items() if each.table(record)}


def write_figures(
    record: Record,
    folder: Path,
    choice: Choice = Choice(),
    only: Collection[str] | None = None,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Figures of `record`, all of them or `only` some, in each of `formats`; the paths written."""
    paths = []
    for name, drawing in drawings(record, choice).items():
        if only is None or name in only:
            its_paths = [folder / f"{name}.{end}" for end in formats]
            write_figure(drawing, record, its_paths)
            paths += its_paths
    return paths


def write_figure(drawing: Drawing, record: Record, paths: Sequence[Path]) -> Figure:
    """In the style of all figures, which a user's own matplotlibrc must not change."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.style.context(STYLE, after_reset=True):
        figure = drawing.draw(record)
        for text in figure.findobj(Text):
            if not text.get_text().isprintable():
                text.set_text(printable(text.get_text()))
        for path in paths:
            if path.suffix == ".csv":
                rows = drawing.table(record)
                columns = list(dict.fromkeys(column for row in rows for column in row))
                write_csv(path, columns, ([row.get(each) for each in columns] for row in rows))
            else:
                # Without its date the same data gives the same SVG.
                date = {"Date": None} if path.suffix == ".svg" else None
                figure.savefig(path, metadata=date)
    return figure


def _with(figure: ModuleType, **given: object) -> Drawing:
    return Drawing(partial(figure.draw, **given), partial(figure.table, **given))
