"""The records of the tests and those in results/ are what results/schema.json says."""

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_files import own_files

from gemm_report.conftest import TESTDATA
from gemm_report.record import read_record
from gemm_report.schema import schema

jsonschema = pytest.importorskip("jsonschema")

RESULTS = Path(__file__).parents[2] / "results"
PATTERNS = (
    "*/*.json.gz",
    "*/equal/*.json.gz",
    "*/limit/*.json.gz",
    "*/other_implementations/*.json.gz",
)
STORED = own_files(*(f"results/{each}" for each in PATTERNS))
# Of the rows of gpu.json, a large one: it has every key.
LARGE = 19
NONE_STORED = pytest.param(None, marks=pytest.mark.skip(reason="results/ has no record yet"))


def load(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}")

    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)


def form(value: Any) -> Any:
    """Keys and types. `read_record` checks the values of all, and takes no minute for that."""
    if isinstance(value, dict):
        return {key: form(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted({str(form(each)) for each in value})
    return type(value).__name__


def rows(document: Any) -> Iterator[Any]:
    return (b["gemm"] for b in document["benchmarks"] if b["run_type"] == "iteration")


@pytest.fixture(scope="module")
def validator() -> Any:
    stored = load(RESULTS / "schema.json")
    jsonschema.Draft202012Validator.check_schema(stored)
    assert stored == json.loads(json.dumps(schema())), (
        "python -m gemm_report.schema > results/schema.json"
    )
    return jsonschema.Draft202012Validator(stored)


@pytest.mark.parametrize(
    "path",
    [*sorted(TESTDATA.glob("*.json")), *(STORED or [NONE_STORED])],
    ids=lambda p: p and p.stem,
)
def test_record_is_valid_and_consistent(path: Path, validator: Any) -> None:
    document = load(path)
    forms = {str(form(row)): row for row in document["benchmarks"]}
    validator.validate({**document, "benchmarks": [*forms.values()]})
    if path.parent != TESTDATA:
        names_no_host_and_no_folder(document["context"])
    names = {kernel["name"] for kernel in document["context"]["gemm"]["kernels"]}
    for row in rows(document):
        assert row["kernel"] in names
        products = row.get("batch_count") or 1
        assert row["flop"] == 2 * products * row["m"] * row["n"] * row["k"]
        assert math.isclose(row["flop_per_byte"], row["flop"] / row["bytes_minimum"], rel_tol=1e-3)
        assert row["failed"] is None or row.get("seconds") is None
        if seconds := row.get("seconds"):
            assert seconds["min"] <= seconds["q1"] <= seconds["median"] <= seconds["q3"]
            rate = row["flop"] / seconds["median"]
            assert math.isclose(row["flop_per_second"], rate, rel_tol=1e-3)
            assert row["verification"]["passed"]
            if at_clock := row.get("roof_at_clock"):
                of_roof = row["flop_per_second"] / at_clock["flop_per_second"]
                assert math.isclose(row["of_roof_at_clock"], of_roof, rel_tol=1e-3)
        for of_sample in (row.get("samples_sm_hz"), row.get("samples_throttled")):
            assert not of_sample or len(of_sample) == len(row["samples_seconds"])
        if clocks := row.get("clocks"):
            for each in (value for value in clocks.values() if isinstance(value, dict)):
                assert "min" not in each or each["min"] <= each["median"] <= each["max"]
        if versus := row.get("versus"):
            assert versus["low"] <= versus["ratio"] <= versus["high"]
    assert read_record(path).date


def names_no_host_and_no_folder(context: Any) -> None:
    assert not context.get("host_name")
    assert "/" not in context["executable"]
    assert not [word for word in context["gemm"]["command"] if word.startswith("/") or "=/" in word]


def test_schema_refuses_what_is_not_a_record(gpu_path: Path, validator: Any) -> None:
    run, row = ("context", "gemm"), ("benchmarks", 0, "gemm")
    for place, value in (
        ((*run, "surplus"), 1),
        ((*run, "schema"), 4),
        ((*run, "time", "wall_seconds"), 0),
        ((*run, "method", "watch", "source"), "guess"),
        ((*run, "measured_ceilings", 0, "throttled_share"), 1.5),
        ((*row, "surplus"), 1),
        ((*row, "variant"), None),
        ((*row, "end_to_end"), {}),
        ((*row, "samples_throttled"), [0]),
        ((*row, "clocks", "sm_hz", "surplus"), 1),
        ((*row, "traffic"), {"dram_bytes": 0, "l2_bytes": 1, "shared_bytes": 1}),
        ((*row, "departures"), [{"code": "two words", "value": None}]),
    ):
        document = load(gpu_path)
        document["benchmarks"] = [document["benchmarks"][LARGE]]
        assert document["benchmarks"][0]["gemm"]["versus"], "LARGE has every key"
        validator.validate(document)
        *path, key = place
        parent = document
        for step in path:
            parent = parent[step]
        parent[key] = value
        assert not validator.is_valid(document), place


def test_transfers_have_parts_that_fit_their_time(ladder_path: Path) -> None:
    (row, *_) = (row for row in rows(load(ladder_path)) if row["transfer"])
    parts = row["end_to_end"]
    copies = parts["to_device_seconds"] + parts["from_device_seconds"]
    hidden = copies + parts["kernel_seconds"] - row["seconds"]["median"]
    assert math.isclose(parts["hidden_share"], hidden / copies, rel_tol=1e-2)
