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
OK, REGRESSION, NOT_ENOUGH, WRONG, MISSING, OTHER_DEVICE = 0, 1, 2, 5, 6, 7

# Five processes of equal code, and one that is as slow as nobody would call noise.
EQUAL = (1.0, 1.001, 0.999, 1.0005, 0.9995)


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


def rename_device(document: Any) -> None:
    document["context"]["gemm"]["device"]["name"] = "Other GPU"


def other_driver(document: Any) -> None:
    document["context"]["gemm"]["device"]["driver"] = "9.9"


def twice(document: Any) -> None:
    document["benchmarks"].insert(0, document["benchmarks"][0])


@pytest.fixture
def noise(rewritten: Rewritten, tmp_path: Path) -> Path:
    """The calibration of equal runs."""

    def dated(i: int) -> Callable[[Any], None]:
        return lambda document: document["context"].update(date=f"2025-01-31T13:0{i}:00+01:00")

    paths = [rewritten(f"equal{i}.json", f, dated(i)) for i, f in enumerate(EQUAL)]
    path = tmp_path / "noise.json"
    assert main(["calibrate", *map(str, paths), "-o", str(path)]) == 0
    return path


def compare(*arguments: object) -> int:
    return main(["compare", *map(str, arguments)])


def test_exit_codes(rewritten: Rewritten, noise: Path, gpu_path: Path) -> None:
    known = "--noise", noise
    assert compare(gpu_path, gpu_path, *known) == OK
    assert compare(gpu_path, rewritten("slow.json", 1.0, slow), *known) == REGRESSION
    assert compare(gpu_path, gpu_path, "--noise=none") == NOT_ENOUGH
    assert compare(gpu_path, rewritten("wrong.json", 1.0, fail), *known) == WRONG
    assert compare(gpu_path, rewritten("skipped.json", 1.0, skip), *known) == MISSING
    assert compare(gpu_path, rewritten("other.json", 1.0, rename_device), *known) == OTHER_DEVICE
    assert compare(gpu_path, gpu_path.with_name("none.json")) == BAD_INPUT
    assert len({OK, REGRESSION, NOT_ENOUGH, WRONG, MISSING, OTHER_DEVICE, BAD_INPUT}) == 7


def test_faster_is_no_regression(rewritten: Rewritten, noise: Path, gpu_path: Path) -> None:
    assert compare(rewritten("slow.json", 1.0, slow), gpu_path, "--noise", noise) == OK


def test_how_much_must_be_seen_can_be_told(noise: Path, gpu_path: Path) -> None:
    assert compare(gpu_path, gpu_path, "--noise", noise, "--require-power=5") == OK
    assert compare(gpu_path, gpu_path, "--noise=none", "--require-power=15") == NOT_ENOUGH
    assert compare(gpu_path, gpu_path, "--noise=none", "--require-power=30") == OK
    assert compare(gpu_path, gpu_path, "--noise=none", "--require-power=30", "--strict") == 2


def test_a_case_that_seems_much_slower_is_not_passed(rewritten: Rewritten, gpu_path: Path) -> None:
    def somewhat(document: Any) -> None:
        slow(document)
        (row,) = (r for r in rows(document) if r["kernel"] == "Naive" and r["m"] == 4096)
        row["samples_seconds"] = [each * 1.13 / 1.3 for each in row["samples_seconds"]]

    new = rewritten("somewhat.json", 1.0, somewhat)
    assert compare(gpu_path, new, "--noise=none", "--require-power=12") == NOT_ENOUGH
    assert compare(gpu_path, gpu_path, "--noise=none", "--require-power=20") == OK


