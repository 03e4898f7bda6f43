import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemm_report.cli import BAD_INPUT, main

ROOT = Path(__file__).parents[4]
SCHEMA = ROOT / "results" / "calibration.schema.json"

Runs = Callable[..., list[Path]]


def rows(document: Any) -> list[Any]:
    return [b["gemm"] for b in document["benchmarks"] if b["run_type"] == "iteration"]


def scale(document: Any, factor: float, clock: float = 1.0) -> None:
    """Lets every row take `factor` times as long, at a clock that is `clock` times as high."""
    for row in rows(document):
        if row["seconds"]:
            row["seconds"] = {key: factor * value for key, value in row["seconds"].items()}
            row["samples_seconds"] = [factor * sample for sample in row["samples_seconds"]]
            row["flop_per_second"] /= factor
            row["samples_sm_hz"] = [clock * hz for hz in row.get("samples_sm_hz", [])]
        if row["clocks"]:
            for value in row["clocks"]["sm_hz_by_timer"], row["clocks"]["sm_hz"]:
                value.update({key: clock * hz for key, hz in value.items()})


@pytest.fixture
def runs(gpu_path: Path, tmp_path: Path) -> Runs:
    """Writes records that are as fast as `factors` say, the last one after `change` was made."""

    def write(
        factors: list[float],
        change: Callable[[Any], object] = lambda document: None,
        clocks: list[float] | None = None,
    ) -> list[Path]:
        paths = []
        for i, factor in enumerate(factors):
            document = json.loads(gpu_path.read_text(encoding="utf-8"))
            document["context"]["date"] = f"2025-01-31T13:0{i}:00+01:00"
            document["context"]["gemm"]["command"] = ["gemm_bench", f"--benchmark_out={i}.json"]
            scale(document, factor, clocks[i] if clocks else 1.0)
            if i + 1 == len(factors):
                change(document)
            path = tmp_path / f"{i}.json"
            path.write_text(json.dumps(document), encoding="utf-8")
            paths.append(path)
        return paths

    return write


def calibrate(paths: list[Path], output: Path) -> int:
    return main(["calibrate", *map(str, paths), "-o", str(output)])


