"""Marks next to the numbers of rows that need a word, and the words."""

from collections.abc import Iterable

from gemm_report.record import UNCERTAIN, Row

THROTTLED = "*"
DEVIATES = "†"
_LISTED = 3


def mark(row: Row) -> str:
    """What to write behind the numbers of a row: mostly nothing."""
    marks = (THROTTLED if row.throttled else "") + (DEVIATES if row.departures else "")
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
    widths = [100 * d.value for d in deviations if d.code == UNCERTAIN and d.value is not None]
    texts = dict.fromkeys(d.text for d in deviations if d.code != UNCERTAIN or d.value is None)
    if widths:
        span = " to ".join(
            dict.fromkeys(f"{float(f'{w:.2g}'):g}" for w in (min(widths), max(widths)))
        )
        texts[f"50 % interval of the median {span} % wide"] = None
    return list(texts)
