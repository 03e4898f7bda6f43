"""Marks next to the numbers of rows that need a word, and the words."""

import re
from collections.abc import Iterable

from gemm_report.record import UNCERTAIN, Departure, Row

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
    deviations = [deviation for row in rows for deviation in row.departures]
    uncertain = [d for d in deviations if d.code == UNCERTAIN and d.value is not None]
    texts = dict.fromkeys(d.text for d in deviations if d not in uncertain)
    for level in sorted({_level(deviation) for deviation in uncertain}):
        widths = [100 * (d.value or 0) for d in uncertain if _level(d) == level]
        span = " to ".join(
            dict.fromkeys(f"{float(f'{w:.2g}'):g}" for w in (min(widths), max(widths)))
        )
        texts[f"{level} % interval of the median {span} % wide"] = None
    return list(texts)


def _level(deviation: Departure) -> str:
    """Of the interval, in percent; records did not name it while it was 50 %."""
    named = re.search(r"(\d+) % interval", deviation.text)
    return named[1] if named else "50"
