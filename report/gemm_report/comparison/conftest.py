"""Made runs."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gemm_report.comparison.run import Run
from gemm_report.conftest import TESTDATA
from gemm_report.record import read_record

RECORD = read_record(TESTDATA / "gpu.json")
_ROW = next(row for row in RECORD.rows if row.status == "timed" and row.precision == "f32")


def side(
    logs: Mapping[str, float],
    wrong: Mapping[str, str] | None = None,
    cycles: float | None = None,
    **changes: Any,
) -> Run:
    """A process with these log medians; `cycles` is that of all in which the SM clock is known."""
    timed = {}
    for name, value in logs.items():
        hertz = () if cycles is None else (math.exp(cycles - value),)
        its = {"samples_seconds": (math.exp(value),), "samples_sm_hz": hertz, "clocks": None}
        timed[name] = dataclasses.replace(_ROW, **{**its, **changes})
    return Run(RECORD, timed, dict(wrong or {}), frozenset(wrong or ()))


def name(i: int) -> str:
    """Of a case."""
    return f"Kernel{i}/f32/2048x2048x2048"


def processes(
    changes: Sequence[float], count: int = 3, base: Any = (), new: Any = ()
) -> tuple[list[Run], list[Run]]:
    """Two sides of equal processes, but for these changes of NEW and these parts of rows."""
    noise = np.random.default_rng(1).normal(scale=0.001, size=(2, count, len(changes)))
    noise[1] += np.array(changes)
    return tuple(  # type: ignore[return-value]
        [side({name(i): log for i, log in enumerate(logs)}, **dict(parts)) for logs in its]
        for its, parts in zip(noise, (base, new), strict=True)
    )
