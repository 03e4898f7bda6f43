"""History as text and as JSON: a change is one of the rate, since higher is better there."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from gemm_report.history.changes import Change
from gemm_report.history.gone import Gone
from gemm_report.history.series import SETTINGS, History
from gemm_report.history.trends import Trend
from gemm_report.writing.tables import columns


def change_text(ratio: float) -> str:
    """Of a ratio of seconds what the rate does: -4.8 %."""
    return f"{100 * (1 / ratio - 1):+.1f} %"


def interval_text(change: Change) -> str:
    """The interval of the same: -5.0 to -4.5 %."""
    low, high = (100 * (1 / ratio - 1) for ratio in (change.high, change.low))
    return f"{low:+.1f} to {high:+.1f} %"


def as_text(
    history: History, trends: Sequence[Trend], gone: Sequence[Gone], limit: int | None
) -> str:
    """The newest record of each device, the changes and the cases that are gone, newest first."""
    lines = [_state(history, device, trends) for device in _devices(history)]
    return "\n".join([*lines, *_changes(history, trends, limit), *_gone(history, gone, limit)])


def _changes(history: History, trends: Sequence[Trend], limit: int | None) -> list[str]:
    found = [(trend, change) for trend in trends for change in trend.changes]
    found.sort(key=lambda pair: -_record(*pair))
    if not found:
        return ["No changes detected."]
    rows = [["date", "case", "device", "suspect", "rate", "95 % interval"]]
    for trend, change in found:
        date, series = history.entries[_record(trend, change)].date[:10], trend.series
        said = change.suspect, change_text(change.ratio), interval_text(change)
        rows.append([date, str(series.case), series.device, *said])
    return _listed(history, rows, limit, 2)


def _gone(history: History, gone: Sequence[Gone], limit: int | None) -> list[str]:
    rows = [["gone since", "case", "device", "last timed", "now"]]
    for each in gone:
        since, last = (history.entries[i].date[:10] for i in (each.since, each.last))
        rows.append([since, str(each.series.case), each.series.device, last, each.why])
    return _listed(history, rows, limit, 0) if gone else []


def _listed(history: History, rows: list[list[str]], limit: int | None, right: int) -> list[str]:
    """As columns, of which so many are flush right; without that of the device if all have one."""
    shown = rows if limit is None else rows[: limit + 1]
    if len(_devices(history)) == 1:
        shown = [[*row[:2], *row[3:]] for row in shown]
    hidden = len(rows) - len(shown)
    more = [f"and {hidden} older ones: --all"] if hidden else []
    return ["", columns(shown, left=len(shown[0]) - right), *more]


def as_json(history: History, trends: Sequence[Trend], gone: Sequence[Gone]) -> str:
    """All that was found; SI units, `ratio` is new over old seconds."""
    records = [
        {"path": str(entry.path), "date": entry.date, "device": entry.device}
        | {"complete": entry.complete, "libraries": dict(entry.libraries)}
        | dict(zip(SETTINGS, entry.setting, strict=True))
        for entry in history.entries
    ]
    series = []
    for trend in trends:
        its, record = trend.series, trend.series.record.tolist()
        levels = [
            {"first_record": record[level.start], "last_record": record[level.end - 1]}
            | {"seconds": level.seconds, "last_seconds": level.last_seconds}
            for level in trend.segments
        ]
        changes = [
            {"first_record": record[change.start], "record": _record(trend, change)}
            | {"gradual": change.gradual, "ratio": change.ratio}
            | {"interval": [change.low, change.high]}
            | {"suspects": [asdict(suspect) for suspect in change.suspects]}
            for change in trend.changes
        ]
        newest = {"record": trend.newest, "seconds": float(its.seconds[-1]), "strays": trend.strays}
        series.append(
            {"device": its.device, "name": str(its.case), "records": len(record)}
            | {"failed": len(its.failed), "newest": newest, "since_first": trend.since_first}
            | {"levels": levels, "changes": changes}
        )
    lost = [
        {"device": each.series.device, "name": str(each.series.case), "last_record": each.last}
        | {"since_record": each.since, "why": each.why, "now": each.now and str(each.now)}
        for each in gone
    ]
    document = {"schema": 1, "records": records, "series": series, "gone": lost}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _devices(history: History) -> list[str]:
    return sorted({entry.device for entry in history.entries})


def _record(trend: Trend, change: Change) -> int:
    return int(trend.series.record[change.at])


def _state(history: History, device: str, trends: Sequence[Trend]) -> str:
    """Of the newest record: how many rows have a time, how many are not as before."""
    newest = max(i for i, entry in enumerate(history.entries) if entry.device == device)
    entry = history.entries[newest]
    of_device = [trend for trend in trends if trend.series.device == device]
    there = [trend for trend in of_device if trend.newest == newest]
    counts = {
        "timed": len(there),
        "failed": sum(newest in trend.series.failed[-1:] for trend in of_device),
        "far from their level": sum(trend.strays for trend in there),
        "throttled": sum(trend.series.throttled[-1] > 0 for trend in there),
    }
    said = ", ".join(f"{n} {name}" for name, n in counts.items() if n or name == "timed")
    said += _against_oldest(there)
    records = sum(entry.device == device for entry in history.entries)
    counted = f"{records} record{'' if records == 1 else 's'}"
    unfinished = "" if entry.complete else " (incomplete)"
    return f"{device}: {counted}, newest {entry.path.name}{unfinished}: {said}"


def _against_oldest(trends: Sequence[Trend]) -> str:
    """How many are faster and slower than in their oldest record, and the one that lost most."""
    turning = [trend for trend in trends if trend.changes]
    if not turning:
        return ""
    slower = [trend for trend in turning if trend.since_first > 1]
    said = f"; against the oldest: {len(turning) - len(slower)} faster, {len(slower)} slower"
    if not slower:
        return said
    worst = max(slower, key=lambda trend: trend.since_first)
    return f"{said} (most: {worst.series.case} {change_text(worst.since_first)})"
