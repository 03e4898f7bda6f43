"""Burst against steady state: what a device does in its first launches, and what it keeps up."""

from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gemm_report.figures.bars import Line, bars
from gemm_report.figures.page import legend_above
from gemm_report.figures.palette import PALE, color_of
from gemm_report.figures.versus import pairs, run_name, versus_notes
from gemm_report.record import Record, Row, rate
from gemm_report.rows import headlines
from gemm_report.text import percent, precision_name, prefix_for, scaled, significant

_MOST = 30
_MARKERS = {"burst": "|", "settled": "o"}


@dataclass(frozen=True)
class Case:
    """One row in both states."""

    burst: Row
    settled: Row

    @property
    def kept(self) -> float:
        """Share of the burst's rate that is left in steady state."""
        return rate(self.settled) / rate(self.burst)


def pairs_of(record: Record, versus: Record | None) -> list[Case]:
    """The rows that both have, if one record is of bursts and the other of steady state."""
    if versus is None or {record.method.state, versus.method.state} != {"burst", "settled"}:
        return []
    found = pairs(record, versus)
    if len(found) > _MOST:
        chosen = [row.identity for row in headlines([new for new, _ in found])]
        found = [(new, old) for new, old in found if new.identity in chosen]
    is_burst = record.method.state == "burst"
    return [Case(new, old) if is_burst else Case(old, new) for new, old in found]


def table(record: Record, versus: Record | None) -> list[dict[str, object]]:
    """The plotted data."""
    names = {n: n for n in ("flop_per_second", "sm_hz", "power_w")} | {"of_roof": "of_roof_nominal"}
    return [
        {"name": str(case.settled.identity), "kept": case.kept}
        | {f"burst_{key}": getattr(case.burst, name) for key, name in names.items()}
        | {f"settled_{key}": getattr(case.settled, name) for key, name in names.items()}
        for case in pairs_of(record, versus)
    ]


def draw(record: Record, versus: Record) -> Figure:
    """Throughput of each row in a burst (line) and in steady state (dot)."""
    cases = pairs_of(record, versus)
    prefix = prefix_for(rate(case.burst) for case in cases)
    unit = f"{prefix}FLOP/s"
    head = [f"burst {unit}", f"steady {unit}", "kept", "burst MHz", "steady MHz"]
    has_roofs = all(case.burst.of_roof_nominal and case.settled.of_roof_nominal for case in cases)
    runs = {str(each.method.state): each for each in (record, versus)}
    lines = [_line(case, prefix) for case in cases]
    title, remarks = "burst against steady state", versus_notes(record, versus)
    figure, (axes,) = bars(record, title, remarks, head, [lines], pitch=0.26, above=0.8)
    ends = [
        (100 * (case.burst.of_roof_nominal or 0), 100 * (case.settled.of_roof_nominal or 0))
        if has_roofs
        else (100.0, 100 * case.kept)
        for case in cases
    ]
    axes.set_xlim(0, max(100, 1.03 * max(max(pair) for pair in ends)))
    axes.set_xlabel("% of nominal peak" if has_roofs else "% of the rate in the burst")
    for y, (case, (burst, settled)) in enumerate(zip(cases, ends, strict=True)):
        looks: dict[str, Any] = {"markersize": 7, "color": color_of(case.settled), "zorder": 3}
        axes.plot([settled, burst], [y, y], color=PALE, linewidth=2, alpha=0.5, zorder=2)
        axes.plot(burst, y, marker=_MARKERS["burst"], **looks)
        axes.plot(settled, y, marker=_MARKERS["settled"], **looks)
    handles = [
        Line2D([], [], label=run_name(runs[state]), linestyle="none", marker=each, color=PALE)
        for state, each in _MARKERS.items()
    ]
    legend_above(axes, handles, columns=1, lines=1)
    return figure


def _line(case: Case, prefix: str) -> Line:
    row, both = case.settled, (case.burst, case.settled)
    rates = (significant(scaled(rate(each), prefix)) for each in both)
    clocks = (f"{each.sm_hz / 1e6:.0f}" if each.sm_hz else "-" for each in both)
    name = f"{row.label}  {precision_name(row.precision)}  {row.size}"
    return Line(name, (*rates, percent(case.kept), *clocks), bold=row.is_library)
