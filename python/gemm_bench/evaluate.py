"""Judges a kernel: is it right, how fast is it, and what is it worth as a reward?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from gemm_bench.job import Job, JobError, Language, Shape, Status, workplace


@dataclass(frozen=True)
class Interval:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """On one problem, C (m x n) = A (m x k) * B (k x n).

    `reason` says in one line why it did not pass. `seconds` is the time of one launch, `ratio` its
    speed over that of `baseline` (above 1: faster); both are None where there is none. `line` is
    the whole verdict (verdict.schema.json).
    """

    status: Status
    reason: str | None
    shape: Shape
    seconds: Interval | None
    ratio: Interval | None
    baseline: str | None
    line: dict[str, Any] = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether it is right, and its time is that of the work."""
        return self.status == "passed"

    @property
    def reward(self) -> float:
        """The lower end of the ratio's interval, so that noise earns nothing: a kernel that is as
        fast as the baseline gets a little less than 1. 0 if it did not pass, or without a ratio."""
        return self.ratio.low if self.passed and self.ratio else 0.0

    @staticmethod
    def from_line(line: dict[str, Any]) -> "Verdict":
        """Of a parsed line of gemm_bench --gemm_verdict."""
        seconds, versus = line["seconds"], line["versus"]
        return Verdict(
            status=line["status"],
            reason=line["reason"],
            shape=(line["m"], line["n"], line["k"]),
            seconds=Interval(*(seconds[key] for key in ("median", "low", "high")))
            if seconds
            else None,
            ratio=Interval(*(versus[key] for key in ("ratio", "low", "high"))) if versus else None,
            baseline=versus["kernel"] if versus else None,
            line=line,
        )


def evaluate(
    source: str | Path,
    shapes: Iterable[int | Shape],
    precision: str = "f32",
    *,
    baseline: str | None = "library",
    language: Language | None = None,
    device: str = "auto",
    include: Sequence[str | Path] = (),
    **options: Any,
) -> list[Verdict]:
    """Compiles and measures a kernel; one verdict for each shape, in their order.

    `source` is the text of a kernel, or the path of its file, whose ending is then its language;
    a text without a `language` is CUDA C++ (kernels/user/gemm_kernel.h). A shape is (m, n, k), or
    one number for all three. `baseline` names kernels as --gemm_versus does; its time is measured
    once for each device and shape, and kept. `device` is "auto", "cpu" or the index of a GPU, and
    `include` are folders of headers, such as CUTLASS's. The other options are those of Job.

    The kernel runs with the rights of this process: this is no sandbox. Raises JobError where the
    arguments or the machine are at fault, ProgramMissingError without gemm_bench; a kernel that
    is wrong, crashes or hangs raises nothing.
    """
    if isinstance(source, Path):
        ending = source.suffix.removeprefix(".")
        if language is None and ending in get_args(Language):
            language = cast(Language, ending)
        if language is None:
            raise JobError(f"{source}: is not .{', .'.join(get_args(Language))}: give a language")
        try:
            source = source.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise JobError(f"{source}: cannot be read: {error}") from None
    job = Job(
        source=source,
        shapes=[(each, each, each) if isinstance(each, int) else each for each in shapes],
        precision=precision,
        baseline=baseline,
        language=language or "cu",
        **options,
    )
    return judge(job, device, include)


def judge(job: Job, device: str = "auto", include: Sequence[str | Path] = ()) -> list[Verdict]:
    """The same of a job. Raises as evaluate() does."""
    with workplace(job, device, include=include) as place:
        return [Verdict.from_line(line) for line in place.compile() or place.measure()]
