"""What was measured as a record of gemm_bench (results/schema.json), alone or beside one."""

import copy
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gemm_report.document import RecordError
from gemm_report.record import RECORD, read_json, record_of

from gemm_peers.card import INTERVAL_SECONDS
from gemm_peers.elements import FILL
from gemm_peers.peer import Peer
from gemm_peers.plan import Plan
from gemm_peers.problem import Problem

SCHEMA = 1
FAMILY = "peer"
_TIMELESS: dict[str, Any] = {
    "rotation_sets": None,
    "batch": None,
    "launch": None,
    "warmup": None,
    "samples_seconds": [],
    "samples_sm_hz": [],
    "samples_throttled": [],
    "seconds": None,
    "median_interval": None,
    "converged": None,
    "verification": None,
    "clocks": None,
    "departures": [],
}


@dataclass(frozen=True)
class Run:
    """What holds for all rows."""

    commit: str
    command: Sequence[str]
    plan: Plan
    seed: int
    facts: dict[str, Any]  # what a child said before its first row
    began: datetime
    wall_seconds: float
    complete: bool = True


@dataclass(frozen=True)
class Done:
    """A row: what was asked of which peer, and what its process said."""

    peer: Peer
    variant: str
    problem: Problem
    said: dict[str, Any]

    @property
    def label(self) -> str:
        """As its benchmark is named."""
        p = self.problem
        parts = [self.peer.name, self.variant and f"kernel:{self.variant}"]
        parts += ["" if p.layout == "nn" else f"layout:{p.layout}", p.precision, p.shape]
        return "/".join(filter(None, parts))

    @property
    def median(self) -> float | None:
        """Seconds of one launch, if it has a time."""
        measured = self.said.get("measured")
        return measured and measured["seconds"]["median"]

    @property
    def flop_per_second(self) -> float | None:
        """If it has a time."""
        return self.problem.flop / self.median if self.median else None


@dataclass(frozen=True)
class Beside:
    """A record of gemm_bench on the same device, whose rungs, libraries and roofs are shown with
    the peers."""

    path: Path
    document: dict[str, Any]

    @property
    def run(self) -> dict[str, Any]:
        """Its context."""
        return self.document["context"]["gemm"]


def read_beside(path: Path, facts: dict[str, Any], seed: int) -> Beside:
    """RecordError where it is none, of another device, or on other values."""
    document = read_json(path, RECORD)
    record_of(path, document)
    beside = Beside(path, document)
    device, method = beside.run["device"], beside.run["method"]
    key = "uuid_hash" if facts["uuid_hash"] else "name"
    if device[key] != facts[key]:
        raise RecordError(
            f"{path}: is of another device ({device['name']}): give a record of this one "
            f"({facts['name']})"
        )
    if (method["fill"], method["seed"]) != (FILL, seed):
        raise RecordError(
            f"{path}: was filled with {method['fill']} and seed {method['seed']}, "
            f"peers with {FILL} and {seed}: give another record, or --seed"
        )
    if any(kernel["family"] == FAMILY for kernel in beside.run["kernels"]):
        raise RecordError(f"{path}: has peers already: give the record of gemm_bench itself")
    return beside


def document(run: Run, done: Sequence[Done], beside: Beside | None) -> dict[str, Any]:
    """The whole record."""
    theirs = beside.document["benchmarks"] if beside else []
    ceilings = beside.run["ceilings"] if beside else _unknown_ceilings(done)
    return {
        "context": {
            "date": run.began.astimezone(UTC).isoformat(timespec="seconds"),
            "executable": "peers",
            "num_cpus": os.cpu_count() or 1,
            "gemm": _run(run, done, beside, ceilings),
        },
        "benchmarks": [
            *copy.deepcopy(theirs),
            *(_benchmark(i, one, run, ceilings, theirs) for i, one in enumerate(done)),
        ],
    }


