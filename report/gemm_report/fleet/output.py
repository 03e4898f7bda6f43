"""What was found of a fleet, as text and as JSON."""

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gemm_report.fleet.judging import Case, Fleet
from gemm_report.fleet.reading import BAD, LINKS, STATES, Gpu, state_of
from gemm_report.terminal import Tone, printable, toned
from gemm_report.text import columns, percent, quantity

_MOST_REASONS = 3
_OF_RATE = ("per_cycle", "sm_hz", "power_w", "temperature_c")
_LEGEND = """\
Spread: 1.48 times the median absolute deviation. Seen from: a larger loss of time is called slow.
Slowest, fastest: against the median of the other GPUs."""


def worst_first(fleet: Fleet) -> list[Gpu]:
    """By state, then by the largest loss."""

    def place(gpu: Gpu) -> tuple[int, float]:
        losses = [f.change for f in gpu.findings if f.change is not None]
        return STATES.index(state_of(gpu)), min(losses, default=0.0)

    return sorted(fleet.gpus, key=place)


def as_text(fleet: Fleet) -> str:
    """The groups, what is bad and why, what to do next, and the variation of each case."""
    parts = [head(fleet)]
    mark = toned(f"{'unclear':9}", Tone.WARN)
    parts.append("\n".join(f"{mark}  {printable(each)}" for each in fleet.unclear))
    bad = [gpu for gpu in worst_first(fleet) if state_of(gpu) not in ("unclear", "good")]
    if bad:
        parts.append("\n".join(map(_line, bad)))
        parts.append(_next(fleet, [gpu for gpu in bad if state_of(gpu) in BAD]))
    for group in dict.fromkeys(case.group for case in fleet.cases):
        cases = [case for case in fleet.cases if case.group == group]
        lines = columns(variation(cases), left=1)
        parts.append(f"{group}, {max(len(case.gpus) for case in cases)} GPUs:\n{lines}")
    if fleet.cases:
        parts.append(_LEGEND)
    return "\n\n".join(filter(None, parts))


def head(fleet: Fleet) -> str:
    """How many GPUs are in which state."""
    states = Counter(map(state_of, fleet.gpus))
    nodes = len({gpu.node for gpu in fleet.gpus})
    said = ", ".join(f"{states[state]} {state}" for state in reversed(STATES) if states[state])
    return f"{len(fleet.gpus)} GPUs of {nodes} node{'s' if nodes > 1 else ''}: {said}"


def reasons(gpu: Gpu) -> list[str]:
    """Why it is in its state, each with its case."""
    return [f"{f.case}: {f.text}" if f.case else f.text for f in gpu.findings]


def _line(gpu: Gpu) -> str:
    found = reasons(gpu)
    more = len(found) - _MOST_REASONS
    said = "; ".join(found[:_MOST_REASONS]) + (f"; {more} more" if more > 0 else "")
    state = toned(f"{state_of(gpu):9}", Tone.BAD if state_of(gpu) in BAD else Tone.WARN)
    return f"{state}  {gpu.node} {gpu.bus}  {said}"


def _next(fleet: Fleet, bad: Sequence[Gpu]) -> str:
    """Commands to copy; none is run here."""
    lines = []
    most = max(Counter(gpu.node for gpu in fleet.gpus).values())
    for node in dict.fromkeys(gpu.node for gpu in bad):
        its = [gpu for gpu in bad if gpu.node == node]
        # What has no record may have no bus id either: then all GPUs of the node run again.
        buses = ",".join(gpu.bus for gpu in its)
        chosen = "" if "?" in buses else f" --gpus {buses}"
        states = ", ".join(f"{gpu.bus} {state_of(gpu)}" for gpu in its)
        name, reason = shlex.quote(node), shlex.quote(f"gemm_bench: {states}")
        srun = f"srun -w {name} -N1 -n1 --exclusive --gpus-per-node={most}"
        lines.append(f"  rerun alone: {srun} tools/fleet AGAIN --one-at-a-time{chosen}")
        lines.append(f"  if it stays: scontrol update NodeName={name} State=DRAIN Reason={reason}")
    title = "Next (AGAIN is a new folder; on the host itself without srun):"
    return "\n".join([title, *lines]) if lines else ""


def variation(cases: Sequence[Case]) -> list[list[str]]:
    """A head, and a line for each case."""
    lines = [["case", "median", "spread", "seen from", "slowest", "fastest"]]
    for case in cases:
        unit = "B/s" if case.name.startswith(("DRAM", "L2", "PCIe", LINKS, "Shared")) else "FLOP/s"
        cells = [case.name, quantity(case.median, unit), f"{100 * case.spread:.2f} %"]
        ends = case.limit, case.changes.min(), case.changes.max()
        lines.append([*cells, *(percent(float(end)) for end in ends)])
    return lines


def as_json(fleet: Fleet) -> str:
    """Everything, for programs."""
    changes = fleet.changes()
    found = {
        "unclear": fleet.unclear,
        "gpus": [_gpu(gpu, changes) for gpu in worst_first(fleet)],
        "cases": [
            {
                "group": case.group._asdict(),
                "case": case.name,
                "gpus": len(case.gpus),
                "median_per_second": case.median,
                "spread": case.spread,
                "seen_from": case.limit,
            }
            for case in fleet.cases
        ],
    }
    return json.dumps(found, indent=1)


def _gpu(gpu: Gpu, changes: dict[tuple[str, str], float]) -> dict[str, Any]:
    return {
        "node": gpu.node,
        "pci_bus_id": gpu.bus,
        "uuid_hash": gpu.uuid,
        "state": state_of(gpu),
        "findings": [finding._asdict() for finding in gpu.findings],
        "group": gpu.group and gpu.group._asdict(),
        "record": gpu.path and gpu.path.name,
        "cases": {
            name: {
                "per_second": rate.value,
                "of_others": changes[place] + 1 if place in changes else None,
                **{key: getattr(rate, key) for key in _OF_RATE},
            }
            for name, rate in gpu.rates.items()
            for place in [(gpu.key, name)]
        },
    }
