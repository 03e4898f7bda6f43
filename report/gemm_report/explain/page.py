"""The page of an explanation: as text, as Markdown, as JSON, all of one list of parts."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from gemm_report.explain.diagnosis import Diagnosis, Finding, Step, stall_ranking
from gemm_report.explain.metrics import WORDS
from gemm_report.explain.observations import Observations
from gemm_report.record import Versus
from gemm_report.text import (
    columns,
    markdown_table,
    megahertz,
    percent,
    quantity,
    significant,
    times,
)

_STALLS = 5
_SOME = 1e-3  # of what a memory can do
# Any other form is a format string of Python.
_FORMATS: dict[str, Callable[..., str]] = {
    "MHz": megahertz,
    "digits": significant,
    "percent": percent,
    "seconds": lambda value: quantity(value, "s"),
    "times": times,
    "words": ", ".join,
}
_LEVEL_HEAD = ("memory", "modelled", "counted", "FLOP/byte", "peak", "limit", "used")


@dataclass(frozen=True)
class Explanation:
    """A row and what was found about it; how it was observed, and where not, why."""

    name: str
    seen: Observations
    diagnosis: Diagnosis
    how: str


def page(
    found: Explanation,
    versus: Explanation | None = None,
    interleaved: Versus | None = None,
    markdown: bool = False,
) -> str:
    """For a terminal, or as Markdown for a note or an issue."""
    bold, item, indent, gap = ("**", "   - ", "", [""]) if markdown else ("", " " * 5, "  ", [])
    lines = [f"{'## ' if markdown else ''}{headline(found)}", ""]
    for i, finding in enumerate(found.diagnosis.findings, 1):
        label = "".join(f" ({each})" for each in labels(finding))
        lines.append(f"{i}. {bold}{finding.title}{bold}{label}")
        lines += [item + each for each in finding.evidence]
    lines += ["", "Next:", *gap] if found.diagnosis.steps else []
    for i, step in enumerate(found.diagnosis.steps, 1):
        lines.append(f"{indent}{i}. {step_text(step)}")
    for title, head, rows in tables(found, versus):
        grid = markdown_table(head, rows) if markdown else columns([head, *rows], 1)
        lines += ["", f"{title}:", *gap, grid]
    if interleaved:
        lines += ["", compared(found, interleaved)]
    return "\n".join([*lines, "", found.how]) + "\n"


def headline(found: Explanation) -> str:
    """What ran where, and how fast."""
    seen, said = found.seen, f"{found.name} on {found.seen.device}"
    if seen.flop_per_second and seen.seconds:
        rate = quantity(seen.flop_per_second, "FLOP/s")
        said += f": {rate}, {quantity(seen.seconds, 's')} per launch"
    return said


def step_text(step: Step) -> str:
    """With the rung that shows it."""
    return step.text + (f" ({step.rung})" if step.rung else "")


def compared(found: Explanation, interleaved: Versus) -> str:
    """The ratio of speeds with its interval."""
    interval = f"({interleaved.low:.3f} to {interleaved.high:.3f})"
    said = f"{found.name} over {interleaved.kernel}, interleaved"
    return f"{said}: {times(interleaved.ratio)} {interval}"


def tables(
    found: Explanation, versus: Explanation | None
) -> list[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """Title, head and rows of those that have rows."""
    shown = [found] + ([versus] if versus else [])
    facts = [_facts(each.seen) for each in shown]
    names = dict.fromkeys(name for its in facts for name in its)
    observed = [(name, *(its.get(name, "-") for its in facts)) for name in names]
    levels = "Bytes per launch, and the bandwidth of each level"
    both = [
        (levels, _LEVEL_HEAD, _levels(found.seen)),
        ("Observed", ("", *(each.name for each in shown)), observed),
    ]
    return [each for each in both if each[2]]


def as_json(found: Explanation, versus: Explanation | None = None) -> str:
    """For a program: SI units; null is what was not observed."""
    both = {"explained": _plain(found), "versus": versus and _plain(versus)}
    return json.dumps({"schema": 1, **both}, indent=1) + "\n"


def _plain(found: Explanation) -> dict[str, object]:
    seen = asdict(found.seen)
    seen["stalls"] = dict(found.seen.stalls)
    for level, plain in zip(found.seen.levels, seen["levels"], strict=True):
        plain["used"] = found.seen.used(level)
        plain["flop_per_byte"] = found.seen.flop_per_byte(level)
        plain["is_modelled"] = level.is_modelled
    return {
        **{"name": found.name, "how": found.how, **asdict(found.diagnosis)},
        "observations": seen,
    }


def labels(finding: Finding) -> list[str]:
    """What it could save, and whether it is modelled."""
    what = f"could save {percent(finding.share)}" if finding.is_fault else ""
    if finding.kind == "spills" and finding.modelled:
        what = "at an unknown cost"
    return [each for each in (what, "modelled" if finding.modelled else "") if each]


def _levels(seen: Observations) -> list[tuple[str, ...]]:
    """Cells under _LEVEL_HEAD."""
    lines: list[tuple[str, ...]] = []
    for level in seen.levels:
        # A kernel without shared memory has a few wavefronts of it all the same.
        if level.bytes and (level.modelled_bytes != 0 or (seen.used(level) or 0) >= _SOME):
            intensity, roof = seen.flop_per_byte(level), level.roof_bytes_per_second
            cells = (
                level.modelled_bytes is not None and quantity(level.modelled_bytes, "B"),
                level.counted_bytes is not None and quantity(level.counted_bytes, "B"),
                intensity and significant(intensity),
                roof and quantity(roof, "B/s"),
                intensity and roof and quantity(intensity * roof, "FLOP/s"),
                percent(seen.used(level)),
            )
            lines.append((level.name, *(cell or "-" for cell in cells)))
    if seen.unit_flop_per_second and seen.flop_per_second:
        roof = seen.unit_flop_per_second
        at = f" at {megahertz(seen.unit_hz)}" if seen.unit_hz else ""
        peak = quantity(roof, "FLOP/s"), percent(seen.flop_per_second / roof)
        lines.append((f"{seen.unit}{at}", *("-",) * 4, *peak))
    return lines


def _facts(seen: Observations) -> dict[str, str]:
    """What was observed, by its name, without what was not."""
    facts: dict[str, str] = {}
    for name, what, form in WORDS["facts"]:
        value = getattr(seen, what)
        if what == "pipes":
            facts |= {name.format(pipe): percent(used) for pipe, used in value}
        elif value not in (None, ()):
            facts[name] = _FORMATS.get(form, form.format)(value)
    return facts | {
        f"warps {words} ({reason})": percent(share)
        for reason, words, share in stall_ranking(seen)[:_STALLS]
    }
