"""Which shapes suit: a map over m and n for each k, of the best of our kernels."""

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from gemm_report.figures.heat_map import Cell, HeatMap, draw_maps
from gemm_report.ladder.rows import best_of, by_precision, drawn_rows, facts
from gemm_report.ladder.rungs import rate
from gemm_report.record import Record, Row
from gemm_report.writing.names import operations, precision_name
from gemm_report.writing.quantity import percent, prefix_for, scaled, significant

# A map of fewer cells, or of one line, says nothing that a table would not.
_FEWEST_CELLS = 4


@dataclass(frozen=True)
class Map:
    """The fastest row of each (m, n) at one precision and k."""

    precision: str
    k: int
    cells: Mapping[tuple[int, int], Row]

    @property
    def ms(self) -> list[int]:
        """Lines of the map."""
        return sorted({m for m, _ in self.cells})

    @property
    def ns(self) -> list[int]:
        """Columns of the map."""
        return sorted({n for _, n in self.cells})


def maps(record: Record) -> list[Map]:
    """Of our kernels; none where there are too few shapes."""
    rows = [row for row in drawn_rows(record) if row.is_ours]
    found = []
    for precision, its in by_precision(rows).items():
        for k in sorted({row.k for row in its}):
            best = best_of([r for r in its if r.k == k], lambda row: (row.m, row.n), rate)
            cells = {(row.m, row.n): row for row in best}
            candidate = Map(precision, k, cells)
            if min(len(candidate.ms), len(candidate.ns)) > 1 and len(cells) >= _FEWEST_CELLS:
                found.append(candidate)
    return found


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        facts(row, "precision", "m", "n", "k", "flop_per_second", of_roof=row.of_roof_nominal)
        for each in maps(record)
        for _, row in sorted(each.cells.items())
    ]


def draw(record: Record) -> Figure:
    """Throughput over m and n for each k, shaded by the share of the roofline at that shape."""
    found = maps(record)
    has_roofs = all(row.of_roof_nominal for each in found for row in each.cells.values())
    prefix = prefix_for(rate(row) for each in found for row in each.cells.values())
    shade = "percent of the roofline" if has_roofs else "rate over the best one of its map"
    units = " or ".join(dict.fromkeys(prefix + operations(each.precision) for each in found))
    remarks = [
        f"Cells: {units}, {'percent of the roofline, ' if has_roofs else ''}kernel. "
        f"Darker: higher {shade}. White: not run."
    ]
    drawn = [_heat_map(each, prefix, has_roofs) for each in found]
    return draw_maps(record, "throughput by shape", remarks, drawn)


def _heat_map(each: Map, prefix: str, has_roofs: bool) -> HeatMap:
    best = max(map(rate, each.cells.values()))

    def value(row: Row) -> float:
        return (row.of_roof_nominal or 0) if has_roofs else rate(row) / best

    def lines(row: Row) -> list[str]:
        share = f", {percent(row.of_roof_nominal)}" if row.of_roof_nominal else ""
        return [significant(scaled(rate(row), prefix)) + share, row.label]

    high = max(map(value, each.cells.values())) * 1.1
    title = f"{precision_name(each.precision)}, k = {each.k}"
    cells = {place: Cell(value(row) / high, lines(row)) for place, row in each.cells.items()}
    subtitle = "the fastest of our kernels"
    return HeatMap(title, subtitle, ("n", each.ns), ("m", each.ms), cells)
