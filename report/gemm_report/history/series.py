"""One case on one device over time."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gemm_report.history.index import POINT, Content
from gemm_report.history.reading import identity_of
from gemm_report.record import Identity

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """Its points in the order of time; of each, `record` says in which entry of the index it is.

    `failed` has the records in which there is no time for it.
    """

    device: str
    case: Identity
    key: str
    flop: float
    record: NDArray[np.int32]
    seconds: Floats
    sm_hz: NDArray[np.float32]
    throttled: NDArray[np.float32]
    fingerprint: NDArray[np.uint32]
    failed: NDArray[np.int32]

    @cached_property
    def rates(self) -> Floats:
        """FLOP/s of every point."""
        return self.flop / self.seconds

    @cached_property
    def usual(self) -> tuple[float, float]:
        """Between which nearly all rates are."""
        low, high = np.quantile(self.rates, [0.005, 0.995])
        return float(low), float(high)


def series_of(content: Content) -> list[Series]:
    """Every series, by device and case; those that never had a time are left out."""
    devices = sorted({entry.device for entry in content.entries})
    numbers = {device: i for i, device in enumerate(devices)}
    device = np.array([numbers[entry.device] for entry in content.entries], dtype=np.uint32)
    points = content.points
    if not len(points):
        return []
    cases = int(points["case"].max()) + 1
    # numpy sorts 16 bits without comparing them.
    number = np.uint16 if len(devices) * cases < 2**16 - 1 else np.uint32
    group = (device * cases).astype(number)[content.record] + points["case"].astype(number)
    failed = np.flatnonzero(np.isnan(points["seconds"]))
    failed_record, failed_group = content.record[failed], group[failed]
    # Behind all others.
    group[failed] = len(devices) * cases
    order = np.argsort(group, kind="stable")[: len(group) - len(failed)]
    record = content.record[order]
    counts = np.bincount(group)[: len(devices) * cases]
    bounds = [0, *np.cumsum(counts[counts > 0]).tolist()]
    # As rows of plain numbers: numpy is ten times slower at reordering points with names.
    plain = points.view(np.uint64).reshape(len(points), -1)
    column = _taken(plain, order).view(POINT)[:, 0]
    found = []
    for which, (start, end) in zip(np.flatnonzero(counts), pairwise(bounds), strict=True):
        key, flop = content.cases[int(column["case"][start])]
        found.append(
            Series(
                device=content.entries[record[start]].device,
                case=identity_of(key),
                key=key,
                flop=flop,
                record=record[start:end],
                seconds=column["seconds"][start:end],
                sm_hz=column["sm_hz"][start:end],
                throttled=column["throttled"][start:end],
                fingerprint=column["fingerprint"][start:end],
                failed=failed_record[failed_group == which],
            )
        )
    return sorted(found, key=lambda series: (series.device, _order(series.case)))


def _taken(rows: NDArray[np.uint64], order: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The rows in this order, by a thread for each core."""
    taken = np.empty((len(order), rows.shape[1]), rows.dtype)
    bounds = np.linspace(0, len(order), len(os.sched_getaffinity(0)) + 1, dtype=int).tolist()

    def take(part: tuple[int, int]) -> None:
        # Other modes than clip go by a copy.
        np.take(rows, order[slice(*part)], axis=0, out=taken[slice(*part)], mode="clip")

    with ThreadPoolExecutor() as pool:
        list(pool.map(take, pairwise(bounds)))
    return taken


def _order(case: Identity) -> tuple[str, str, int, str]:
    return case.kernel, case.precision, case.m * case.n * case.k, str(case)
