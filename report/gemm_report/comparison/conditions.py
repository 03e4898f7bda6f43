"""Under which conditions records were made, as far as these decide what may be compared."""

from collections.abc import Callable, Mapping, Sequence

from gemm_report.record import Record

# Equal runs are equal in all of these.
CONDITIONS: Mapping[str, Callable[[Record], object]] = {
    "commit": lambda record: record.commit,
    "build type": lambda record: record.build.type,
    "device": lambda record: record.device.name,
    "card": lambda record: record.device.uuid_hash,
    "driver": lambda record: record.device.driver,
    "runtime": lambda record: record.device.runtime,
    "power limit": lambda record: record.device.power_limit_w,
    "command": lambda record: " ".join(options_of(record)),
    "fill": lambda record: record.method.fill,
    "test": lambda record: record.method.test,
    "state": lambda record: record.method.state,
    "cache": lambda record: record.method.cache,
    "target": lambda record: record.method.target,
}


# A comparison is there to see what these change; and cards of one name are compared.
_OF_THE_PROGRAM = ("commit", "card")


def options_of(record: Record) -> list[str]:
    """The command but for where its record went, which is another place for every process."""
    return [word for word in record.command if not word.startswith("--benchmark_out")]


def alikeness(record: Record, other: Record) -> int:
    """In how many conditions two runs of whatever code agree."""
    return sum(
        of(record) == of(other) for what, of in CONDITIONS.items() if what not in _OF_THE_PROGRAM
    )


def differences(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """In what two sides, or the processes of one side, were not alike; a line for each."""
    found = []
    for what, of in CONDITIONS.items():
        said = [list(dict.fromkeys(_said(of(record)) for record in side)) for side in (base, new)]
        if all(len(values) == 1 for values in said):
            if said[0] != said[1] and what != "commit":
                told = f"{what}: {said[0][0]} in BASE, {said[1][0]} in NEW"
                # A calibration is of one.
                rest = ": how far cards of one name are apart is not in the noise"
                found.append(f"{told}{rest if what == 'card' else ''}")
        else:
            for name, values in zip(("BASE", "NEW"), said, strict=True):
                if len(values) > 1:
                    found.append(f"{what}: differs within {name}: {', '.join(values)}")
    for name, side in (("BASE", base), ("NEW", new)):
        interrupted = sum(not record.complete for record in side)
        if interrupted:
            found.append(f"{name} has {interrupted} incomplete of {len(side)} records")
    return found


def _said(value: object) -> str:
    return "not known" if value is None else str(value)
