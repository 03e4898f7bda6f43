"""Burst against settled: what a card does in its first launches, and what it can keep up."""

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gemm_report.figures.bars.bars import Line, bars
from gemm_report.figures.page import ROOF_COLOR
from gemm_report.figures.palette import Look
from gemm_report.figures.roofline.versus import all_pairs, headline_pairs, run_name, versus_notes
from gemm_report.ladder.rungs import rate
from gemm_report.record import Record, Row
from gemm_report.writing.quantity import percent, prefix_for, scaled, significant

_MOST = 30
_STATES = ("burst", "settled")


@dataclass(frozen=True)
class Case:
    """One row in both states."""

    burst: Row
    settled: Row

    @property
    def kept(self) -> float:
        """Share of the burst's rate that is left once the card has settled."""
        return rate(self.settled) / rate(self.burst)


def pairs_of(record: Record, versus: Record) -> list[Case]:
    """The rows that both have, if one record is of bursts and the other of a settled card."""
    if {record.method.state, versus.method.state} != set(_STATES):
        return []
    pairs = all_pairs(record, versus)
    if sum(1 for pair in pairs if pair.old) > _MOST:
        pairs = headline_pairs(record, versus)
    is_burst = record.method.state == "burst"
    return [
        Case(pair.new, pair.old) if is_burst else Case(pair.old, pair.new)
        for pair in pairs
        if pair.old
    ]


def table(record: Record, versus: Record) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        {
            "name": str(case.settled.identity),
            **{
                f"{state}_{key}": value
                for state, row in (("burst", case.burst), ("settled", case.settled))
                for key, value in (
                    ("flop_per_second", row.flop_per_second),
                    ("of_roof", row.of_roof_nominal),
                    ("sm_hz", row.sm_hz),
                    ("power_w", row.power_w),
                )
            },
            "kept": case.kept,
        }
        for case in pairs_of(record, versus)
    ]


def draw(record: Record, looks: Mapping[str, Look], versus: Record) -> Figure:
    """Two marks for each row, joined: hollow in the burst, filled once settled."""
    cases = pairs_of(record, versus)
    prefix = prefix_for(rate(case.burst) for case in cases)
    unit = f"{prefix}FLOP/s"
    head = [f"burst {unit}", f"settled {unit}", "kept", "burst MHz", "settled MHz"]
    has_roofs = all(case.burst.of_roof_nominal and case.settled.of_roof_nominal for case in cases)
    runs = {each.method.state: each for each in (record, versus)}
    lines = [_line(case, prefix) for case in cases]
    title, remarks = "GEMM, burst against settled", versus_notes(record, versus)
    page, (axes,) = bars(record, title, remarks, head, [lines], pitch=0.26)
    grey = {"linestyle": "none", "marker": "o", "color": ROOF_COLOR}
    page.legend(
        0,
        [
            Line2D([], [], label=run_name(runs["burst"]), markerfacecolor="white", **grey),
            Line2D([], [], label=run_name(runs["settled"]), **grey),
        ],
    )
    ends = [_ends(case, has_roofs) for case in cases]
    axes.set_xlim(0, max(100, 1.03 * max(max(pair) for pair in ends)))
    axes.set_xlabel("% of the nominal roof" if has_roofs else "% of the rate in the burst")
    for y, (case, (burst, settled)) in enumerate(zip(cases, ends, strict=True)):
        color = looks[case.settled.label].color
        axes.plot([settled, burst], [y, y], color=color, linewidth=2, alpha=0.5, zorder=2)
        looks_of_mark = {"marker": "o", "markersize": 6, "color": color, "clip_on": False}
        axes.plot(burst, y, markerfacecolor="white", zorder=3, **looks_of_mark)
        axes.plot(settled, y, zorder=4, **looks_of_mark)
    return page.figure


def _ends(case: Case, has_roofs: bool) -> tuple[float, float]:
    if has_roofs:
        return 100 * (case.burst.of_roof_nominal or 0), 100 * (case.settled.of_roof_nominal or 0)
    return 100.0, 100 * case.kept


def _line(case: Case, prefix: str) -> Line:
    def clock(row: Row) -> str:
        return f"{row.sm_hz / 1e6:.0f}" if row.sm_hz else "-"

    row = case.settled
    cells = (
        significant(scaled(rate(case.burst), prefix)),
        significant(scaled(rate(row), prefix)),
        percent(case.kept),
        clock(case.burst),
        clock(row),
    )
    return Line(f"{row.label}  {row.precision}  {row.size}", cells, bold=row.is_library)
