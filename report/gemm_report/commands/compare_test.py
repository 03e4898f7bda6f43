import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import BAD_INPUT, main

Rewritten = Callable[..., Path]
OK, REGRESSION, NOT_ENOUGH, WRONG, MISSING, REFUSED = 0, 1, 2, 5, 6, 7

# Processes of equal code.
EQUAL = (1.0, 1.001, 0.999)
Change = Callable[[Any], object]
Sides = Callable[..., tuple[Path, Path]]


def rows(document: Any) -> list[Any]:
    return [b["gemm"] for b in document["benchmarks"] if b["run_type"] == "iteration"]


def slow(document: Any) -> None:
    """One case takes a third longer."""
    (row,) = (r for r in rows(document) if r["kernel"] == "Naive" and r["m"] == 4096)
    row["seconds"] = {key: 1.3 * value for key, value in row["seconds"].items()}
    row["samples_seconds"] = [1.3 * each for each in row["samples_seconds"]]


def fail(document: Any) -> None:
    """One case that had a time is wrong."""
    row = next(r for r in rows(document) if r["seconds"])
    row.update(failed="c[0,0] = nan, expected 1.0", seconds=None, flop_per_second=None)
    row["samples_seconds"] = []


def skip(document: Any) -> None:
    """One case that had a time is left out."""
    row = next(r for r in rows(document) if r["seconds"])
    row.update(skipped="no memory", seconds=None, flop_per_second=None, samples_seconds=[])


def twice(document: Any) -> None:
    document["benchmarks"].insert(0, document["benchmarks"][0])


def sound(document: Any) -> None:
    """Without the row that is wrong."""
    benchmarks = document["benchmarks"]
    document["benchmarks"] = [
        each for each in benchmarks if not (each.get("gemm") or {}).get("failed")
    ]


@pytest.fixture
def sides(rewritten: Rewritten, tmp_path: Path) -> Sides:
    """Makes two folders of three processes each, without wrong rows, of which NEW is changed."""

    def make(factor: float = 1.0, *changes: Change, count: int = 3) -> tuple[Path, Path]:
        for side, times in (("base", 1.0), ("new", factor)):
            shutil.rmtree(tmp_path / side, ignore_errors=True)
            for i, noise in enumerate(EQUAL[:count]):

                def change(document: Any, side: str = side) -> None:
                    sound(document)
                    for each in changes if side == "new" else ():
                        each(document)

                # Nobody's two runs are equal.
                own = 1e-5 if side == "new" else 0.0
                rewritten(f"{side}/{i}.json", times * (noise + own), change)
        return tmp_path / "base", tmp_path / "new"

    return make


def compare(*arguments: object) -> int:
    return main(["compare", *map(str, arguments)])


def of(part: str, **changes: object) -> Change:
    return lambda document: document["context"]["gemm"][part].update(changes)


OTHER_GPU, DRIVER = of("device", name="Other GPU"), of("device", driver="9.9")
POWER, ZEROS = of("device", power_limit_w=350.0), of("method", fill="zeros")


def drop(document: Any) -> None:
    document["benchmarks"].pop(0)


@pytest.mark.parametrize(
    ("factor", "changes", "options", "code"),
    [
        (1.0, [], [], OK),
        (1.05, [], [], REGRESSION),
        (1.0, [slow], [], REGRESSION),
        (0.9, [], [], OK),
        (1.0, [fail], [], WRONG),
        (1.0, [fail, slow], [], WRONG),
        (1.0, [skip], [], MISSING),
        (1.0, [skip], ["--allow-missing"], OK),
        (1.0, [skip, slow], [], REGRESSION),
        (1.0, [drop], [], MISSING),
        (1.0, [OTHER_GPU], [], REFUSED),
        (1.0, [DRIVER], [], REFUSED),
        (1.0, [DRIVER], ["--across=driver"], OK),
        (1.0, [POWER], ["--across=driver"], REFUSED),
        (1.0, [ZEROS, of("method", state="burst")], ["--across=fill,state"], OK),
        (1.0, [], ["--strict"], NOT_ENOUGH),
        (1.0, [], ["--require-power=0.5"], NOT_ENOUGH),
    ],
)
def test_exit_codes(
    sides: Sides, factor: float, changes: list[Change], options: list[str], code: int
) -> None:
    assert compare(*sides(factor, *changes), *options) == code


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_say_what_to_run(
    sides: Sides, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*sides(1.05, count=count)) == NOT_ENOUGH
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("NOT ENOUGH DATA")
    assert "3 runs per side are needed" in said
    assert compare(*sides(10.0, count=count)) == REGRESSION
    assert compare(*sides(1.0, count=count), "--require-power=30") == OK


