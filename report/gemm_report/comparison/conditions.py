"""Under which conditions records were made, as far as these decide what may be compared."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from gemm_report.record import Record

# Equal runs are equal in all of these.
CONDITIONS: Mapping[str, Callable[[Any], object]] = {
    "commit": attrgetter("commit"),
    "build type": attrgetter("build.type"),
    "device": attrgetter("device.name"),
    "GPU": attrgetter("device.uuid_hash"),
    "driver": attrgetter("device.driver"),
    "runtime": attrgetter("device.runtime"),
    "power limit": attrgetter("device.power_limit_w"),
    "command": lambda record: " ".join(options_of(record)),
    **{name: attrgetter(f"method.{name}") for name in ("fill", "test", "state", "cache", "target")},
}
# A comparison is there to see what these change; and GPUs of one name are compared.
_OF_THE_PROGRAM = ("commit", "GPU")


def options_of(record: Record) -> list[str]:
    """The command but for where its record went, which is another place for every process."""
    return [word for word in record.command if not word.startswith("--benchmark_out")]


def alikeness(record: Record, other: Record) -> int:
    """In how many conditions two runs of whatever code agree."""
    return sum(
        of(record) == of(other) for what, of in CONDITIONS.items() if what not in _OF_THE_PROGRAM
    )


def unlike(base: Sequence[Record], new: Sequence[Record]) -> list[tuple[str, list[str], list[str]]]:
    """In which conditions two sides, or the processes of one side, differ; each one's values."""
    found = []
    for what, of in CONDITIONS.items():
        first, second = (
            list(dict.fromkeys("not known" if of(r) is None else str(of(r)) for r in side))
            for side in (base, new)
        )
        if first != second or len(first) > 1:
            found.append((what, first, second))
    return found


def differences(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """The same, a line for each, and which records are incomplete."""
    found = []
    for what, *sides in unlike(base, new):
        if [len(values) for values in sides] == [1, 1]:
            # A calibration is of one GPU.
            rest = ": GPU-to-GPU variation is not part of the noise estimate"
            told = f"{what}: {sides[0][0]} in BASE, {sides[1][0]} in NEW"
            found += [f"{told}{rest if what == 'GPU' else ''}"] if what != "commit" else []
        else:
            named = zip(("BASE", "NEW"), sides, strict=True)
            found += [
                f"{what}: differs within {name}: {', '.join(values)}"
                for name, values in named
                if len(values) > 1
            ]
    for name, side in (("BASE", base), ("NEW", new)):
        if interrupted := sum(not record.complete for record in side):
            records = f"{len(side)} record{'' if len(side) == 1 else 's'}"
            found.append(f"{name}: {interrupted} of {records} is incomplete")
    return found
