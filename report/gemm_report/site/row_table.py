"""All rows of a record as a table that sorts and filters, and what each row unfolds to."""

from collections.abc import Sequence

from gemm_report.ladder.rows import ordered_rows
from gemm_report.record import DeviceCode, EndToEnd, Record, Row, Traffic
from gemm_report.site.markup import Html, joined, tag
from gemm_report.site.sparkline import sparkline
from gemm_report.site.table import Cell, Column, Line, table
from gemm_report.writing.quantity import (
    megahertz,
    percent,
    prefix_for,
    quantity,
    scaled,
    significant,
)

_NOTHING = "-"
_TONES = {"timed": None, "untimed": "warn", "skipped": "warn", "failed": "bad"}


def row_table(record: Record) -> Html:
    """Every row, by precision, rung and problem."""
    rows = ordered_rows(record)
    prefix = prefix_for(row.flop_per_second or 0 for row in rows if row.status == "timed")
    has_code = any(row.device_code for row in rows)
    lines = [
        Line(_cells(row, prefix, has_code), _details(row), anchor)
        for row, anchor in zip(rows, anchors(record).values(), strict=True)
    ]
    return table(_columns(prefix, has_code), lines, "rows")


def anchors(record: Record) -> dict[int, str]:
    """The name of each row's place on the page, by the id() of the row."""
    return {id(row): f"row-{i}" for i, row in enumerate(ordered_rows(record))}


def held_down_by(row: Row) -> str:
    """What the driver said that held the clocks down, the longest first."""
    return ", ".join(row.held_by) or "reason not recorded"


def _columns(prefix: str, has_code: bool) -> list[Column]:
    code = [
        Column("registers", True, "of a thread, in that GPU kernel of the launch that has most"),
        Column("occupancy", True, "share of the warps that a multiprocessor could hold; the least"),
    ]
    return [
        Column("kernel", filtered=True),
        Column("precision", filtered=True),
        Column("shape", hint="m x n x k"),
        Column("status", filtered=True),
        Column("time", True, "of one launch: the median of the samples"),
        Column(f"{prefix}FLOP/s", True),
        Column("of roof", True, "the lower of the arithmetic's roof and the memory's"),
        Column("at clock", True, "of the same roof at the clock that the card had"),
        Column("of library", True, "100 % is as fast as the fastest library"),
        Column("SM MHz", True, "median of the timed interval"),
        Column("W", True, "median of the timed interval"),
        Column("J", True, "of one product: median power times median time"),
        Column("of bound", True, "largest share of what rounding allows an element to be off"),
        *(code if has_code else ()),
        Column("samples", True),
    ]


def _cells(row: Row, prefix: str, has_code: bool) -> list[Cell]:
    rate = row.flop_per_second if row.status == "timed" else None
    seconds = row.seconds.median if row.seconds and row.status == "timed" else None
    watts = row.power_w
    joule = row.joules if row.status == "timed" else None
    hertz = row.sm_hz
    of_bound = row.verification.of_bound if row.verification else None
    return [
        Cell(row.label + row.ordinal, choices=(row.kernel,)),
        row.precision,
        Cell(row.shape, choices=(row.size,)),
        _status(row),
        _number(seconds, quantity(seconds, "s") if seconds else None),
        _number(rate, significant(scaled(rate, prefix)) if rate else None),
        *(
            _number(share, percent(share))
            for share in (row.of_roof_nominal, row.of_roof_at_clock, row.of_library)
        ),
        _number(hertz, f"{hertz / 1e6:.0f}" if hertz else None),
        _number(watts, f"{watts:.0f}" if watts else None),
        _number(joule, quantity(joule, "J") if joule else None),
        _number(of_bound, percent(of_bound)),
        *(_code_cells(row.device_code) if has_code else ()),
        _number(len(row.samples_seconds), str(len(row.samples_seconds))),
    ]


def _number(value: float | None, text: str | None) -> Cell:
    return _NOTHING if value is None or text is None else Cell(text, value)


def _code_cells(codes: Sequence[DeviceCode]) -> list[Cell]:
    registers = [code.registers for code in codes if code.registers is not None]
    occupancies = [code.occupancy for code in codes if code.occupancy is not None]
    return [
        Cell(str(max(registers)), max(registers)) if registers else _NOTHING,
        Cell(f"{100 * min(occupancies):.0f} %", min(occupancies)) if occupancies else _NOTHING,
    ]


