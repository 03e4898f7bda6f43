"""The ladder as a staircase: a bar for each idea that made the fastest kernel faster."""

import textwrap
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gemm_report.figures.page import sheet
from gemm_report.figures.palette import Colors
from gemm_report.figures.roofs import MEASURED, compute_roofs, kind
from gemm_report.notes import IN_DOUBT, notes
from gemm_report.record import Record, Row, rate
from gemm_report.rows import at_size, best_of, facts, rungs
from gemm_report.standing import standings
from gemm_report.text import (
    operations,
    percent,
    precision_name,
    prefix_for,
    scaled,
    significant,
    times,
)

STEP = 1.05  # over all rungs before
_WIDE = 44  # characters of a line of an idea
_GROUPS = (
    "CPU",
    "CUDA cores",
    "tensor cores, a warp at a time",
    "tensor cores, a warpgroup at a time",
)


@dataclass(frozen=True)
class Step:
    """A row that is faster than all before, the fastest of which it follows."""

    row: Row
    before: float  # FLOP/s; 0 at first
    idea: str


def steps(record: Record, precision: str) -> list[Step]:
    """The fastest variant of each rung that beats all rungs before by 5 %; not what picks one."""
    ideas = {kernel.name: kernel.idea for kernel in record.kernels}
    rows = [rung.row for rung in rungs(record, precision) if rung.row.kernel != "Best"]
    found, best = [], 0.0
    for row in best_of(rows, lambda row: row.kernel, rate):
        if rate(row) > STEP * best:
            found.append(Step(row, best, _short(ideas.get(row.kernel, "")) or row.kernel))
            best = rate(row)
    return found


def _short(idea: str) -> str:
    """Up to its first stop: the idea without its reason."""
    ends = [at for mark in (":", ";", ". ", ", ") if (at := idea.find(mark)) > 12]
    return idea[: min(ends, default=len(idea))].removesuffix(".")


def _name(library: Row) -> str:
    return "cuBLAS" if "cublas" in library.kernel.lower() else library.kernel


def group(row: Row) -> str:
    """What multiplies."""
    if row.family == "tensor":
        return _GROUPS[3 if "wgmma" in row.kernel.lower() else 2]
    return _GROUPS[0 if row.family == "cpu" else 1]


def table(record: Record, precision: str) -> list[dict[str, object]]:
    """The plotted data: the steps, then libraries and other implementations."""
    names = "family", "precision", "size", "flop_per_second"
    return [
        facts(each.row, *names, idea=each.idea, before_flop_per_second=each.before or None)
        for each in steps(record, precision)
    ] + [facts(row, *names) for row in _beside(record, precision)]


def _beside(record: Record, precision: str) -> list[Row]:
    """Without a library that is on its slow path."""
    slow = any(each.slow_library for each in standings(record) if each.precision == precision)
    rows = [row for row in at_size(record, precision) if not row.is_ours]
    return [row for row in rows if row.is_peer or not slow]


