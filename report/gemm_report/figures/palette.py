"""What stands out in a figure, and how: our fastest kernel, the fastest library, others.

The rest is grey. Every colour has a contrast of at least 3:1 against white and dark paper, and
readers with any kind of colour vision can tell them apart (palette_test.py simulates two).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemm_report.record import Row, rate

STYLE = Path(__file__).with_name("style.mplstyle")

OURS, OTHERS, LIBRARY, REST = "#0072B2", "#A3573E", "#000000", "#8A8A8A"
FRAME = "#D55E00"
# Of precisions, which differ in the marker too.
PRECISIONS = (OURS, FRAME, "#00806A", "#9B51E0", OTHERS, "#D0358F", "#6E7A00", "#0E7FA0")
INK, PALE, TRACK = "#333333", "#555555", "#ECECEC"


@dataclass(frozen=True)
class Look:
    """Of a kernel's line, mark and bar."""

    color: str = REST
    line: Any = "-"
    marker: str = "o"

    @property
    def stands_out(self) -> bool:
        """Whether it has a colour and a label."""
        return self.color != REST

    @property
    def bar(self) -> dict[str, Any]:
        """Of its bar: hatched for another implementation."""
        if self.color != OTHERS:
            return {"color": self.color}
        return {"facecolor": "white", "edgecolor": self.color, "hatch": "/////", "linewidth": 0.8}


_REST, _OURS = Look(), Look(OURS)
_LIBRARY, _OTHERS = Look(LIBRARY, "--", "s"), Look(OTHERS, (0, (1.5, 1.5)), "x")


def color_of(row: Row) -> str:
    """Of a row in a figure where every row has a colour."""
    return LIBRARY if row.is_library else OTHERS if row.is_peer else OURS


def looks(rows: Sequence[Row]) -> dict[str, Look]:
    """Of rows of one precision, one for each label."""
    found = {row.label: _OTHERS if row.is_peer else _REST for row in rows}
    for row, look in (
        (max((row for row in rows if row.is_ours), key=rate, default=None), _OURS),
        (max((row for row in rows if row.is_library), key=rate, default=None), _LIBRARY),
    ):
        if row:
            found[row.label] = look
    return found


def legend_text(*shown: dict[str, Look]) -> str:
    """What the colours of `shown` mean, in a sentence."""
    words = {
        _OURS: "Blue: our fastest kernel",
        _LIBRARY: "black: the fastest library",
        _OTHERS: "brown: other implementations",
        _REST: "grey: the other kernels",
    }
    used = {look for each in shown for look in each.values()}
    return "; ".join(text for look, text in words.items() if look in used) + "."
