"""Writes the figures of a record: each as PNG and SVG, and the plotted data as CSV."""

import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import matplotlib.style
from matplotlib.figure import Figure

from gemm_report.figures import headline, hierarchy, ladder, roofline, sizes, tokens
from gemm_report.figures.palette import DARK, LIGHT, STYLE, Colors
from gemm_report.record import Record
from gemm_report.rows import ladder_precisions
from gemm_report.standing import in_order, standings
from gemm_report.text import visible, write_csv

FORMATS = ("png", "svg", "csv")
MOST = 8
_DARK = "_dark"


@dataclass(frozen=True)
class Drawing:
    """How a figure is made of a record, and the data that it shows."""

    draw: Callable[[Record, Colors], Figure]
    table: Callable[[Record], list[dict[str, object]]]

    @property
    def caption(self) -> str:
        """What the figure shows, in one sentence: what is said of the function that draws it."""
        return (getattr(self.draw, "func", self.draw).__doc__ or "").partition("\n")[0]


def drawings(record: Record, chosen: str | None = None) -> dict[str, Drawing]:
    """All figures that `record` can have, by name; the first MOST are shown unless others are
    asked for. `chosen` are the rows of the hierarchy, by a pattern of their names."""
    found = {"headline": _with(headline)}
    found |= {"roofline": _with(roofline)} if roofline.subject(record) else {}
    found |= {name: _with(tokens, name=name) for name in tokens.subjects(record)}
    its_rows = hierarchy.chosen(record, chosen)
    memories = {"hierarchy": _with(hierarchy, pattern=chosen)} if its_rows else {}
    if chosen or any(row.counted for row in record.rows):
        found |= memories
    rungs = {name: ladder.steps(record, name) for name in in_order(ladder_precisions(record))}
    longest = sorted(rungs, key=lambda name: -len(rungs[name]))
    ladders = [
        (f"ladder_{name}", _with(ladder, precision=name))
        for name in dict.fromkeys([*[n for n in rungs if n == "bf16"], *longest])
        if len(rungs[name]) > 1
    ]
    its_sizes = [
        (f"sizes_{each.precision}", _with(sizes, precision=each.precision))
        for each in standings(record)
        if len(sizes.pairs_of(each)) > 1
    ]
    # With the roofline or another ladder beside it a ladder fills a page's width.
    first = [*found.items(), *ladders[: 1 if "roofline" in found else 2]]
    return dict([*first, *its_sizes[: MOST - len(first)], *ladders, *its_sizes]) | memories


def write_figures(
    record: Record,
    folder: Path,
    chosen: str | None = None,
    only: Collection[str] | None = None,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """The first MOST figures of `record`, or `only` some, each in `formats`; the paths written.

    A name that ends with _dark is the figure on dark paper.
    """
    paths = []
    found = drawings(record, chosen)
    for name in list(found)[:MOST] if only is None else only:
        plain, colors = name.removesuffix(_DARK), DARK if name.endswith(_DARK) else LIGHT
        if plain in found:
            its_paths = [folder / f"{name}.{end}" for end in formats]
            write_figure(found[plain], record, its_paths, colors)
            paths += its_paths
    return paths


def write_figure(
    drawing: Drawing, record: Record, paths: Sequence[Path], colors: Colors = LIGHT
) -> Figure:
    """In the style of all figures, which a user's own matplotlibrc must not change."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.style.context([STYLE, colors.style], after_reset=True):
        figure = drawing.draw(record, colors)
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


def _with(figure: ModuleType, **given: object) -> Drawing:
    return Drawing(partial(figure.draw, **given), partial(figure.table, **given))
