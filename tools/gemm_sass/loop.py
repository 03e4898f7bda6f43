"""The hot loop of a kernel in figures: what its instructions are, and what holds them up.

A scheduler issues one instruction a clock. From compute capability 8.6 on an FFMA takes just one
of these slots, so that every other instruction costs the time of one: hence the share of
multiply-adds. Registers lie in two banks, even and odd. An FFMA whose three sources are of one
parity is thought to take a clock longer, unless the reuse cache, which keeps what the instruction
before read in the same slot, serves one of them.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from gemm_sass.cubin import Kernel
from gemm_sass.instruction import RZ, Instruction

# What a kernel computes with: the first of these that one of its loops has. Those that come later
# also convert, address and move.
KINDS = ("HGMMA", "IGMMA", "QGMMA", "HMMA", "IMMA", "QMMA", "DMMA", "DFMA", "FFMA", "HFMA2", "IMAD")
FEW = 8  # a loop with less than an eighth of the products of the one around it has few
# Registers that an operand takes where it is more than one, by mnemonic; of MMA the most.
_OPERAND = {"DFMA": 2, "DADD": 2, "DMUL": 2, "DSETP": 2, "DMMA": 2} | dict.fromkeys(
    ("HMMA", "IMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA"), 4
)
_STORES = ("STS", "STG", "STL", "ST")


@dataclass(frozen=True)
class Figures:
    """A kernel, and its hot loop; without one all that is said of it is zero."""

    registers: int
    local_loads: int  # LDL and STL in the whole kernel: spills, and arrays of changing index
    local_stores: int
    kind: str = ""  # the mnemonic that multiplies
    instructions: int = 0
    multiply_adds: int = 0
    one_bank: int = 0  # FFMA whose three sources are of one parity
    conflicts: int = 0  # those that the reuse cache does not help
    loads: dict[int, int] = field(default_factory=dict)  # LDS by width in bits
    median_use: float | None = None  # instructions from an LDS to the first that reads of it
    shortest_use: int | None = None
    stalls: int = 0  # the sum of the clocks after which the compiler lets the next one issue
    opcodes: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Of the loop's instructions, those that multiply and add."""
        return self.multiply_adds / self.instructions if self.instructions else 0.0

    @property
    def narrow_loads(self) -> int:
        """LDS of less than 128 bits a lane."""
        return sum(count for width, count in self.loads.items() if width < 128)

    def count(self, name: str) -> int:
        """How many of the loop's instructions have this mnemonic."""
        return self.opcodes.get(name, 0)


def decoded(kernel: Kernel) -> list[Instruction]:
    """The instructions of a kernel."""
    code = kernel.code
    return [
        Instruction(int.from_bytes(code[at : at + 16], "little")) for at in range(0, len(code), 16)
    ]


def generation(architecture: str) -> int:
    """sm_90a is of the generation 90."""
    return int("".join(filter(str.isdigit, architecture)))


def figures(kernel: Kernel) -> Figures:
    """What the machine code of a kernel says."""
    code = decoded(kernel)
    names = Counter(one.name for one in code)
    found = Figures(kernel.registers, local_loads=names["LDL"], local_stores=names["STL"])
    kind, loop = hot_loop(code, generation(kernel.architecture))
    if not loop:
        return found
    body = [code[at] for at in loop]
    ffma = [at for at in loop if code[at].name == "FFMA"]
    uses = [use for i in range(len(body)) if (use := first_use(body, i)) is not None]
    loads = Counter(one.width for one in body if one.name == "LDS" and not one.never_runs)
    return replace(
        found,
        kind=kind,
        instructions=len(body),
        multiply_adds=sum(multiplies(one, kind) for one in body),
        one_bank=sum(of_one_bank(code[at].sources) for at in ffma),
        conflicts=sum(of_one_bank(unserved(code, at)) for at in ffma),
        loads=dict(sorted(loads.items())),
        median_use=statistics.median(uses) if uses else None,
        shortest_use=min(uses, default=None),
        stalls=sum(one.stall for one in body),
        opcodes=dict(Counter(one.name for one in body).most_common()),
    )


def multiplies(instruction: Instruction, kind: str) -> bool:
    """Is it of the kind, and no move: that is one with nothing to multiply, IMAD.MOV?"""
    return instruction.name.split(".")[0] == kind and (0, RZ) not in instruction.sources


# --- Registers -----------------------------------------------------------------------------------


def of_one_bank(sources: Iterable[tuple[int, int]]) -> bool:
    """Are there three registers to read, all even or all odd?"""
    registers = {register for _, register in sources if register != RZ}
    return len(registers) == 3 and len({register % 2 for register in registers}) == 1


