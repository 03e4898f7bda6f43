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
        ("clock and power not flat after 0.4 s", "not-settled", 0.4),
        ("operand sets of 3 MB do not exceed twice the cache (120 MB)", "cached-operands", 3e6),
        ("one operand set, which the cache may hold", "one-operand-set", None),
        ("what no program said", "other", None),
    ],
)
def test_departures_had_no_codes(said: str, code: str, value: float | None) -> None:
    old = document()
    old["benchmarks"] = [{"gemm": {"departures": [said]}}]
    (found,) = as_today(old)["benchmarks"][0]["gemm"]["departures"]
    assert (found["code"], found["text"]) == (code, said)
    assert found["value"] == pytest.approx(value)


def test_without_a_reading_of_the_dram_the_best_of_the_rest_was_its_roof() -> None:
    read, *rest = (
        {"name": f"DRAM_{name}", "bytes_per_second": rate}
        for name, rate in (("read", 4.2e12), ("copy", 4.3e12), ("write", 4.1e12))
    )
    for probes, name in (([*rest, read], "DRAM_read"), (rest, "DRAM_copy")):
        old = document(measured_ceilings=copy.deepcopy(probes))
        found = as_today(old)["context"]["gemm"]["measured_ceilings"]
        assert [probe["name"] for probe in found if "roof_of" in probe] == [name]


def test_a_record_of_today_stays_as_it_is(gpu_path: Path) -> None:
    old = json.loads(gpu_path.read_text(encoding="utf-8"))
    new = as_today(copy.deepcopy(old))
    new["context"]["gemm"]["schema"] = 2
    assert as_today(copy.deepcopy(new)) == new
    assert record_of(gpu_path, new).rows == record_of(gpu_path, old).rows
