"""Marks next to the numbers of rows that need a word, and the words; how a record was made."""

from collections.abc import Iterable

from gemm_report.grouping import grouped
from gemm_report.guideline import sentences
from gemm_report.record import Record, Row

IN_DOUBT = "*"  # as on the console
THROTTLED = "†"
_LISTED = 3
_FULL_CLOCK = 0.985  # of the clock of a peak


def slowed(record: Record, row: Row) -> bool:
    """Whether a limit held its clock below that of its peak most of the time, not just before."""
    roofs = record.compute_roofs(row.precision)
    full = next((roof.clock_hz for roof in roofs if roof.clock_hz), None)
    held = (row.throttled_share or 0) > 0.5
    return held and (not full or not row.sm_hz or row.sm_hz < _FULL_CLOCK * full)


def mark(row: Row) -> str:
    """What to write behind the numbers of a row: mostly nothing."""
    marks = (IN_DOUBT if row.doubts else "") + (THROTTLED if row.throttled else "")
    return f" {marks}" if marks else ""


def notes(rows: Iterable[Row]) -> list[str]:
    """What the marks on `rows` mean, a sentence for each that occurs."""
    rows = list(rows)
    reasons = dict.fromkeys(reason for row in rows if row.throttled for reason in row.held_by)
    found = []
    if any(row.throttled for row in rows):
        why = ", ".join(reasons) or "the record has no reason"
        found.append(f"{THROTTLED} Clocks limited by: {why}.")
    if doubts := sentences(each for row in rows for each in row.doubts):
        points = "; ".join(doubts[:_LISTED])
        more = len(doubts) - _LISTED
        points += f"; and {more} more" if more > 0 else ""
        found.append(f"{IN_DOUBT} In doubt: {points}.")
    return found


def settings(record: Record) -> str:
    """In what the run as a whole deviates from the guideline, and in how many of its results."""
    timed = record.rows_with("timed")
    found = [each for row in timed for each in row.departures if not each.doubt]
    its = grouped(found, lambda each: each.code).values()
    counts = [f" ({len(i)} of {len(timed)} results)" if len(i) < len(timed) else "" for i in its]
    return "; ".join(map("".join, zip(sentences(found), counts, strict=True)))


def run_line(record: Record) -> str:
    """What ran, and when."""
    device = record.device
    facts = [
        device.driver and f"driver {device.driver}",
        device.runtime and f"CUDA runtime {device.runtime}",
        *(f"{each.name} {each.version}" for each in record.libraries),
        device.power_limit_w and f"power limit {device.power_limit_w:.0f} W",
        f"commit {record.commit_name}",
        None if record.build.type == "Release" else f"build type {record.build.type}",
        record.date[:16].replace("T", " "),
        None if record.complete else "incomplete run",
    ]
    return " · ".join(fact for fact in facts if fact)
