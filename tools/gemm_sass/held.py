"""The figures that the code of a kernel shall not fall behind: kernels/sass.json.

A test compares every build with them. Each is of one release of ptxas, since another orders
instructions and allocates registers differently: then it is for a person to look and to renew them.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gemm_report.document import InputError, Kind, decoded, read_json
from gemm_report.writing.whole_file import whole_file

from gemm_sass.kernels import Kernel
from gemm_sass.loop import Figures

KIND = Kind("table of held figures", "tools/sass --write")


_BETWEEN_BUILDS = 0.002  # of the multiply-adds: what counts of equal code may differ by


@dataclass(frozen=True)
class Held:
    """What of a kernel's figures must not get worse."""

    compiler: str  # the release of ptxas that they are of
    multiply_adds: int  # in the hot loop
    instructions: int
    ports: float  # cycles for each multiply-add by the model in ports.py; 0 of others than FFMA
    moved: int  # FFMA that move their sum to another register
    narrow_loads: int  # LDS of less than 128 bits
    local: int  # LDL and STL in the whole kernel

    @classmethod
    def of(cls, compiler: str, has: Figures) -> "Held":
        """The part of the figures that is held."""
        local = has.local_loads + has.local_stores
        ports = round(has.ports or 0, 3)
        of_loop = (has.multiply_adds, has.instructions, ports, has.moved_sums, has.narrow_loads)
        return cls(compiler, *of_loop, local)

    def worse_than(self, then: "Held") -> list[str]:
        """In what it got worse. A loop may be unrolled otherwise: its counts are shares. Builds of
        one source differ by an instruction or two of a thousand now and then.
        """
        if then.multiply_adds and not self.multiply_adds:
            return ["there is no hot loop any more"]
        worse = [
            f"{now} {what} for {self.multiply_adds} multiply-adds of the hot loop, "
            f"there were {before} for {then.multiply_adds}"
            for what, now, before in (
                ("instructions", self.instructions, then.instructions),
                ("FFMA that move their sum", self.moved, then.moved),
                ("LDS of less than 128 bits", self.narrow_loads, then.narrow_loads),
            )
            if now * then.multiply_adds
            > (before + _BETWEEN_BUILDS * then.multiply_adds) * self.multiply_adds
        ]
        if self.ports > then.ports:
            told = f"{self.ports:.3f} cycles for each multiply-add by the model of register ports"
            worse.append(f"{told}, there were {then.ports:.3f}")
        if self.local > then.local:
            worse.append(f"{self.local} LDL and STL in the kernel, there were {then.local}")
        return worse


Table = dict[tuple[str, str, str], Held]  # by source, function and architecture


def read(path: Path) -> Table:
    """The table in a file; RecordError where it is none."""
    whole = decoded(path, KIND, read_json(path, KIND), dict[str, dict[str, dict[str, Held]]])
    return {
        (source, function, architecture): held
        for source, functions in whole.items()
        for function, architectures in functions.items()
        for architecture, held in architectures.items()
    }


def write(path: Path, table: Table) -> None:
    """Puts the table into a file, a line for each architecture."""
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
    """What the table would have of these kernels."""
    return {
        (one.source, one.function, one.architecture): Held.of(one.compiler, has)
        for one, has in built
    }


def joined(table: Table, built: Table) -> Table:
    """The table with these kernels, too, as far as they multiply."""
    return table | {key: held for key, held in built.items() if held.multiply_adds or key in table}


def renewed(table: Table, built: Table) -> Table:
    """The table with the figures of a build, as far as that has what the table holds."""
    missing = {key[:2] for key in table} - {key[:2] for key in built}
    if missing:
        source, function = min(missing)
        raise InputError(f"{source} has no {function} any more: take it out of the table")
    return table | {key: built[key] for key in table.keys() & built.keys()}
