"""Figures of matplotlib inside a page: several of them on one, in light and in dark."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from gemm_report.site.markup import Html, joined, tag, visible
from gemm_report.writing.names import precision_name
from gemm_report.writing.quantity import significant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_XLINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_COLOR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
# Places are in points: a tenth is more than anybody sees.
_PLACES = frozenset({"d", "x", "y", "transform", "points"})
_BEYOND_TENTHS = re.compile(r"(?<=\.\d)\d+")
# White paper turns into that of page.css, black ink into its ink.
_DARK_PAPER, _DARK_INK = (0x1B, 0x1E, 0x21), (0xE4, 0xE6, 0xE8)
# What WCAG 2.2 asks of graphics.
_CONTRAST = 3.0
_TITLES = {
    "headline": "Fastest kernel of each precision",
    "ladder": "Optimization ladder",
    "ladder_roofline": "Ladder on the roofline",
    "of_library": "Relative to library",
    "distribution": "Sample spread",
}

_Channels = tuple[int, int, int]
# A mark's place in points from the upper left, and what it shows.
Spot = tuple[float, float, str]


@dataclass(frozen=True)
class Picture:
    """A figure, stored next to the page as <path>.svg, .png and .csv.

    `palette` has the colours of its marks, #0072b2: they are readable on dark paper too.
    """

    path: str
    caption: str
    svg: str
    palette: frozenset[str] = frozenset()
    spots: Sequence[Spot] = ()

    @property
    def name(self) -> str:
        """Of its place on the page."""
        return self.path.replace("/", "-")

    @property
    def title(self) -> str:
        """ladder_roofline_bf16 is "Ladder on the roofline, BF16"."""
        *_, name = self.path.split("/")
        kind, _, last = name.rpartition("_")
        if re.search(r"\d", last):
            return f"{_title(kind)}, {precision_name(last)}"
        return _title(name)


def _title(name: str) -> str:
    return _TITLES.get(name, name.replace("_", " ").capitalize())


def figure(picture: Picture) -> Html:
    """The figure with its caption, which links its data."""
    links = (tag("a", end.upper(), href=f"{picture.path}.{end}") for end in ("csv", "png", "svg"))
    caption = tag("figcaption", picture.caption, " ", tag("span", joined(links, " · ")))
    box = tag("div", inline(picture), class_="wide", data_name=picture.title)
    return tag("figure", box, caption, class_="figure")


def spots(drawn: "Figure") -> list[Spot]:
    """The marks of the lines that have a name, with their values."""
    found = []
    scale, height = 72 / drawn.dpi, drawn.bbox.height
    for axes in drawn.axes:
        for line in axes.lines:
            label = str(line.get_label())
            if label.startswith("_") or line.get_marker() in ("None", None, ""):
                continue
            for (x, y), place in zip(
                line.get_xydata(), axes.transData.transform(line.get_xydata()), strict=True
            ):
                said = f"{label}: {significant(y)} {axes.get_ylabel()} at {significant(x)}"
                found.append((place[0] * scale, (height - place[1]) * scale, said))
    return found


def inline(picture: Picture) -> Html:
    """An SVG of matplotlib as an element of a page: its ids are its own, its text stays.

    Its style sheet, which would hold for the whole page, and its metadata are left out. Where all
    its colours are greys or of `palette`, the greys turn in the dark. Another figure, such as a map
    in a scale of colours, keeps the white paper that its texts were made for.
    """
    root, prefix = ElementTree.fromstring(visible(picture.svg)), f"{picture.name}-"
    used = {found for element in root.iter() for found in _references(element)}
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
    turns = _turns(root, picture.palette)
    for element in root.iter() if turns else ():
        if style := element.get("style"):
            element.set("style", _COLOR.sub(lambda found: _in_both(found[0]), style))
    root.insert(0, _shared_styles(root, prefix))
    root.set("class", "picture" if turns else "picture paper")
    root.set("role", "img")
    root.set("aria-label", f"{picture.title}: {picture.caption}")
    # What has no fill of its own is black.
    ink = _in_both("#000000") if turns else "#000000"
    root.set("style", f"--width: {root.get('width', '100%')}; fill: {ink}")
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


def _turns(root: ElementTree.Element, palette: frozenset[str]) -> bool:
    colors = {c.lower() for e in root.iter() for c in _COLOR.findall(e.get("style", ""))}
    is_map = any(element.tag == "image" for element in root.iter())
    return not is_map and all(_is_grey(color) or color in palette for color in colors)


def _is_grey(color: str) -> bool:
    return color[1:3] == color[3:5] == color[5:7]


def _in_both(color: str) -> str:
    """A colour in light and in dark.

    A grey is as far from the ink as it was. Others stay, with some white where they need it.
    """
    channels = int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
    if _is_grey(color):
        turned = _mixed(_DARK_INK, _DARK_PAPER, channels[0] / 255)
    else:
        whiter = (_mixed(channels, (255, 255, 255), share / 20) for share in range(21))
        least = _CONTRAST * (_luminance(_DARK_PAPER) + 0.05)
        turned = next(each for each in whiter if _luminance(each) + 0.05 >= least)
    if turned == channels:
        return color
    return f"light-dark({color}, #{''.join(f'{value:02x}' for value in turned)})"


def _mixed(one: _Channels, other: _Channels, share: float) -> _Channels:
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _luminance(color: _Channels) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    shares = (channel / 255 for channel in color)
    linear = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return sum(w * part for w, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _references(element: ElementTree.Element) -> list[str]:
    targets = [value for key in (_XLINK, "href") if (value := element.get(key, "")).startswith("#")]
    found = [target[1:] for target in targets]
    return found + [name for value in element.attrib.values() for name in _REFERENCE.findall(value)]


def _local(name: str) -> str:
    return name.rpartition("}")[2]
