"""Which counters tell of what: quantities from the counters that a GPU has, by metrics.toml."""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

WAVEFRONT = 128.0  # bytes
_SECTOR = 32.0  # bytes


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


# By ncu's names: the words for stalls, and titles and steps of each finding.
WORDS, _METRICS = _table("words.toml"), _table("metrics.toml")
STALLS: dict[str, str] = WORDS["stalls"]
LIMITS: dict[str, str] = _METRICS["limits"]
WAVES = "launch__waves_per_multiprocessor"

_STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_SINGLE = _METRICS["single"] | {f"stall_{each}": _STALLED.format(each) for each in STALLS}
# Each quantity with the ways to it: the metrics whose sum it is.
QUANTITIES: dict[str, list[list[str]]] = {name: [[metric]] for name, metric in _SINGLE.items()}
QUANTITIES |= _METRICS["sums"]
# Of these one count stands for so many bytes; what ncu has in per cent is a share here.
_UNITS = {"l2_bytes": _SECTOR, "shared_bytes": WAVEFRONT, "gmma_shared_bytes": WAVEFRONT}
# Most GPUs do not have them, since they have nothing to count there.
_OF_SOME = {"stall_gmma", "stall_imc_miss", "gmma_shared_bytes", "wgmma_flop", "wgmma_instructions"}


def select(present: Collection[str]) -> tuple[list[str], list[str]]:
    """The metrics to ask for, and the quantities that the GPU, which has these, cannot count."""
    bases = {_base(name) for name in present}
    asked: list[str] = []
    dropped: list[str] = []
    for name, ways in QUANTITIES.items():
        way = next((way for way in ways if {_base(metric) for metric in way} <= bases), None)
        asked += way or ()
        dropped += [] if way or name in _OF_SOME else [name]
    return list(dict.fromkeys(asked)), dropped


def names() -> frozenset[str]:
    """All that is read: whichever way the GPU has, and what every launch has."""
    asked = (name for ways in QUANTITIES.values() for way in ways for name in way)
    return frozenset((*asked, *LIMITS.values(), WAVES))


def values(metrics: Mapping[str, float]) -> dict[str, float]:
    """The quantities that follow from what was counted: bytes, shares, or counts."""
    found = {}
    for name, ways in QUANTITIES.items():
        way = next((way for way in ways if metrics.keys() >= set(way)), None)
        if way:
            unit = 0.01 if ".pct" in way[0] else _UNITS.get(name, 1.0)
            found[name] = unit * sum(metrics[metric] for metric in way)
    return found


def _base(name: str) -> str:
    return name.partition(".")[0]