def refused(paths: list[Path], output: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert calibrate(paths, output) == BAD_INPUT
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert not list(output.parent.glob("*.part*"))
    return said.err


def test_a_layout_is_calibrated_by_itself(gpu_path: Path, tmp_path: Path, runs: Runs) -> None:
    paths = runs([1.0, 1.01])
    for path in paths:
        document = json.loads(path.read_text(encoding="utf-8"))
        naive = next(b for b in document["benchmarks"] if b["gemm"]["kernel"] == "Naive")
        transposed = copy.deepcopy(naive)
        transposed["gemm"]["layout"] = "tn"
        document["benchmarks"].append(transposed)
        path.write_text(json.dumps(document), encoding="utf-8")
    output = tmp_path / "noise.json"
    assert calibrate(paths, output) == 0
    found = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert [row["layout"] for row in found if row["kernel"] == "Naive"].count("tn") == 1


def test_says_how_far_medians_of_equal_runs_are_apart(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    output = tmp_path / "gpu" / "calibration" / "noise.json"
    # The slowest process had the lowest clock: in cycles all are the same but for one in a hundred.
    assert calibrate(runs([1.0, 1.10, 1.01], clocks=[1.0, 1 / 1.10, 1.0]), output) == 0
    document = json.loads(output.read_text(encoding="utf-8"))
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert document["processes"] == 3
    assert document["command"] == ["gemm_bench"]
    assert document["utc"] == {"first": "2025-01-31T12:00:00Z", "last": "2025-01-31T12:02:00Z"}
    assert document["device"]["uuid_hash"] == "5eed5eed5eed5eed"
    assert document["method"]["cache"] == "rotate"
    found = {(r["kernel"], r["precision"], r["m"], r["k"]): r for r in document["rows"]}
    # Repetitions of a process are one median, and rows without a time are none.
    assert len(document["rows"]) == 24
    large = found["cuBLAS", "bf16", 4096, 4096]
    first = large["medians_seconds"][0]
    assert large["medians_seconds"] == pytest.approx([first, 1.10 * first, 1.01 * first])
    assert large["spread"] == pytest.approx(0.10 / 1.01)
    assert large["sd"] == pytest.approx(0.05508 / 1.03667, rel=1e-3)
    assert large["spread_at_clock"] == pytest.approx(0.01)
    cycles = large["medians_cycles"]
    assert cycles == pytest.approx([cycles[0], cycles[0], 1.01 * cycles[0]])
    assert 1e9 < cycles[0] / first < 3e9, "hertz"
    assert large["median_within"] < 0.02
    assert large["throttled_share"] == 0.875
    small = found["cuBLAS", "bf16", 256, 256]
    assert small["spread_at_clock"] is None
    assert small["medians_cycles"] == [None] * 3
    assert small["throttled_share"] is None
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == str(output)
    assert said[0].split() == ["kernel", "precision", "size", "processes", *said[0].split()[4:]]
    assert (
        "cuBLAS/math:default  bf16       4096x4096x4096          3  9.90 %    1.00 %"
        in "\n".join(said)
    )


def test_the_worst_row_comes_first(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow_down(document: Any) -> None:
        (row,) = (r for r in rows(document) if r["kernel"] == "Naive" and r["m"] == 4096)
        row["seconds"] = {key: 2 * value for key, value in row["seconds"].items()}

    assert calibrate(runs([1.0, 1.02], slow_down), tmp_path / "noise.json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["Naive", "f32", "4096x4096x4096"]
    spreads = [float(line.split()[4]) for line in lines[1:-1]]
    assert spreads == sorted(spreads, reverse=True)


def test_a_row_that_one_process_lacks_counts_the_others(runs: Runs, tmp_path: Path) -> None:
    def drop(document: Any) -> None:
        document["benchmarks"] = document["benchmarks"][:1]

    paths = runs([1.0, 1.02, 1.04], drop)
    assert calibrate(paths, tmp_path / "noise.json") == 0
    counts = [r["processes"] for r in json.loads((tmp_path / "noise.json").read_text())["rows"]]
    assert counts == [3] + [2] * 23
    assert calibrate(paths[1:], tmp_path / "two.json") == 0
    assert len(json.loads((tmp_path / "two.json").read_text())["rows"]) == 1


def set_device(key: str, value: object) -> Callable[[Any], None]:
    return lambda document: document["context"]["gemm"]["device"].update({key: value})


DIFFERENCES: dict[str, tuple[Callable[[Any], object], str]] = {
    "device": (set_device("name", "Other GPU"), "its device is Other GPU, "),
    "GPU": (set_device("uuid_hash", "0ther"), "its GPU is 0ther, that of"),
    "GPU not known": (set_device("uuid_hash", None), "its GPU is None, that of"),
    "driver": (set_device("driver", "1.0"), "its driver is 1.0, that of"),
    "power limit": (set_device("power_limit_w", 300), "its power limit is 300.0, that of"),
    "commit": (lambda d: d["context"]["gemm"].update(commit="fee1"), "its commit is fee1, that of"),
    "build": (
        lambda d: d["context"]["gemm"]["build"].update(type="Debug"),
        "its build type is Debug",
    ),
    "command": (
        lambda d: d["context"]["gemm"]["command"].append("--gemm_seed=2"),
        "its command is gemm_bench --gemm_seed=2, that of",
    ),
    "state": (
        lambda d: d["context"]["gemm"]["method"].update(state="burst"),
        "its state is burst, that of",
    ),
    "fill": (
        lambda d: d["context"]["gemm"]["method"].update(fill="zeros"),
        "its fill is zeros, that of",
    ),
    "incomplete": (
        lambda d: d["context"]["gemm"].update(complete=False),
        "the run was interrupted",
    ),
    "date": (lambda d: d["context"].update(date="yesterday"), "not a date with an offset"),
    "local date": (lambda d: d["context"].update(date="2025-01-31T12:00:00"), "with an offset"),
    "NaN": (
        lambda d: rows(d)[0]["seconds"].update(median=float("nan")),
        "has NaN, which is not JSON",
    ),
    "infinity": (
        lambda d: rows(d)[0]["seconds"].update(q3=float("inf")),
        "has Infinity, which is not JSON",
    ),
    "median out of the quartiles": (
        lambda d: rows(d)[0]["seconds"].update(q1=1.0),
        "the quartiles and the minimum are not in order",
    ),
}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_runs_that_are_not_equal_are_refused(
    difference: str, runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, expected = DIFFERENCES[difference]
    paths = runs([1.0, 1.0, 1.0], change)
    said = refused(paths, tmp_path / "noise.json", capsys)
    assert expected in said
    assert str(paths[-1]) in said
    assert not (tmp_path / "noise.json").exists()


def test_an_overflow_is_refused(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = runs([1.0, 1.0])
    before, samples, rest = paths[1].read_text(encoding="utf-8").partition('"samples_seconds"')
    rest = rest.replace('"q3": ', '"q3": 1e999, "x": ', 1)
    paths[1].write_text(before + samples + rest, encoding="utf-8")
    assert "expected `float` <= 1e+60" in refused(paths, tmp_path / "noise.json", capsys)


def test_one_record_is_not_enough(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "two or more" in refused(runs([1.0]), tmp_path / "noise.json", capsys)


@pytest.mark.parametrize("way", ["same name", "link", "copy"])
def test_the_same_run_twice_is_refused(
    way: str, runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = runs([1.0, 1.0])
    again = first if way == "same name" else tmp_path / "again.json"
    if way == "link":
        again.symlink_to(first)
    if way == "copy":
        shutil.copy(first, again)
    said = refused([first, second, again], tmp_path / "noise.json", capsys)
    assert f"{again}: is the same run as {first}" in said


def test_records_without_a_row_in_common_are_refused(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = runs([1.0, 1.0], lambda document: document.update(benchmarks=[]))
    assert "another record has too" in refused(paths, tmp_path / "noise.json", capsys)


def test_nothing_is_written_over(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = runs([1.0, 1.0])
    before = paths[0].read_bytes()
    assert "exists" in refused(paths, paths[0], capsys)
    assert paths[0].read_bytes() == before


def test_a_folder_that_cannot_be_made_gives_one_line(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    paths = runs([1.0, 1.0])
    assert calibrate(paths, tmp_path / "file" / "noise.json") == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1


def test_needs_no_matplotlib(runs: Runs, tmp_path: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; import gemm_report.__main__"
    command = ["calibrate", *map(str, runs([1.0, 1.0])), "-o", str(tmp_path / "noise.json")]
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT / "report")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
