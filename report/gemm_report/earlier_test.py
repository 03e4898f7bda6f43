import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gemm_report.earlier import as_today
from gemm_report.record import record_of


def document(**run: Any) -> dict[str, Any]:
    return {"context": {"gemm": {"schema": 1, **run}}, "benchmarks": []}


@pytest.mark.parametrize(
    ("said", "code", "value"),
    [
        ("median known to 2.1 % only", "median-uncertain", 0.021),
        ("median known to 1.2e+02 % only", "median-uncertain", 1.2),
        ("the median is known to 0.8 %, not to 0.5 %", "median-uncertain", 0.008),
        ("clock and power not flat after 0.4 s", "other", None),
        ("what no program said", "other", None),
    ],
)
def test_departures_had_no_codes(said: str, code: str, value: float | None) -> None:
    old = document()
    old["benchmarks"] = [{"gemm": None}, {"gemm": {"departures": [said]}}]
    (found,) = as_today(old)["benchmarks"][1]["gemm"]["departures"]
    assert (found["code"], found["text"]) == (code, said)
    assert found["value"] == pytest.approx(value)


def test_reading_is_the_roof_of_a_memory() -> None:
    probes = [{"name": name} for name in ("DRAM_copy", "DRAM_read", "L2_read", "FP32_FMA")]
    found = as_today(document(measured_ceilings=probes))["context"]["gemm"]["measured_ceilings"]
    assert [probe.get("roof_of") for probe in found] == [None, "DRAM", "L2", None]


def test_a_record_of_today_stays_as_it_is(gpu_path: Path) -> None:
    old = json.loads(gpu_path.read_text(encoding="utf-8"))
    new = as_today(copy.deepcopy(old))
    new["context"]["gemm"]["schema"] = 2
    assert as_today(copy.deepcopy(new)) == new
    assert record_of(gpu_path, new).rows == record_of(gpu_path, old).rows
