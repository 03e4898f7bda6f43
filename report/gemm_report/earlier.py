"""Records of earlier programs as those of today: what they lack, and what they said in prose."""

import contextlib
import re
from typing import Any

# Schema 1 had no list of them; the arithmetic of a unit that has not the name of the precision.
_PRECISIONS = ["f32", "tf32", "tf32x3", "bf16", "f16", "e4m3", "e4m3fast", "e5m2", "e5m2fast"]
_PRECISIONS += ["f64", "s32", "s8"]
_ARITHMETIC = {"tf32x3": "tf32", **dict.fromkeys(("e4m3fast", "e5m2", "e5m2fast"), "e4m3")}

# What departures were: prose, the code, and the unit of its figure where it has one.
_DEPARTURES = (
    (r"median known to (.+) % only", "median-uncertain", 0.01),
    (r"the median is known to (.+) %, not to .+ %", "median-uncertain", 0.01),
    (r"too few samples to know the median", "too-few-samples", 1),
    (r"clock and power not flat after (.+) s", "not-settled", 1),
    (r"clock and power not watched", "not-watched", 1),
    (r"power not watched", "power-not-watched", 1),
    (r"burst: the card was not settled", "burst", 1),
    (r"one operand set, which the cache may hold", "one-operand-set", 1),
    (r"operand sets of (.+) MB do not exceed twice the cache .*", "cached-operands", 1e6),
    (r"the host launches no faster than the device computes", "host-bound", 1),
)


def as_today(document: dict[str, Any]) -> dict[str, Any]:
    """`document`, changed in place; what is not as any program wrote it stays for the decoder."""
    run = document["context"]["gemm"]
    if not isinstance(run, dict) or run.get("schema") != 1:
        return document
    run["precisions"] = [
        {"name": p, "arithmetic": _ARITHMETIC.get(p, p), "products": 3 if p == "tf32x3" else 1}
        for p in _PRECISIONS
    ]
    _mark_roofs([each for each in _list(run, "measured_ceilings") if isinstance(each, dict)])
    for benchmark in _list(document, "benchmarks"):
        row = benchmark.get("gemm") if isinstance(benchmark, dict) else None
        if isinstance(row, dict) and _list(row, "departures"):
            row["departures"] = [_departure(each) for each in row["departures"]]
    return document


def _list(holder: dict[str, Any], key: str) -> list[Any]:
    found = holder.get(key)
    return found if isinstance(found, list) else []


def _mark_roofs(measured: list[dict[str, Any]]) -> None:
    """Reading stood for a memory, and where it was not read the best of the rest."""

    def merit(probe: dict[str, Any]) -> tuple[bool, float]:
        return probe["name"].endswith("_read"), probe["bytes_per_second"]

    for level in ("DRAM", "L2", "Shared"):
        probes = [
            probe
            for probe in measured
            if str(probe.get("name")).startswith(f"{level}_")
            and isinstance(probe.get("bytes_per_second"), int | float)
        ]
        if probes:
            max(probes, key=merit)["roof_of"] = level


def _departure(said: Any) -> Any:
    if not isinstance(said, str):
        return said
    for prose, code, unit in _DEPARTURES:
        if found := re.fullmatch(prose, said):
            with contextlib.suppress(ValueError):
                value = unit * float(found[1]) if found.groups() else None
                return {"code": code, "value": value, "text": said}
    return {"code": "other", "value": None, "text": said}