def _run(
    run: Run, done: Sequence[Done], beside: Beside | None, ceilings: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    card = run.facts["card"] or {}
    device = {key: value for key, value in run.facts["device"].items() if key != "pci_bus_id"}
    device["driver"] = card.get("driver") or device["driver"]
    device["power_limit_w"] = card.get("power_limit_w")
    if beside:  # the runtime is that of its own rows
        device["runtime"] = beside.run["device"]["runtime"]
    reads = [each for one in done if (each := one.said.get("read_seconds"))]
    gpu = device["kind"] == "gpu"
    peers = {one.peer.name: one.peer for one in done}
    return {
        "schema": SCHEMA,
        "complete": run.complete,
        "commit": run.commit,
        "build": {
            "type": "Release",
            "compiler": f"{platform.python_implementation()} {platform.python_version()}",
            "cuda_compiler": None,
            "cuda_architectures": None,
        },
        "command": list(run.command),
        "device": device,
        "ceilings": list(ceilings),
        "measured_ceilings": beside.run.get("measured_ceilings", []) if beside else [],
        "kernels": [
            *(beside.run["kernels"] if beside else []),
            *(
                {
                    "name": peer.name,
                    "tunable": False,
                    "family": FAMILY,
                    "rung": peer.rung,
                    "idea": peer.idea,
                    "source": peer.versions or "no package",
                }
                for peer in sorted(peers.values(), key=lambda peer: peer.rung)
            ),
        ],
        "method": {
            "timer": run.facts["timer"],
            "variants": "default",
            "fill": FILL,
            "seed": run.seed,
            "cache": "rotate",
            "test": "fixed power" if card else None,
            "state": "settled" if gpu else None,
            "warmup_seconds": run.plan.warmup_seconds,
            "flat": run.plan.flat,
            "sample_seconds": run.plan.sample_seconds,
            "sampling_seconds": run.plan.sampling_seconds,
            "longest_sampling_seconds": run.plan.longest_sampling_seconds,
            "target": run.plan.target,
            "cooldown_seconds": 0.0,
            "burst_launches": None,
            "row_budget_seconds": run.plan.budget_seconds,
            "run_budget_seconds": None,
            "versus": None,
            "ceilings": "queried",
            "watch": {
                "source": "NVML" if card else None,
                "why_not": run.facts["why_not"],
                "interval_seconds": INTERVAL_SECONDS if card else None,
                "read_seconds": sorted(reads)[len(reads) // 2] if reads else None,
            },
            "overheads": None,
        },
        "time": {
            "wall_seconds": run.wall_seconds,
            "kernel_seconds": sum(
                one.said["measured"]["kernel_seconds"] for one in done if one.median
            ),
        },
    }


def _benchmark(
    index: int,
    one: Done,
    run: Run,
    ceilings: Sequence[dict[str, Any]],
    theirs: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    milliseconds = 1e3 * (one.median or 0.0)
    entry: dict[str, Any] = {
        "name": f"{one.label}/manual_time",
        "family_index": index,
        "per_family_instance_index": 0,
        "run_name": f"{one.label}/manual_time",
        "run_type": "iteration",
        "repetitions": 1,
        "repetition_index": 0,
        "threads": 1,
        "iterations": len(one.said["measured"]["samples_seconds"]) if one.median else 0,
        "real_time": milliseconds,
        "cpu_time": 0.0,
        "time_unit": "ms",
    }
    if not one.median:
        entry["error_occurred"] = True
        entry["error_message"] = one.said.get("failed") or one.said.get("skipped")
    return {**entry, "gemm": _row(one, ceilings, theirs)}


def _row(
    one: Done, ceilings: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    p, rate = one.problem, one.flop_per_second
    measured = {**_TIMELESS, **(one.said.get("measured") or {})}
    measured.pop("kernel_seconds", None)
    if one.said.get("verification"):
        measured["verification"] = one.said["verification"]
    roof = _roof(p, ceilings, {})
    at_clock = _roof(p, ceilings, measured["clocks"] or {}) if rate and measured["clocks"] else None
    if at_clock and not any((measured["clocks"] or {}).get(k) for k in ("sm_hz", "sm_hz_by_timer")):
        at_clock = None
    library = _library(p, theirs) if rate else None
    return {
        "kernel": one.peer.name,
        "family": FAMILY,
        "parameters": {"kernel": one.variant} if one.variant else {},
        "transfer": None,
        "precision": p.precision,
        "layout": p.layout,
        "m": p.m,
        "n": p.n,
        "k": p.k,
        "flop": p.flop,
        "bytes_minimum": p.bytes_minimum,
        "flop_per_byte": p.flop / p.bytes_minimum,
        "traffic": None,
        "variant": False,
        **measured,
        "device_kernels": [],
        "fingerprint": None,
        "device_code": [],
        "flop_per_second": rate,
        "roof": roof,
        "of_roof_nominal": rate / roof["flop_per_second"] if rate and roof else None,
        "roof_at_clock": at_clock,
        "of_roof_at_clock": rate / at_clock["flop_per_second"] if rate and at_clock else None,
        "of_library": rate / library["flop_per_second"] if rate and library else None,
        "library": library and _label(library),
        "versus": None,
        "end_to_end": None,
        "conformance": None,
        "skipped": one.said.get("skipped"),
        "failed": one.said.get("failed"),
    }


def _roof(
    p: Problem, ceilings: Sequence[dict[str, Any]], clocks: dict[str, Any]
) -> dict[str, Any] | None:
    """The lower of compute and memory, at the clocks that were seen (bench/peaks/peaks.cpp: roof_at)."""

    def at(ceiling: dict[str, Any], key: str, hertz: dict[str, float] | None) -> float | None:
        value, nominal = ceiling[key], ceiling.get("clock_hz")
        return value * hertz["median"] / nominal if value and nominal and hertz else value

    compute = next((c for c in ceilings if c["precision"] == p.precision), None)
    memory = next((c for c in ceilings if c["precision"] is None), None)
    if compute is None or memory is None:
        return None
    sm = clocks.get("sm_hz_by_timer") or clocks.get("sm_hz")
    flop = at(compute, "flop_per_second", sm)
    moved = at(memory, "bytes_per_second", clocks.get("memory_hz"))
    if not flop or not moved:
        return None
    bound = moved * p.flop / p.bytes_minimum
    if bound < flop:
        return {"name": memory["name"], "flop_per_second": bound}
    return {"name": compute["name"], "flop_per_second": flop}


def _library(p: Problem, theirs: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The fastest row of a library on the same problem."""
    rows = [each["gemm"] for each in theirs if each["run_type"] == "iteration"]
    same = [
        row
        for row in rows
        if row["family"] == "library"
        and row["flop_per_second"]
        and not row.get("transfer")
        and all(row[key] == value for key, value in asdict(p).items())
    ]
    return max(same, key=lambda row: row["flop_per_second"], default=None)


def _label(row: dict[str, Any]) -> str:
    return "/".join([row["kernel"], *(f"{k}:{v}" for k, v in row["parameters"].items())])


def _unknown_ceilings(done: Sequence[Done]) -> list[dict[str, Any]]:
    """The table of peaks is gemm_bench's: without a record of it no roof is known."""
    precisions = dict.fromkeys(one.problem.precision for one in done)
    return [
        {
            "name": precision or "DRAM",
            "precision": precision,
            "flop_per_second": None,
            "bytes_per_second": None,
            "clock_hz": None,
            "origin": "unknown",
            "source": "tools/peers takes roofs from a record of gemm_bench; give --beside",
        }
        for precision in (*precisions, None)
    ]
