"""Marks beside the numbers of rows that need a word, and the words."""

import re
from collections.abc import Iterable

from gemm_report.record import Row

PEERS = "Thin marks, short dashes and hatched bars: peers, what a user would pick instead."
THROTTLED = "*"
DEPARTS = "†"
_LISTED = 3
_KNOWN = re.compile(r"median known to ([\d.e+]+) % only")  # as bench/record/conformance.cpp has it


def mark(row: Row) -> str:
    """What to write behind the numbers of a row: mostly nothing."""
    marks = (THROTTLED if row.throttled else "") + (DEPARTS if row.departures else "")
    return f" {marks}" if marks else ""


def _merged(departures: Iterable[str]) -> list[str]:
    """Those that differ by how well a median is known are one, with the least and the most."""
    known = {d: float(m[1]) for d in departures if (m := _KNOWN.fullmatch(d))}
    if len(known) < 2:
        return list(departures)
    low, high = min(known.values()), max(known.values())
    merged = f"medians known to {low:g} to {high:g} % only"
    return list(dict.fromkeys(merged if d in known else d for d in departures))


def notes(rows: Iterable[Row]) -> list[str]:
    """What the marks on `rows` mean, a sentence for each that occurs."""
    rows = list(rows)
    throttled = [row.clocks for row in rows if row.clocks and row.throttled]
    reasons = dict.fromkeys(reason for clocks in throttled for reason in clocks.reasons)
    departures = _merged(dict.fromkeys(d for row in rows for d in row.departures))
    more = len(departures) - _LISTED
    found = [PEERS] if any(row.is_peer for row in rows) else []
    if throttled:
        why = ", ".join(reasons) or "the record has no reason"
        found.append(f"{THROTTLED} Something held the clocks down: {why}.")
    if departures:
        points = "; ".join(departures[:_LISTED]) + (f"; and {more} more" if more > 0 else "")
        found.append(f"{DEPARTS} Departs from the measurement guideline: {points}.")
    return found
