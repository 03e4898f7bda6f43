"""Where labels go: a column beside the plot, each label as near as possible to what it names."""

from collections.abc import Sequence

_STEP = 6.0
_AIR = 4.0


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions in [low, high], at least `gap` apart and in the order of `wanted`.

    Of all such positions these have the least sum of squared distances to `wanted`. After
    subtracting the room that the labels below need, "apart" becomes "not descending": isotonic
    regression, which pools neighbours that want the same place.
    """
    room = high - low - gap * (len(wanted) - 1)
    if room < 0:
        raise ValueError(f"{len(wanted)} labels need {-room:.1f} more than there is")
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    pools: list[tuple[float, int]] = []  # mean, members
    for rank, i in enumerate(order):
        mean, members = wanted[i] - rank * gap, 1
        while pools and pools[-1][0] >= mean:
            below, count = pools.pop()
            mean = (mean * members + below * count) / (members + count)
            members += count
        pools.append((mean, members))
    squeezed = [min(max(mean, low), low + room) for mean, members in pools for _ in range(members)]
    places = [0.0] * len(wanted)
    for rank, i in enumerate(order):
        places[i] = squeezed[rank] + rank * gap
    return places


def freest(
    length: float,
    span: tuple[float, float],
    side: tuple[float, float],
    obstacles: Sequence[tuple[float, float, float]],
) -> float:
    """Where text of some length along a line hides least; of equal places the first.

    It lies in a strip beside the line, from one distance to another. An obstacle is a place along
    the line, a distance from it, and how much it would be missed.
    """
    (low, high), (near, far) = span, side
    steps = max(1, int((high - length - low) / _STEP) + 1)

    def hidden(start: float) -> float:
        return sum(
            weight
            for along, away, weight in obstacles
            if start - _AIR <= along <= start + length + _AIR and near - _AIR <= away <= far + _AIR
        )

    return min((low + i * _STEP for i in range(steps)), key=hidden)


def lanes(spans: Sequence[tuple[float, float, float]], apart: float) -> list[int]:
    """A lane for each (x, low, high), so that what lies in one lane at one x is `apart`."""
    found = [0] * len(spans)
    taken: list[tuple[float, float, float, int]] = []
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        x, low, high = spans[i]
        busy = {
            lane
            for other, bottom, top, lane in taken
            if abs(other - x) < apart and low < top + apart and bottom < high + apart
        }
        found[i] = next(lane for lane in range(len(spans)) if lane not in busy)
        taken.append((x, low, high, found[i]))
    return found
