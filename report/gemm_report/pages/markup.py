"""Markup in which a text can only ever be a text.

Kernels and devices are named by whoever made the record: what is not `Html` is escaped on its way
into an element, so that forgetting it shows as visible tags and never as elements.
"""

import html as standard_html
from collections.abc import Iterable
from functools import lru_cache

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_UNKNOWN = 0xFFFD

# A page cannot hold these, or they turn the text that follows around: they are made visible.
_VISIBLE = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), _UNKNOWN),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], _UNKNOWN),
    **dict.fromkeys(range(0xD800, 0xE000), _UNKNOWN),
    **dict.fromkeys((0xFFFE, 0xFFFF), _UNKNOWN),
}


class Html(str):
    """Markup made by this package. Adding a plain text to it gives a plain text again."""

    __slots__ = ()


def visible(text: str) -> str:
    """The text with its control characters as signs that can be seen, ␛ for escape."""
    return text.translate(_VISIBLE)


def html(content: str) -> Html:
    """Markup as it is, and any other text escaped."""
    return content if isinstance(content, Html) else _escaped(content)


@lru_cache(maxsize=4096)  # hundreds of pages have much the same in their tables
def _escaped(content: str) -> Html:
    return Html(standard_html.escape(visible(content), quote=True))


def joined(parts: Iterable[str], between: str = "") -> Html:
    """One after the other."""
    return Html(html(between).join(map(html, parts)))


def tag(name: str, /, *content: str, **attributes: str | float | bool | None) -> Html:
    """An element: `tag("td", "a < b", class_="n", data_value=1.5)`.

    In names of attributes `_` stands for `-`, and one at the end is dropped. True gives an
    attribute without a value; None and False give none.
    """
    written = name
    for key, value in attributes.items():
        if value is not None and value is not False:
            written += f" {key.removesuffix('_').replace('_', '-')}"
            written += "" if value is True else f'="{html(str(value))}"'
    return Html(f"<{written}>" if name in _VOID else f"<{written}>{joined(content)}</{name}>")
