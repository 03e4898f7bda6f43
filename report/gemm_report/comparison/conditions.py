"""Under which conditions records were made, as far as these decide what may be compared."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from gemm_report.record import Record


def _libraries(record: Record) -> str | None:
    return ", ".join(f"{each.name} {each.release}" for each in record.libraries) or None


def _environment(record: Record) -> str | None:
    return (record.environment.variables or "none") if record.environment else None


def _injected(record: Record) -> str | None:
    return (", ".join(record.environment.injected) or "none") if record.environment else None


def _host(record: Record) -> str | None:
    if record.host is None:
        return None
    return "busy" if any(row.disturbed for row in record.rows) else "quiet"


def _processes(record: Record) -> int | None:
    return record.health.before.other_processes if record.health else None


# Equal runs are equal in all of these.
CONDITIONS: Mapping[str, Callable[[Any], object]] = {
    "libraries": _libraries,
    "device": lambda record: ", ".join(filter(None, record.device.model.values())),
    "GPU": attrgetter("device.uuid_hash"),
    "driver": attrgetter("device.driver"),
    "runtime": attrgetter("device.runtime"),
    "power limit": attrgetter("device.power_limit_w"),
    "environment": _environment,
    "injected code": _injected,
    "host": _host,
    "other processes on the GPU": _processes,
    "commit": attrgetter("commit"),
    "build type": attrgetter("build.type"),
    "command": lambda record: " ".join(options_of(record)),
    **{name: attrgetter(f"method.{name}") for name in ("fill", "test", "state", "cache", "target")},
}
# Where these differ nothing is compared unless --across names them; of two devices nothing ever is.
ACROSS: Mapping[str, str] = {
    "gpu": "GPU",
    "driver": "driver",
    "library": "libraries",
    "power": "power limit",
    "clock": "test",
    "build": "build type",
    "fill": "fill",
    "state": "state",
    "cache": "cache",
}
# Earlier records do not have them: where one side is not known there is nothing to tell.
_NEW = ("environment", "injected code", "host", "other processes on the GPU")


def options_of(record: Record) -> list[str]:
    """The command but for where its record went, which is another place for every process."""
    return [word for word in record.command if not word.startswith("--benchmark_out")]


def apart(base: Sequence[Record], new: Sequence[Record]) -> dict[str, str]:
    """What must be equal and is known to differ: by its name in ACROSS, what it is on each side."""
    found = {}
    changed = library_changes(base, new)
    if changed:
        found["library"] = ", ".join(f"{name} {told}" for name, told in changed.items())
    for name, what in ACROSS.items():
        if name == "library":
            continue
        sides = [dict.fromkeys(map(CONDITIONS[what], side)) for side in (base, new)]
        if len({*sides[0], *sides[1]} - {None}) > 1:
            was, now = (" and ".join(str(value) for value in side) for side in sides)
            found[name] = f"{what} {was} in BASE, {now} in NEW"
    return found


def library_changes(base: Sequence[Record], new: Sequence[Record]) -> dict[str, str]:
    """Libraries of which the two sides had other releases: by name, what was and is."""
    sides: list[dict[str, list[str]]] = [{}, {}]
    for releases, side in zip(sides, (base, new), strict=True):
        for name, release in (each for record in side for each in record.releases.items()):
            if release not in releases.setdefault(name, []):
                releases[name].append(release)
    return {
        name: f"{' and '.join(was)} in BASE, {' and '.join(sides[1][name])} in NEW"
        for name, was in sides[0].items()
        if name in sides[1] and (was != sides[1][name] or len(was) > 1)
    }


def differences(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """What is not in ACROSS and differs between two sides or within one, a line for each."""
    found = []
    others = [what for what in CONDITIONS if what not in (*ACROSS.values(), "commit", "device")]
    for what in (*others, "libraries"):
        was, now = (
            list(dict.fromkeys("not known" if (v := CONDITIONS[what](r)) is None else str(v)
                               for r in side))
            for side in (base, new)
        )  # fmt: skip
        unknown = "not known" in (*was, *now)
        # Other releases are told by library_changes, and what only one side has loaded is none.
        if (what == "libraries" and not unknown) or (what in _NEW and unknown):
            continue
        if was != now or len(was) > 1:
            found.append(f"{what}: {', '.join(was)} in BASE, {', '.join(now)} in NEW")
    return [*found, *_plans(base, new)]


def _plans(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """In how many cases a kernel that chooses a plan chose others, and one of them."""
    sides: list[dict[str, dict[str, None]]] = [{}, {}]
    for plans, side in zip(sides, (base, new), strict=True):
        for row in (row for record in side for row in record.rows):
            if row.plan:
                plans.setdefault(str(row.identity), {})[row.plan.name] = None
    was, now = sides
    changed = [name for name in was if name in now and was[name].keys() != now[name].keys()]
    if not changed:
        return []
    first = changed[0]
    told = f"{', '.join(was[first])} in BASE, {', '.join(now[first])} in NEW"
    return [f"plans of {len(changed)} cases, such as {first}: {told}"]


def incomplete(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """How many records of a side are."""
    found = []
    for name, side in (("BASE", base), ("NEW", new)):
        if interrupted := sum(not record.complete for record in side):
            records = f"{len(side)} record{'' if len(side) == 1 else 's'}"
            found.append(f"{name}: {interrupted} of {records} is incomplete")
    return found
