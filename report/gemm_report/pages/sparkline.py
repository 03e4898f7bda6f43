"""The samples of a row as a line of a few pixels, in the order in which they were taken."""

from collections.abc import Sequence
from itertools import pairwise

from gemm_report.pages.markup import Html, tag
from gemm_report.record import Seconds

_HEIGHT, _EDGE = 48, 2


def sparkline(samples: Sequence[float], seconds: Seconds) -> Html:
    """From the shortest sample (below) to the longest, with median and quartiles behind it."""
    low, high = min(samples), max(samples)

    def y(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * min(max(share, 0), 1))

    width, top = max(len(samples) - 1, 1), y(seconds.q3)
    heights = [y(sample) for sample in samples]
    steps = (f"1 {b - a}" for a, b in pairwise(heights))
    line = f"M0 {heights[0]}l{' '.join(steps) or f'{width} 0'}".replace(" -", "-")
    box = tag("rect", y=top, width=width, height=y(seconds.q1) - top)
    paths = (tag("path", d=each) for each in (f"M0 {y(seconds.median)}h{width}", line))
    looks = {"viewBox": f"0 0 {width} {_HEIGHT}", "preserveAspectRatio": "none"}
    return tag("svg", box, *paths, class_="sparkline", **looks, aria_hidden="true")
