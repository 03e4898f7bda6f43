"""The hot loop of a kernel in figures: what its instructions are, and what holds them up.

A scheduler issues one instruction a clock. From compute capability 8.6 on an FFMA takes just one
of these slots, so that every other instruction costs the time of one: hence the share of
multiply-adds. Waits for registers come on top, by the model in ports.py, and misses of the
instruction cache where the loop is larger than that.
"""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from gemm_sass.instruction import BYTES, RZ, Instruction
from gemm_sass.kernels import Kernel
from gemm_sass.ports import unserved, waits

# What a kernel computes with: the first of these that one of its loops has. Those that come later
# also convert, address and move.
KINDS = ("HGMMA", "IGMMA", "QGMMA", "HMMA", "IMMA", "QMMA", "DMMA", "DFMA", "FFMA", "HFMA2", "IMAD")
FEW = 8  # a loop with less than an eighth of the products of the one around it has few
# Registers that an operand takes where it is more than one, by mnemonic; of MMA the most.
_OPERAND = {"DFMA": 2, "DADD": 2, "DMUL": 2, "DSETP": 2, "DMMA": 2} | dict.fromkeys(
    ("HMMA", "IMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA"), 4
)
# On an H200 a loop of 2,048 FFMA issues nearly one a cycle, a loop of 3,072 half to nine tenths;
# kernels begin to slow down from about 2,300 instructions on.
CACHE = 36 * 1024
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
    register_reads: int = 0  # of FFMA, without those that the reuse cache serves
    cycles: int = 0  # of a round by the model in ports.py; with FFMA only
    moved_sums: int = 0  # FFMA that put a sum into another register than they took it from
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
    def reads(self) -> float | None:
        """Registers that an FFMA reads from the file; none in other kernels."""
        return self._per_ffma(self.register_reads)

    @property
    def ports(self) -> float | None:
        """Cycles of a round for each FFMA, by the model."""
        return self._per_ffma(self.cycles)

    @property
    def moved(self) -> float | None:
        """Of the FFMA, those that move their sum."""
        return self._per_ffma(self.moved_sums)

    def _per_ffma(self, figure: float) -> float | None:
        return figure / self.multiply_adds if self.kind == "FFMA" else None

    @property
    def loop_bytes(self) -> int:
        """The machine code of the loop."""
        return BYTES * self.instructions

    @property
    def exceeds_cache(self) -> bool:
        """Does the loop miss the instruction cache in each round?"""
        return self.loop_bytes > CACHE

    @property
    def narrow_loads(self) -> int:
        """LDS of less than 128 bits a lane."""
        return sum(count for width, count in self.loads.items() if width < 128)

    def count(self, name: str) -> int:
        """How many of the loop's instructions have this mnemonic."""
        return self.opcodes.get(name, 0)


def figures(kernel: Kernel) -> Figures:
    """What the machine code of a kernel says."""
    code = kernel.code
    names = Counter(one.name for one in code)
    found = Figures(kernel.registers, local_loads=names["LDL"], local_stores=names["STL"])
    kind, loop = hot_loop(code)
    if not loop:
        return found
    body = [code[at] for at in loop]
    uses = first_uses(body)
    loads = Counter(one.width for one in body if one.name == "LDS" and not one.never_runs)
    if kind == "FFMA":
        found = replace(
            found,
            register_reads=sum(map(len, unserved(body))),
            cycles=len(body) + sum(waits(body)),
            moved_sums=sum(moves_sum(one) for one in body),
        )
    return replace(
        found,
        kind=kind,
        instructions=len(body),
        multiply_adds=sum(multiplies(one, kind) for one in body),
        loads=dict(sorted(loads.items())),
        median_use=statistics.median(uses) if uses else None,
        shortest_use=min(uses, default=None),
        stalls=sum(one.stall for one in body),
        opcodes=dict(Counter(one.name for one in body).most_common()),
    )


def multiplies(instruction: Instruction, kind: str) -> bool:
    """Is it of the kind, and no move: that is one with nothing to multiply, IMAD.MOV?"""
    return instruction.name == kind and (0, RZ) not in (each[:2] for each in instruction.sources)


