"""The answer that a record gives, in a sentence, and the score over all problems."""

from gemm_report.figures.headline import library_name, score
from gemm_report.record import Record, Row, rate
from gemm_report.standing import Standing, bound, standings
from gemm_report.text import operations, percent, precision_name, quantity


def answer(record: Record) -> tuple[str, str]:
    """How fast our best kernel is in the precision that most GEMMs are in; then all problems."""
    found = standings(record)
    lead = next((each for each in found if each.compared), next(iter(found), None))
    if lead is None:
        fastest = max(record.rows_with("timed"), key=rate, default=None)
        if fastest is None:
            failed, skipped = (len(record.rows_with(each)) for each in ("failed", "skipped"))
            return f"Nothing was timed: {failed} failed, {skipped} skipped.", ""
        return (
            f"The fastest timed in {_problem(fastest)} is {fastest.label}: {_speed(fastest)}.",
            "",
        )
    row, ratio = lead.lead.ours, lead.lead.ratio if lead.compared else None
    said = f"{_problem(row)}: {row.label} reaches {_speed(row)}"
    if ratio:
        low, high = lead.lead.interval
        said += f", {ratio:.2f} of {lead.lead.opponent} ({low:.2f} to {high:.2f}"
        said += ", in doubt)" if lead.lead.in_doubt else ")"
    said += f", {percent(row.of_roof_nominal)} of its peak" if row.of_roof_nominal else ""
    limit = bound(record, row)
    said += f"; bound by {limit}." if limit != "-" else "."
    return said, _rest(found)


def _rest(found: list[Standing]) -> str:
    problems = sum(len(each.compared) for each in found)
    said = (
        [f"Over {problems} problems: {score(found)} against {library_name(found)}."]
        if problems
        else []
    )
    for each in found:
        if not each.compared:
            said.append(f"{each.name}: {each.why_not}.")
    return " ".join(said)


def _problem(row: Row) -> str:
    return f"{precision_name(row.precision)} at {row.size}"


def _speed(row: Row) -> str:
    return quantity(rate(row), operations(row.precision))
