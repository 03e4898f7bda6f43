"""Other tools' files become runs whose cases have the names of ours."""

import json
import struct
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from gemm_report.comparison.run import run_of
from gemm_report.document import InputError
from gemm_report.exchange.foreign import read_run
from gemm_report.record import read_record

# As Google Benchmark 1.7.1 wrote them, without keys that nobody reads.
GOOGLE = """{"context": {"date": "2026-11-21T12:00:00+00:00", "num_cpus": 2}, "benchmarks": [
{"name": "Tiled/tile:16/f32/64x64x64/iterations:5/repeats:2/manual_time",
 "run_name": "Tiled/tile:16/f32/64x64x64/iterations:5/repeats:2/manual_time",
 "run_type": "iteration", "repetition_index": 0, "real_time": 1.5, "time_unit": "ms",
 "bad": NaN, "worse": -Infinity},
{"name": "Tiled/tile:16/f32/64x64x64/iterations:5/repeats:2/manual_time",
 "run_name": "Tiled/tile:16/f32/64x64x64/iterations:5/repeats:2/manual_time",
 "run_type": "iteration", "repetition_index": 1, "real_time": 1.25, "time_unit": "ms"},
{"name": "Tiled/tile:16/f32/64x64x64/iterations:5/repeats:2/manual_time_median",
 "run_name": "Tiled/tile:16/f32/64x64x64/iterations:5/repeats:2/manual_time",
 "run_type": "aggregate", "aggregate_name": "median", "real_time": 1.375, "time_unit": "ms"},
{"name": "B/n:8/min_time:0.010/real_time/threads:2", "run_type": "iteration",
 "run_name": "B/n:8/min_time:0.010/real_time/threads:2", "real_time": 3.5, "time_unit": "ns"},
{"name": "OnlyAggregates_mean", "run_name": "OnlyAggregates", "run_type": "aggregate",
 "aggregate_name": "mean", "real_time": 9.0, "time_unit": "us"},
{"name": "OnlyAggregates_median", "run_name": "OnlyAggregates", "run_type": "aggregate",
 "aggregate_name": "median", "real_time": 8.0, "time_unit": "us"},
{"name": "C/manual_time", "run_name": "C/manual_time", "run_type": "iteration",
 "error_occurred": true, "error_message": "no such thing", "real_time": 0.0, "time_unit": "ns"},
{"name": "Skipped", "run_name": "Skipped", "run_type": "iteration",
 "skipped": true, "skip_message": "", "real_time": 0.0, "time_unit": "ns"},
{"name": "NotTimed", "run_name": "NotTimed", "run_type": "iteration", "real_time": NaN},
{"name": "D/8", "run_name": "D/8", "run_type": "iteration", "real_time": 2.0, "time_unit": "s"},
{"name": "D_BigO", "run_name": "D", "run_type": "aggregate", "aggregate_name": "BigO",
 "real_coefficient": 1e-3, "big_o": "N", "time_unit": "ns"},
{"name": "Twice/real_time", "run_name": "Twice/real_time", "run_type": "iteration",
 "real_time": 1.0},
{"name": "Twice/process_time", "run_name": "Twice/process_time", "run_type": "iteration",
 "real_time": 2.0}
]}"""


def write(path: Path, document: Any) -> Path:
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_text(text, encoding="utf-8")
    return path


def test_google_benchmarks_cases_have_names_and_seconds(tmp_path: Path) -> None:
    run = read_run(write(tmp_path / "google.json", GOOGLE))
    assert {name: each.samples_seconds for name, each in run.timed.items()} == {
        "Tiled/tile:16/f32/64x64x64": (1.5e-3, 1.25e-3),
        "B/n:8/threads:2": (3.5e-9,),
        "OnlyAggregates": (8e-6,),
        "D/8": (2.0,),
        # Only the manner tells these apart.
        "Twice/real_time": (1e-9,),
        "Twice/process_time": (2e-9,),
    }
    assert run.untimed == {
        "C": "no such thing",
        "Skipped": "no reason is given",
        "NotTimed": "it has no positive time",
    }
    assert run.device is None
    assert run.record is None


def test_a_record_and_what_google_benchmark_would_have_written_match(
    gpu_path: Path, tmp_path: Path
) -> None:
    ours = read_run(gpu_path)
    assert ours == run_of(read_record(gpu_path))
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    del document["context"]["gemm"]
    for row in document["benchmarks"]:
        row.pop("gemm", None)
    plain = read_run(write(tmp_path / "plain.json", document))
    assert plain.timed.keys() == ours.timed.keys()
    assert plain.untimed == ours.untimed
    for name, each in plain.timed.items():
        of_ours = ours.timed[name].samples_seconds
        assert median(each.samples_seconds) == pytest.approx(median(of_ours), rel=0.01)


def value(name: str, kind: str, text: str) -> dict[str, str]:
    return {"name": name, "type": kind, "value": text}


def summary(tag: str, seconds: str) -> dict[str, Any]:
    return {
        "tag": tag,
        "name": "",
        "hint": "duration",
        "data": [value("value", "float64", seconds)],
    }


def samples(filename: str, size: int) -> dict[str, Any]:
    data = [value("filename", "string", filename), value("size", "int64", str(size))]
    return {"tag": "nv/json/bin:nv/cold/sample_times", "hint": "file/sample_times", "data": data}


def state(size: int, summaries: list[dict[str, Any]] | None, **more: Any) -> dict[str, Any]:
    return {
        "name": f"Device=0 T=F32 Size=2^{size}",
        "device": 0,
        "axis_values": [value("T", "string", "F32"), value("Size", "int64", str(2**size))],
        "summaries": summaries,
        "is_skipped": False,
        **more,
    }


