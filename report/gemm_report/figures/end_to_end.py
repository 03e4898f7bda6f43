"""Host-to-device copy, kernel and device-to-host copy in one time, and each of them alone."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gemm_report.figures.bars import Line, bars
from gemm_report.figures.page import legend_above
from gemm_report.figures.palette import PALE, PRECISIONS
from gemm_report.notes import mark, notes
from gemm_report.record import EndToEnd, Part, Record, Row
from gemm_report.rows import drawn_rows, facts
from gemm_report.text import percent, precision_name, prefix_for, quantity, roof_name, scaled

_PARTS = dict(zip(("to device", "kernel", "from device"), PRECISIONS, strict=False))
_TOGETHER = PALE
_LINKS = ("PCIe_to_device", "PCIe_to_host")
_NO_DATA = ("to_device_bytes", "from_device_bytes")
_HEAD = ("together", "to device, of PCIe", "from device, of PCIe", "hidden")


@dataclass(frozen=True)
class Transfer:
    """A row with its time and its parts."""

    row: Row
    seconds: float
    parts: EndToEnd


def transfers(record: Record) -> list[Transfer]:
    """Those with a time and with parts, by precision, problem, kernel and transfer."""
    rows = drawn_rows(record, Part.END_TO_END)
    found = [
        Transfer(r, r.seconds.median, r.end_to_end) for r in rows if r.seconds and r.end_to_end
    ]
    # Sorting is stable: within a problem the order stays that of the ladder.
    return sorted(found, key=_problem)


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        facts(each.row, "transfer", "precision", "shape", kernel=each.row.kernel_label)
        | {"seconds": each.seconds}
        | {key: value for key, value in asdict(each.parts).items() if key not in _NO_DATA}
        for each in transfers(record)
    ]


def draw(record: Record) -> Figure:
    """Copies and kernel together, next to what each of them takes alone."""
    panels = [list(rows) for _, rows in groupby(transfers(record), key=_problem)]
    lines = [[_line(record, each) for each in panel] for panel in panels]
    remarks = _notes(record, [each.row for panel in panels for each in panel])
    figure, plots = bars(
        record, "end to end", remarks, _HEAD, lines, pitch=0.33, above=0.9, part=Part.END_TO_END
    )
    for panel, axes in zip(panels, plots, strict=True):
        _draw_panel(axes, panel)
    handles = [Patch(color=color, label=f"{part} alone") for part, color in _PARTS.items()]
    handles.append(Patch(color=_TOGETHER, label="together"))
    legend_above(plots[0], handles, columns=4, lines=2.6)
    return figure


def _problem(each: Transfer) -> tuple[str, int, int, int, int]:
    row = each.row
    return row.precision, row.volume, row.m, row.n, row.k


def _line(record: Record, each: Transfer) -> Line:
    """With rate and share of PCIe's bandwidth each way, and what is hidden of the copies."""
    row, parts = each.row, each.parts
    rates = parts.to_device_bytes_per_second, parts.from_device_bytes_per_second
    each_way = [
        quantity(rate, "B/s") + (f", {percent(rate / ceiling)}" if ceiling else "")
        for rate, ceiling in zip(rates, map(record.measured_rate, _LINKS), strict=True)
    ]
    together = quantity(each.seconds, "s") + mark(row)
    return Line(
        f"{row.kernel_label}, {row.transfer}", (together, *each_way, percent(parts.hidden_share))
    )


def _draw_panel(axes: Axes, panel: Sequence[Transfer]) -> None:
    alone = [
        (p.to_device_seconds, p.kernel_seconds, p.from_device_seconds)
        for p in (each.parts for each in panel)
    ]
    longest = max(*(each.seconds for each in panel), *map(sum, alone))
    prefix, row = prefix_for([longest]), panel[0].row
    axes.set_title(f"{precision_name(row.precision)}, {row.size}", pad=24)
    axes.set_xlim(0, scaled(longest, prefix) * 1.02)
    axes.set_xlabel(f"{prefix}s")
    for y, (each, seconds) in enumerate(zip(panel, alone, strict=True)):
        start = 0.0
        for part, color in zip(seconds, _PARTS.values(), strict=True):
            length = scaled(part, prefix)
            axes.barh(y - 0.2, length, height=0.36, left=start, color=color, zorder=2)
            start += length
        total = scaled(each.seconds, prefix)
        axes.barh(y + 0.2, total, height=0.36, color=_TOGETHER, zorder=2)


def _notes(record: Record, rows: Sequence[Row]) -> list[str]:
    known = [
        f"{roof_name(link)} {quantity(rate, 'B/s')}"
        for link in _LINKS
        if (rate := record.measured_rate(link))
    ]
    return [
        *notes(rows),
        "Hidden: transfer time hidden by overlap; below 0 all together took longer than the parts.",
        f"Measured bandwidths: {', '.join(known)}."
        if known
        else "PCIe's bandwidth was not measured.",
    ]
