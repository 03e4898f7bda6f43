"""Which shapes suit: a map over m and n for each k, of the best of our kernels."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from gemm_report.figures.heat_map import Cell, HeatMap, draw_maps
from gemm_report.record import Record, Row, rate
from gemm_report.rows import best_of, by_precision, drawn_rows, facts
from gemm_report.text import operations, percent, precision_name, prefix_for, scaled, significant

# A map of fewer cells, or of one line, says nothing that a table would not.
_FEWEST_CELLS = 4

# By (m, n).
Cells = Mapping[tuple[int, int], Row]


def maps(record: Record) -> dict[tuple[str, int], Cells]:
    """Our fastest row of each (m, n), by precision and k; none where there are too few shapes."""
    rows = [row for row in drawn_rows(record) if row.is_ours]
    found: dict[tuple[str, int], Cells] = {}
    for precision, its in by_precision(rows).items():
        for k in sorted({row.k for row in its}):
            best = best_of([r for r in its if r.k == k], lambda row: (row.m, row.n), rate)
            cells = {(row.m, row.n): row for row in best}
            sides = zip(*cells, strict=True)
            if min(len(set(side)) for side in sides) > 1 and len(cells) >= _FEWEST_CELLS:
                found[precision, k] = cells
    return found


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        facts(row, "precision", "m", "n", "k", "flop_per_second", of_roof=row.of_roof_nominal)
        for cells in maps(record).values()
        for _, row in sorted(cells.items())
    ]


def draw(record: Record) -> Figure:
    """Throughput over m and n for each k, shaded by the share of the roofline at that shape."""
    found = maps(record)
    rows = [row for cells in found.values() for row in cells.values()]
    has_roofs = all(row.of_roof_nominal for row in rows)
    prefix = prefix_for(map(rate, rows))
    shade = "percent of the roofline" if has_roofs else "rate over the best one of its map"
    units = " or ".join(dict.fromkeys(prefix + operations(precision) for precision, _ in found))
    remarks = [
        f"Cells: {units}, {'percent of the roofline, ' if has_roofs else ''}kernel. "
        f"Darker: higher {shade}. White: not run."
    ]
    drawn = [_heat_map(*which, its, prefix, has_roofs) for which, its in found.items()]
    return draw_maps(record, "throughput by shape", remarks, drawn)


def _heat_map(precision: str, k: int, rows: Cells, prefix: str, has_roofs: bool) -> HeatMap:
    best = max(map(rate, rows.values()))

    def value(row: Row) -> float:
        return (row.of_roof_nominal or 0) if has_roofs else rate(row) / best

    def lines(row: Row) -> list[str]:
        share = f", {percent(row.of_roof_nominal)}" if row.of_roof_nominal else ""
        return [significant(scaled(rate(row), prefix)) + share, row.label]

    high = max(map(value, rows.values())) * 1.1
    cells: dict[tuple[object, object], Cell] = {
        place: Cell(value(row) / high, lines(row)) for place, row in rows.items()
    }
    ms, ns = (sorted(set(side)) for side in zip(*rows, strict=True))
    title = f"{precision_name(precision)}, k = {k}"
    return HeatMap(title, "the fastest of our kernels", ("n", ns), ("m", ms), cells)