def test_ten_times_slower_with_equal_code_is_a_regression(
    rewritten: Rewritten, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(gpu_path, rewritten("slow.json", 10.0), "--noise=none") == REGRESSION
    assert "24 slower" in capsys.readouterr().out


def test_missing_cases_may_be_meant(rewritten: Rewritten, noise: Path, gpu_path: Path) -> None:
    new = rewritten("skipped.json", 1.0, skip)
    assert compare(gpu_path, new, "--noise", noise, "--allow-missing") == OK
    gone = rewritten("gone.json", 1.0, lambda document: document["benchmarks"].pop(0))
    assert compare(gpu_path, gone, "--noise", noise) == MISSING


def test_the_slower_case_comes_first(
    rewritten: Rewritten, noise: Path, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    compare(gpu_path, rewritten("slow.json", 1.0, slow), "--noise", noise)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("REGRESSION: of ")
    head = next(i for i, line in enumerate(lines) if line.startswith("verdict"))
    assert re.fullmatch(r"slower .*\+30\.00 %.* Naive/f32/4096x4096x4096", lines[head + 1])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--threshold=0"], "'0' is no percentage"),
        (["--threshold=nan"], "'nan' is no percentage"),
        (["--noise=nothing.json"], "nothing.json: no such file"),
    ],
)
def test_bad_options_give_one_line(
    arguments: list[str], expected: str, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = compare(gpu_path, gpu_path, *arguments)
    except SystemExit as ended:
        code = ended.code
    assert code == BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert expected in said


def test_another_device_of_the_same_name_is_refused(
    rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_l1(kibibytes: int) -> Callable[[Any], None]:
        return lambda document: document["context"]["gemm"]["device"].update(
            l1_data_bytes=kibibytes << 10
        )

    small, large = (rewritten(f"{each}.json", 1.0, with_l1(each)) for each in (32, 48))
    assert compare(small, large) == OTHER_DEVICE
    said = capsys.readouterr().err
    assert "Test GPU, L1d 48 KiB" in said
    assert "Test GPU, L1d 32 KiB" in said


def test_another_device_is_refused_unless_told(
    rewritten: Rewritten, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = rewritten("other.json", 1.0, rename_device)
    assert compare(gpu_path, other) == OTHER_DEVICE
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{other}: was made on Other GPU, {gpu_path} on Test GPU" in said


def test_two_devices_are_told_apart_without_a_verdict(
    rewritten: Rewritten, gpu_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = rewritten("other.json", 2.0, rename_device, clock=0.5)
    files = tmp_path / "a.md", tmp_path / "a.json"
    options = "--across-devices", "--markdown", files[0], "--json", files[1]
    assert compare(gpu_path, other, *options) == OK
    said = capsys.readouterr().out
    assert said.startswith("Other GPU over Test GPU: geometric means, no verdict")
    assert "slower" not in said.replace("slowest", "")
    (fp32,) = (each for each in json.loads(files[1].read_text()) if each["precision"] == "FP32")
    assert fp32["speed"] == pytest.approx(0.5)
    assert fp32["per_clock"] in (None, pytest.approx(1.0))
    assert files[0].read_text().startswith("### Other GPU over Test GPU")
    assert compare(gpu_path, other, "--across-devices", "--html", tmp_path / "a.html") == BAD_INPUT


def test_another_driver_is_told(
    rewritten: Rewritten, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(gpu_path, rewritten("driver.json", 1.0, other_driver)) == NOT_ENOUGH
    assert "in BASE, 9.9 in NEW" in capsys.readouterr().out


def test_a_row_that_is_there_twice_is_refused(
    rewritten: Rewritten, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(gpu_path, rewritten("twice.json", 1.0, twice)) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "twice" in said


def test_folders_are_processes(
    rewritten: Rewritten, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, factor in (("base", 1.0), ("new", 1.05)):
        for i, noise in enumerate(EQUAL[:3]):
            rewritten(f"{side}/{i}.json", factor * noise)
    assert compare(tmp_path / "base", tmp_path / "new") == REGRESSION
    said = capsys.readouterr().out
    assert "BASE  3 processes" in said
    assert "noise between processes is from: processes" in said
    assert "common shift: " in said


def test_what_is_bad_in_a_folder_is_named_and_the_rest_compared(
    rewritten: Rewritten, tmp_path: Path, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for i, noise in enumerate(EQUAL[:3]):
        rewritten(f"base/{i}.json", noise)
    (tmp_path / "base" / "bad.json").write_text("{", encoding="utf-8")
    shutil.copy(tmp_path / "base" / "0.json", tmp_path / "base" / "again.json")
    assert compare(tmp_path / "base", gpu_path) == BAD_INPUT
    said = capsys.readouterr()
    assert said.err.count("\n") == 2
    assert "bad.json" in said.err
    assert "is the same run as" in said.err
    assert "BASE  3 processes" in said.out
    assert compare(tmp_path / "base", rewritten("slow.json", 1.0, slow)) == REGRESSION
    empty = tmp_path / "empty"
    empty.mkdir()
    capsys.readouterr()
    assert compare(empty, gpu_path) == BAD_INPUT
    assert "has no record" in capsys.readouterr().err


def test_the_calibration_beside_the_records_is_taken(
    rewritten: Rewritten, noise: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = rewritten("gpu/1.json"), rewritten("gpu/2.json", 1.0005)
    (tmp_path / "gpu" / "calibration").mkdir()
    noise.rename(tmp_path / "gpu" / "calibration" / "noise.json")
    capsys.readouterr()
    assert compare(base, new) == OK
    said = " ".join(capsys.readouterr().out.split())
    assert "noise.json, of 5 processes" in said
    assert compare(base, new, "--noise=none") == NOT_ENOUGH
    assert "tools/calibrate" in capsys.readouterr().out


def test_without_a_calibration_other_records_tell_the_noise(
    rewritten: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    def other_commit(document: Any) -> None:
        document["context"]["gemm"]["commit"] = "b" * 12

    base, new = (rewritten(f"base/{i}.json", 1 + i / 3000) for i in range(2))
    assert compare(base, new) == NOT_ENOUGH
    for i, noise in enumerate(EQUAL):
        rewritten(f"base/old{i}.json", noise, other_commit)
    capsys.readouterr()
    assert compare(base, new) == OK
    said = " ".join(capsys.readouterr().out.split())
    assert "the calibration is " in said and "base, of 5 processes" in said
    rewritten("base/old0.json", 1.0, other_driver)
    rewritten("base/old1.json", 1.0, other_driver)
    rewritten("base/old2.json", 1.0, other_driver)
    assert compare(base, new) == NOT_ENOUGH, "another driver has another noise"


def test_markdown_and_json_go_where_they_are_told_to(
    rewritten: Rewritten,
    noise: Path,
    gpu_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slower = rewritten("slow.json", 1.0, slow)
    markdown, document = tmp_path / "comment.md", tmp_path / "all.json"
    options = ("--noise", noise)
    compare(gpu_path, slower, *options, "--markdown", markdown, "--json", document)
    assert markdown.read_text(encoding="utf-8").startswith("### REGRESSION")
    assert json.loads(document.read_text(encoding="utf-8"))["counts"]["slower"] == 1
    capsys.readouterr()
    compare(gpu_path, slower, *options, "--json=-")
    assert json.loads(capsys.readouterr().out)["regression"] is True
    assert sorted(path.name for path in tmp_path.iterdir() if ".part" in path.name) == []


@pytest.mark.parametrize("place", ["/dev/null", "/proc/comment.md", "{here}", "{here}/file/a.md"])
@pytest.mark.parametrize("option", ["--markdown", "--json", "--html"])
def test_a_place_that_cannot_be_written_costs_nothing_else(
    option: str,
    place: str,
    gpu_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").touch()
    where = place.format(here=tmp_path)
    other, elsewhere = "--json" if option == "--markdown" else "--markdown", tmp_path / "other"
    assert compare(gpu_path, gpu_path, option, where, other, elsewhere) == BAD_INPUT
    said = capsys.readouterr()
    assert "no regression" in said.out.splitlines()[0]
    assert said.err.count("\n") == 1
    assert where in said.err
    assert elsewhere.stat().st_size
    assert {path.name for path in tmp_path.iterdir()} == {"file", "other"}
    assert Path("/dev/null").is_char_device()


def test_a_regression_outranks_a_place_that_cannot_be_written(
    rewritten: Rewritten, noise: Path, gpu_path: Path, tmp_path: Path
) -> None:
    slower = rewritten("slow.json", 1.0, slow)
    assert compare(gpu_path, slower, "--noise", noise, "--json", tmp_path) == REGRESSION


def test_a_slower_clock_is_the_suspect(
    rewritten: Rewritten, noise: Path, gpu_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = rewritten("slow.json", 1.1, clock=1 / 1.1)
    capsys.readouterr()
    compare(gpu_path, slower, "--noise", noise)
    said = " ".join(capsys.readouterr().out.split())
    assert "clock 19" in said
    assert "common shift: " in said
    assert "in cycles: look at the GPU" in said


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
