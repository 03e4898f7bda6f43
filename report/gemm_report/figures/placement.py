"""Where labels go: a column beside the plot, each label as near as possible to what it names."""

from collections.abc import Sequence


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
