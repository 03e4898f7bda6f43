"""Figures of matplotlib inside a page, in light and in dark."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from markupsafe import escape
from matplotlib.figure import Figure

from gemm_report.figures.page import Sheet
from gemm_report.figures.palette import LIGHT
from gemm_report.figures.write import FORMATS, drawings, write_figure
from gemm_report.pages.render import Html
from gemm_report.record import Record
from gemm_report.text import precision_name, visible

# At the end of a name; every precision has a digit.
_OF_PRECISION = re.compile(r"_([^_/]*\d[^_/]*)$")
# A style sheet would hold for the whole page; metadata are of no use in it.
_HEAD = re.compile(
    r"^.*?(?=<svg)|<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", re.S
)
_ID = re.compile(r' id="([^"]*)"')
# Places are in points: a tenth is more than anybody sees.
_PLACES, _BEYOND_TENTHS = re.compile(r' (?:d|x|y|transform)="[^"]*'), re.compile(r"(\.\d)\d+")
_COLORS = {color: f"var(--{name})" for name, color in asdict(LIGHT).items()}
_TITLES = {
    "headline": "Overview",
    "ladder": "Optimization ladder",
    "sizes": "The fastest at each size",
}

# A mark's place in points from the upper left, and what it shows.
Spot = tuple[float, float, str]


@dataclass(frozen=True)
class Picture:
    """A figure, stored next to the page as <name>.svg, .png and .csv; its markup for the page."""

    name: str
    caption: str
    svg: Html

    @property
    def title(self) -> str:
        """ladder_bf16 is "Optimization ladder, BF16"."""
        kind, precision = _OF_PRECISION.sub("", self.name), _OF_PRECISION.search(self.name)
        title = _TITLES.get(kind, kind.replace("_", " ").capitalize())
        return f"{title}, {precision_name(precision[1])}" if precision else title


def write_pictures(record: Record, folder: Path, names: Iterable[str]) -> list[Picture]:
    """The figures of these names that the record has, written to the folder."""
    pictures, drawn = [], drawings(record)
    for name in filter(drawn.__contains__, names):
        paths = {end: folder / f"{name}.{end}" for end in FORMATS}
        marks = spots(write_figure(drawn[name], record, list(paths.values())))
        svg, caption = paths["svg"].read_text(encoding="utf-8"), drawn[name].caption
        pictures.append(Picture(name, caption, inline(name, caption, svg, marks)))
    return pictures


def spots(drawn: Figure) -> list[Spot]:
    """What a figure tells where a reader points."""
    scale, height = 72 / drawn.dpi, drawn.bbox.height
    found = []
    for axes, x, y, said in drawn.tips if isinstance(drawn, Sheet) else ():
        place = axes.transData.transform((x, y))
        found.append((float(place[0]) * scale, float(height - place[1]) * scale, said))
    return found


def inline(name: str, caption: str, svg: str, marks: Sequence[Spot] = ()) -> Html:
    """An SVG of matplotlib as an element of a page; its text stays text.

    Figures share the ids of equal parts, since matplotlib makes an id of what it stands for. Their
    colours become those of the page.
    """
    svg = _HEAD.sub("", visible(svg))
    used = set(re.findall(r"#([^\")]+)[\")]", svg))
    svg = _ID.sub(lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(
        r'( (?:d|x|y|transform)=")([^"]*)', lambda m: m[1] + _BEYOND_TENTHS.sub(r"\1", m[2]), svg
    )
    for color, variable in _COLORS.items():
        svg = svg.replace(color, variable)
    label = escape(f"{Picture(name, caption, Html()).title}: {caption}")
    svg = svg.replace("<svg ", f'<svg class="picture" role="img" aria-label="{label}" ', 1)
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7"><title>{escape(visible(said))}</title></circle>'
        for x, y, said in marks
    )
    return Html(svg.rstrip().removesuffix("</svg>") + circles + "</svg>")
