"""Tables that sort and filter in the browser, and are plain tables where there is no JavaScript."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gemm_report.pages.markup import Html, tag, visible


@dataclass(frozen=True)
class Column:
    """A heading; `hint` is shown on hovering, `filtered` gives it a list to choose from."""

    head: str
    is_number: bool = False
    hint: str | None = None
    filtered: bool = False


@dataclass(frozen=True)
class Cell:
    """What a cell shows; by what it is sorted and chosen if that is not its text.

    A number column sorts by `value`: without one the row comes last, whichever the direction.
    `bar` is a share of the cell's width.
    """

    content: str
    value: float | None = None
    choices: tuple[str, ...] | None = None
    bar: float | None = None


@dataclass(frozen=True)
class Line:
    """A row; with `details`, `#anchor` is a link to it that unfolds them."""

    cells: Sequence[Cell | str]
    details: Html | None = None
    anchor: str | None = None
    tone: str | None = None


def table(
    columns: Sequence[Column | str],
    lines: Sequence[Line | Sequence[Cell | str]],
    name: str,
    tools: bool = True,
) -> Html:
    """The table with, if `tools`, its filters. `name` says what its rows are, in the plural."""
    columns = [Column(each) if isinstance(each, str) else each for each in columns]
    lines = [each if isinstance(each, Line) else Line(each) for each in lines]
    whole = [[Cell(c) if isinstance(c, str) else c for c in line.cells] for line in lines]
    lines = [replace(line, cells=cells) for line, cells in zip(lines, whole, strict=True)]
    head = tag("thead", tag("tr", *(_head(column) for column in columns)))
    bodies = (_body(line, columns) for line in lines)
    grid = tag("div", tag("table", head, *bodies, aria_label=name), class_="wide", data_name=name)
    return tag("div", *([_tools(columns, lines, name)] if tools else []), grid, class_="sortable")


def _head(column: Column) -> Html:
    kind = "n" if column.is_number else None
    return tag("th", column.head, scope="col", class_=kind, title=column.hint)


def _body(line: Line, columns: Sequence[Column]) -> Html:
    cells = []
    for cell, column in zip(line.cells, columns, strict=True):
        bar = None if cell.bar is None else f"--bar:{100 * min(cell.bar, 1):.0f}%"
        kind = "n" if column.is_number else None
        cells.append(tag("td", cell.content, class_=kind, style=bar, **_keys(cell)))
    unfolded = Html("")
    if line.details is not None:
        first = line.cells[0]
        link = tag("a", first.content, href=f"#{line.anchor}")
        cells[0] = tag("th", link, scope="row", **_keys(first))
        unfolded = tag("tr", tag("td", line.details, colspan=len(columns)), class_="details")
    # One body a row: what it unfolds to stays with it, however the rows are ordered.
    return tag("tbody", tag("tr", *cells), unfolded, id=line.anchor, class_=line.tone)


def _keys(cell: Cell) -> dict[str, str | None]:
    choices = cell.choices and json.dumps([visible(choice) for choice in cell.choices])
    value = None if cell.value is None else f"{cell.value:.6g}"
    return {"data_value": value, "data_choices": choices}


def _tools(columns: Sequence[Column], lines: Sequence[Line], name: str) -> Html:
    search = tag(
        "input", type="search", name="search", placeholder="Search", aria_label=f"search {name}"
    )
    lists = [_choice(i, columns, lines) for i, column in enumerate(columns) if column.filtered]
    count = tag("output", f"{len(lines)} {name}", data_name=name, aria_live="polite")
    reset = tag("button", "Clear", type="button", class_="clear", disabled=True)
    return tag("div", search, *lists, reset, count, class_="tools js-only", role="search")


def _choice(index: int, columns: Sequence[Column], lines: Sequence[Line]) -> Html:
    head = columns[index].head
    cells = [line.cells[index] for line in lines]
    counts = Counter(
        choice
        for cell in cells
        for choice in ((cell.content,) if cell.choices is None else cell.choices)
    )
    options = [tag("option", f"{head}: all", value="")]
    options += [tag("option", f"{text} ({n})", value=text) for text, n in counts.items()]
    return tag("select", *options, name=head, data_column=index, aria_label=head)