def unserved(code: Sequence[Instruction], at: int) -> list[tuple[int, int]]:
    """The sources that the reuse cache does not have from the instruction before."""
    before = code[at - 1] if at else None
    kept = [one for one in before.sources if before.keeps(one[0])] if before else []
    return [one for one in code[at].sources if one not in kept]


def first_use(body: Sequence[Instruction], at: int) -> int | None:
    """How many instructions after an LDS of a loop its first reader comes, this round or next."""
    load = body[at]
    if load.name != "LDS" or load.never_runs:
        return None
    loaded = set(range(load.result, load.result + max(load.width // 32, 1)))
    for distance in range(1, len(body) + 1):
        if loaded & registers_read(body[(at + distance) % len(body)]):
            return distance
    return None


def registers_read(instruction: Instruction) -> set[int]:
    """All registers that an instruction reads."""
    name, read = instruction.name, set()
    for slot, register in instruction.sources:
        size = _OPERAND.get(name, 1)
        if name in _STORES and slot == 1:
            size = max(instruction.width // 32, 1)
        if register != RZ:
            read.update(range(register, register + size))
    return read


# --- Loops ---------------------------------------------------------------------------------------


def hot_loop(code: Sequence[Instruction], generation: int) -> tuple[str, list[int]]:
    """What a kernel computes with, and the innermost of its loops with most of that.

    An inner loop with few of the outer one's products does not count: it does what an unrolled one
    leaves over. One with many does: around it stand the first and last rounds, or the next tile.
    """
    loops = natural_loops(code, generation)
    for kind in KINDS:
        products = {loop: sum(multiplies(code[at], kind) for at in loop) for loop in loops}
        inner = [loop for loop in loops if products[loop]]
        hot: frozenset[int] = frozenset()
        while inner:
            hot = max(inner, key=lambda loop: (products[loop], -len(loop)))
            inner = [loop for loop in inner if loop < hot and products[loop] * FEW >= products[hot]]
        if hot:
            return kind, sorted(hot)
    return "", []


def natural_loops(code: Sequence[Instruction], generation: int) -> set[frozenset[int]]:
    """For each head of a loop the instructions from which one comes back to it.

    By the flow of control and not by addresses: compilers put what seldom runs behind the end.
    """
    blocks, successors = flow(code, generation)
    predecessors: list[list[int]] = [[] for _ in blocks]
    for one, others in enumerate(successors):
        for other in others:
            predecessors[other].append(one)
    dominators = dominating(predecessors)
    loops: dict[int, set[int]] = {}
    for end, others in enumerate(successors):
        for head in others:
            if head not in dominators[end]:
                continue
            members, ahead = loops.setdefault(head, {head}), [end]
            while ahead:
                if (block := ahead.pop()) not in members:
                    members.add(block)
                    ahead += predecessors[block]
    return {frozenset(at for block in loop for at in blocks[block]) for loop in loops.values()}


def flow(code: Sequence[Instruction], generation: int) -> tuple[list[range], list[list[int]]]:
    """The basic blocks, and for each the blocks that may follow."""
    targets = {
        at: target
        for at, one in enumerate(code)
        if one.name == "BRA" and 0 <= (target := one.target(at, generation) or 0) < len(code)
    }
    leaders = {0, *targets.values()}
    leaders |= {at + 1 for at, one in enumerate(code) if at in targets or one.ends_flow}
    starts = sorted(leader for leader in leaders if leader < len(code))
    blocks = [range(*both) for both in pairwise([*starts, len(code)])]
    number = {block.start: i for i, block in enumerate(blocks)}
    successors: list[list[int]] = []
    for i, block in enumerate(blocks):
        last = block[-1]
        follow = [] if code[last].ends_flow or i + 1 == len(blocks) else [i + 1]
        if last in targets:
            follow.append(number[targets[last]])
        successors.append(follow)
    return blocks, successors


def dominating(predecessors: Sequence[Sequence[int]]) -> list[set[int]]:
    """For each block those through which every way to it leads.

    A block that no other leads to may be entered: it is the first, or a jump by register or a call
    goes there.
    """
    every = set(range(len(predecessors)))
    dominators = [{i} if not before else set(every) for i, before in enumerate(predecessors)]
    if dominators:
        dominators[0] = {0}
    changed = True
    while changed:
        changed = False
        for i, before in enumerate(predecessors):
            if i == 0 or not before:
                continue
            now = {i} | set.intersection(*(dominators[one] for one in before))
            if now != dominators[i]:
                dominators[i], changed = now, True
    return dominators
