"""Reads a record of gemm_bench into plain data, or says in one line why it cannot.

The format is that of results/schema.json. What is checked here is what the reports rely on: the
schema has the whole of it, and the tests hold every stored record against it.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

SCHEMA = 1
PRECISIONS = ("f32", "tf32", "bf16", "f16")


class RecordError(Exception):
    """What is wrong with which file, and what to do about it: one line."""


@dataclass(frozen=True)
class Device:
    """Where the record was made."""

    kind: str
    name: str
    driver: str | None
    runtime: str | None
    power_limit_w: float | None


@dataclass(frozen=True)
class Ceiling:
    """A roof: of one precision's arithmetic, or of a memory; of neither where it is not known."""

    name: str
    precision: str | None
    flop_per_second: float | None
    bytes_per_second: float | None
    origin: str
    source: str


@dataclass(frozen=True)
class Kernel:
    """A rung of the ladder."""

    name: str
    family: str
    rung: int
    idea: str


@dataclass(frozen=True)
class Method:
    """How it was measured."""

    timer: str
    fill: str
    test: str | None
    state: str | None


@dataclass(frozen=True)
class Seconds:
    """Time of one launch over the samples."""

    median: float
    q1: float
    q3: float
    min: float


@dataclass(frozen=True)
class Roof:
    """The roof that counts for one row."""

    name: str
    flop_per_second: float


@dataclass(frozen=True)
class Verification:
    """How far the result is from the reference; None where that is not finite."""

    max_error: float | None
    bound: float | None
    passed: bool


@dataclass(frozen=True)
class Row:
    """One kernel on one problem, one repetition."""

    kernel: str
    family: str
    parameters: tuple[tuple[str, str], ...]
    precision: str
    layout: str
    m: int
    n: int
    k: int
    repetition: int
    flop_per_byte: float
    samples_seconds: tuple[float, ...]
    seconds: Seconds | None
    flop_per_second: float | None
    roof: Roof | None
    of_roof_nominal: float | None
    of_roof_at_clock: float | None
    of_library: float | None
    library: str | None
    verification: Verification | None
    skipped: str | None
    failed: str | None

    @property
    def label(self) -> str:
        """Names the variant as its benchmark is named: Tiled/tile:16."""
        parts = [self.kernel, *(f"{name}:{value}" for name, value in self.parameters)]
        return "/".join(parts if self.layout == "nn" else [*parts, self.layout])

    @property
    def shape(self) -> str:
        """As in the benchmark's name: 1024x1024x768."""
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def size(self) -> str:
        """The shape, shorter for a cube: 4096."""
        return str(self.m) if self.is_cube else self.shape

    @property
    def volume(self) -> int:
        """Products in the problem, by which problems are larger or smaller."""
        return self.m * self.n * self.k

    @property
    def is_cube(self) -> bool:
        """Whether the problem has one size."""
        return self.m == self.n == self.k

    @property
    def status(self) -> str:
        """timed, failed, skipped or untimed; a wrong result has no speed, whatever was written."""
        if self.failed is not None:
            return "failed"
        if self.skipped is not None:
            return "skipped"
        return "timed" if self.seconds and self.flop_per_second else "untimed"


@dataclass(frozen=True)
class Record:
    """One run of gemm_bench."""

    path: Path
    date: str
    complete: bool
    commit: str
    build_type: str
    device: Device
    ceilings: tuple[Ceiling, ...]
    kernels: tuple[Kernel, ...]
    method: Method
    rows: tuple[Row, ...]
    aggregates: int

    def compute_roofs(self, precision: str) -> list[Ceiling]:
        """The known compute roofs of a precision, highest first."""
        known = [c for c in self.ceilings if c.precision == precision and c.flop_per_second]
        return sorted(known, key=lambda c: -(c.flop_per_second or 0))

    def memory_roofs(self) -> list[Ceiling]:
        """The known memory roofs, highest first."""
        known = [c for c in self.ceilings if c.bytes_per_second]
        return sorted(known, key=lambda c: -(c.bytes_per_second or 0))

    def rows_with(self, status: str) -> list[Row]:
        """Those that are timed, failed, skipped or untimed."""
        return [row for row in self.rows if row.status == status]

    def unknown_roofs(self) -> list[Ceiling]:
        """The roofs of which only the reason is known why they are not."""
        return [c for c in self.ceilings if not c.flop_per_second and not c.bytes_per_second]


