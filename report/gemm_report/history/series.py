"""One case on one device over time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemm_report.history.index import Content
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
    sm_hz: Floats
    throttled: Floats
    fingerprint: NDArray[np.uint32]
    failed: NDArray[np.int32]

    @property
    def rates(self) -> Floats:
        """FLOP/s of every point."""
        return self.flop / self.seconds


def series_of(content: Content) -> list[Series]:
    """Every series, by device and case; those that never had a time are left out."""
    devices = sorted({entry.device for entry in content.entries})
    numbers = {device: i for i, device in enumerate(devices)}
    device = np.array([numbers[entry.device] for entry in content.entries], dtype=np.uint32)
    points = content.points
    # Numbers without gaps fit 16 bits, which numpy sorts without comparing.
    cases, case = np.unique(points["case"], return_inverse=True)
    group = device[content.record] * len(cases) + case
    small = len(devices) * len(cases) < 2**16
    order = np.argsort(group.astype(np.uint16) if small else group, kind="stable")
    ends = np.flatnonzero(np.diff(group[order])) + 1
    found = []
    for members in np.split(order, ends) if len(order) else []:
        first = members[0]
        key, flop = content.cases[int(points["case"][first])]
        timed = ~np.isnan(points["seconds"][members])
        there = members[timed]
        if not len(there):
            continue
        found.append(
            Series(
                device=content.entries[content.record[first]].device,
                case=identity_of(key),
                key=key,
                flop=flop,
                record=content.record[there],
                seconds=points["seconds"][there],
                sm_hz=points["sm_hz"][there].astype(float),
                throttled=points["throttled"][there].astype(float),
                fingerprint=points["fingerprint"][there],
                failed=content.record[members[~timed]],
            )
        )
    return sorted(found, key=lambda series: (series.device, _order(series.case)))


def _order(case: Identity) -> tuple[str, str, int, str]:
    return case.kernel, case.precision, case.m * case.n * case.k, str(case)
