"""Figures of a kernel's hot loop: its instructions, and what delays them.

A scheduler issues one instruction per cycle. From compute capability 8.6 on an FFMA takes one issue
slot, so that every other instruction costs as much as an FFMA: hence the share of multiply-adds.
Register bank conflicts and instruction cache misses come on top.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from gemm_sass.instruction import RZ, Instruction
from gemm_sass.kernels import Kernel

# The kind of a kernel is the first of these in one of its loops. The later ones also convert,
# address and move.
KINDS = ("HGMMA", "IGMMA", "QGMMA", "HMMA", "IMMA", "QMMA", "DMMA", "DFMA", "FFMA", "HFMA2", "IMAD")
FEW = 8  # an inner loop with less than 1/8 of the outer one's multiply-adds is a remainder loop
# On an H200 a loop of 2,048 FFMA issues nearly one per cycle, a loop of 3,072 half to nine tenths;
# kernels slow down from about 2,300 instructions on.
CACHE = 36 * 1024


@dataclass(frozen=True)
class Figures:
    """Figures of a kernel and its hot loop; those of the loop are zero if there is none."""

    registers: int
    local: int  # LDL and STL in the whole kernel: spills, and arrays with run-time indices
    kind: str = ""  # mnemonic of the multiply-adds
    instructions: int = 0
    multiply_adds: int = 0
    moved_accumulators: int = 0  # FFMA whose accumulator changes its register
    loads: Counter[int] = field(default_factory=Counter)  # LDS by width in bits

    @property
    def share(self) -> float:
        """Multiply-adds over instructions of the loop."""
        return self.multiply_adds / self.instructions if self.instructions else 0.0

    @property
    def moved_share(self) -> float | None:
        """Of the FFMA; None for other kinds."""
        return self.moved_accumulators / self.multiply_adds if self.kind == "FFMA" else None

    @property
    def narrow_loads(self) -> int:
        """LDS of less than 128 bits per lane."""
        return sum(count for width, count in self.loads.items() if width < 128)


def figures(kernel: Kernel) -> Figures:
    """The figures of a kernel."""
    local = sum(one.name in ("LDL", "STL") for one in kernel.code)
    kind, loop = hot_loop(kernel.code)
    if not loop:
        return Figures(kernel.registers, local)
    body = [kernel.code[at] for at in loop]
    return Figures(
        kernel.registers,
        local,
        kind=kind,
        moved_accumulators=sum(map(moves_accumulator, body)) if kind == "FFMA" else 0,
        instructions=len(body),
        multiply_adds=sum(multiplies(one, kind) for one in body),
        loads=Counter(one.width for one in body if one.name == "LDS" and not one.never_runs),
    )


def multiplies(instruction: Instruction, kind: str) -> bool:
    """Whether it is a multiply-add of the kind, and not IMAD.MOV, which multiplies by RZ."""
    return instruction.name == kind and instruction.register(1) != RZ


# --- Registers -----------------------------------------------------------------------------------


def moves_accumulator(instruction: Instruction) -> bool:
    """Whether it is an FFMA whose result register is not its accumulator's.

    ptxas emits these where the stores after the loop want other banks than the loop.
    """
    accumulator = instruction.register(3)
    return instruction.name == "FFMA" and accumulator not in (None, RZ, instruction.register(0))


# --- Loops ---------------------------------------------------------------------------------------


def hot_loop(code: Sequence[Instruction]) -> tuple[str, list[int]]:
    """The kind of a kernel, and the innermost of its loops with most multiply-adds of that kind.

    An inner loop with few of the outer one's multiply-adds is not hot: it is the remainder of an
    unrolled one. Separate pieces of the loop without multiply-adds are omitted: compilers place
    rare code there, such as the retries of a wait.
    """
    loops = natural_loops(code)
    for kind in KINDS:
        counts = {loop: sum(multiplies(code[at], kind) for at in loop) for loop in loops}
        inner = [loop for loop in loops if counts[loop]]
        hot: frozenset[int] = frozenset()
        while inner:
            hot = max(inner, key=lambda loop: (counts[loop], -len(loop)))
            inner = [loop for loop in inner if loop < hot and counts[loop] * FEW >= counts[hot]]
        if hot:
            # In a piece without a gap, addresses rise as fast as their ranks.
            pieces = groupby(enumerate(sorted(hot)), key=lambda both: both[1] - both[0])
            runs = [[at for _, at in piece] for _, piece in pieces]
            multiplying = [run for run in runs if any(multiplies(code[at], kind) for at in run)]
            return kind, [at for run in multiplying for at in run]
    return "", []


def natural_loops(code: Sequence[Instruction]) -> set[frozenset[int]]:
    """The loops, each with the instructions from which its head can be reached again.

    By control flow, not by address: compilers place rare code behind the end. A head dominates a
    predecessor of its own. Blocks without predecessors are entries: the first, and targets of calls
    and of jumps by register.
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
    """The blocks that can be reached from the starts without passing one of them."""
    found, ahead = set(), list(starts)
    while ahead:
        if (block := ahead.pop()) != without and block not in found:
            found.add(block)
            ahead += lead_to[block]
    return found


def flow(code: Sequence[Instruction]) -> tuple[list[range], list[list[int]]]:
    """The basic blocks, and the successors of each."""
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
