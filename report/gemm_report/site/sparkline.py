"""The samples of a row as a line of a few pixels, in the order in which they were taken."""

from collections.abc import Sequence

from gemm_report.record import Seconds
from gemm_report.site.markup import Html, tag

_WIDTH, _HEIGHT = 320.0, 48.0
_EDGE = 2.0


def sparkline(samples: Sequence[float], seconds: Seconds) -> Html:
    """From the shortest sample (below) to the longest, with median and quartiles behind it."""
    low, high = min(samples), max(samples)

    def y(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * min(max(share, 0), 1), 1)

    def x(index: int) -> float:
        return round(_WIDTH * index / max(len(samples) - 1, 1), 1)

    middle, top = y(seconds.median), y(seconds.q3)
    points = [(x(i), y(sample)) for i, sample in enumerate(samples)]
    if len(points) == 1:
        points.append((_WIDTH, points[0][1]))
    return tag(
        "svg",
        tag("rect", x=0, y=top, width=_WIDTH, height=round(y(seconds.q1) - top, 1)),
        tag("line", x1=0, y1=middle, x2=_WIDTH, y2=middle),
        tag("polyline", points=" ".join(f"{a:g},{b:g}" for a, b in points)),
        class_="sparkline",
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
