import dataclasses
import re
from pathlib import Path

import pytest

from gemm_report.cli import BAD_INPUT, main
from gemm_report.record import Record, Row, read_record
from gemm_report.texts.seeds import DOCUMENTS, compared, page

OUTPUT = Path("results/seeds.md")


def section(text: str, document: str) -> str:
    """What the page says about one of the documents."""
    (found,) = (part for part in text.split("\n## ") if part.startswith(document))
    return found


def with_rates(record: Record, document: str, rates: dict[str, float]) -> Record:
    """`record` with these rows (TFLOP/s) for the problem of a document."""
    (its,) = (each for each in DOCUMENTS if each.title.startswith(document))
    assert its.shape
    m, n, k = map(int, its.shape.split("x"))
    row = next(row for row in record.rows if row.kernel == "Naive" and row.status == "timed")

    def made(label: str, rate: float) -> Row:
        kernel, *parameters = label.split("/")
        return dataclasses.replace(
            row,
            kernel=kernel,
            parameters=tuple(tuple(each.split(":")) for each in parameters),
            flop_per_second=rate * 1e12,
            m=m,
            n=n,
            k=k,
        )

    return dataclasses.replace(
        record, rows=tuple(made(label, rate) for label, rate in rates.items())
    )


def said(record: Record, document: str, rates: dict[str, float]) -> str:
    return section(page([with_rates(record, document, rates)], OUTPUT), document)


def test_all_five_are_there_with_their_figures_and_ours(ladder: Record) -> None:
    text = page([ladder], OUTPUT)
    assert [part[:3] for part in text.split("\n## ")[1:]] == ["000", "001", "002", "003", "004"]
    blog = section(text, "000")
    assert "| Naive CUDA kernel | 7.08 ms | 227 GFLOP/s | ×1208 | Naive | 1024x1024x768 |" in blog
    assert "| 4.42 ms | 364 GFLOP/s | ×1.60 | Tiled/tile:16 | 1024x1024x768 |" in blog
    report = section(text, "002")
    assert "| indices swapped | 1.59 s | 86.1 GFLOP/s |  | NaiveUncoalesced |" in report
    assert "| 95.0 ms | 1.44 TFLOP/s | ×1.89 | BlockTile1D | 4092x4092x4092 |" in report
    assert "| theirs | ours | problem | time | rate | step |" in section(text, "004")
    assert "Test GPU" in text
    assert "0123456789ab" in text


def test_integers_are_compared_at_the_largest_cube_of_both(ladder: Record) -> None:
    integers = section(page([ladder], OUTPUT), "001")
    assert "| optimized | 4.22 ms | — | ×2.36 | Tiled/tile:16 | 1024x1024x1024 |" in integers
    rows = tuple(row for row in ladder.rows if row.precision != "s32")
    bare = section(page([dataclasses.replace(ladder, rows=rows)], OUTPUT), "001")
    assert "| default | 9.98 ms | — |  | Naive | — | — | — |  |" in bare
    assert "(s32, a cube that they share): Naive, Tiled/tile:16." in bare


def test_what_is_missing_is_a_dash_and_named(ladder: Record) -> None:
    blog = section(page([ladder], OUTPUT), "000")
    assert "| C++ CPU matrix multiplication | 8.55 s | 188 MFLOP/s |  | CpuNaive | — | — |" in blog
    assert "Not in the record with a time (f32, 1024x1024x768): CpuNaive." in blog
    assert "×1208 there; our row is missing." in blog


def test_the_cpu_may_come_from_a_record_of_its_own(ladder: Record, cpu: Record) -> None:
    both = [ladder, with_rates(cpu, "000", {"CpuNaive": 0.002})]
    blog = section(page(both, OUTPUT), "000")
    assert "Not in the record" not in blog
    assert "the same loop does 2.00 GFLOP/s here." in blog


def test_the_documents_own_tile_is_taken_where_it_is_in_the_record(ladder: Record) -> None:
    own = "BlockTile1D/BM:128/BN:128/BK:8/NR:16"
    text = said(ladder, "002", {"BlockTile1D": 20, own: 18})
    assert f"| {own} | 4092x4092x4092 |" in text