def read_record(path: Path) -> Record:
    """The record in `path`; RecordError where there is none that this version understands."""
    context, benchmarks = _outer_objects(path, _parse(path, _text(path)))
    run = context.child("gemm")
    _check_schema(path, run.take("schema", int))
    device = run.child("device")
    method = run.child("method")
    rows = [b for b in benchmarks if b.take("run_type", str) != "aggregate"]
    return Record(
        path=path,
        date=context.take("date", str),
        complete=run.take("complete", bool),
        commit=run.take("commit", str),
        build_type=run.child("build").take("type", str),
        device=Device(
            kind=device.take("kind", str),
            name=device.take("name", str),
            driver=device.take("driver", str, NoneType),
            runtime=device.take("runtime", str, NoneType),
            power_limit_w=device.positive_or_none("power_limit_w"),
        ),
        ceilings=tuple(_ceiling(ceiling) for ceiling in run.children("ceilings")),
        kernels=tuple(_kernel(kernel) for kernel in run.children("kernels")),
        method=Method(
            timer=method.take("timer", str),
            fill=method.take("fill", str),
            test=method.take("test", str, NoneType),
            state=method.take("state", str, NoneType),
        ),
        rows=tuple(_row(row) for row in rows),
        aggregates=len(benchmarks) - len(rows),
    )


@dataclass(frozen=True)
class _Object:
    """A JSON object that knows its place in the file, so that a complaint can name it."""

    path: Path
    place: str
    values: Mapping[str, Any]

    def take(self, key: str, *kinds: type) -> Any:
        if key not in self.values:
            self.complain(key, "is missing")
        value = self.values[key]
        # In Python True is an int; in a record it is not a number.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.complain(key, f"has the wrong type ({type(value).__name__})")
        return value

    def positive(self, key: str) -> float:
        value = self.take(key, int, float)
        if not (0 < value < math.inf):
            self.complain(key, f"is {value}, not a positive number")
        return value

    def positive_or_none(self, key: str) -> float | None:
        return None if self.take(key, int, float, NoneType) is None else self.positive(key)

    def precision_or_none(self) -> str | None:
        value = self.take("precision", str, NoneType)
        if value is not None and value not in PRECISIONS:
            self.complain("precision", f"is {value!r}, not one of {', '.join(PRECISIONS)}")
        return value

    def child(self, key: str) -> "_Object":
        return _Object(self.path, f"{self.place}.{key}", self.take(key, dict))

    def child_or_none(self, key: str) -> "_Object | None":
        return None if self.take(key, dict, NoneType) is None else self.child(key)

    def children(self, key: str) -> list["_Object"]:
        places = [(f"{self.place}.{key}[{i}]", v) for i, v in enumerate(self.take(key, list))]
        for place, value in places:
            if not isinstance(value, dict):
                raise RecordError(f"{self.path}: {place} is not an object: {_ADVICE}")
        return [_Object(self.path, place, value) for place, value in places]

    def complain(self, key: str, what: str) -> NoReturn:
        raise RecordError(f"{self.path}: {self.place}.{key} {what}: {_ADVICE}")


_ADVICE = "the record is damaged, take another copy or run gemm_bench again"
_FOREIGN = "is not a record of gemm_bench"


def _text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file: give the path of a record") from None
    except IsADirectoryError:
        raise RecordError(f"{path}: is a folder: give the path of a record in it") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RecordError(f"{path}: cannot be read ({reason}): check the path") from None
    except UnicodeDecodeError:
        raise RecordError(f"{path}: {_FOREIGN} (not UTF-8 text): give a record") from None
    if not text.strip():
        raise RecordError(f"{path}: the file is empty: run gemm_bench again")
    return text


