"""Records of peers are records: by the schema, by the report's reader, and beside gemm_bench's."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gemm_report.conftest import TESTDATA
from gemm_report.document import RecordError
from gemm_report.ladder.rungs import libraries, peers, rungs
from gemm_report.record import Record, read_record

from gemm_peers.cli import json_text, line
from gemm_peers.family import ROOT
from gemm_peers.peer import peer_named
from gemm_peers.plan import Plan
from gemm_peers.problem import Problem
from gemm_peers.record import Beside, Done, Run, document, read_beside

GPU = TESTDATA / "gpu.json"
SPAN = {"min": 1.9e9, "median": 1.95e9, "max": 1.98e9}
MEASURED: dict[str, Any] = {
    "rotation_sets": 2,
    "batch": 3,
    "launch": "stream",
    "warmup": {"seconds": 0.5, "settled": True, "watched": "SM clock and power"},
    "samples_seconds": [0.011, 0.01, 0.012],
    "samples_sm_hz": [1.9e9, 1.95e9, 1.98e9],
    "samples_throttled": [False, True, False],
    "seconds": {"median": 0.011, "q1": 0.0105, "q3": 0.0115, "min": 0.01},
    "median_interval": 0.004,
    "converged": True,
    "verification": {
        "max_error": 1e-5,
        "bound": 1e-3,
        "of_bound": 0.01,
        "reference": "FP64 product of the stored operands",
        "passed": True,
    },
    "clocks": {
        "readings": 9,
        "sm_hz": SPAN,
        "memory_hz": None,
        "power_w": {"min": 400.0, "median": 450.0, "max": 500.0},
        "temperature_c": None,
        "sm_hz_by_timer": SPAN,
        "throttled_share": 0.3,
        "reasons": {"power cap": 0.3},
    },
    "departures": [],
    "kernel_seconds": 1.5,
}


def done(said: dict[str, Any], size: int = 4096, precision: str = "f32") -> Done:
    problem = Problem(precision, "nn", size, size, size)
    return Done(peer_named("numba"), "matmul", problem, {**said, "read_seconds": 1e-5})


ROWS = [
    done({"measured": MEASURED}),
    done({"skipped": "numba is not installed: see tools/requirements-peers.txt"}, 1024),
    done({"failed": "ended by SIGSEGV"}, 8192),
    done(
        {"failed": "c[0,0] = nan", "verification": {**MEASURED["verification"], "passed": False}},
        2048,
    ),
]


def facts() -> dict[str, Any]:
    """Of the card that gpu.json was made on."""
    device = json.loads(GPU.read_text(encoding="utf-8"))["context"]["gemm"]["device"]
    device = {key: value for key, value in device.items() if key != "power_limit_w"}
    card = {"driver": "580.1", "power_limit_w": 700.0, "sm_hz_max": 1.98e9}
    device["pci_bus_id"] = "0000:01:00.0"
    return {"device": device, "timer": "CUDA events", "card": card, "why_not": None}


def run(seed: int = 1) -> Run:
    began = datetime(2026, 11, 21, 12, tzinfo=UTC)
    return Run("0123456789ab", ["peers", "--shapes=4096"], Plan(), seed, facts(), began, 12.5)


def read(folder: Path, beside: Beside | None = None) -> Record:
    path = folder / "record.json"
    path.write_text(json_text(document(run(), ROWS, beside)), encoding="utf-8")
    return read_record(path)


@pytest.fixture
def beside() -> Beside:
    return read_beside(GPU, facts()["device"], 1)


@pytest.mark.parametrize("with_other", [False, True])
def test_a_record_is_what_the_schema_says(beside: Beside, with_other: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "results" / "schema.json").read_text(encoding="utf-8"))
    found = document(run(), ROWS, beside if with_other else None)
    jsonschema.Draft202012Validator(schema).validate(json.loads(json_text(found)))
    for key in ("peer", "pears"):
        found["context"]["gemm"]["kernels"][-1]["family"] = key
        valid = jsonschema.Draft202012Validator(schema).is_valid(found)
        assert valid is (key == "peer"), "the schema knows the family, and no other"


def test_every_row_is_there_with_its_time_or_its_reason(tmp_path: Path) -> None:
    record = read(tmp_path)
    assert [row.status for row in record.rows] == ["timed", "skipped", "failed", "failed"]
    timed, skipped, failed, wrong = record.rows
    assert timed.is_peer
    assert timed.label == "Numba/kernel:matmul"
    assert timed.flop_per_second == pytest.approx(2 * 4096**3 / 0.011)
    assert skipped.skipped == "numba is not installed: see tools/requirements-peers.txt"
    assert failed.failed == "ended by SIGSEGV"
    assert wrong.verification and not wrong.verification.passed
    assert record.device.power_limit_w == 700
    assert record.device.driver == "580.1"
    assert all(roof.origin == "unknown" and "--beside" in roof.source for roof in record.ceilings)
    assert [line(row).partition(": ")[2].partition(":")[0] for row in ROWS[1:]] == [
        *("skipped", "failed", "failed")
    ]


def test_beside_a_record_rungs_libraries_and_roofs_are_those_of_it(
    tmp_path: Path, beside: Beside
) -> None:
    theirs, both = read_record(GPU), read(tmp_path, beside)
    assert rungs(both, "f32") == rungs(theirs, "f32")
    assert libraries(both, "f32") == libraries(theirs, "f32")
    (peer,) = peers(both, "f32")
    (roof,) = both.compute_roofs("f32")
    assert peer.roof
    assert peer.roof.flop_per_second == roof.flop_per_second
    assert peer.of_roof_nominal == pytest.approx(peer.flop_per_second / roof.flop_per_second)
    assert peer.of_roof_at_clock == pytest.approx(peer.of_roof_nominal * 1.98 / 1.95)
    fastest = max(libraries(theirs, "f32"), key=lambda row: row.flop_per_second or 0)
    assert peer.library == fastest.label
    assert peer.of_library == pytest.approx(peer.flop_per_second / fastest.flop_per_second)
    assert math.isclose(both.time.wall_seconds, 12.5)


def test_a_record_of_another_device_fill_or_with_peers_is_refused(
    tmp_path: Path, beside: Beside
) -> None:
    device = facts()["device"]
    with pytest.raises(RecordError, match="another device"):
        read_beside(GPU, {**device, "uuid_hash": "0" * 16}, 1)
    with pytest.raises(RecordError, match="or --seed"):
        read_beside(GPU, device, 2)
    path = tmp_path / "both.json"
    path.write_text(json_text(document(run(), ROWS, beside)), encoding="utf-8")
    with pytest.raises(RecordError, match="peers already"):
        read_beside(path, device, 1)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(RecordError):
        read_beside(path, device, 1)