# --- Registers -----------------------------------------------------------------------------------


def moves_sum(instruction: Instruction) -> bool:
    """Is it an FFMA that adds to one register and writes to another?

    ptxas does so where the banks that suit the stores after the loop do not suit the loop.
    """
    if instruction.name != "FFMA":
        return False
    sums = {slot: register for slot, register, _ in instruction.sources}.get(2, RZ)
    return sums not in (RZ, instruction.result)


def first_uses(body: Sequence[Instruction]) -> list[int]:
    """Instructions from each LDS of a loop to its first reader, in this round or the next.

    An LDS that nobody reads is left out.
    """
    reads, found = [registers_read(one) for one in body], []
    for at, load in enumerate(body):
        if load.name == "LDS" and not load.never_runs and load.result is not None:
            loaded = set(range(load.result, load.result + max(load.width // 32, 1)))
            later = (*reads[at + 1 :], *reads[: at + 1])
            found += [i for i, read in enumerate(later, 1) if loaded & read][:1]
    return found


def registers_read(instruction: Instruction) -> set[int]:
    """All registers that an instruction reads."""
    name, read = instruction.name, set()
    for slot, register, _ in instruction.sources:
        size = _OPERAND.get(name, 1)
        if name in _STORES and slot == 1:
            size = max(instruction.width // 32, 1)
        if register != RZ:
            read.update(range(register, register + size))
    return read


# --- Loops ---------------------------------------------------------------------------------------


def hot_loop(code: Sequence[Instruction]) -> tuple[str, list[int]]:
    """What a kernel computes with, and the innermost of its loops with most of that.

    An inner loop with few of the outer one's products does not count: it does what an unrolled one
    leaves over. One with many does: around it stand the first and last rounds, or the next tile.
    Pieces of it that lie apart and multiply nothing are left out: compilers put there what seldom
    runs, as the retries of a wait.
    """
    loops = natural_loops(code)
    for kind in KINDS:
        products = {loop: sum(multiplies(code[at], kind) for at in loop) for loop in loops}
        inner = [loop for loop in loops if products[loop]]
        hot: frozenset[int] = frozenset()
        while inner:
            hot = max(inner, key=lambda loop: (products[loop], -len(loop)))
            inner = [loop for loop in inner if loop < hot and products[loop] * FEW >= products[hot]]
        if hot:
            pieces = contiguous(sorted(hot))
            multiplying = [one for one in pieces if any(multiplies(code[at], kind) for at in one)]
            return kind, [at for piece in multiplying for at in piece]
    return "", []


def contiguous(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers in runs without a gap."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def natural_loops(code: Sequence[Instruction]) -> set[frozenset[int]]:
    """For each head of a loop the instructions from which one comes back to it.

    By the flow of control and not by addresses: compilers put what seldom runs behind the end. The
    head of a loop is a block without which nobody would reach one that leads to it. A block that no
    other leads to may be entered: it is the first, or a jump by register or a call goes there.
    """
    blocks, successors = flow(code)
    predecessors: list[list[int]] = [[] for _ in blocks]
    for one, others in enumerate(successors):
        for other in others:
            predecessors[other].append(one)
    entries = [i for i, before in enumerate(predecessors) if i == 0 or not before]
    loops: set[frozenset[int]] = set()
    for head, before in enumerate(predecessors):
        elsewhere = reached(entries, successors, without=head)
        if ends := [one for one in before if one not in elsewhere]:
            members = {head} | reached(ends, predecessors, without=head)
            loops.add(frozenset(at for block in members for at in blocks[block]))
    return loops


def reached(starts: Sequence[int], lead_to: Sequence[Sequence[int]], without: int) -> set[int]:
    """The blocks to which one comes from some of them, without passing one."""
    found, ahead = set(), list(starts)
    while ahead:
        if (block := ahead.pop()) != without and block not in found:
            found.add(block)
            ahead += lead_to[block]
    return found


def flow(code: Sequence[Instruction]) -> tuple[list[range], list[list[int]]]:
    """The basic blocks, and for each the blocks that may follow."""
    targets = {
        at: one.target
        for at, one in enumerate(code)
        if one.target is not None and one.target < len(code)
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
