"""Records with two releases of a library: what compare and history make of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import main
from gemm_report.collection import Refusals
from gemm_report.history.series import read_history
from gemm_report.history.trends import find_trends

Rewritten = Callable[..., Path]
REGRESSION, REFUSED = 1, 7
OLD, NEW = "13.0.2", "13.1.0"


def rows(document: Any) -> list[Any]:
    return [b["gemm"] for b in document["benchmarks"] if b["run_type"] == "iteration"]


def release(version: str, slower: float = 1.0, **of_run: object) -> Callable[[Any], None]:
    """A record of this release of cuBLAS, by which its cases take so many times as long."""

    def change(document: Any) -> None:
        run = document["context"]["gemm"]
        library = {"name": "cuBLAS", "version": version, "file": f"libcublas.so.{version}"}
        other = {"name": "OpenBLAS", "version": "0.3.26", "file": None, "detail": "Haswell"}
        run["libraries"] = [library | {"detail": None}, other]
        run.update(of_run)
        benchmarks = document["benchmarks"]
        document["benchmarks"] = [
            each for each in benchmarks if not (each.get("gemm") or {}).get("failed")
        ]
        for row in rows(document):
            if row["kernel"] == "cuBLAS" and row["seconds"]:
                row["seconds"] = {key: slower * value for key, value in row["seconds"].items()}
                row["samples_seconds"] = [slower * each for each in row["samples_seconds"]]

    return change


def side(rewritten: Rewritten, name: str, change: Callable[[Any], None]) -> Path:
    """Three processes."""
    for i, factor in enumerate((1.0, 1.001, 0.999)):
        path = rewritten(f"{name}/2025010{i}T000000Z-{name * 3}.json", factor, change)
    return path.parent


@pytest.fixture
def sides(rewritten: Rewritten) -> tuple[Path, Path]:
    """cuBLAS became slower by a third, and nothing else changed."""
    return (
        side(rewritten, "aaaa", release(OLD, commit="aaaa" * 3)),
        side(rewritten, "bbbb", release(NEW, 1.3, commit="bbbb" * 3)),
    )


def test_another_release_is_refused_unless_asked_for(
    sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, sides)]) == REFUSED
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "--across=library" in said.err
    assert OLD in said.err
    assert NEW in said.err
    assert "OpenBLAS" not in said.err


def test_releases_are_compared_if_asked_for(
    sides: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("c.md", "c.html", "c.json")]
    written = [
        f"--{kind}={path}" for kind, path in zip(("markdown", "html", "json"), files, strict=True)
    ]
    assert main(["compare", *map(str, sides), "--across=library", *written]) == REGRESSION
    second = capsys.readouterr().out.splitlines()[1]
    assert f"across library: cuBLAS {OLD} in BASE, {NEW} in NEW" in second
    assert NEW in files[0].read_text().splitlines()[1]
    assert NEW in files[1].read_text().partition('class="answer"')[2]
    document = json.loads(files[2].read_text())
    assert OLD in document["across"]["library"]
    slower = [case for case in document["cases"] if case["verdict"] == "slower"]
    assert {case["kernel"] for case in slower} == {"cuBLAS"}
    assert all(NEW in case["suspect"] for case in slower)


def test_a_release_that_is_not_known_is_told_and_compared(
    rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    def silent(document: Any) -> None:
        release(OLD)(document)
        del document["context"]["gemm"]["libraries"]

    base = side(rewritten, "aaaa", silent)
    new = side(rewritten, "bbbb", release(NEW, 1.3))
    assert main(["compare", str(base), str(new)]) == REGRESSION
    said = " ".join(capsys.readouterr().out.split())
    assert f"libraries: not known in BASE, cuBLAS {NEW}" in said


def test_history_puts_a_change_of_its_cases_down_to_the_library(
    rewritten: Rewritten, tmp_path: Path
) -> None:
    for i in range(24):
        of = release(OLD if i < 12 else NEW, 1.0 if i < 12 else 1.3, commit=f"{i:012}")

        def dated(document: Any, i: int = i, of: Callable[[Any], None] = of) -> None:
            of(document)
            document["context"]["date"] = f"2025-01-{i + 1:02}T12:00:00+00:00"
            for row in rows(document):
                if row["kernel"] == "Naive" and row["seconds"] and i >= 12:
                    row["seconds"] = {key: 1.3 * value for key, value in row["seconds"].items()}

        rewritten(f"records/{i:02}.json", 1 + 0.001 * (i % 3), dated)
    suspects: dict[str, set[str]] = {"cuBLAS": set(), "Naive": set()}
    for trend in find_trends(read_history(tmp_path / "records", Refusals())):
        for each in trend.changes:
            kinds = [suspect.what for suspect in each.suspects]
            suspects[trend.series.case.kernel].add(kinds[0] if kinds else "none")
    assert suspects["cuBLAS"] == {"library"}
    assert suspects["Naive"] and "library" not in suspects["Naive"]
