"""The map of a fleet: a line for each node, a cell for each of its GPUs."""

from pathlib import Path
from typing import IO

import matplotlib.style
from matplotlib.figure import Figure

from gemm_report.figures.heat_map import Cell, HeatMap, draw_map
from gemm_report.figures.palette import STYLE
from gemm_report.fleet.judging import Fleet
from gemm_report.fleet.reading import BAD, state_of

_DARKEST = 0.1  # a loss of this and more
_MOST_NODES = 200  # a picture has 65,536 pixels at most


def write_map(fleet: Fleet, to: Path | IO[str], form: str = "png") -> None:
    """The worst case of each GPU against the others; bad GPUs are framed."""
    changes: dict[str, float] = {}
    for (key, _), worst in fleet.changes().items():
        changes[key] = min(worst, changes.get(key, worst))
    nodes = list(dict.fromkeys(gpu.node for gpu in fleet.gpus))
    title = f"{len(fleet.gpus)} GPUs of {len(nodes)} node{'s' if len(nodes) > 1 else ''}"
    if len(nodes) > _MOST_NODES:
        bad = {gpu.node for gpu in fleet.gpus if state_of(gpu) in BAD}
        nodes = sorted(sorted(nodes, key=lambda node: node not in bad)[:_MOST_NODES])
        title += f", {_MOST_NODES} of them shown, those with a bad GPU first"
    places = dict.fromkeys(nodes, 0)
    cells: dict[tuple[object, object], Cell] = {}
    for gpu in fleet.gpus:
        if gpu.node not in places:
            continue
        change, state = changes.get(gpu.key), state_of(gpu)
        has_rate = state not in ("wrong", "faulty", "missing")
        shown = f"{100 * change:+.1f} %" if change is not None and has_rate else state
        shade = 0.0 if change is None else min(1.0, max(0.0, -change / _DARKEST))
        cells[gpu.node, places[gpu.node]] = Cell(shade, [shown], state in BAD)
        places[gpu.node] += 1
    subtitle = "Slowest case against the median of the other GPUs; framed: bad. GPUs by PCI bus."
    columns = list(range(max(places.values())))
    drawn = HeatMap(title, subtitle, ("GPU of the node", columns), ("node", nodes), cells)
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=drawn.size, layout="constrained")
        draw_map(figure.subplots(), drawn)
        figure.savefig(to, format=form, metadata={"Date" if form == "svg" else "Software": None})
