"""The records of the tests and those in results/ are what results/schema.json says."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gemm_report.conftest import TESTDATA
from gemm_report.record import SCHEMA, read_record

jsonschema = pytest.importorskip("jsonschema")

RESULTS = Path(__file__).parents[2] / "results"
STORED = sorted(RESULTS.glob("*/*.json"))
NONE_STORED = pytest.param(None, marks=pytest.mark.skip(reason="results/ holds no record yet"))


def load(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def rows(document: Any) -> Iterator[Any]:
    return (b["gemm"] for b in document["benchmarks"] if b["run_type"] == "iteration")


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = load(RESULTS / "schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$defs"]["run"]["properties"]["schema"]["const"] == SCHEMA
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize(
    "path",
    [*sorted(TESTDATA.glob("*.json")), *(STORED or [NONE_STORED])],
    ids=lambda p: p and p.stem,
)
def test_record_is_valid_and_consistent(path: Path, validator: Any) -> None:
    document = load(path)
    validator.validate(document)
    names = {kernel["name"] for kernel in document["context"]["gemm"]["kernels"]}
    for row in rows(document):
        assert row["kernel"] in names
        assert row["flop"] == 2 * row["m"] * row["n"] * row["k"]
        assert math.isclose(row["flop_per_byte"], row["flop"] / row["bytes_minimum"], rel_tol=1e-3)
        assert row["failed"] is None or row["seconds"] is None
        if seconds := row["seconds"]:
            assert seconds["min"] <= seconds["q1"] <= seconds["median"] <= seconds["q3"]
            rate = row["flop"] / seconds["median"]
            assert math.isclose(row["flop_per_second"], rate, rel_tol=1e-3)
            assert row["verification"]["passed"]
    assert read_record(path).date


@pytest.mark.parametrize("path", STORED or [NONE_STORED], ids=lambda p: p and p.stem)
def test_stored_record_names_no_host_and_no_folder(path: Path) -> None:
    context = load(path)["context"]
    assert not context.get("host_name")
    assert "/" not in context["executable"]
    assert not [word for word in context["gemm"]["command"] if word.startswith("/") or "=/" in word]
