"""What a transposed A or B costs: the rates of each kernel and problem, one column a layout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemm_report.ladder.rows import timed_rows
from gemm_report.ladder.rungs import rate
from gemm_report.record import Record, Row
from gemm_report.writing.quantity import percent, prefix_for, scaled, significant

TITLE = "Speed on a transposed A (t first) or B over that on layout nn."
_OTHERS = ("nt", "tn", "tt")


@dataclass(frozen=True)
class Comparison:
    """One kernel on one problem in nn and in one or more other layouts."""

    rows: Mapping[str, Row]

    @property
    def plain(self) -> Row:
        """The row of layout nn."""
        return self.rows["nn"]

    def over_plain(self, layout: str) -> float | None:
        """Speed over that of nn; None where the record has no time."""
        row = self.rows.get(layout)
        return row and rate(row) / rate(self.plain)

    @property
    def evenness(self) -> float:
        """Speed of the slowest layout over that of the fastest."""
        rates = [rate(row) for row in self.rows.values()]
        return min(rates) / max(rates)


# What a line of the table is about, and each number as it is written and as it is.
Line = tuple[tuple[str, ...], list[tuple[str, float | None]]]


def comparisons(record: Record) -> list[Comparison]:
    """In the order of the ladder; nothing where only one layout was run."""
    found: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in timed_rows(record):
        found.setdefault(row.identity._replace(layout="nn"), {})[row.layout] = row
    return [Comparison(rows) for rows in found.values() if "nn" in rows and len(rows) > 1]


def layout_table(found: Sequence[Comparison]) -> tuple[list[str], list[Line]]:
    """Its head, and lines of texts and of numbers, each with its text."""
    prefix = prefix_for(rate(row) for each in found for row in each.rows.values())
    head = ["kernel", "precision", "shape", f"nn, {prefix}FLOP/s", *_OTHERS, "slowest / fastest"]
    lines: list[Line] = []
    for each in found:
        row = each.plain
        shares = [each.over_plain(layout) for layout in _OTHERS] + [each.evenness]
        numbers = [(significant(scaled(rate(row), prefix)), rate(row))]
        numbers += [(percent(share), share) for share in shares]
        lines.append(((row.label, row.precision, row.shape), numbers))
    return head, lines