def draw(record: Record, colors: Colors, precision: str) -> Figure:
    """What each idea adds: kernels that are 5 % faster than all before them."""
    found, beside = steps(record, precision), _beside(record, precision)
    library = max((row for row in beside if row.is_library), key=rate, default=None)
    others = sorted((row for row in beside if row.is_peer), key=rate)
    first, last = found[0].row, found[-1].row
    roofs = compute_roofs(record, precision)
    speeds = [*map(rate, others), rate(last), rate(library) if library else 0]
    prefix = prefix_for([*speeds, *(roof.flop_per_second or 0 for roof in roofs)])
    count = f"in {len(found) - 1} step{'' if len(found) == 2 else 's'}"
    title = f"From {first.kernel} to {last.kernel} {count}"
    if library and len(found) > 1:
        share = f"{100 * rate(last) / rate(library):.0f} % of {_name(library)}"
        title = f"From {first.kernel} to {share} {count}"
    subtitle = (
        f"{precision_name(precision)}, {last.shape.replace('x', ' × ')}, {record.device.name}. "
    )
    subtitle += f"{rate(last) / rate(first):.3g} times as fast as the first; the solid part is "
    subtitle += "what each idea adds."
    shown = {group(step.row): None for step in found}
    ramp = dict(zip(_GROUPS, (colors.ours, colors.tie, colors.middle, colors.ours), strict=True))
    legend: list[Artist] = [Patch(color=ramp[each], label=each) for each in shown]
    legend += [Patch(color=colors.other, label="other implementations")] if others else []
    told = [said for said in notes(step.row for step in found) if said.startswith(IN_DOUBT)]
    doubtful = [said.replace(f"{IN_DOUBT} In doubt", "Hatched: in doubt") for said in told]
    labels = ["\n".join(textwrap.wrap(step.idea, _WIDE)) for step in found]
    labels += ["\n".join(textwrap.wrap(row.label, _WIDE)) for row in others]
    tall = 0.75 + sum(0.3 + 0.1 * label.count("\n") for label in labels)
    made = sheet(record, colors, title, subtitle, doubtful, tall, legend=legend)
    axes = made.subplots()
    axes.grid(visible=False)
    axes.set_ylim(len(labels) - 0.45, -0.6)
    axes.set_yticks(range(len(labels)), labels, size=8.5, color=colors.ink)
    top = max([*speeds, *(roof.flop_per_second or 0 for roof in roofs)])
    axes.set_xlim(0, scaled(top, prefix) * (1 if roofs else 1.12))
    axes.set_xlabel(prefix + operations(precision), loc="right", size=8)
    for y, step in enumerate(found):
        row, color = step.row, ramp[group(step.row)]
        before, now = scaled(step.before, prefix), scaled(rate(row), prefix)
        hatch: dict[str, Any] = {"hatch": "//////"} if bool(row.doubts) else {}
        axes.barh(y, before, height=0.76, color=color, alpha=0.25, linewidth=0)
        axes.barh(y, now - before, left=before, height=0.76, facecolor=color, linewidth=0, **hatch)
        gain = times(rate(row) / step.before) if step.before else ""
        _write(axes, y, now, gain, colors)
        said = f"{row.label}: {significant(now)} {prefix}{operations(precision)}"
        share = f", {percent(row.of_library)} of the library" if row.of_library else ""
        made.tip(axes, now, y, said + share)
    for y, row in enumerate(others, len(found)):
        now = scaled(rate(row), prefix)
        axes.barh(y, now, height=0.76, color=colors.other, linewidth=0)
        _write(axes, y, now, "", colors)
        made.tip(axes, now, y, f"{row.label}: {significant(now)} {prefix}{operations(precision)}")
    _draw_limits(axes, record, precision, library, prefix, colors)
    return made


def _write(axes: Axes, y: int, now: float, gain: str, colors: Colors) -> None:
    """The rate and its gain: beside a bar, or within a long one."""
    inside, number = now > 0.5 * axes.get_xlim()[1], significant(now)
    said = f"{gain}  {number}".strip() if inside else f"{number}  {gain}".strip()
    halo = {"facecolor": colors.paper, "edgecolor": "none", "boxstyle": "square,pad=0.12"}
    axes.annotate(
        said, (now, y), (-5 if inside else 5, 0), textcoords="offset points", va="center",
        ha="right" if inside else "left", size=8.5, weight="bold", zorder=5, color=colors.ink,
        bbox={**halo, "alpha": 0.85},
    )  # fmt: skip


def _draw_limits(
    axes: Axes, record: Record, precision: str, library: Row | None, prefix: str, colors: Colors
) -> None:
    """The library, what the power limit leaves, and the peak of the data sheet."""
    marks: list[tuple[float, str, str, float]] = []
    limit = record.device.power_limit_w
    for roof in compute_roofs(record, precision):
        x = scaled(roof.flop_per_second or 0, prefix)
        probe = f"measured{f', {limit:.0f} W' if limit else ''}"
        measured = kind(roof) == MEASURED
        marks.append(
            (x, probe if measured else "data sheet", colors.soft, 1.0 if measured else 1.6)
        )
    if library:
        marks.append((scaled(rate(library), prefix), _name(library), colors.library, 2.4))
    right = axes.get_xlim()[1]
    previous, level = 2 * right, 0
    for x, said, color, width in sorted(marks, reverse=True):
        axes.axvline(x, color=color, linewidth=width, zorder=1.5, clip_on=False)
        level = level + 1 if previous - x < 0.16 * right else 0
        previous = x
        align = "right" if x > 0.55 * right else "left"
        axes.annotate(
            f"{said} {significant(x)}", (x, 1), (0, 3 + 11 * level), ha=align, va="bottom", size=8,
            xycoords=axes.get_xaxis_transform(), textcoords="offset points", color=color,
            weight="bold" if width > 2 else "normal", annotation_clip=False,
        )  # fmt: skip
