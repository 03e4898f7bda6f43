"""Marks beside the numbers of rows that need a word, and the words."""

from collections.abc import Iterable, Sequence

from gemm_report.record import UNCERTAIN, Departure, Row

PEERS = "Thin marks, short dashes and hatched bars: peers, what a user would pick instead."
THROTTLED = "*"
DEPARTS = "†"
_LISTED = 3


def mark(row: Row) -> str:
    """What to write behind the numbers of a row: mostly nothing."""
    marks = (THROTTLED if row.throttled else "") + (DEPARTS if row.departures else "")
    return f" {marks}" if marks else ""


def _worded(departures: Sequence[Departure]) -> list[str]:
    """Those that differ by how well a median is known are one, with the least and the most."""
    known = {d.text: d.value for d in departures if d.code == UNCERTAIN and d.value is not None}
    merged = ""
    if len(known) > 1:
        low, high = 100 * min(known.values()), 100 * max(known.values())
        merged = f"medians known to {_brief(low)} to {_brief(high)} % only"
    return list(dict.fromkeys((d.text in known and merged) or d.text for d in departures))


def _brief(figure: float) -> str:
    return f"{float(f'{figure:.2g}'):g}"


def notes(rows: Iterable[Row]) -> list[str]:
    """What the marks on `rows` mean, a sentence for each that occurs."""
    rows = list(rows)
    throttled = [row for row in rows if row.throttled]
    reasons = dict.fromkeys(reason for row in throttled for reason in row.held_by)
    departures = _worded([d for row in rows for d in row.departures])
    more = len(departures) - _LISTED
    found = [PEERS] if any(row.is_peer for row in rows) else []
    if throttled:
        why = ", ".join(reasons) or "the record has no reason"
        found.append(f"{THROTTLED} Something held the clocks down: {why}.")
    if departures:
        points = "; ".join(departures[:_LISTED]) + (f"; and {more} more" if more > 0 else "")
        found.append(f"{DEPARTS} Departs from the measurement guideline: {points}.")
    return found
