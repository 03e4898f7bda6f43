"""How much of the peak and of the library, who wins at what size, and what holds it back."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from gemm_report.figures.page import sheet
from gemm_report.figures.palette import Colors
from gemm_report.notes import slowed
from gemm_report.record import Record, rate
from gemm_report.standing import Pair, Standing, pair_facts, standings
from gemm_report.text import megahertz, operations, quantity

MOST_SIZES = 6
_PITCH = 0.4  # inches of a precision
_FULL = 0.35  # a ratio so far from 1 has the full colour


def sizes(found: Sequence[Standing]) -> list[str]:
    """The columns of the matrix: cubes, of many those that most precisions have."""
    cubes = Counter(pair.ours.m for each in found for pair in each.pairs if pair.ours.is_cube)
    return [*map(str, sorted(m for m, _ in cubes.most_common(MOST_SIZES)))]


def cells(each: Standing, columns: Sequence[str]) -> list[tuple[str, Pair | None, float | None]]:
    """A column's name, with pair and ratio; of shapes that are no cubes the worst and the mean."""
    found = {pair.ours.size: pair for pair in each.compared}
    if len(columns) > 1:
        return [(c, pair := found.get(c), pair.ratio if pair else None) for c in columns]
    worst = each.worst
    return [("mean", None, each.mean), ("lowest", worst, worst.ratio if worst else None)]


def library_name(found: Sequence[Standing]) -> str:
    """Of all that is compared: cuBLAS, which has cuBLASLt in it; OpenBLAS."""
    names = dict.fromkeys(pair.opponent for each in found for pair in each.compared)
    return "cuBLAS" if any("cublas" in name.lower() for name in names) else " and ".join(names)


def score(found: Sequence[Standing]) -> str:
    """7 wins, 5 ties, 4 losses, of all problems on which something is compared."""
    counts = Counter(pair.verdict for each in found for pair in each.compared)
    plural = {"win": "wins", "tie": "ties", "loss": "losses", "doubt": "in doubt"}
    said = [
        f"{counts[one]} {one if counts[one] == 1 and one != 'doubt' else many}"
        for one, many in plural.items()
        if counts[one] or one in ("win", "loss")
    ]
    return ", ".join(said) if counts else ""


def clock_text(record: Record, pair: Pair) -> str:
    """What held the clock, and at how many MHz; nothing where it is not known."""
    row = pair.ours
    if not row.sm_hz:
        return ""
    why = (row.held_by or ("throttled",))[0] if slowed(record, row) else "not throttled"
    return f"{why}: {megahertz(row.sm_hz)}"


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        pair_facts(pair, peak_flop_per_second=each.peak and each.peak.flop_per_second)
        for each in standings(record)
        for pair in each.pairs
    ]


