"""Pages by Jinja: each is one file with its style and its script, which asks no network.

Kernels and devices are named by whoever made the record: a text in a template is escaped, so that
only what is `Html` can be an element. The templates are the files *.html beside this one; base.html
lists the classes that page.css knows.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gemm_report.figures.palette import DARK, LIGHT, NAMES
from gemm_report.text import visible

_TEMPLATES = Environment(
    loader=PackageLoader("gemm_report.pages", "."),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
    finalize=lambda value: visible(value) if type(value) is str else value,
)


Html = Markup


@dataclass(frozen=True)
class Column:
    """A hint shows when hovering, `filtered` gives it a list to choose from."""

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

    @property
    def chosen_by(self) -> tuple[str, ...]:
        """The entries of a list of choices that show it."""
        return (self.content,) if self.choices is None else self.choices


@dataclass(frozen=True)
class Line:
    """A row; with `details`, `#anchor` is a link to it that unfolds them."""

    cells: Sequence[Cell | str]
    details: Html | None = None
    anchor: str | None = None
    tone: str | None = None


def rendered(template: str, **given: object) -> Html:
    """A part of a page, or a page."""
    return Html(_TEMPLATES.get_template(f"{template}.html").render(given))


def table(
    columns: Sequence[Column | str],
    lines: Sequence[Line | Sequence[Cell | str]],
    name: str,
    tools: bool = True,
) -> Html:
    """Sorts and, with `tools`, filters. `name` says what its rows are, in the plural."""
    heads = [Column(each) if isinstance(each, str) else each for each in columns]
    rows = [each if isinstance(each, Line) else Line(each) for each in lines]
    whole = [[Cell(c) if isinstance(c, str) else c for c in row.cells] for row in rows]
    lists = [
        (i, column.head, Counter(choice for cells in whole for choice in cells[i].chosen_by))
        for i, column in enumerate(heads)
        if tools and column.filtered
    ]
    lines = [replace(row, cells=cells) for row, cells in zip(rows, whole, strict=True)]
    return rendered("table", columns=heads, lines=lines, name=name, tools=tools, lists=lists)


def document(title: str, body: str, template: str = "base", **given: object) -> str:
    """The whole page. `body` is markup (`Html`); a plain text is shown as it is."""
    style, script = (
        (files("gemm_report.pages") / f"page.{end}").read_text("utf-8") for end in ("css", "js")
    )
    # The browser itself refuses what the page must not do: load anything, or run another script.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    pairs = [(name, getattr(LIGHT, name), getattr(DARK, name)) for name in NAMES]
    colors = "".join(f"--{name}:light-dark({light},{dark});" for name, light, dark in pairs)
    style = f":root{{{colors}}}\n{style}"
    given |= {"style": Html(style), "script": Html(script), "digest": digest}
    return str(rendered(template, title=title, body=body, **given)) + "\n"


def chip(name: str, count: int, key: str, tone: str | None) -> Html:
    """A count that filters the table's column `key` by `name`; nothing of what is not counted."""
    if not count:
        return Html("")
    return tag("a", tag("strong", str(count)), f" {name}", href=f"#{key}={name}", class_=tone)


def joined(parts: Iterable[str], between: str = "") -> Html:
    """One after the other."""
    return escape(between).join(map(escape, parts))


def tag(name: str, /, *content: str, **attributes: str | float | bool | None) -> Html:
    """An element: `tag("td", "a < b", class_="n", data_value=1.5)`; None gives no attribute."""
    written = joined(
        Html(' {}="{}"').format(key.removesuffix("_").replace("_", "-"), visible(str(value)))
        for key, value in attributes.items()
        if value is not None
    )
    inside = joined(each if isinstance(each, Html) else visible(each) for each in content)
    return Html("<{0}{1}>{2}</{0}>").format(name, written, inside)
