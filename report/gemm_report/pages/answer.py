"""The answer that a record gives, in a sentence, and what that leaves out."""

from collections.abc import Sequence

from gemm_report.record import Record, Row, rate
from gemm_report.rows import Standing, plain_layout, standings
from gemm_report.text import operations, percent, precision_name, quantity


def answer(record: Record) -> tuple[str, str]:
    """How fast our best kernel is in the precision that most GEMMs are in; then the others."""
    found = standings(record)
    fair = [  # but where the library was timed in a layout that its fast kernels do not take
        each
        for each in found
        if each.of_library and not each.slow_library
        if each.best.layout == plain_layout(each.best.precision)
    ]
    lead = _lead(fair) or _lead(found)
    if lead in fair:
        row, problems = lead.best, len(lead.compared)
        mean = f" over {problems} problems" if problems > 1 else ", of one problem"
        said = (
            f"Our best kernel reaches {percent(row.of_library)} of {_library(row)}'s rate in "
            f"{_problem(row)} ({row.label}, {_speed(row)}); "
            f"geometric mean{mean}: {percent(lead.of_library)}."
        )
    else:
        timed = record.rows_with("timed")
        fastest = lead.best if lead else max(timed, key=rate, default=None)
        if fastest is None:
            failed, skipped = (len(record.rows_with(each)) for each in ("failed", "skipped"))
            return f"Nothing was timed: {failed} failed, {skipped} skipped.", ""
        row, peak = fastest, fastest.of_roof_nominal
        share = f"{percent(peak)} of its peak" if peak else "its peak is not known"
        whose = "Our fastest kernel" if lead else "The fastest timed"
        said = f"{whose} in {_problem(row)} is {row.label}: {_speed(row)}, {share}."
    return said, _rest(found, fair, lead)


def _rest(found: Sequence[Standing], fair: Sequence[Standing], lead: Standing | None) -> str:
    said, without = [], []
    means = [f"{_name(each)} {percent(each.of_library)}" for each in fair if each is not lead]
    if means:
        said.append(f"Geometric means in other precisions: {', '.join(means)}.")
    for each in found:
        if not each.of_library:
            without.append(_name(each))
        elif each not in fair:
            share = (
                f"{percent(each.of_library)} of {_library(each.best)} in layout {each.best.layout}"
            )
            said.append(f"{_name(each)}: {share}, in which the library has no fast kernel.")
    if without:
        said.append(f"No library was timed in {', '.join(without)}.")
    return " ".join(said)


def _lead(found: Sequence[Standing]) -> Standing | None:
    return next((e for e in found if e.best.precision == "bf16"), next(iter(found), None))


def _name(standing: Standing) -> str:
    return precision_name(standing.best.precision)


def _problem(row: Row) -> str:
    return f"{precision_name(row.precision)} at {row.size}"


def _library(row: Row) -> str:
    return (row.library or "the library").partition("/")[0]


def _speed(row: Row) -> str:
    return quantity(rate(row), operations(row.precision))
