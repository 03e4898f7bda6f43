"""What history needs of one record, and nothing else: ten thousand of them have to be read."""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import Any

from gemm_report.document import Object, parse_json, read_text
from gemm_report.record import PRECISIONS, RECORD, SCHEMA, TRANSFERS, Identity, outer_objects, utc

try:
    from orjson import loads
except ImportError:  # slower, and the same
    from json import loads

# In which order a change is put down to them; `card` is the hash of the device's identity.
SETTINGS = ("toolkit", "driver", "power limit", "method", "build", "card", "commit")


@dataclass(frozen=True)
class Timing:
    """One case of a record. Seconds are None where it failed, the rest where it is not known."""

    case: str
    flop: float
    seconds: float | None
    sm_hz: float | None
    throttled_share: float | None
    fingerprint: str | None


@dataclass(frozen=True)
class Reading:
    """One record. `digest` is of its content; `date` is UTC and sorts as text.

    `setting` has the texts of SETTINGS.
    """

    digest: bytes
    date: str
    device: str
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
    text = read_text(path, RECORD)
    context, benchmarks = outer_objects(path, _parsed(path, text))
    run = context.child("gemm")
    run.check_schema(SCHEMA)
    device = run.child("device")
    rows = [_timing(b) for b in benchmarks if b.take("run_type", str) != "aggregate"]
    return Reading(
        digest=hashlib.blake2b(text.encode(), digest_size=16).digest(),
        date=utc(path, context.take("date", str)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        device=device.take("name", str),
        complete=run.take("complete", bool),
        setting=_setting(run, device),
        timings=_of_repetitions([row for row in rows if row]),
    )


def _parsed(path: Path, text: str) -> Any:
    # What is not plain may need to be made printable, and parse_json says what is wrong with it.
    if text.isascii() and "\\" not in text and "\x7f" not in text:
        try:
            return loads(text)
        except ValueError:
            pass
    return parse_json(path, RECORD, text)


def _setting(run: Object, device: Object) -> tuple[str | None, ...]:
    build = run.child("build").or_else(cuda_compiler=None, compiler=None)
    method = run.child("method").or_else(cache=None)
    runtime = device.take("runtime", str, NoneType)
    compilers = [build.take(key, str, NoneType) for key in ("cuda_compiler", "compiler")]
    power = device.positive_or_none("power_limit_w")
    how = [method.take(key, str, NoneType) for key in ("test", "state", "fill", "cache")]
    return (
        ", ".join(filter(None, [runtime and f"CUDA {runtime}", *compilers])) or None,
        device.take("driver", str, NoneType),
        None if power is None else f"{power:.0f} W",
        ", ".join(filter(None, how)) or None,
        build.take("type", str),
        device.take("uuid_hash", str, NoneType),
        run.take("commit", str),
    )


def _timing(benchmark: Object) -> Timing | None:
    row = benchmark.child("gemm")
    values = row.values
    if values.get("skipped") is not None:
        return None
    failed = row.reason_or_none("failed") is not None
    seconds = row.child_or_none("seconds")
    if seconds is None and not failed:
        return None
    clocks = None if failed else row.child_or_none("clocks")
    by_timer = clocks and (_median(clocks, "sm_hz_by_timer") or _median(clocks, "sm_hz"))
    parameters = row.child("parameters")
    return Timing(
        case=key_of(
            Identity(
                kernel=row.take("kernel", str),
                parameters=tuple((name, parameters.take(name, str)) for name in parameters.values),
                precision=row.one_of("precision", PRECISIONS),
                layout=row.take("layout", str),
                m=row.count("m"),
                n=row.count("n"),
                k=row.count("k"),
                transfer=row.one_of("transfer", TRANSFERS) if values.get("transfer") else None,
            )
        ),
        flop=row.positive("flop"),
        seconds=None if failed or seconds is None else seconds.positive("median"),
        sm_hz=by_timer,
        throttled_share=clocks and clocks.nonnegative_or_none("throttled_share"),
        fingerprint=row.take("fingerprint", str, NoneType) if "fingerprint" in values else None,
    )


def _median(clocks: Object, key: str) -> float | None:
    values = clocks.child_or_none(key) if key in clocks.values else None
    return values and values.positive("median")


def _of_repetitions(timings: list[Timing]) -> tuple[Timing, ...]:
    """One a case: of several repetitions the median."""
    cases: dict[str, list[Timing]] = {}
    for timing in timings:
        cases.setdefault(timing.case, []).append(timing)
    return tuple(_middle(each) for each in cases.values())


def _middle(timings: list[Timing]) -> Timing:
    timed = sorted((t for t in timings if t.seconds is not None), key=lambda t: t.seconds or 0)
    if len(timed) <= 1:
        return timed[0] if timed else timings[0]
    # The lower of two: a repetition that took place, with its clock.
    return timed[(len(timed) - 1) // 2]
