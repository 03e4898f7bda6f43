"""History as text: a change is one of the rate, since higher is better there."""

from collections.abc import Sequence

from gemm_report.grouping import grouped
from gemm_report.history.changes import ENOUGH, Change
from gemm_report.history.series import History
from gemm_report.history.trends import STEPS, Trend
from gemm_report.text import columns


def change_text(ratio: float) -> str:
    """Of a ratio of seconds what the rate does: -4.8 %."""
    return f"{100 * (1 / ratio - 1):+.1f} %"


def interval_text(change: Change) -> str:
    """The interval of the same: -5.0 to -4.5 %."""
    return f"{change_text(change.high)[:-2]} to {change_text(change.low)}"


def as_text(history: History, trends: Sequence[Trend], limit: int | None) -> str:
    """What each device could have shown, and the changes, the newest first."""
    order = "commits" if history.by_commit else "dates: no git repository has the folder"
    lines = [f"Records in the order of {order}.", *device_lines(history, trends)]
    found = [(trend, each) for trend in trends for each in trend.changes]
    found.sort(key=lambda pair: -pair[0].series.record[pair[1].change.at])
    rows = [["commit", "date", "case", "device", "suspect", "rate", "95 % interval"]]
    for trend, each in found[:limit]:
        series, change = trend.series, each.change
        entry = history.entries[series.record[change.at]]
        said = each.suspect, change_text(change.ratio), interval_text(change)
        commit = (entry.setting[-1] or "")[:8]
        rows.append([commit, entry.date[:10], str(series.case), series.device, *said])
    if found:
        lines += ["", columns(rows, left=5)]
    if found[len(rows) - 1 :]:
        lines.append(f"and {len(found) - len(rows) + 1} older ones: --all")
    return "\n".join(lines)


def device_lines(history: History, trends: Sequence[Trend]) -> list[str]:
    """Of each device its records, and how many of its series could show a change and do."""
    lines = []
    of_device = grouped(trends, lambda trend: trend.series.device)
    for device, entries in grouped(history.entries, lambda entry: entry.device).items():
        its = of_device.get(device, [])
        all_series = sum(series.device == device for series in history.series)
        gpus = len({entry.gpu for entry in entries})
        said = f"{device}: {_count(len(entries), 'record')} of {_count(gpus, 'device')}, "
        said += f"{all_series:,} series, of which {len(its):,} have {ENOUGH} records or more"
        if its:
            seen = (f"{100 * s:.0f} % in {sum(s in t.shows for t in its):,}" for s in STEPS)
            changed = [trend for trend in its if trend.changes]
            slower = sum(trend.since_first > 1 for trend in changed)
            strays = sum(trend.strays for trend in its)
            said += f"; a step could be seen of {', of '.join(seen)}. {len(changed)} changed: "
            said += f"{len(changed) - slower} faster, {slower} slower than at first"
            said += f"; the newest record is far from the level in {strays}" if strays else ""
            ended = sum(trend.series.ended is not None for trend in its)
            said += f"; {ended} failed or were skipped since" if ended else ""
        else:
            said += ": no change could be seen"
        lines.append(f"{said}.")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
