"""What was found of a fleet as a page for the browser."""

from collections import Counter

from gemm_report.fleet.judging import Fleet
from gemm_report.fleet.output import head, reasons, variation, worst_first
from gemm_report.fleet.reading import BAD, STATES, Gpu, state_of
from gemm_report.pages.render import (
    Cell,
    Column,
    Line,
    chip,
    document,
    joined,
    table,
    tag,
)


def html_page(fleet: Fleet) -> str:
    """One file, which loads nothing: every GPU with its reasons, and each case."""
    columns: list[Column | str] = [
        *("node", "GPU"),
        Column("state", filtered=True),
        Column("why"),
        Column("slowest case", True, "against the median of the other GPUs"),
    ]
    worst: dict[str, float] = {}
    for (key, _), change in fleet.changes().items():
        worst[key] = min(change, worst.get(key, change))
    lines = [_line(gpu, worst.get(gpu.key)) for gpu in worst_first(fleet)]
    counts = Counter(map(state_of, fleet.gpus))
    chips = joined(chip(each, counts[each], "state", _tone(each)) for each in reversed(STATES))
    sections = [("gpus", "GPUs", table(columns, lines, "GPUs"))]
    for i, group in enumerate(dict.fromkeys(case.group for case in fleet.cases)):
        names, *rows = variation([case for case in fleet.cases if case.group == group])
        heads = [Column(name, is_number=at > 0) for at, name in enumerate(names)]
        cases = table(heads, rows, f"cases of {group}", tools=False)
        sections.append((f"cases-{i}", str(group), cases))
    unclear = [tag("p", each, class_="badge warn") for each in fleet.unclear]
    top = tag("header", tag("h1", head(fleet)), *unclear, tag("nav", chips, class_="chips"))
    parts = [tag("section", tag("h2", title), it, id=name) for name, title, it in sections]
    return document(head(fleet), joined([top, *parts], "\n"))


def _tone(state: str) -> str | None:
    return "bad" if state in BAD else None if state == "good" else "warn"


def _line(gpu: Gpu, worst: float | None) -> Line:
    state = state_of(gpu)
    badge = tag("span", state, class_=f"badge {_tone(state) or ''}".strip())
    slowest = "-" if worst is None else f"{100 * worst:+.1f} %"
    said = Cell(badge, choices=(state,)), "; ".join(reasons(gpu)) or "-"
    return Line([gpu.node, gpu.bus, *said, Cell(slowest, worst)], tone=_tone(state))