def draw(record: Record, colors: Colors) -> Figure:
    """Share of the peak in each precision, and the speed relative to the library at each size."""
    found = standings(record)
    if not found:
        return sheet(
            record, colors, record.device.name, "No row of this record has a time.", [], 0.2
        )
    said, library = score(found), library_name(found)
    title = f"{record.device.name}: " + (f"{said} against {library}" if said else "our kernels")
    leads = list(dict.fromkeys(map(_where, found)))
    columns = sizes(found)
    count = sum(len(each.compared) for each in found)
    shown = sum(pair.ours.size in columns for each in found for pair in each.compared)
    what = f"{count} problems" + (f", {shown} of them here" if 0 < shown < count else "")
    subtitle = f"{what if said else 'our fastest kernel'}; every result verified"
    subtitle += "; a tie is within the noise" if said else ""
    has_peaks = all(each.peak for each in found)
    legend = _legend(colors, library, found, has_peaks)
    names = [
        f"{each.name}\nat {_where(each)}" if len(leads) > 1 else each.name.replace(", ", ",\n")
        for each in found
    ]
    pitch = max(_PITCH, 0.15 * max(1 + name.count("\n") for name in names))
    made = sheet(record, colors, title, subtitle, [], 0.45 + pitch * len(found), legend=legend)
    heads = [head for head, _, _ in cells(found[0], columns)]
    left, right = made.subplots(1, 2, width_ratios=[4, max(2.0, 0.62 * len(heads))])
    for axes in (left, right):
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.grid(visible=False)
        axes.set_yticks([])
    left.set_yticks(range(len(found)), names, weight="bold", color=colors.ink)
    measured = any(each.peak and each.peak.origin == "measured" for each in found)
    of = "the measured peak" if measured else "the data sheet's peak"
    at = f", at {leads[0]}" if len(leads) == 1 else ""
    left.set_title((f"share of {of}" if has_peaks else "rate") + at)
    right.set_title("speed relative to " + library if said else "")
    right.set_xticks([i + 0.5 for i in range(len(heads))], heads if said else [""] * len(heads))
    right.set_xlim(0, len(heads))
    scale = 1.0 if has_peaks else max(rate(each.lead.ours) for each in found)
    left.set_xticks(
        [0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"] if has_peaks else [""] * 5
    )
    ends = [100.0]
    for y, each in enumerate(found):
        peak = ((each.peak.flop_per_second if each.peak else 0) or 1) if has_peaks else scale
        ends.append(_draw_share(left, y, each, peak, has_peaks, record, colors))
        if each.compared:
            _draw_ratios(right, y, each, columns, colors)
        else:
            right.text(0.05, y, each.why_not, va="center", size=7.5, color=colors.soft, wrap=True)
    left.set_xlim(0, max(ends))
    return made


def _where(each: Standing) -> str:
    """The problem in the lead; only names of cubes are short."""
    return each.lead.ours.size if each.lead.ours.is_cube else "the largest"


def _draw_share(
    axes: Axes, y: int, each: Standing, peak: float, has_peak: bool, record: Record, colors: Colors
) -> float:
    """How far it reaches, in percent."""
    row, library = each.lead.ours, each.lead.library
    share, held = 100 * rate(row) / peak, 100 * (each.peak_at_clock or 0) / peak
    if has_peak:
        axes.barh(y, 100, height=0.66, color=colors.track, zorder=1)
        axes.barh(y, min(held, 100), height=0.66, color=colors.held, zorder=2)
    axes.barh(y, share, height=0.66, color=colors.ours, zorder=3)
    said = quantity(rate(row), operations(row.precision))
    inside = share > 32
    looks: dict[str, Any] = {
        "color": colors.paper if inside else colors.ink,
        "weight": "bold",
        "zorder": 6,
    }
    axes.text(1.5 if inside else share + 1.5, y, said, va="center", **looks)
    of = 0.0
    if library and each.compared:
        of = 100 * rate(library) / peak
        axes.plot([of, of], [y - 0.42, y + 0.42], color=colors.library, linewidth=2.6, zorder=5)
    if clock := clock_text(record, each.lead):
        axes.annotate(
            clock.replace(": ", ":\n"), (1, y), (4, 0), textcoords="offset points", va="center",
            xycoords=axes.get_yaxis_transform(), size=7, color=colors.soft,
        )  # fmt: skip
    return max(share, of) + 1


def _draw_ratios(
    axes: Axes, y: int, each: Standing, columns: Sequence[str], colors: Colors
) -> None:
    for x, (_, pair, ratio) in enumerate(cells(each, columns)):
        if ratio is None:
            axes.text(x + 0.5, y, "-", ha="center", va="center", color=colors.soft)
            continue
        verdict = pair.verdict if pair else "tie"
        fill = shade(pair, colors) if pair else colors.paper
        axes.add_patch(
            Rectangle(
                (x + 0.03, y - 0.42), 0.94, 0.84, facecolor=fill, linewidth=0,
                hatch="////" if verdict == "doubt" else None,
            )
        )  # fmt: skip
        sure = verdict in ("win", "loss")
        light = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), to_rgb(fill), strict=True))
        ink = ("#ffffff" if light < 0.35 else "#14191d") if sure else colors.soft
        looks: dict[str, Any] = {"size": 9, "weight": "bold" if sure else "normal", "color": ink}
        axes.text(x + 0.5, y, f"{ratio:.2f}", ha="center", va="center", **looks)


def shade(pair: Pair, colors: Colors) -> tuple[float, float, float] | str:
    """Of a cell: the farther the ratio is from 1, the more of the colour; a tie is grey."""
    if pair.verdict not in ("win", "loss"):
        return colors.track
    strength = 0.22 + 0.62 * min(abs((pair.ratio or 1) - 1) / _FULL, 1)
    color = np.array(to_rgb(colors.ours if pair.verdict == "win" else colors.worse))
    mixed = strength * color + (1 - strength) * np.array(to_rgb(colors.paper))
    return float(mixed[0]), float(mixed[1]), float(mixed[2])


def _legend(
    colors: Colors, library: str, found: Sequence[Standing], has_peaks: bool
) -> list[Artist]:
    entries: list[Artist] = [Patch(color=colors.ours, label="ours")]
    verdicts = {pair.verdict for each in found for pair in each.compared}
    if verdicts:
        mark: dict[str, Any] = {
            "marker": "|",
            "markersize": 10,
            "markeredgewidth": 2.6,
            "linestyle": "none",
        }
        entries.append(Line2D([], [], color=colors.library, label=library, **mark))
        entries.append(Patch(color=colors.worse, label="library faster"))
        entries.append(Patch(color=colors.track, label="tie"))
    if "doubt" in verdicts:
        looks: dict[str, Any] = {"facecolor": colors.track, "linewidth": 0}
        entries.append(Patch(hatch="//////", label="in doubt", **looks))
    if has_peaks and any(each.peak_at_clock for each in found):
        entries.append(Patch(color=colors.held, label="peak at the clock held"))
    return entries
