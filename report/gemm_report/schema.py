"""Prints the JSON Schema of a record: python -m gemm_report.schema > results/schema.json."""

import json
import re
from typing import Any

import msgspec

from gemm_report.record import SCHEMA, Document

# Google Benchmark has keys of its own in these.
_OPEN = ("Document", "Context", "Benchmark")


def schema() -> dict[str, Any]:
    """What today's gemm_bench writes."""
    found = msgspec.json.schema(Document)
    for name, each in found["$defs"].items():
        each["additionalProperties"] = name in _OPEN
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": f"gemm_bench record, schema {SCHEMA}", **found}


if __name__ == "__main__":
    text = json.dumps(schema(), indent=1)
    print(re.sub(r"\{[^{}]*\}", lambda it: " ".join(it[0].split()), text))
