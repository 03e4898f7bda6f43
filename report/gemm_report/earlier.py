"""Records of schema 1 as those of today: what they lack, and what they said in prose."""

import contextlib
import re
from typing import Any

# Schema 1 had no list of them; the arithmetic of a unit that has not the name of the precision.
_PRECISIONS = ["f32", "tf32", "tf32x3", "bf16", "f16", "e4m3", "e4m3fast", "e5m2", "e5m2fast"]
_PRECISIONS += ["f64", "s32", "s8"]
_ARITHMETIC = {"tf32x3": "tf32", **dict.fromkeys(("e4m3fast", "e5m2", "e5m2fast"), "e4m3")}
_ROOF_OF = {"DRAM_read": "DRAM", "L2_read": "L2", "Shared_read": "Shared"}
# The one departure of which a page reads more than its text.
_UNCERTAIN = re.compile(r"(?:the )?median (?:is )?known to (\S+) %.*")


def as_today(document: dict[str, Any]) -> dict[str, Any]:
    """`document`, changed in place; what is not as any program wrote it stays for the decoder."""
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
        run = document["context"]["gemm"]
        if run["schema"] == 1:
            run["precisions"] = [
                {"name": p, "arithmetic": _ARITHMETIC.get(p, p), "products": 1} for p in _PRECISIONS
            ]
            run["precisions"][2]["products"] = 3  # tf32x3
            for probe in run.get("measured_ceilings", ()):
                if probe["name"] in _ROOF_OF:
                    probe["roof_of"] = _ROOF_OF[probe["name"]]
            for benchmark in document["benchmarks"]:
                if row := benchmark.get("gemm"):
                    row["departures"] = [_departure(said) for said in row.get("departures", ())]
    return document


def _departure(said: str) -> dict[str, Any]:
    if found := _UNCERTAIN.fullmatch(said):
        return {"code": "median-uncertain", "value": 0.01 * float(found[1]), "text": said}
    return {"code": "other", "value": None, "text": said}
