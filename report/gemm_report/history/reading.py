"""What history needs of one record, and nothing else: thousands of them are kept at once."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gemm_report.record import Identity, Record, Row, read_record

# In which order a change is put down to them.
SETTINGS = ("toolkit", "driver", "power limit", "build", "commit")

# Of the method; times are compared only where these are the same.
STATE = ("test", "state", "fill", "cache")


@dataclass(frozen=True)
class Timing:
    """One case of a record. Seconds are None without a time, the rest where it is not known.

    `skipped` is the reason of a case that was skipped; one without that and without a time failed.
    """

    case: str
    flop: float
    seconds: float | None
    sm_hz: float | None
    throttled_share: float | None
    fingerprint: str | None
    skipped: str | None = None


@dataclass(frozen=True)
class Reading:
    """One record. `date` is UTC and sorts as text; `gpu` is the hash of the device's identity.

    `state` has the texts of STATE, `setting` those of SETTINGS.
    """

    date: str
    device: str
    gpu: str | None
    state: tuple[str | None, ...]
    complete: bool
    setting: tuple[str | None, ...]
    timings: tuple[Timing, ...]


@lru_cache(maxsize=4096)
def key_of(identity: Identity) -> str:
    """The case as a text that can be taken apart again, unlike its name."""
    return json.dumps(identity, separators=(",", ":"))


def identity_of(key: str) -> Identity:
    """The case that has this key."""
    kernel, parameters, *rest = json.loads(key)
    return Identity(kernel, tuple((name, value) for name, value in parameters), *rest)


def read(path: Path) -> Reading:
    """The record in `path`; RecordError where there is none that history can use."""
    record = read_record(path)
    method = record.method
    return Reading(
        date=record.utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        device=record.device.name,
        gpu=record.device.uuid_hash,
        state=tuple(getattr(method, name) for name in STATE),
        complete=record.complete,
        setting=_setting(record),
        timings=_of_repetitions([timing for row in record.rows if (timing := _timing(row))]),
    )


def _setting(record: Record) -> tuple[str | None, ...]:
    device, build = record.device, record.build
    power = device.power_limit_w
    toolkit = (device.runtime and f"CUDA {device.runtime}", build.cuda_compiler, build.compiler)
    return (
        ", ".join(filter(None, toolkit)) or None,
        device.driver,
        None if power is None else f"{power:.0f} W",
        build.type,
        record.commit,
    )


def _timing(row: Row) -> Timing | None:
    status = row.status
    if status == "untimed":
        return None
    if status != "timed" or row.seconds is None:
        return Timing(key_of(row.identity), row.flop, *[None] * 3, row.fingerprint, row.skipped)
    return Timing(
        case=key_of(row.identity),
        flop=row.flop,
        seconds=row.seconds.median,
        sm_hz=row.sm_hz,
        throttled_share=row.throttled_share,
        fingerprint=row.fingerprint,
    )


def _of_repetitions(timings: list[Timing]) -> tuple[Timing, ...]:
    """One a case: of several repetitions the median."""
    cases: dict[str, list[Timing]] = {timing.case: [] for timing in timings}
    if len(cases) == len(timings):
        return tuple(timings)
    for timing in timings:
        cases[timing.case].append(timing)
    return tuple(_middle(each) for each in cases.values())


def _middle(timings: list[Timing]) -> Timing:
    timed = sorted((t for t in timings if t.seconds is not None), key=lambda t: t.seconds or 0)
    if len(timed) <= 1:
        return timed[0] if timed else timings[0]
    # The lower of two: a repetition that took place, with its clock.
    return timed[(len(timed) - 1) // 2]