def nvbench(*states: dict[str, Any]) -> dict[str, Any]:
    return {
        "meta": {"version": {"json": {"string": "1.0.0"}}},
        "devices": [{"id": 0, "name": "NVIDIA H200"}, {"id": 1, "name": "NVIDIA L4"}],
        "benchmarks": [{"name": "copy", "axes": [], "states": list(states)}],
    }


COLD = "nv/cold/time/gpu"


def test_nvbenchs_states_have_names_and_seconds(tmp_path: Path) -> None:
    document = nvbench(
        state(1, [summary(f"{COLD}/mean", "2e-3"), summary(f"{COLD}/median", "1e-3")]),
        state(2, [summary("nv/cold/time/cpu/mean", "5"), summary(f"{COLD}/mean", "2e-3")]),
        state(3, None, is_skipped=True, skip_reason="too small"),
        state(4, [summary(f"{COLD}/mean", "nan")]),
        state(5, [summary("nv/cpu_only/time/cpu/mean", "4")]),
    )
    document["benchmarks"].append({"name": "plain", "axes": None, "states": [{"summaries": []}]})
    run = read_run(write(tmp_path / "nvbench.json", nvbench(*document["benchmarks"][0]["states"])))
    assert {name: each.samples_seconds for name, each in run.timed.items()} == {
        "copy/T:F32/Size:2": (1e-3,),
        "copy/T:F32/Size:4": (2e-3,),
        "copy/T:F32/Size:32": (4.0,),
    }
    assert run.untimed == {
        "copy/T:F32/Size:8": "too small",
        "copy/T:F32/Size:16": "it has no positive time",
    }
    assert run.device == "NVIDIA H200"
    run = read_run(write(tmp_path / "nvbench.json", document))
    assert run.untimed["plain/device:None"] == "it has no positive time"


def test_several_devices_are_several_cases(tmp_path: Path) -> None:
    document = nvbench(
        state(1, [summary(f"{COLD}/mean", "1e-3")]),
        state(1, [summary(f"{COLD}/mean", "2e-3")], device=1),
    )
    run = read_run(write(tmp_path / "nvbench.json", document))
    assert run.device == "NVIDIA H200 and NVIDIA L4"
    assert list(run.timed) == ["copy/T:F32/Size:2/device:0", "copy/T:F32/Size:2/device:1"]


@pytest.mark.parametrize(
    "filename", ["run.json-bin/0.bin", "folder/run.json-bin/0.bin", "{folder}/run.json-bin/0.bin"]
)
def test_nvbenchs_samples_are_read_from_beside_it(filename: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "run.json-bin").mkdir(parents=True)
    (folder / "run.json-bin" / "0.bin").write_bytes(struct.pack("<3f", 0.5, 0.25, 2.0))
    named = samples(filename.format(folder=folder), 3)
    path = write(folder / "run.json", nvbench(state(1, [summary(f"{COLD}/mean", "7"), named])))
    assert read_run(path).timed["copy/T:F32/Size:2"].samples_seconds == (0.5, 0.25, 2.0)


@pytest.mark.parametrize(
    "filename", ["../outside.bin", "{folder}/../outside.bin", "link.bin", "missing.bin", "", ".."]
)
def test_no_samples_are_read_from_elsewhere(filename: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(struct.pack("<3f", 0.5, 0.25, 2.0))
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    named = samples(filename.format(folder=folder), 3)
    path = write(folder / "run.json", nvbench(state(1, [summary(f"{COLD}/mean", "7"), named])))
    assert read_run(path).timed["copy/T:F32/Size:2"].samples_seconds == (7.0,)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 11, struct.pack("<2f", 1, 1), struct.pack("<3f", 1, float("nan"), 1)],
)
def test_damaged_samples_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "0.bin").write_bytes(content)
    path = write(tmp_path / "run.json", nvbench(state(1, [samples("0.bin", 3)])))
    with pytest.raises(InputError, match=r"0\.bin: does not hold the samples") as refused:
        read_run(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "{}",
        '{"benchmarks": []}',
        '{"benchmarks": {}, "context": {}}',
        '{"context": {"gemm": {}}}',
        "3",
    ],
)
def test_anything_else_is_refused_with_the_names_of_the_three(
    document: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="gemm_bench nor JSON of Google Benchmark or nvbench"):
        read_run(write(tmp_path / "other.json", document))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"context": {}, "benchmarks": [3]}, r"expected `object`.* - at `\$\.benchmarks\[0\]`"),
        ({"context": {}, "benchmarks": [{}]}, "missing required field `name`"),
        (
            {"context": {}, "benchmarks": [{"name": "A", "real_time": 1, "time_unit": "h"}]},
            r"invalid enum value 'h' - at `\$\.benchmarks\[0\]\.time_unit`",
        ),
        (
            {"context": {}, "benchmarks": [{"name": "A", "real_time": -1}]},
            r"at `\$\.benchmarks\[0\]\.real_time`",
        ),
        (nvbench(state(1, None), state(1, None)), "has copy/T:F32/Size:2 twice"),
        (nvbench({"axis_values": 3}), r"axis_values`"),
        ("{", "ends too early"),
    ],
)
def test_damage_is_refused_in_one_line(document: Any, expected: str, tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", document)
    with pytest.raises(InputError, match=expected) as refused:
        read_run(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_record_with_nan_is_refused_as_ever(gpu_path: Path, tmp_path: Path) -> None:
    text = gpu_path.read_text(encoding="utf-8").replace('"k": 256', '"k": NaN', 1)
    with pytest.raises(InputError, match="NaN, which is not JSON and never in a record"):
        read_run(write(tmp_path / "record.json", text))
