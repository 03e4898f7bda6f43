"""Marks next to the numbers of rows that need a word, and the words."""

import re
from collections.abc import Iterable

from gemm_report.record import UNCERTAIN, Row

DEVIATES = "*"  # as on the console
THROTTLED = "†"
_LISTED = 3


def mark(row: Row) -> str:
    """What to write behind the numbers of a row: mostly nothing."""
    marks = (DEVIATES if row.departures else "") + (THROTTLED if row.throttled else "")
    return f" {marks}" if marks else ""


def notes(rows: Iterable[Row]) -> list[str]:
    """What the marks on `rows` mean, a sentence for each that occurs."""
    rows = list(rows)
    reasons = dict.fromkeys(reason for row in rows if row.throttled for reason in row.held_by)
    found = []
    if any(row.throttled for row in rows):
        why = ", ".join(reasons) or "the record has no reason"
        found.append(f"{THROTTLED} Clocks limited by: {why}.")
    if deviations := _worded(rows):
        points = "; ".join(deviations[:_LISTED])
        more = len(deviations) - _LISTED
        points += f"; and {more} more" if more > 0 else ""
        found.append(f"{DEVIATES} Deviates from NVIDIA's measurement guideline: {points}.")
    return found


def _worded(rows: Iterable[Row]) -> list[str]:
    """How uncertain medians are is one deviation, with the least and the most."""
    texts: dict[str, None] = {}
    widths: dict[str, list[float]] = {}
    for deviation in (each for row in rows for each in row.departures):
        if deviation.code == UNCERTAIN and deviation.value is not None:
            # Records did not name the level of the interval while it was 50 %.
            named = re.search(r"(\d+) % interval", deviation.text)
            widths.setdefault(named[1] if named else "50", []).append(100 * deviation.value)
        else:
            texts[deviation.text] = None
    for level, its in sorted(widths.items()):
        span = dict.fromkeys(f"{float(f'{w:.2g}'):g}" for w in (min(its), max(its)))
        texts[f"{level} % interval of the median {' to '.join(span)} % wide"] = None
    return list(texts)
