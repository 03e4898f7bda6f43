"""Two runs in one figure: which rows are the same case, and which are in one run only."""

from collections.abc import Sequence

from gemm_report.document import RecordError
from gemm_report.notes import run_line
from gemm_report.record import Record, Row, told_apart
from gemm_report.rows import drawn_rows

_LISTED = 8


def check_device(record: Record, other: Record) -> None:
    """RecordError where one figure, with one set of peaks, would be wrong for both."""
    if devices := told_apart(other.device.model, record.device.model):
        raise RecordError(
            f"{other.path}: was made on {devices[0]}, {record.path.name} on {devices[1]}: "
            "give two records of one device"
        )


def pairs(record: Record, other: Record) -> list[tuple[Row, Row]]:
    """Rows of both records that are the same case."""
    old = {row.identity: row for row in drawn_rows(other)}
    return [(row, old[row.identity]) for row in drawn_rows(record) if row.identity in old]


def run_name(record: Record) -> str:
    """Short, for a legend: 937303dac991, 2026-11-21 10:44."""
    state = f", {record.method.state}" if record.method.state else ""
    return f"{record.commit_name}, {record.date[:16].replace('T', ' ')}{state}"


def versus_notes(record: Record, other: Record) -> list[str]:
    """What the older run was, in what the two differ, and what has no partner."""
    remarks = [f"Old run: {run_line(other)}."]
    new, old = record.device, other.device
    facts = {
        "GPU": (old.uuid_hash, new.uuid_hash),
        "driver": (old.driver, new.driver),
        "CUDA runtime": (old.runtime, new.runtime),
        "power limit": (old.power_limit_w, new.power_limit_w),
        "state": (other.method.state, record.method.state),
        "fill": (other.method.fill, record.method.fill),
        **{name: (was, record.releases.get(name)) for name, was in other.releases.items()},
    }
    differing = [name for name, (a, b) in facts.items() if None not in (a, b) and a != b]
    if differing:
        remarks.append(f"The two runs differ in: {', '.join(differing)}.")
    for name, ours, others in (("new", record, other), ("old", other, record)):
        if alone := _without_partner(drawn_rows(ours), drawn_rows(others)):
            remarks.append(f"Only in the {name} run: {alone}.")
    return remarks


def _without_partner(rows: Sequence[Row], others: Sequence[Row]) -> str:
    there = {row.identity for row in others}
    alone = [row for row in rows if row.identity not in there]
    kernels = {(row.label, row.precision) for row in others}
    other = [row for row in alone if (row.label, row.precision) not in kernels]
    names = list(dict.fromkeys(f"{row.label} {row.precision}" for row in other))
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    sizes = sorted({(row.volume, row.size) for row in alone if row not in other})
    problems = f"of the others the problems {', '.join(size for _, size in sizes)}"
    said = ", ".join([*names[:_LISTED], *more]), problems if sizes else ""
    return "; ".join(filter(None, said))
