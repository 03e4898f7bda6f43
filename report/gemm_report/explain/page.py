"""The page of an explanation: as text, as Markdown, as JSON, all of one list of parts."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from gemm_report.explain.diagnosis import Diagnosis, Finding, Kind, Step, stall_ranking
from gemm_report.explain.observations import Level, Observations
from gemm_report.writing.columns import columns
from gemm_report.writing.quantity import megahertz, percent, quantity, significant, times

_STALLS = 5
_SOME = 1e-3  # of what a memory can do

T = TypeVar("T")


@dataclass(frozen=True)
class Explanation:
    """A row and what was found about it; how it was observed, and where not, why."""

    name: str
    seen: Observations
    diagnosis: Diagnosis
    how: str


@dataclass(frozen=True)
class _Table:
    title: str
    head: tuple[str, ...]
    lines: list[tuple[str, ...]]


def text(found: Explanation, versus: Explanation | None = None, ratio: str = "") -> str:
    """For a terminal."""
    lines = [_headline(found), ""]
    for i, finding in enumerate(found.diagnosis.findings, 1):
        lines.append(f"{i}. {finding.title}{_label(finding)}")
        lines += [f"     {each}" for each in finding.evidence]
    lines += ["", "Next:"] if found.diagnosis.steps else []
    lines += [f"  {i}. {_step(step)}" for i, step in enumerate(found.diagnosis.steps, 1)]
    for table in _tables(found, versus):
        lines += ["", f"{table.title}:", columns([table.head, *table.lines], 1)]
    if ratio:
        lines += ["", ratio]
    return "\n".join([*lines, "", found.how]) + "\n"


def markdown(found: Explanation, versus: Explanation | None = None, ratio: str = "") -> str:
    """For a note or an issue."""
    lines = [f"## {_headline(found)}", ""]
    for i, finding in enumerate(found.diagnosis.findings, 1):
        lines.append(f"{i}. **{finding.title}**{_label(finding)}")
        lines += [f"   - {each}" for each in finding.evidence]
    lines += ["", "Next:", ""] if found.diagnosis.steps else []
    lines += [f"{i}. {_step(step)}" for i, step in enumerate(found.diagnosis.steps, 1)]
    for table in _tables(found, versus):
        lines += ["", f"{table.title}:", ""]
        rows = [table.head, ("---",) * len(table.head), *table.lines]
        lines += ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows]
    if ratio:
        lines += ["", ratio]
    return "\n".join([*lines, "", found.how]) + "\n"


def as_json(found: Explanation, versus: Explanation | None = None) -> str:
    """For a program: SI units; null is what nobody observed."""
    both = {"explained": _plain(found), "versus": versus and _plain(versus)}
    return json.dumps({"schema": 1, **both}, indent=1) + "\n"


def _plain(found: Explanation) -> dict[str, object]:
    seen = asdict(found.seen)
    seen["stalls"] = dict(found.seen.stalls)
    for level, plain in zip(found.seen.levels, seen["levels"], strict=True):
        plain["used"] = found.seen.used(level)
        plain["flop_per_byte"] = _intensity(found.seen, level.bytes)
        plain["is_modelled"] = level.is_modelled
    return {
        "name": found.name,
        "how": found.how,
        "findings": [
            {**asdict(finding), "kind": finding.kind.value} for finding in found.diagnosis.findings
        ],
        "steps": [asdict(step) for step in found.diagnosis.steps],
        "observations": seen,
    }


def _headline(found: Explanation) -> str:
    seen = found.seen
    parts = [f"{found.name} on {seen.device}"]
    if seen.flop_per_second and seen.seconds:
        rate = quantity(seen.flop_per_second, "FLOP/s")
        parts.append(f"{rate}, {quantity(seen.seconds, 's')} a launch")
    return ": ".join(parts)


def _label(finding: Finding) -> str:
    what = f"could save {percent(finding.share)}" if finding.is_fault else ""
    if finding.kind is Kind.SPILLS and finding.modelled:
        what = "at an unknown cost"
    return "".join(f" ({each})" for each in (what, "modelled" if finding.modelled else "") if each)


def _step(step: Step) -> str:
    return f"{step.text} ({step.rung})" if step.rung else step.text


def _tables(found: Explanation, versus: Explanation | None) -> list[_Table]:
    tables = [_levels(found.seen), _facts(found, versus)]
    return [table for table in tables if table.lines]


def _levels(seen: Observations) -> _Table:
    lines = [
        (
            level.name,
            _bytes(level.modelled_bytes),
            _bytes(level.counted_bytes),
            _or_dash(_intensity(seen, level.bytes), significant),
            _bytes(level.roof_bytes_per_second, "B/s"),
            _or_dash(_at_most(seen, level), lambda rate: quantity(rate, "FLOP/s")),
            percent(seen.used(level)),
        )
        for level in seen.levels
        # A kernel without shared memory has a few wavefronts of it all the same.
        if level.bytes and (level.modelled_bytes != 0 or (seen.used(level) or 0) >= _SOME)
    ]
    if seen.unit_flop_per_second and seen.flop_per_second:
        roof = seen.unit_flop_per_second
        used = percent(seen.flop_per_second / roof)
        nothing = ("-",) * 4
        at = f" at {megahertz(seen.unit_hz)}" if seen.unit_hz else ""
        lines.append((f"{seen.unit}{at}", *nothing, quantity(roof, "FLOP/s"), used))
    head = ("memory", "modelled", "counted", "FLOP/byte", "roof", "at most", "used")
    return _Table("Bytes of a launch, and each level's roof", head, lines)


def _facts(found: Explanation, versus: Explanation | None) -> _Table:
    both = [found] + ([versus] if versus else [])
    columns_of_facts = [dict(_all_facts(each.seen)) for each in both]
    names = list(dict.fromkeys(name for facts in columns_of_facts for name in facts))
    lines = [(name, *(facts.get(name, "-") for facts in columns_of_facts)) for name in names]
    return _Table("Observed", ("", *(each.name for each in both)), lines)


def _all_facts(seen: Observations) -> list[tuple[str, str]]:
    facts: list[tuple[str, str | None]] = [
        ("time of a launch", _or_none(seen.seconds, lambda v: quantity(v, "s"))),
        ("its kernels alone", _or_none(seen.kernel_seconds, lambda v: quantity(v, "s"))),
        ("clock", _or_none(seen.sm_hz, megahertz)),
        ("power", _or_none(seen.power_w, lambda v: f"{v:.0f} W")),
        ("throttled", _or_none(seen.throttled_share, percent)),
        ("kernels in a launch", str(seen.launches)),
        ("blocks", _or_none(seen.blocks, str)),
        ("waves", _or_none(seen.waves, lambda v: f"{v:.2f}")),
        ("threads a block", _or_none(seen.threads, str)),
        ("registers a thread", _or_none(seen.registers, str)),
        ("shared memory a block", _or_none(seen.shared_bytes, lambda v: f"{v} B")),
        ("local memory a thread", _or_none(seen.local_bytes, lambda v: f"{v} B")),
        ("occupancy, at most", _or_none(seen.occupancy, percent)),
        ("its limit", ", ".join(seen.occupancy_limits) or None),
        ("occupancy, counted", _or_none(seen.warps_active, percent)),
        ("multiprocessors idle", _or_none(seen.idle_share, percent)),
        ("issue active", _or_none(seen.issue_active, percent)),
        ("FFMA of instructions", _or_none(seen.ffma_share, percent)),
        ("tensor of instructions", _or_none(seen.tensor_share, percent)),
        ("FLOP counted over needed", _work(seen)),
        ("sectors a load", _or_none(seen.sectors_per_load, lambda v: f"{v:.2f}")),
        ("sectors a store", _or_none(seen.sectors_per_store, lambda v: f"{v:.2f}")),
        ("wanted of a sector", _or_none(seen.sector_use, percent)),
        ("found in the L1", _or_none(seen.l1_hits, percent)),
        ("found in the L2", _or_none(seen.l2_hits, percent)),
        ("bank conflicts", _or_none(seen.conflict_share, percent)),
        ("requests for spills", _or_none(seen.local_share, percent)),
    ]
    facts += [
        (f"warps {words} ({reason})", percent(share))
        for reason, words, share in stall_ranking(seen)[:_STALLS]
    ]
    return [(name, value) for name, value in facts if value is not None]


def _work(seen: Observations) -> str | None:
    if not (seen.counted_flop and seen.flop):
        return None
    return times(seen.counted_flop / seen.flop)


def _intensity(seen: Observations, moved: float | None) -> float | None:
    return seen.flop / moved if seen.flop and moved else None


def _at_most(seen: Observations, level: Level) -> float | None:
    intensity, roof = _intensity(seen, level.bytes), level.roof_bytes_per_second
    return intensity * roof if intensity and roof else None


def _bytes(value: float | None, unit: str = "B") -> str:
    return _or_dash(value, lambda given: quantity(given, unit))


def _or_dash(value: T | None, told: Callable[[T], str]) -> str:
    return "-" if value is None else told(value)


def _or_none(value: T | None, told: Callable[[T], str]) -> str | None:
    return None if value is None else told(value)


def ratio_text(names: Sequence[str], ratio: float, low: float, high: float) -> str:
    """What taking turns said."""
    first, second = names
    return f"{first} over {second}, in turns: {times(ratio)} ({low:.3f} to {high:.3f})"
