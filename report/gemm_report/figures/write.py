"""Writes the figures of a record: each as PNG and SVG, and the plotted data as CSV."""

import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import matplotlib.style
from matplotlib.figure import Figure

from gemm_report.figures import (
    burst,
    end_to_end,
    headline,
    hierarchy,
    ladder,
    ratios,
    roofline,
    shapes,
    throughput,
    tuning,
)
from gemm_report.figures.palette import STYLE
from gemm_report.record import Record
from gemm_report.rows import drawn_rows, ladder_precisions, precisions
from gemm_report.text import visible, write_csv

FORMATS = ("png", "svg", "csv")
MOST = 8
# What a reader asks for first; others come after, in the order of the record.
_FIRST = ("bf16", "f32", "tf32", "e4m3", "s8", "f64", "f16")
_LADDERS, _SIZES = 2, 5


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
    """All figures that `record` can have, by name; the first MOST are shown unless others are
    asked for."""
    found = {"headline": _with(headline)}
    if choice.versus or roofline.has_shapes(record):
        found["roofline"] = _with(roofline, versus=choice.versus)
    special = {
        "burst": _with(burst, versus=choice.versus),
        "ratios": _with(ratios, pattern=choice.ratios),
        "shapes": _with(shapes),
        "end_to_end": _with(end_to_end),
    }
    special |= {"tuning": _with(tuning)} if tuning.has_grid(record) else {}
    found |= {name: each for name, each in special.items() if each.table(record)}
    memories = {"hierarchy": _with(hierarchy, pattern=choice.hierarchy)}
    memories = {name: each for name, each in memories.items() if each.table(record)}
    if choice.hierarchy or any(row.counted for row in record.rows):
        found |= memories
    names = _sorted(ladder_precisions(record)), _sorted(precisions(drawn_rows(record)))
    ladders = [(f"ladder_{name}", _with(ladder, precision=name)) for name in names[0]]
    sizes = [(f"throughput_{name}", _with(throughput, precision=name)) for name in names[1]]
    first = [*ladders[:_LADDERS], *sizes[:_SIZES]]
    return found | dict([*first, *ladders, *sizes]) | memories


def write_figures(
    record: Record,
    folder: Path,
    choice: Choice = Choice(),
    only: Collection[str] | None = None,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """The first MOST figures of `record`, or `only` some, each in `formats`; the paths written."""
    paths = []
    found = drawings(record, choice)
    for name in list(found)[:MOST] if only is None else only:
        if name in found:
            its_paths = [folder / f"{name}.{end}" for end in formats]
            write_figure(found[name], record, its_paths)
            paths += its_paths
    return paths


def write_figure(drawing: Drawing, record: Record, paths: Sequence[Path]) -> Figure:
    """In the style of all figures, which a user's own matplotlibrc must not change."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.style.context(STYLE, after_reset=True):
        figure = drawing.draw(record)
        for path in paths:
            if path.suffix == ".csv":
                rows = drawing.table(record)
                columns = list(dict.fromkeys(column for row in rows for column in row))
                write_csv(path, columns, ([row.get(each) for each in columns] for row in rows))
            elif path.suffix == ".svg":
                # Without its date the same data gives the same SVG.
                figure.savefig(text := io.StringIO(), format="svg", metadata={"Date": None})
                path.write_text(visible(text.getvalue()), encoding="utf-8")
            else:
                figure.savefig(path)
    return figure


def _sorted(names: Sequence[str]) -> list[str]:
    known = {name: i for i, name in enumerate(_FIRST)}
    return sorted(names, key=lambda name: known.get(name, len(known)))


def _with(figure: ModuleType, **given: object) -> Drawing:
    return Drawing(partial(figure.draw, **given), partial(figure.table, **given))
