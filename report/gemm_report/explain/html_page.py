"""An explanation as a page for the browser."""

from collections.abc import Sequence

from gemm_report.explain.page import Explanation, compared, headline, labels, step_text, tables
from gemm_report.pages.picture import Picture
from gemm_report.pages.render import Column, document, rendered, table
from gemm_report.record import Versus


def html_page(
    found: Explanation,
    versus: Explanation | None,
    interleaved: Versus | None,
    pictures: Sequence[Picture],
) -> str:
    """One file, which loads nothing; the files of `pictures` are stored next to it."""
    sections = []
    if pictures:
        sections.append(("Memory", rendered("figures", pictures=pictures, size="large")))
    for title, head, rows in tables(found, versus):
        heads = [Column(name or "fact", is_number=i > 0) for i, name in enumerate(head)]
        sections.append((title, table(heads, rows, f"lines: {title}", tools=False)))
    return document(
        f"Why {found.name} is not faster",
        "",
        "explain",
        how=found.how,
        headline=headline(found),
        compared=interleaved and compared(found, interleaved),
        findings=[(each.title, labels(each), each.evidence) for each in found.diagnosis.findings],
        steps=[step_text(each) for each in found.diagnosis.steps],
        sections=sections,
    )