@pytest.mark.parametrize(
    ("theirs", "ours", "verdict"),
    [
        (2.0, 2.1, "the record agrees"),
        (2.0, 4.0, "the same direction, and more of it"),
        (2.0, 1.3, "the same direction, and less of it"),
        (2.0, 1.0, "the record disagrees"),
        (2.0, 0.5, "the record disagrees"),
        (0.5, 0.2, "the same direction, and more of it"),
        (1.0, 1.02, "the record agrees"),
        (1.0, None, "our row is missing"),
    ],
)
def test_a_verdict_is_computed(theirs: float, ours: float | None, verdict: str) -> None:
    assert verdict in compared("one to other", theirs, ours)


@pytest.mark.parametrize(
    ("padded", "sentence"),
    [
        (9.0, "makes it ×3.60 as fast here: bank conflicts it is."),
        (2.5, "leaves it as it is here (×1.00): on this card the conflicts are not"),
        (2.0, "makes it slower here (×0.80)"),
    ],
)
def test_bank_conflicts_are_blamed_only_if_padding_helps(
    padded: float, sentence: str, ladder: Record
) -> None:
    rates = {"Naive": 6.0, "TiledTransposedStore": 2.5, "TiledPadded": padded}
    assert sentence in said(ladder, "002", rates)


@pytest.mark.parametrize(
    ("apart", "sentence"),
    [(6.0, "nothing gained."), (5.0, "a loss even then."), (7.0, "does not explain.")],
)
def test_what_transposing_gains_is_said_as_it_was_measured(
    apart: float, sentence: str, ladder: Record
) -> None:
    rates = {"Naive": 6.0, "NaiveTransposed/transpose:apart": apart}
    assert sentence in said(ladder, "002", rates)


def test_steps_down_are_named(ladder: Record) -> None:
    rates = {"Naive": 6.0, "TiledUncoalescedB": 3.0, "TiledConflictFree": 8.0, "OuterProduct": 9.0}
    text = said(ladder, "004", rates)
    assert "Not every step is one up here: TiledUncoalescedB (×0.50 of Naive)." in text
    assert "It is ×1.12 of the conflict-free tile here, since" in text
    rising = {label: 1.0 + i for i, label in enumerate(rates)}
    assert "Every step that the record has is a step up here too." in said(ladder, "004", rising)
    falling = {**rates, "OuterProduct": 4.0}
    assert "has less to hide" in said(ladder, "004", falling)


def test_what_binds_is_what_the_record_models(ladder: Record) -> None:
    def at(naive: float) -> str:
        rows = tuple(
            dataclasses.replace(row, flop_per_second=naive if row.kernel == "Naive" else 1e9)
            for row in ladder.rows
        )
        return section(page([dataclasses.replace(ladder, rows=rows)], OUTPUT), "002")

    report = at(1e9)
    assert "L2 binds `Naive` and shared memory binds `TiledTransposedStore`." in report
    report = at(60e12)  # more than the L2 gives: it comes out of the L1
    assert "shared memory binds `TiledTransposedStore`." in report
    assert "binds `Naive`" not in report
    rows = tuple(dataclasses.replace(row, traffic=None) for row in ladder.rows)
    assert "binds `" not in page([dataclasses.replace(ladder, rows=rows)], OUTPUT)


def test_the_command_writes_the_page_and_links_the_record(
    ladder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new" / "seeds.md"
    assert main(["seeds", str(ladder_path), "-o", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}\n"
    assert "/ladder.json)" in output.read_text(encoding="utf-8")
    assert main(["seeds", str(tmp_path / "none.json"), "-o", str(output)]) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1


def test_the_page_of_the_project_is_what_its_records_give() -> None:
    path = Path(__file__).parents[3] / OUTPUT
    text = path.read_text(encoding="utf-8")
    records = re.findall(r"\[record\]\(([^)]+)\)", text)
    assert page([read_record(path.parent / record) for record in records], path) == text