def _parse(path: Path, text: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        place = re.search(rf"[:\[,]\s*{re.escape(constant)}", text)
        line = text.count("\n", 0, place.end()) + 1 if place else "?"
        raise RecordError(
            f"{path}: line {line} has {constant}, which is not JSON and never in a record: "
            "run gemm_bench again"
        )

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        what = "the file ends too early" if at_end else f"is not JSON ({error.msg})"
        raise RecordError(f"{path}: {what}, line {error.lineno}: {_ADVICE}") from None
    except RecursionError:
        raise RecordError(f"{path}: {_FOREIGN} (nested too deeply): give a record") from None


def _outer_objects(path: Path, document: Any) -> tuple[_Object, list[_Object]]:
    context = document.get("context") if isinstance(document, dict) else None
    if not isinstance(context, dict) or "gemm" not in context:
        kind = "plain Google Benchmark output" if isinstance(context, dict) else "other JSON"
        raise RecordError(
            f"{path}: {_FOREIGN} but {kind} (context.gemm is missing): "
            "give a file that gemm_bench wrote with --benchmark_out"
        )
    outer = _Object(path, "record", document)
    return _Object(path, "context", context), outer.children("benchmarks")


def _check_schema(path: Path, schema: int) -> None:
    if schema > SCHEMA:
        raise RecordError(
            f"{path}: record has schema {schema}, this gemm_report knows up to {SCHEMA}: "
            "update gemm_report"
        )
    if schema < 1:
        raise RecordError(f"{path}: record has schema {schema}, the first is 1: {_ADVICE}")


def _ceiling(ceiling: _Object) -> Ceiling:
    return Ceiling(
        name=ceiling.take("name", str),
        precision=ceiling.precision_or_none(),
        flop_per_second=ceiling.positive_or_none("flop_per_second"),
        bytes_per_second=ceiling.positive_or_none("bytes_per_second"),
        origin=ceiling.take("origin", str),
        source=ceiling.take("source", str),
    )


def _kernel(kernel: _Object) -> Kernel:
    return Kernel(
        name=kernel.take("name", str),
        family=kernel.take("family", str),
        rung=kernel.take("rung", int),
        idea=kernel.take("idea", str),
    )


def _row(benchmark: _Object) -> Row:
    row = benchmark.child("gemm")
    precision = row.precision_or_none()
    if precision is None:
        row.complain("precision", "is null")
    parameters = row.child("parameters")
    seconds = row.child_or_none("seconds")
    roof = row.child_or_none("roof")
    verification = row.child_or_none("verification")
    samples = row.take("samples_seconds", list)
    if not all(isinstance(sample, int | float) for sample in samples):
        row.complain("samples_seconds", "has something other than numbers")
    return Row(
        kernel=row.take("kernel", str),
        family=row.take("family", str),
        parameters=tuple((name, parameters.take(name, str)) for name in parameters.values),
        precision=precision,
        layout=row.take("layout", str),
        m=int(row.positive("m")),
        n=int(row.positive("n")),
        k=int(row.positive("k")),
        repetition=benchmark.take("repetition_index", int)
        if "repetition_index" in benchmark.values
        else 0,
        flop_per_byte=row.positive("flop_per_byte"),
        samples_seconds=tuple(samples),
        seconds=seconds and Seconds(*(seconds.positive(q) for q in ("median", "q1", "q3", "min"))),
        flop_per_second=row.positive_or_none("flop_per_second"),
        roof=roof and Roof(roof.take("name", str), roof.positive("flop_per_second")),
        of_roof_nominal=row.positive_or_none("of_roof_nominal"),
        of_roof_at_clock=row.positive_or_none("of_roof_at_clock"),
        of_library=row.positive_or_none("of_library"),
        library=row.take("library", str, NoneType),
        verification=verification
        and Verification(
            max_error=verification.take("max_error", int, float, NoneType),
            bound=verification.take("bound", int, float, NoneType),
            passed=verification.take("passed", bool),
        ),
        skipped=row.take("skipped", str, NoneType),
        failed=row.take("failed", str, NoneType),
    )
