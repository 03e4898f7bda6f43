import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_files import own_files

from gemm_report.comparison.noise.calibration import newest_calibration, read_calibration
from gemm_report.document import RecordError

RESULTS = Path(__file__).parents[4] / "results"
STORED = own_files("results/*/calibration/*.json")


def row(kernel: str, precision: str, size: int, spread: float, **parameters: str) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "parameters": parameters,
        "precision": precision,
        "layout": "nn",
        **dict.fromkeys("mnk", size),
        "processes": 6,
        "medians_seconds": [1.0] * 5 + [1.0 + spread],
        "spread": spread,
        "sd": spread / 3,
        "spread_at_clock": None,
        "median_within": 0.001,
        "throttled_share": None,
    }


DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "commit": "0123abc",
    "build_type": "Release",
    "command": ["gemm_bench"],
    "device": {
        "kind": "gpu",
        "name": "Test GPU",
        **dict.fromkeys(("uuid_hash", "driver", "runtime", "power_limit_w")),
    },
    "utc": {"first": "2025-01-31T12:00:00Z", "last": "2025-01-31T12:30:00Z"},
    "processes": 6,
    "method": {
        "timer": "CUDA events",
        "fill": "uniform[-1,1]",
        **dict.fromkeys(("test", "state", "cache", "target")),
    },
    "rows": [
        row("Tiled", "f32", 1024, 0.01, tile="16"),
        row("Tiled", "f32", 4096, 0.02, tile="16"),
        row("Tiled", "f32", 256, 0.04, tile="16"),
        row("Naive", "f32", 1024, 0.3),
        # Earlier calibrations lack medians in cycles, as the rows above do.
        {**row("cuBLAS", "bf16", 1024, 0.0), "medians_cycles": [1e9, None, 1.01e9] * 2},
    ],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "noise.json"
    path.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    return path


def test_medians_in_cycles_are_those_of_the_processes_whose_clock_is_known(path: Path) -> None:
    first, *_, last = read_calibration(path).rows
    assert last.logs(at_clock=True) == pytest.approx(np.log([1e9, 1.01e9, 1e9, 1.01e9]))
    assert first.logs(at_clock=True) == [], "earlier calibrations have none"
    assert first.logs(at_clock=False) == pytest.approx(np.log([1.0] * 5 + [1.01]))


def test_the_newest_calibration_of_the_device_is_found(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gpu" / "calibration"
    folder.mkdir(parents=True)
    for name, device in (("1", "Test GPU"), ("2", "Test GPU"), ("3", "Other GPU")):
        document = {**DOCUMENT, "device": {**DOCUMENT["device"], "name": device}}
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "4.json").write_text("{", encoding="utf-8")
    folders = [tmp_path / "none", tmp_path / "gpu"]
    found = newest_calibration(folders, "Test GPU")
    assert found and found.path == str(folder / "2.json")
    assert newest_calibration(folders, "Third GPU") is None


def test_the_calibration_of_another_device_of_the_same_name_is_not_taken(tmp_path: Path) -> None:
    folder = tmp_path / "calibration"
    folder.mkdir()
    device = {**DOCUMENT["device"], "sm_count": 16}
    (folder / "1.json").write_text(json.dumps({**DOCUMENT, "device": device}), encoding="utf-8")
    sliced = newest_calibration([tmp_path], "Test GPU")
    assert sliced
    whole = dataclasses.replace(sliced.device, sm_count=132)
    assert newest_calibration([tmp_path], "Test GPU", sliced.device)
    assert newest_calibration([tmp_path], "Test GPU", whole) is None


def test_the_test_data_is_what_the_schema_says() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((RESULTS / "calibration.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(DOCUMENT, schema)
    for key, value in (
        ("spread", -1),
        ("processes", 1),
        ("surplus", 1),
        ("medians_seconds", [1]),
        ("medians_cycles", [0, 1]),
        ("medians_cycles", None),
    ):
        changed = {**DOCUMENT, "rows": [{**DOCUMENT["rows"][0], key: value}]}
        assert not jsonschema.Draft202012Validator(schema).is_valid(changed), key


@pytest.mark.parametrize("key", ["medians_seconds", "precision", "kernel", "m"])
@pytest.mark.parametrize("value", [None, -1, True, [], "missing"])
def test_damage_is_refused_in_one_line(key: str, value: object, path: Path) -> None:
    changed = {**DOCUMENT["rows"][0], key: value}
    if value == "missing":
        del changed[key]
    path.write_text(json.dumps({**DOCUMENT, "rows": [changed]}), encoding="utf-8")
    with pytest.raises(
        RecordError, match=rf"`{key}` - at `\$\.rows\[0\]|at `\$\.rows\[0\]\.{key}"
    ) as error:
        read_calibration(path)
    assert "\n" not in str(error.value)
    assert "tools/calibrate" in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "is not a calibration"),
        ('{"context": {}}', "is not a calibration"),
        (json.dumps({**DOCUMENT, "schema": 2}), "calibration has schema 2"),
        (json.dumps(DOCUMENT).replace("1.02", "NaN"), "has NaN"),
        (json.dumps(DOCUMENT).replace("1.02", "1e999"), "expected `float` <= 1e.60"),
        ("", "is empty: run tools/calibrate"),
    ],
)
def test_what_is_not_a_calibration_is_refused(text: str, expected: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=expected):
        read_calibration(path)


@pytest.mark.parametrize("value", [None, [0], [True], "1", [[]]])
def test_damaged_cycles_are_refused(value: object, path: Path) -> None:
    row = {**DOCUMENT["rows"][0], "medians_cycles": value}
    path.write_text(json.dumps({**DOCUMENT, "rows": [row]}), encoding="utf-8")
    with pytest.raises(RecordError, match=r"at `\$\.rows\[0\]\.medians_cycles"):
        read_calibration(path)


def test_a_record_is_not_a_calibration(gpu_path: Path) -> None:
    with pytest.raises(RecordError, match="is not a calibration"):
        read_calibration(gpu_path)


@pytest.mark.parametrize(
    "stored",
    STORED or [pytest.param(None, marks=pytest.mark.skip(reason="results/ holds none yet"))],
    ids=lambda path: path and path.stem,
)
def test_stored_calibrations_are_valid(stored: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((RESULTS / "calibration.schema.json").read_text(encoding="utf-8"))
    document = json.loads(stored.read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    for each in document["rows"]:
        assert each["processes"] == len(each["medians_seconds"])
        assert len(each.get("medians_cycles", each["medians_seconds"])) == each["processes"]
    assert read_calibration(stored).rows
    assert "/" not in document["command"][0]
