"""Figures of matplotlib inside a page: several of them on one, in light and in dark."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from matplotlib.figure import Figure

from gemm_report.pages.markup import Html, joined, tag, visible
from gemm_report.text import precision_name, significant

_XLINK = "{http://www.w3.org/1999/xlink}href"
# At the end of a name; every precision has a digit.
_OF_PRECISION = re.compile(r"_([^_/]*\d[^_/]*)$")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
# Places are in points: a tenth is more than anybody sees.
_PLACES = frozenset({"d", "x", "y", "transform", "points"})
_BEYOND_TENTHS = re.compile(r"(?<=\.\d)\d+")
_TITLES = {
    "headline": "Overview",
    "ladder": "Optimization ladder",
    "ladder_roofline": "Ladder on the roofline",
    "of_library": "Relative to library",
    "ratios": "Relative to library, all shapes",
    "distribution": "Sample spread",
}

# A mark's place in points from the upper left, and what it shows.
Spot = tuple[float, float, str]


@dataclass(frozen=True)
class Picture:
    """A figure, stored next to the page as <path>.svg, .png and .csv."""

    path: str
    caption: str
    svg: str
    spots: Sequence[Spot] = ()

    @property
    def name(self) -> str:
        """Of its place on the page."""
        return self.path.replace("/", "-")

    @property
    def kind(self) -> str:
        """ladder_roofline of ladder_roofline_bf16, and throughput of bf16/throughput."""
        return _OF_PRECISION.sub("", self.path.rpartition("/")[2])

    @property
    def title(self) -> str:
        """ladder_roofline_bf16 is "Ladder on the roofline, BF16"."""
        title = _TITLES.get(self.kind, self.kind.replace("_", " ").capitalize())
        precision = _OF_PRECISION.search(self.path)
        return f"{title}, {precision_name(precision[1])}" if precision else title


def figure(picture: Picture) -> Html:
    """The figure with its caption, which links its data."""
    links = (tag("a", end.upper(), href=f"{picture.path}.{end}") for end in ("csv", "png", "svg"))
    caption = tag("figcaption", picture.caption, " ", tag("span", joined(links, " · ")))
    box = tag("div", inline(picture), class_="wide", data_name=picture.title)
    return tag("figure", box, caption, class_="figure")


def spots(drawn: Figure) -> list[Spot]:
    """The marks of the lines that have a name, with their values."""
    found = []
    scale, height = 72 / drawn.dpi, drawn.bbox.height
    for axes in drawn.axes:
        for line in axes.lines:
            label = str(line.get_label())
            if label.startswith("_") or line.get_marker() in ("None", None, ""):
                continue
            unit, data = axes.get_ylabel() or axes.get_title(), line.get_xydata()
            for (x, y), place in zip(data, axes.transData.transform(data), strict=True):
                said = f"{', '.join(filter(None, (label, unit)))}: {significant(y)} at "
                said += significant(x).removesuffix(".00")
                found.append((place[0] * scale, (height - place[1]) * scale, said))
    return found


def inline(picture: Picture) -> Html:
    """An SVG of matplotlib as an element of a page: its ids are its own, its text stays.

    Its style sheet, which would hold for the whole page, and its metadata are left out. In the dark
    page.css turns its lightness around, but not that of a map in a scale of colours.
    """
    root, prefix = ElementTree.fromstring(visible(picture.svg)), f"{picture.name}-"
    targets = {each.get(key, "")[1:] for each in root.iter() for key in (_XLINK, "href")}
    values = (value for each in root.iter() for value in each.attrib.values())
    used = targets.union(*(_REFERENCE.findall(value) for value in values))
    for element in list(root.iter()):
        for child in list(element):
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
    for element in root.iter():
        element.tag, element.tail = _local(element.tag), None
        if element.tag == "g":
            element.text = None  # line breaks
        attributes = dict(element.attrib)
        element.attrib.clear()
        for key, value in attributes.items():
            if key == "id":
                if value in used:
                    element.set("id", prefix + value)
            elif key in (_XLINK, "href"):
                element.set("href", f"#{prefix}{value[1:]}" if value.startswith("#") else value)
            elif key in _PLACES and not value.startswith("rotate(-0 "):
                element.set(key, _BEYOND_TENTHS.sub("", " ".join(value.split())))
            elif key != "transform":
                element.set(_local(key), _REFERENCE.sub(rf"url(#{prefix}\1)", value))
    root.insert(0, _shared_styles(root, prefix))
    is_map = any(element.tag == "image" for element in root.iter())
    root.set("class", "picture paper" if is_map else "picture")
    root.set("role", "img")
    root.set("aria-label", f"{picture.title}: {picture.caption}")
    root.set("style", f"--width: {root.get('width', '100%')}")
    for x, y, said in picture.spots:
        spot = ElementTree.SubElement(root, "circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="6")
        ElementTree.SubElement(spot, "title").text = visible(said)
    return Html(ElementTree.tostring(root, encoding="unicode"))


def _shared_styles(root: ElementTree.Element, prefix: str) -> ElementTree.Element:
    """A sheet of the styles that several elements have: a page gets shorter by a quarter."""
    styled = [element for element in root.iter() if "style" in element.attrib]
    several = [s for s, n in Counter(e.attrib["style"] for e in styled).items() if n > 1]
    classes = {style: f"{prefix}s{i}" for i, style in enumerate(several)}
    for element in styled:
        if name := classes.get(element.attrib["style"]):
            del element.attrib["style"]
            element.set("class", name)
    sheet = ElementTree.Element("style")
    sheet.text = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    return sheet


def _local(name: str) -> str:
    return name.rpartition("}")[2]
