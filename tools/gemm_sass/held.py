"""The reference figures of kernels/sass.json, with which a test compares every build.

Each entry is of one release of ptxas: another orders instructions and allocates registers
differently, and its figures need a look before they are updated.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gemm_report.document import InputError, Kind, decoded, read_json
from gemm_report.text import whole_file

from gemm_sass.kernels import Kernel
from gemm_sass.loop import Figures

KIND = Kind("table of reference figures", "tools/sass --write")

# By how much builds of one source differ, since ptxas's registers depend on the folder of the file:
# a share of the multiply-adds.
_BETWEEN_BUILDS = 0.002


@dataclass(frozen=True)
class Held:
    """Figures of a kernel that must not get worse."""

    compiler: str  # release of ptxas
    multiply_adds: int  # in the hot loop
    instructions: int
    moved: int  # FFMA whose accumulator changes its register
    narrow_loads: int  # LDS of less than 128 bits
    local: int  # LDL and STL in the whole kernel

    @classmethod
    def of(cls, compiler: str, has: Figures) -> "Held":
        """The part of the figures that is compared."""
        return cls(
            compiler=compiler,
            multiply_adds=has.multiply_adds,
            instructions=has.instructions,
            moved=has.moved_accumulators,
            narrow_loads=has.narrow_loads,
            local=has.local,
        )

    def worse_than(self, then: "Held") -> list[str]:
        """What got worse by more than builds of one source differ. Counts are per multiply-add,
        since unrolling may differ."""
        if then.multiply_adds and not self.multiply_adds:
            return ["the hot loop is gone"]
        worse = [
            f"{now} {what} for {self.multiply_adds} multiply-adds of the hot loop, "
            f"before {before} for {then.multiply_adds}"
            for what, now, before in (
                ("instructions", self.instructions, then.instructions),
                ("FFMA that move their accumulator", self.moved, then.moved),
                ("LDS of less than 128 bits", self.narrow_loads, then.narrow_loads),
            )
            if now * then.multiply_adds
            > (before + _BETWEEN_BUILDS * then.multiply_adds) * self.multiply_adds
        ]
        if self.local > then.local:
            worse.append(f"{self.local} LDL and STL in the kernel, before {then.local}")
        return worse


Table = dict[tuple[str, str, str], Held]  # by source, function and architecture


def read(path: Path) -> Table:
    """The table in a file. Raises RecordError if it is none."""
    whole = decoded(path, KIND, read_json(path, KIND), dict[str, dict[str, dict[str, Held]]])
    return {
        (source, function, architecture): held
        for source, functions in whole.items()
        for function, architectures in functions.items()
        for architecture, held in architectures.items()
    }


def write(path: Path, table: Table) -> None:
    """Writes the table, one line for each architecture."""
    nested: dict[str, dict[str, dict[str, object]]] = {}
    for (source, function, architecture), held in sorted(table.items()):
        nested.setdefault(source, {}).setdefault(function, {})[architecture] = asdict(held)
    text = json.dumps(nested, indent=2)
    text = re.sub(
        r'\{\s+("compiler"[^}]+?)\s+\}', lambda it: f"{{{' '.join(it[1].split())}}}", text
    )
    with whole_file(path) as part:
        part.write_text(text + "\n", encoding="utf-8")


def entries(built: Sequence[tuple[Kernel, Figures]]) -> Table:
    """The entries of these kernels."""
    return {
        (one.source, one.function, one.architecture): Held.of(one.compiler, has)
        for one, has in built
    }


def joined(table: Table, built: Table) -> Table:
    """The table and these kernels, except new ones without multiply-adds."""
    return table | {key: held for key, held in built.items() if held.multiply_adds or key in table}


def renewed(table: Table, built: Table) -> Table:
    """The table with the figures of a build for the entries that the build has."""
    missing = {key[:2] for key in table} - {key[:2] for key in built}
    if missing:
        source, function = min(missing)
        raise InputError(f"{source} has no {function} any more: remove it from the table")
    return table | {key: built[key] for key in table.keys() & built.keys()}