@pytest.mark.parametrize(
    ("new", "options", "expected"),
    [
        ("gpu.json", ["--threshold=0"], "'0' is no percentage"),
        ("gpu.json", ["--threshold=nan"], "'nan' is no percentage"),
        ("gpu.json", ["--across=driver,weather"], "'weather' is none of gpu, driver"),
        ("gpu.json", [], "is in BASE and in NEW"),
        ("none.json", [], "none.json"),
        ("twice.json", [], "twice"),
    ],
)
def test_bad_input_gives_one_line(
    new: str,
    options: list[str],
    expected: str,
    gpu_path: Path,
    rewritten: Rewritten,
    capsys: pytest.CaptureFixture[str],
) -> None:
    twin = rewritten(new, 1.0, twice) if new == "twice.json" else gpu_path.with_name(new)
    try:
        code = compare(gpu_path, twin, *options)
    except SystemExit as ended:
        code = ended.code
    assert code == BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert expected in said


def test_what_differs_is_named(
    sides: Sides, gpu_path: Path, rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    both = sides(1.0, DRIVER)
    caches = [rewritten(f"{n}.json", 1.0, of("device", l1_data_bytes=n << 10)) for n in (48, 32)]
    for base, new, said in (
        (*both, "in BASE, 9.9 in NEW: give runs that are alike, or --across=driver"),
        (gpu_path, rewritten("other.json", 1.0, OTHER_GPU), f"Other GPU, {gpu_path} on Test GPU"),
        (*caches, "Test GPU, L1d 32 KiB"),
    ):
        assert compare(base, new) == REFUSED
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)
        assert said in told.err
    assert compare(*both, "--across=driver,library") == OK
    assert capsys.readouterr().out.splitlines()[1].startswith("across driver: driver ")


def test_folders_are_processes_and_the_slowest_case_comes_first(
    sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*sides(1.05, slow)) == REGRESSION
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("REGRESSION: of ")
    assert any(line.startswith("BASE  3 processes") for line in lines)
    assert any("common shift of the GPU cases: slower, +5.0" in line for line in lines)
    head = next(i for i, line in enumerate(lines) if line.startswith("verdict"))
    assert re.fullmatch(r"slower .*\+36\.5\d %.* Naive/f32/4096x4096x4096", lines[head + 1])


def test_what_is_bad_in_a_folder_is_named_and_the_rest_compared(
    sides: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_bad(factor: float) -> tuple[Path, Path]:
        base, new = sides(factor)
        (base / "bad.json").write_text("{", encoding="utf-8")
        shutil.copy(base / "0.json", base / "again.json")
        return base, new

    assert compare(*with_bad(1.0)) == BAD_INPUT
    said = capsys.readouterr()
    assert said.err.count("\n") == 2
    assert "bad.json" in said.err
    assert "is the same run as" in said.err
    assert "BASE  3 processes" in said.out
    assert compare(*with_bad(1.3)) == REGRESSION
    empty = tmp_path / "empty"
    empty.mkdir()
    capsys.readouterr()
    assert compare(empty, tmp_path / "new") == BAD_INPUT
    assert "has no record" in capsys.readouterr().err


def test_markdown_and_json_go_where_they_are_told_to(
    sides: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = sides(1.0, slow)
    markdown, document = tmp_path / "comment.md", tmp_path / "all.json"
    compare(*both, "--markdown", markdown, "--json", document)
    assert markdown.read_text(encoding="utf-8").startswith("### REGRESSION")
    assert json.loads(document.read_text(encoding="utf-8"))["counts"]["slower"] == 1
    capsys.readouterr()
    compare(*both, "--json=-")
    told = json.loads(capsys.readouterr().out)
    assert (told["regression"], told["ending"]) == (True, REGRESSION)
    assert sorted(path.name for path in tmp_path.iterdir() if ".part" in path.name) == []


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--markdown", "/dev/null"),
        ("--json", "/proc/comment.md"),
        ("--html", "{here}"),
        ("--json", "{here}/file/a.md"),
    ],
)
def test_a_place_that_cannot_be_written_costs_nothing_else(
    option: str, place: str, sides: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    where = place.format(here=tmp_path)
    other, elsewhere = "--json" if option == "--markdown" else "--markdown", tmp_path / "other"
    assert compare(*sides(), option, where, other, elsewhere) == BAD_INPUT
    said = capsys.readouterr()
    assert "no regression" in said.out.splitlines()[0]
    assert said.err.count("\n") == 1
    assert where in said.err
    assert elsewhere.stat().st_size
    assert {path.name for path in tmp_path.iterdir()} == {"file", "other", "base", "new"}
    assert Path("/dev/null").is_char_device()
    assert compare(*sides(1.0, slow), option, where) == REGRESSION, "which outranks it"


@pytest.mark.parametrize(
    ("command", "missing"),
    [("compare", "scipy"), ("compare", "numpy"), ("figures", "matplotlib"), ("figures", "numpy")],
)
def test_a_library_that_is_missing_is_named_in_one_line(
    command: str, missing: str, gpu_path: Path
) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import gemm_report.__main__"
    done = subprocess.run(
        [sys.executable, "-c", code, command, str(gpu_path), str(gpu_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == BAD_INPUT
    assert done.stderr == f"gemm-report: {missing} is missing: python -m pip install {missing}\n"
