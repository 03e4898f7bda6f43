"""Records with two releases of a library: what compare, gate and history make of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import BAD_INPUT, main

Rewritten = Callable[..., Path]
OK, REGRESSION = 0, 1
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


def test_another_release_is_named_first_and_is_no_regression(
    sides: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("c.md", "c.html", "c.json")]
    written = [
        f"--{kind}={path}" for kind, path in zip(("markdown", "html", "json"), files, strict=True)
    ]
    assert main(["compare", *map(str, sides), "--require-power=15", *written]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert "cuBLAS" in lines[0]
    assert OLD in lines[0]
    assert NEW in lines[0]
    assert "OpenBLAS" not in lines[0]
    assert " 0 slower" in lines[1]
    assert "(--across-libraries): 10 cases" in " ".join(" ".join(lines).split())
    first = "\n".join(files[0].read_text().splitlines()[:2])
    assert OLD in first
    assert NEW in first
    page = files[1].read_text().partition('class="answer"')[2]
    assert page.index(NEW) < page.index("no regression".capitalize())
    document = json.loads(files[2].read_text())
    assert OLD in document["libraries"]["cuBLAS"]
    assert len(document["other_library"]) == 10
    assert not [case for case in document["cases"] if case["kernel"] == "cuBLAS"]


def test_releases_are_compared_if_asked_for(
    sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, sides), "--across-libraries", "--json=-"]) == REGRESSION
    document = json.loads(capsys.readouterr().out)
    slower = [case for case in document["cases"] if case["verdict"] == "slower"]
    assert {case["kernel"] for case in slower} == {"cuBLAS"}
    assert all(NEW in case["suspect"] for case in slower)


def test_the_same_release_is_compared(
    rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    base = side(rewritten, "aaaa", release(OLD))
    new = side(rewritten, "bbbb", release(OLD, 1.3))
    assert main(["compare", str(base), str(new)]) == REGRESSION
    said = capsys.readouterr().out
    assert said.startswith("REGRESSION")
    assert "--across-libraries" not in said


def test_a_release_that_is_not_known_is_told_and_compared(
    rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    base = side(rewritten, "aaaa", lambda document: None)
    new = side(rewritten, "bbbb", release(NEW, 1.3))
    assert main(["compare", str(base), str(new)]) == REGRESSION
    said = " ".join(capsys.readouterr().out.split())
    assert f"libraries: not known in BASE, cuBLAS {NEW}" in said


def test_where_nothing_else_was_measured_the_option_is_named(
    rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    def only(version: str) -> Callable[[Any], None]:
        def change(document: Any) -> None:
            release(version)(document)
            document["benchmarks"] = [
                b for b in document["benchmarks"] if b["name"].startswith("cuBLAS")
            ]

        return change

    paths = [rewritten(f"{version}.json", 1.0, only(version)) for version in (OLD, NEW)]
    assert main(["compare", *map(str, paths)]) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--across-libraries" in said
    assert OLD in said
    assert NEW in said


def test_the_gate_says_it_first(
    sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = sides[0].parent
    options = ["--baseline=aaaaaaaa", f"--new={sides[1]}", "--require-power=15"]
    assert main(["gate", str(folder), *options]) == OK
    assert NEW in capsys.readouterr().out.splitlines()[0]


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
    out = tmp_path / "found.json"
    assert main(["history", str(tmp_path / "records"), "--json", str(out)]) == OK
    document = json.loads(out.read_text())
    suspects: dict[str, set[str]] = {"cuBLAS": set(), "Naive": set()}
    for series in document["series"]:
        for change in series["changes"]:
            kinds = [suspect["what"] for suspect in change["suspects"]]
            suspects[series["name"].partition("/")[0]].add(kinds[0] if kinds else "none")
    assert suspects["cuBLAS"] == {"library"}
    assert suspects["Naive"]
    assert "library" not in suspects["Naive"]
    assert document["records"][-1]["libraries"]["cuBLAS"] == NEW
