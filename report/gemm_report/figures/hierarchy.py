"""The hierarchical roofline: rows under the bandwidth of shared memory, of the L2 and of DRAM.

A panel for each memory, with one axis of rates: a kernel is one level line through all of them.
Bytes are modelled; where ncu counted them, a hollow mark stands next to the filled one.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gemm_report.figures.page import Label, column_height, label_column, sheet
from gemm_report.figures.palette import LIGHT, Colors, Look, looks
from gemm_report.figures.roofs import ROOF_COLOR, draw_roofs, set_log_axes
from gemm_report.notes import mark, notes
from gemm_report.record import Ceiling, Record, Row, Traffic, rate
from gemm_report.rows import arithmetic_roof, drawn_rows, facts, libraries, named, rungs
from gemm_report.text import (
    operations,
    precision_name,
    prefix_for,
    quantity,
    roof_name,
    scaled,
    significant,
)

_HEIGHT = 4.2
# Of a ladder; with fewer rungs the roofline shows the same.
_RUNGS = 6
_MOST = 40

# The panels from the left, by names of MEMORIES.
SHARED, L2, DRAM = "shared memory", "L2", "DRAM"
_TITLES = {SHARED: "Shared memory", L2: "L2", DRAM: "DRAM"}
_WHY_ABOVE = {SHARED: "the model counts too much", L2: "L1 hits are counted as L2 traffic"}
# Of the bytes of the L2: a kernel that sends less through shared memory multiplies elsewhere.
_LEAST_SHARED = 0.01


def _intensity(row: Row, memory: str, traffic: Traffic | None) -> float | None:
    """FLOP/byte; None where the bytes are not known, or next to nothing is moved."""
    if traffic is None:
        return None
    moved, least = traffic.levels[memory], _LEAST_SHARED * traffic.l2_bytes
    return row.flop / moved if moved > (least if memory == SHARED else 0) else None


def modelled(row: Row, memory: str) -> float | None:
    """FLOP/byte; of DRAM, where each matrix is moved once, even without a model."""
    return row.flop_per_byte if memory == DRAM else _intensity(row, memory, row.traffic)


def counted(row: Row, memory: str) -> float | None:
    """FLOP/byte by what ncu counted."""
    return _intensity(row, memory, row.counted)


def chosen(record: Record, pattern: str | None) -> list[Row]:
    """Rows of one precision whose names match; without a pattern those with counted bytes.

    Where none were counted, the rungs of the FP32 ladder and the fastest library.
    """
    rows = drawn_rows(record)
    if pattern is None:
        found = [row for row in rows if row.counted] or _ladder(record)
    else:
        found = named(record, rows, "--hierarchy", pattern)
    return [row for row in found if row.precision == found[0].precision][:_MOST]


def _ladder(record: Record) -> list[Row]:
    found = [rung.row for rung in rungs(record, "f32")]
    if sum(1 for row in found if row.traffic) < _RUNGS:
        return []
    return found + sorted(libraries(record, "f32"), key=rate)[-1:]


def _memories(rows: Sequence[Row]) -> list[str]:
    """Those that the rows use."""
    return [each for each in _TITLES if any(modelled(row, each) for row in rows)]


def table(record: Record, pattern: str | None = None) -> list[dict[str, object]]:
    """The plotted data: each row in each of the memories."""
    rows = chosen(record, pattern)
    return [
        facts(row, "precision", "size", "flop_per_second", memory=_TITLES[memory], bytes=by)
        | {"flop_per_byte": intensity, "roof": roof and roof.name}
        | {"roof_bytes_per_second": roof and roof.bytes_per_second}
        for memory in _memories(rows)
        for roof in [record.bandwidth(memory)]
        for row in rows
        for by, intensity in (
            ("moved once" if memory == DRAM else "modelled", modelled(row, memory)),
            ("counted by ncu", counted(row, memory)),
        )
        if intensity
    ]


def draw(record: Record, colors: Colors = LIGHT, pattern: str | None = None) -> Figure:
    """Kernels under the bandwidth of each memory, and under the peak of the unit that computes."""
    rows = chosen(record, pattern)
    its, precision, sizes = looks(rows, colors), rows[0].precision, {row.size for row in rows}
    units = [u for u in dict.fromkeys(arithmetic_roof(record, row) for row in rows) if u]
    peaks = [unit.flop_per_second or 0 for unit in units]
    prefix = prefix_for([*map(rate, rows), *peaks])
    labels = []
    for row in rows:
        look, y = its[row.label], scaled(rate(row), prefix)
        name = f"{row.label} {row.size}" if len(sizes) > 1 else row.label
        said = f"{name}  {significant(y)}{mark(row)}"
        labels.append(Label(said, y, look.color, look.stands_out))
    for unit, peak in zip(units, peaks, strict=True):
        y = scaled(peak, prefix)
        labels.append(Label(f"{roof_name(unit.name)}  {significant(y)}", y, ROOF_COLOR, True))
    subject = f"{precision_name(precision)}{f' at {rows[0].size}' if len(sizes) == 1 else ''}, "
    subject += f"{record.device.name}: each kernel under the bandwidth of each memory"
    tall, memories = 1.2 + max(_HEIGHT, column_height(labels)), _memories(rows)
    remarks, width = _notes(record, rows, memories), 8.6
    figure = sheet(record, colors, "Hierarchical roofline", subject, remarks, tall, width)
    plots = figure.subplots(1, len(memories), squeeze=False, sharey=True)[0]
    for axes, memory in zip(plots, memories, strict=True):
        _draw_panel(axes, record.bandwidth(memory), memory, rows, its, units, prefix)
    plots[0].set_ylabel(prefix + operations(precision))
    label_column(plots[-1], labels, colors.ink)
    return figure


def _draw_panel(
    axes: Axes,
    roof: Ceiling | None,
    memory: str,
    rows: Sequence[Row],
    its: Mapping[str, Look],
    units: Sequence[Ceiling],
    prefix: str,
) -> None:
    scale, slope = 1 / scaled(1, prefix), (roof.bytes_per_second or 0) if roof else 0
    rates = [*map(rate, rows), *(unit.flop_per_second or 0 for unit in units)]
    xs = [x for row in rows for x in (modelled(row, memory), counted(row, memory)) if x]
    speed = f"{quantity(slope, 'B/s')}, {roof.origin}" if roof else "not measured"
    axes.set_title(f"{_TITLES[memory]}\n{speed}", size=9.5)
    axes.set_xlabel(f"FLOP/byte, {'moved once' if memory == DRAM else 'modelled'}")
    set_log_axes(axes, [*xs, *([max(rates) / slope] if roof else [])], [r / scale for r in rates])
    axes.grid(axis="y", visible=False)
    draw_roofs(axes, units, [roof] if roof else [], scale)
    for row in rows:
        y, look = rate(row) / scale, its[row.label]
        axes.axhline(y, color=look.color, linewidth=0.6, alpha=0.3, zorder=1.2)
        marks: dict[str, Any] = {
            **{"label": row.label, "color": look.color, "marker": look.marker, "clip_on": False},
            "markersize": 6 if look.stands_out else 4.5,
            "zorder": 5 if look.stands_out else 4,
        }
        by_model, by_ncu = modelled(row, memory), counted(row, memory)
        if by_ncu:
            axes.plot([by_model or by_ncu, by_ncu], [y, y], color=look.color, linewidth=0.8)
            axes.plot(by_ncu, y, markerfacecolor="white", **marks)
        if by_model:
            axes.plot(by_model, y, **marks)


def _notes(record: Record, rows: Sequence[Row], memories: Sequence[str]) -> list[str]:
    remarks = ["Hollow: bytes counted by ncu."] if any(row.counted for row in rows) else []
    remarks += notes(rows)
    for memory, why in _WHY_ABOVE.items():
        roof = record.bandwidth(memory)
        slope = (roof.bytes_per_second or 0) if roof else math.inf
        above = [r.label for r in rows if (x := modelled(r, memory)) and rate(r) > x * slope]
        if above:
            names = ", ".join(dict.fromkeys(above))
            remarks.append(f"Above the {_TITLES[memory]} roof because {why}: {names}.")
    if without := [row.label for row in rows if not row.traffic]:
        remarks.append(f"No traffic model: {', '.join(dict.fromkeys(without))}.")
    if missing := [_TITLES[each] for each in memories if not record.bandwidth(each)]:
        remarks.append(f"Bandwidth not measured: {', '.join(missing)}.")
    return remarks
