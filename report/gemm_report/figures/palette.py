"""The colours of figures on light and on dark paper, and what stands out.

Readers with any kind of colour vision can tell apart what a figure tells apart (palette_test.py
simulates two).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gemm_report.record import Row, rate

STYLE = Path(__file__).with_name("style.mplstyle")


@dataclass(frozen=True)
class Colors:
    """By what they stand for; pages have them as variables of these names."""

    paper: str
    ink: str
    soft: str
    line: str
    track: str
    held: str  # a track up to the peak at the clock held
    ours: str
    middle: str  # between ours and a tie
    library: str
    worse: str
    tie: str
    other: str  # implementations by others

    @property
    def style(self) -> dict[str, Any]:
        """For matplotlib, on top of STYLE."""
        found = dict.fromkeys(
            ("figure.facecolor", "axes.facecolor", "savefig.facecolor"), self.paper
        )
        found |= {"text.color": self.ink, "hatch.color": self.held}
        found |= dict.fromkeys(("axes.edgecolor", "grid.color"), self.line)
        names = ("axes.labelcolor", "xtick.color", "ytick.color")
        return found | dict.fromkeys(names, self.soft)


LIGHT = Colors(
    paper="#ffffff",
    ink="#1b2126",
    soft="#59636d",
    line="#e1e5e9",
    track="#eef0f2",
    held="#d9dee3",
    ours="#0072b2",
    middle="#6aaed6",
    library="#111111",
    worse="#c25700",
    tie="#858d95",
    other="#a3573e",
)
DARK = Colors(
    paper="#0d1117",
    ink="#e6e9ec",
    soft="#9aa4ad",
    line="#2a3138",
    track="#1b2128",
    held="#2f3943",
    ours="#4aa8de",
    middle="#3f86b0",
    library="#f2f2f2",
    worse="#f08a3c",
    tie="#808991",
    other="#d08a70",
)
NAMES = tuple(asdict(LIGHT))


@dataclass(frozen=True)
class Look:
    """Of a kernel's line and mark."""

    color: str
    marker: str = "o"
    stands_out: bool = True


def looks(rows: Sequence[Row], colors: Colors) -> dict[str, Look]:
    """Of rows of one precision, one for each label: the fastest of ours and library stand out."""
    rest = Look(colors.tie, "o", False)
    found = {row.label: Look(colors.other, "x") if row.is_peer else rest for row in rows}
    for row, look in (
        (max((row for row in rows if row.is_ours), key=rate, default=None), Look(colors.ours)),
        (max((r for r in rows if r.is_library), key=rate, default=None), Look(colors.library, "s")),
    ):
        if row:
            found[row.label] = look
    return found