def _status(row: Row) -> Cell:
    words = [(row.status, _TONES[row.status])]
    if row.status == "timed":
        words = [("throttled", "warn")] if row.throttled else []
        words += [("departs", "warn")] if row.departures else []
    badges = [tag("span", word, class_=f"badge {tone or ''}".strip()) for word, tone in words]
    return Cell(
        joined(badges, " ") or Html("timed"),
        choices=tuple(dict.fromkeys([row.status, *(word for word, _ in words)])),
    )


def _details(row: Row) -> Html:
    facts = tag("dl", *(tag("div", tag("dt", k), tag("dd", v)) for k, v in _facts(row)))
    return tag("div", _samples(row), facts, _code(row), class_="unfolded")


def _samples(row: Row) -> Html:
    seconds, samples = row.seconds, row.samples_seconds
    if not seconds or not samples:
        return Html("")
    beyond = [
        f"{100 * (value / seconds.median - 1):+z.2f} %" for value in (min(samples), max(samples))
    ]
    spread = (seconds.q3 - seconds.q1) / seconds.median
    said = (
        f"{len(samples)} samples in order: {beyond[0]} to {beyond[1]} about the median, "
        f"{quantity(seconds.median, 's')}; quartiles {100 * spread:.2f} % apart"
    )
    line = sparkline(samples, seconds)
    return tag("div", line, tag("p", said, class_="quiet"), class_="samples")


def _facts(row: Row) -> list[tuple[str, str]]:
    checked = row.verification
    facts = [
        ("failed", row.failed),
        ("skipped", row.skipped),
        ("departs from the guideline", "; ".join(map(str, row.departures))),
        (
            "throttled",
            row.throttled and f"{percent(row.throttled_share)} of the time: {held_down_by(row)}",
        ),
        ("SM clock", row.sm_hz and megahertz(row.sm_hz)),
        ("roof", row.roof and f"{row.roof.name}, {quantity(row.roof.flop_per_second, 'FLOP/s')}"),
        ("fastest library", row.library),
        ("arithmetic intensity", f"{significant(row.flop_per_byte)} FLOP/byte"),
        ("bytes by the kernel's model", row.traffic and _traffic(row.traffic)),
        ("transfers", row.end_to_end and _transfers(row.end_to_end)),
        (
            "verification",
            "not verified"
            if checked is None
            else f"{'passed' if checked.passed else 'did not pass'}: largest error "
            f"{_or_dash(checked.max_error)}; at {percent(checked.of_bound)} of the bound where it "
            f"comes closest, {_or_dash(checked.bound)}",
        ),
        (
            "against a rival",
            row.versus
            and f"{percent(row.versus.ratio)} ({percent(row.versus.low)} to "
            f"{percent(row.versus.high)}) of {row.versus.kernel}",
        ),
        ("machine code", row.fingerprint),
    ]
    return [(name, said) for name, said in facts if said]


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.2e}"


def _traffic(traffic: Traffic) -> str:
    levels = {
        "DRAM": traffic.dram_bytes,
        "L2": traffic.l2_bytes,
        "shared memory": traffic.shared_bytes,
    }
    return ", ".join(f"{name} {quantity(moved, 'B')}" for name, moved in levels.items() if moved)


def _transfers(parts: EndToEnd) -> str:
    return (
        f"to device {quantity(parts.to_device_seconds, 's')}, kernel "
        f"{quantity(parts.kernel_seconds, 's')}, from device "
        f"{quantity(parts.from_device_seconds, 's')}; {percent(parts.hidden_share)} hidden"
    )


def _code(row: Row) -> Html:
    """The GPU kernels that the launch runs, with what was compiled where that is known."""
    if row.device_code:
        items = [joined([tag("code", code.name), _resources(code)]) for code in row.device_code]
    else:
        items = [tag("code", name) for name in row.device_kernels]
    if not items:
        return Html("")
    listed = tag("ul", *(tag("li", item) for item in items))
    return tag("div", tag("h3", "GPU kernels"), listed, class_="code")


def _resources(code: DeviceCode) -> str:
    facts = [
        code.registers is not None and f"{code.registers} registers",
        code.shared_bytes is not None and f"{code.shared_bytes} bytes of shared memory",
        code.local_bytes and f"{code.local_bytes} bytes of local memory",
        code.threads is not None and f"{code.threads} threads a block",
        code.blocks is not None and f"{code.blocks} blocks",
        code.occupancy is not None and f"occupancy {100 * code.occupancy:.0f} %",
        code.fingerprint and f"machine code {code.fingerprint}",
    ]
    said = ", ".join(fact for fact in facts if fact)
    return f": {said}" if said else ""
