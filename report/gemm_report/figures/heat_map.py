"""A map in shades of blue, whose cells are for the caller to write into."""

from collections.abc import Sequence

from matplotlib.axes import Axes


def heat_map(
    axes: Axes,
    shades: Sequence[Sequence[float]],
    limits: tuple[float, float],
    x: tuple[str, Sequence[object]],
    y: tuple[str, Sequence[object]],
) -> None:
    """A line of `shades` for each value of y from the top; NaN stays white."""
    low, high = limits
    axes.imshow(shades, cmap="Blues", vmin=low, vmax=high, aspect="auto", zorder=1)
    axes.set(xlabel=x[0], ylabel=y[0])
    axes.set_xticks(range(len(x[1])), map(str, x[1]))
    axes.set_yticks(range(len(y[1])), map(str, y[1]))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
