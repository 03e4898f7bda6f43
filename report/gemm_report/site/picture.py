"""Figures of matplotlib inside a page: several of them on one, in light and in dark."""

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from gemm_report.site.markup import Html, joined, tag, visible

_XLINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_COLOR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
# Places are in points: a hundredth is more than anybody sees.
_PLACES = frozenset({"d", "x", "y", "transform", "points"})
_BEYOND_HUNDREDTHS = re.compile(r"(?<=\.\d\d)\d+")
# White paper turns into that of page.css, black ink into its ink.
_DARK_PAPER, _DARK_INK = (0x1B, 0x1E, 0x21), (0xE4, 0xE6, 0xE8)
# What WCAG 2.2 asks of graphics.
_CONTRAST = 3.0

_Channels = tuple[int, int, int]


@dataclass(frozen=True)
class Picture:
    """A figure that lies beside the page as <name>.svg, .png and .csv.

    `palette` has the colours of its marks, #0072b2: they are readable on dark paper too.
    """

    name: str
    caption: str
    svg: str
    palette: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """The name as people write it: ladder_roofline_bf16 is "Ladder roofline, bf16"."""
        *words, last = self.name.split("_")
        words, suffix = (words, f", {last}") if re.search(r"\d", last) else ([*words, last], "")
        return " ".join(words).capitalize() + suffix


def figure(picture: Picture) -> Html:
    """The figure with its caption, which links its data."""
    links = (tag("a", end.upper(), href=f"{picture.name}.{end}") for end in ("csv", "png", "svg"))
    caption = tag("figcaption", picture.caption, " ", tag("span", joined(links, " · ")))
    drawn = inline(picture.svg, f"{picture.name}-", picture.palette)
    box = tag("div", drawn, class_="wide", tabindex=0)
    return tag("figure", box, caption, class_="figure card")


def inline(svg: str, prefix: str, palette: frozenset[str] = frozenset()) -> Html:
    """An SVG of matplotlib as an element of a page: its ids begin with `prefix`, its text stays.

    Its style sheet, which would hold for the whole page, and its metadata are left out. Where all
    its colours are greys or of `palette`, the greys turn in the dark. Another figure, such as a map
    in a scale of colours, keeps the white paper that its texts were made for.
    """
    root = ElementTree.fromstring(visible(svg))
    used = {found for element in root.iter() for found in _references(element)}
    for element in list(root.iter()):
        for child in list(element):
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = dict(element.attrib)
        element.attrib.clear()
        for key, value in attributes.items():
            if key == "id":
                if value in used:
                    element.set("id", prefix + value)
            elif key in (_XLINK, "href"):
                element.set("href", f"#{prefix}{value[1:]}" if value.startswith("#") else value)
            elif key in _PLACES:
                element.set(key, _BEYOND_HUNDREDTHS.sub("", value))
            else:
                element.set(_local(key), _REFERENCE.sub(rf"url(#{prefix}\1)", value))
    turns = _turns(root, palette)
    for element in root.iter() if turns else ():
        if style := element.get("style"):
            element.set("style", _COLOR.sub(lambda found: _in_both(found[0]), style))
    root.set("class", "picture" if turns else "picture paper")
    # What has no fill of its own is black.
    ink = _in_both("#000000") if turns else "#000000"
    root.set("style", f"--width: {root.get('width', '100%')}; fill: {ink}")
    return Html(ElementTree.tostring(root, encoding="unicode"))


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
