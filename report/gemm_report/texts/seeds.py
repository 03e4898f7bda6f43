"""The tables of the documents that the ladder comes from, with our figures beside theirs.

What they published is written here once. What we say about it is computed from the record: a
sentence holds for what was measured, or it is another sentence.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import method_line, run_line
from gemm_report.ladder.rows import drawn_rows
from gemm_report.ladder.rungs import limits, rate
from gemm_report.record import Part, Record, Row
from gemm_report.texts.readme import as_text, link
from gemm_report.texts.summary import markdown_table, without_html
from gemm_report.writing.quantity import quantity, times

NONE = "—"
# What is nearer to 1 is no difference, and ratios that are nearer to each other are the same.
_EQUAL, _ALIKE = 1.05, 1.25


@dataclass(frozen=True)
class Step:
    """A kernel of a document, what it took there, and which of our rows does the same."""

    name: str
    label: str
    seconds: float | None = None
    # Of the same kernel with other parameters, where the record lacks the document's own.
    otherwise: str | None = None


@dataclass(frozen=True)
class Found:
    """A document with our rows: by label, None where the records have no time."""

    records: Sequence[Record]
    rows: Mapping[str, Row | None]
    published: Mapping[str, float]  # seconds

    def compared(self, what: str, slower: str, faster: str) -> str:
        """How many times as fast the second is, there and here."""
        theirs = self.published[slower] / self.published[faster]
        return compared(what, theirs, self.ratio(slower, faster))

    def ratio(self, slower: str, faster: str) -> float | None:
        """How many times as fast the second is here."""
        one, other = self.rows.get(slower), self.rows.get(faster)
        return rate(other) / rate(one) if one and other else None

    def binds(self, label: str) -> str | None:
        """The resource with the lowest modelled roof; none if the row is above it."""
        row = self.rows.get(label)
        its_records = [record for record in self.records if row in record.rows]
        lowest = [limit for record in its_records for limit in limits(record, row)] if row else []
        if row is None or not lowest or rate(row) > lowest[0].flop_per_second:
            return None
        return lowest[0].resource


@dataclass(frozen=True)
class Document:
    """What was published: where, on which card, for which problem."""

    title: str
    card: str
    precision: str
    shape: str | None
    steps: tuple[Step, ...]
    remarks: Callable[[Found], list[str]]
    # Not in the document's table, but needed to judge it.
    beside: tuple[Step, ...] = ()


def page(records: Sequence[Record], output: Path) -> str:
    """All documents, as Markdown that will lie in `output`."""
    sources = [
        "  \n".join(
            filter(
                None,
                [
                    f"**{record.device.name}**, [record]({link(output, record.path)})",
                    run_line(record),
                    method_line(record),
                    record.conformance,
                ],
            )
        )
        for record in records
    ]
    parts = [
        "# The seed documents, theirs beside ours",
        "The five documents from which the ladder comes, each with the figures that it published "
        "and what our kernel of the same idea does. Theirs are as printed: other cards, single "
        "cold runs or unstated methods. Ours are medians of verified rows. A step is over the line "
        "above it. `tools/report seeds` writes this page.",
        *sources,
    ]
    shown: list[Row] = []
    for document in DOCUMENTS:
        section, rows = _section(document, records)
        parts += section
        shown += rows
    return without_html("\n\n".join([*parts, *map(as_text, notes(shown))])) + "\n"


def _section(document: Document, records: Sequence[Record]) -> tuple[list[str], list[Row]]:
    steps = (*document.steps, *document.beside)
    rows = {step.label: _row(document, step, records) for step in steps}
    published = {step.label: step.seconds for step in document.steps if step.seconds}
    found = Found(records, rows, published)
    parts = [f"## {document.title}", document.card]
    if document.steps:
        parts.append(_table(document, rows))
    if missing := [step.label for step in steps if rows[step.label] is None]:
        where = document.shape or "a cube that they share"
        names = ", ".join(missing)
        parts.append(f"Not in the record with a time ({document.precision}, {where}): {names}.")
    parts += [f"- {remark}" for remark in document.remarks(found)]
    return _joined_items(parts), [row for row in rows.values() if row]


def _joined_items(parts: Iterable[str]) -> list[str]:
    joined: list[str] = []
    for part in parts:
        if joined and part.startswith("- ") and joined[-1].startswith("- "):
            joined[-1] += f"\n{part}"
        else:
            joined.append(part)
    return joined


def _row(document: Document, step: Step, records: Sequence[Record]) -> Row | None:
    rows = [
        row
        for record in records
        for row in drawn_rows(record) + drawn_rows(record, Part.TUNING)
        if row.precision == document.precision
    ]
    shape = document.shape or _common_cube(document, rows)
    at_shape = [row for row in rows if row.shape == shape]
    wanted = [row for row in at_shape if row.label == step.label]
    return next(iter(wanted + [row for row in at_shape if row.label == step.otherwise]), None)


def _common_cube(document: Document, rows: Sequence[Row]) -> str | None:
    """The largest cube that all steps have: for a document that does not say its size."""
    of_steps = [
        {row.m for row in rows if row.is_cube and row.label == step.label}
        for step in document.steps
    ]
    size = max(set.intersection(*of_steps), default=None)
    return size and f"{size}x{size}x{size}"


def _table(document: Document, rows: Mapping[str, Row | None]) -> str:
    has_times = any(step.seconds for step in document.steps)
    lines: list[list[str]] = []
    before: Step | None = None
    for step in document.steps:
        row, below = rows[step.label], before and rows[before.label]
        theirs = (
            [
                quantity(step.seconds, "s") if step.seconds else NONE,
                _their_rate(document, step),
                _over(before and before.seconds, step.seconds),
            ]
            if has_times
            else []
        )
        ours = [
            row.label if row else step.label,
            row.shape if row else NONE,
            quantity(row.seconds.median, "s") if row and row.seconds else NONE,
            as_text(quantity(rate(row), "FLOP/s") + mark(row)) if row else NONE,
            times(rate(row) / rate(below)) if row and below else "" if before is None else NONE,
        ]
        lines.append([step.name, *theirs, *ours])
        before = step
    head = ["theirs", *(["time", "rate", "step"] if has_times else [])]
    return markdown_table([*head, "ours", "problem", "time", "rate", "step"], lines)


def _their_rate(document: Document, step: Step) -> str:
    if document.shape is None or step.seconds is None:
        return NONE
    m, n, k = map(int, document.shape.split("x"))
    return quantity(2 * m * n * k / step.seconds, "FLOP/s")


def _over(before: float | None, seconds: float | None) -> str:
    return times(before / seconds) if before and seconds else ""


def compared(what: str, theirs: float, ours: float | None) -> str:
    """Both ratios, and whether they say the same."""
    if ours is None:
        return f"**{what}**: {times(theirs)} there; our row is missing."
    if _side(theirs) != _side(ours):
        verdict = "the record disagrees"
    elif max(theirs / ours, ours / theirs) < _ALIKE:
        verdict = "the record agrees"
    else:
        verdict = f"the same direction, and {'more' if _beyond(ours, theirs) else 'less'} of it"
    return f"**{what}**: {times(theirs)} there, {times(ours)} here: {verdict}."


def _side(ratio: float) -> int:
    return (ratio > _EQUAL) - (ratio < 1 / _EQUAL)


def _beyond(ours: float, theirs: float) -> bool:
    return ours > theirs if theirs > 1 else ours < theirs


def _told(ratio: float | None, faster: str, same: str, slower: str) -> str:
    """The sentence that the ratio bears out."""
    if ratio is None:
        return "Rows that could tell are missing."
    return (slower, same, faster)[1 + _side(ratio)].format(times(ratio))


def _bound(found: Found, *labels: str) -> str:
    """What binds each of our rows, as far as the record has a model of it."""
    known = [(label, found.binds(label)) for label in labels]
    told = [f"{resource} binds `{label}`" for label, resource in known if resource]
    return f" By the model of the record, {' and '.join(told)}." if told else ""


def _blog(found: Found) -> list[str]:
    cpu = found.rows["CpuNaive"]
    their_cpu = 2 * 1024 * 1024 * 768 / found.published["CpuNaive"]
    return [
        found.compared("CPU to naive", "CpuNaive", "Naive")
        + " The figure says as much about the CPU's compiler as about the GPU: theirs does "
        + quantity(their_cpu, "FLOP/s")
        + ", which looks like a build without optimisation"
        + (f"; the same loop does {quantity(rate(cpu), 'FLOP/s')} here." if cpu else "."),
        found.compared("Naive to tiled", "Naive", "Tiled/tile:16")
        + " The tile takes the reads of A and B from the L1 and the L2 to shared memory; each "
        "product still needs two of them. What it gains is what the L1 did not give already."
        + _bound(found, "Naive", "Tiled/tile:16"),
        "As printed the bounds are tested on indices inside the tile, and both barriers are lost: "
        "ours tests the global ones. Theirs is one cold launch, ours a settled card.",
    ]


def _integers(found: Found) -> list[str]:
    return [
        found.compared("Naive to tiled", "Naive", "Tiled/tile:16")
        + ' The text rounds it to "2x". N is not stated, so that a ratio is all that can be '
        "compared; ours is at the largest cube that both have."
        + _bound(found, "Naive", "Tiled/tile:16"),
        "Their tiles are float: every element goes from int to float and back, which is exact up "
        "to 2^24 only. Ours are int, and exact.",
    ]


def _report(found: Found) -> list[str]:
    padded = found.ratio("TiledTransposedStore", "TiledPadded")
    apart = found.ratio("Naive", "NaiveTransposed/transpose:apart")
    return [
        found.compared("Swapped to coalesced", "NaiveUncoalesced", "Naive")
        + " The report says that the loads of B are no longer coalesced. It is A, and the store of "
        "C, that go strided: a warp then walks down their rows, and B is one element for all of "
        "it. And 128 bytes are 32 floats, not 4.",
        found.compared("Naive to transposing A first", "Naive", "NaiveTransposed/transpose:timed")
        + " The report blames the time of the transpose for small gains. In the naive kernel a "
        "warp reads one element of A and shares it, so that there is nothing to coalesce. "
        + _told(
            apart,
            "Yet with the transpose outside the timing it is {} of the naive one here, which a "
            "shared element does not explain.",
            "With the transpose outside the timing it is {} of the naive one here: nothing gained.",
            "With the transpose outside the timing it is {} of the naive one here: a loss even "
            "then.",
        )
        + " As printed, the kernel reads A, not its transpose.",
        found.compared("Naive to shared tiles", "Naive", "TiledTransposedStore")
        + ' The report suspects "different hardware specifications". Its tiles are stored '
        "transposed: three of its four accesses have all 32 lanes on one bank. "
        + _told(
            padded,
            "A column of padding and nothing else makes it {} as fast here: bank conflicts it is.",
            "A column of padding leaves it as it is here ({}): on this card the conflicts are not "
            "what holds it up.",
            "A column of padding makes it slower here ({}): on this card the conflicts are not "
            "what holds it up.",
        )
        + _bound(found, "Naive", "TiledTransposedStore"),
        found.compared("Naive to 1D tile", "Naive", _TILE_1D)
        + " One element of B, once in a register, serves as many products as the thread has "
        "results. As printed it reads 72 of the 128 rows of its tile.",
    ]


def _numba(found: Found) -> list[str]:
    return [
        "No times are published, and no card is named. Its worked examples, 4x4 and 5x23 times "
        "23x7, are tests of ours.",
        "The naive example takes rows for neighbouring threads, which is what `NaiveUncoalesced` "
        "shows, and adds in FP64. The tiled one loops over as many tiles as the grid has columns "
        "of blocks, which is right only where that covers K.",
    ]


def _course(found: Found) -> list[str]:
    there = [step for step in _COURSE_STEPS if found.rows[step.label]]
    steps = [(one, two, found.ratio(one.label, two.label)) for one, two in pairwise(there)]
    down = [f"{two.label} ({times(r)} of {one.label})" for one, two, r in steps if r and r < 1]
    order = (
        "Every step that the record has is a step up here too."
        if steps and not down
        else f"Not every step is one up here: {', '.join(down)}."
        if down
        else "The record lacks the rows to tell whether every step is one up."
    )
    return [
        f"The results are pictures, of which no figure can be read; what is left is the order. "
        f"{order}",
        "**Bank conflicts**: "
        + _told(
            found.ratio("TiledTransposedB", _FREE),
            "without them the tile is {} as fast here.",
            "without them the tile is {} as fast here: no different.",
            "without them the tile is {} as fast here: something else holds it up.",
        )
        + " The document counts 16 banks; on 32 of them, and with 16 x 16 tiles, they are 8-way.",
        'After its tiled kernels the document is "computation bound".'
        + (_bound(found, _FREE) or f" The record has no model of `{_FREE}` to tell by."),
        'That the outer product wins since an instruction allows "one source operand from the '
        'shared memory" is dated: since Maxwell a multiply-add takes none. '
        + _told(
            found.ratio(_FREE, "OuterProduct"),
            "It is {} of the conflict-free tile here, since an element of B in a register serves "
            "16 products, and that saves loads.",
            "It is {} of the conflict-free tile here: no different.",
            "It is {} of the conflict-free tile here: a block of 64 threads has less to hide "
            "latency with than one of 256.",
        ),
    ]


_FREE = "TiledConflictFree"
_TILE_1D = "BlockTile1D/BM:128/BN:128/BK:8/NR:16"
_COURSE_STEPS = (
    Step("serial code", "CpuNaive"),
    Step("naive", "Naive"),
    Step("tiling, B not coalesced", "TiledUncoalescedB"),
    Step("B transposed beforehand", "TiledTransposedB"),
    Step("no bank conflicts", _FREE),
    Step("outer product", "OuterProduct"),
    Step("loop unrolling", "OuterProductUnrolled"),
    Step("prefetching", "OuterProductPrefetch"),
)

DOCUMENTS = (
    Document(
        title="000: a blog post on matrix multiplication in CUDA",
        card="Tesla T4 on Google Colab, float, 1024 x 768 times 768 x 1024; tiles of 16 x 16.",
        precision="f32",
        shape="1024x1024x768",
        steps=(
            Step("C++ CPU matrix multiplication", "CpuNaive", 8.55451),
            Step("Naive CUDA kernel", "Naive", 7.08397e-3),
            Step("Shared memory CUDA kernel", "Tiled/tile:16", 4.42471e-3),
        ),
        remarks=_blog,
    ),
    Document(
        title="001: a blog post on shared memory, with integers",
        card="GTX 1060, int, a square size that is not stated; blocks of 16 x 16.",
        precision="s32",
        shape=None,
        steps=(
            Step("default", "Naive", 9.98e-3),
            Step("optimized", "Tiled/tile:16", 4.22e-3),
        ),
        remarks=_integers,
    ),
    Document(
        title='002: "Optimizing Matrix Multiplication in CUDA", a course report, May 1, 2025',
        card="Quadro RTX 5000 (11.2 TFLOP/s, 448 GB/s), float, 4092 x 4092; blocks of 32 x 32.",
        precision="f32",
        shape="4092x4092x4092",
        steps=(
            Step("indices swapped", "NaiveUncoalesced", 1.591),
            Step("naive", "Naive", 0.177),
            Step("transposing of A", "NaiveTransposed/transpose:timed", 0.189),
            Step("shared memory tiling", "TiledTransposedStore", 0.180),
            Step(
                "blocktiling, NR = 16",
                _TILE_1D,
                0.095,
                otherwise="BlockTile1D",
            ),
        ),
        beside=(
            Step("transposed outside the timing", "NaiveTransposed/transpose:apart"),
            Step("the shared tiles, padded", "TiledPadded"),
        ),
        remarks=_report,
    ),
    Document(
        title="003: matrix multiplication in the documentation of Numba",
        card="Python, `cuda.jit`; tiles of 16 x 16.",
        precision="f32",
        shape=None,
        steps=(),
        remarks=_numba,
    ),
    Document(
        title="004: matrix multiplication, a course page of 5kk73 at TU Eindhoven, 2013",
        card="Tuned for an 8800 GT at 4096 x 4096, float; tiles of 16 x 16.",
        precision="f32",
        shape="4096x4096x4096",
        steps=_COURSE_STEPS,
        remarks=_course,
    ),
)
