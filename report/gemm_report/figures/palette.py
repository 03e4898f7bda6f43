"""How a kernel looks: its colour is the same in every figure, its variants differ in the marker.

Peers have the colours of the rungs again, but thin marks, short dashes and hatched bars."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

from gemm_report.ladder.rows import natural
from gemm_report.record import Kernel, Part, Record

Line = str | tuple[float, tuple[float, ...]]

STYLE = Path(__file__).with_name("style.mplstyle")

LIBRARY_COLORS = ("#000000", "#606060", "#c4c4c4")
LIBRARY_LINE = "--"
# The solid line first; the others tell kernels apart when there are more of them than colours.
LINES = ("-", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
# By which the colours of a lap are turned: so the rungs that every precision has differ.
_TURN = 2
PEER_LINE = (0, (1.5, 1.5))
# Without a face: no kernel of ours has such a mark.
PEER_MARKERS = ("x", "+", "1", "2", "3", "4")
VARIANT_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")


@dataclass(frozen=True)
class Look:
    """Of one variant of a kernel."""

    color: str
    line: Line
    marker: str

    @property
    def is_peer(self) -> bool:
        """Whether it is what a user would pick instead."""
        return self.line == PEER_LINE

    @property
    def bar(self) -> dict[str, Any]:
        """Of its bar: hatched for a peer."""
        if not self.is_peer:
            return {"color": self.color}
        return {"facecolor": "white", "edgecolor": self.color, "hatch": "/////", "linewidth": 0.8}


def looks(records: Iterable[Record]) -> dict[str, Look]:
    """The look of every label in `records`."""
    records = list(records)
    kernels = {kernel.name: kernel for record in records for kernel in record.kernels}
    labels: dict[str, set[tuple[bool, tuple[str | int, ...], str]]] = {}
    for record in records:
        for row in (row for row in record.rows if row.part is Part.LADDER):
            # Other layouts come last, so that nn looks the same without them.
            labels.setdefault(row.kernel, set()).add(
                (row.layout != "nn", natural(row.label), row.label)
            )
            # A damaged list of kernels must not cost the figure.
            kernels.setdefault(row.kernel, Kernel(row.kernel, row.family, 0, ""))
    return {
        label: Look(color, line, markers[i % len(markers)])
        for name, (color, line) in _colors_and_lines(list(kernels.values())).items()
        for markers in [PEER_MARKERS if line == PEER_LINE else VARIANT_MARKERS]
        for i, (_, _, label) in enumerate(sorted(labels.get(name, ())))
    }


def colors() -> list[str]:
    """Those that kernels of ours have, each as #0072B2."""
    cycle = matplotlib.rc_params_from_file(STYLE, use_default_template=False)["axes.prop_cycle"]
    return cycle.by_key()["color"]


def _colors_and_lines(kernels: list[Kernel]) -> dict[str, tuple[str, Line]]:
    """By rung alone: a kernel looks the same in a record that holds others beside it."""
    cycle = colors()
    taken: set[tuple[int, int]] = set()
    libraries, peers = 0, set[int]()
    result: dict[str, tuple[str, Line]] = {}
    for kernel in sorted(kernels, key=lambda kernel: (kernel.rung, kernel.name)):
        if kernel.family == "library":
            result[kernel.name] = LIBRARY_COLORS[libraries % len(LIBRARY_COLORS)], LIBRARY_LINE
            libraries += 1
            continue
        if kernel.family == "peer":
            # In old records each has a rung of its own, today all have 0.
            own = kernel.rung % len(cycle)
            place = next((i for i in (own, *range(len(cycle))) if i not in peers), own)
            peers.add(place)
            result[kernel.name] = cycle[place], PEER_LINE
            continue
        lap = kernel.rung // len(cycle)
        slot = (kernel.rung + _TURN * lap) % len(cycle), lap % len(LINES)
        # Two on one rung, which only records of other people's kernels have.
        free = [(s, line) for line in range(len(LINES)) for s in range(len(cycle))]
        if slot in taken:
            slot = next((place for place in free if place not in taken), slot)
        taken.add(slot)
        result[kernel.name] = cycle[slot[0]], LINES[slot[1]]
    return result
