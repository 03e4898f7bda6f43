"""A model of the ports of the register file of compute capability 9.0: for what an FFMA waits.

Even and odd registers lie in two banks. Each serves one read a cycle to the warp that issues. What
the FFMA before read in the same slot, with a reuse flag, is not read again, whatever issued in
between. Reads may queue: an FFMA waits only when a bank is more than two cycles behind. Any other
instruction is a cycle in which the banks catch up; its own reads, latency and the instruction cache
are not in the model. Fitted on an H200 to the rates of 26 orders of one main loop
(kernels/simt/NOTES.md), with a correlation of 0.8: what was measured is 0.06 to 0.20 cycles more.
"""

from collections.abc import Sequence

from gemm_sass.instruction import RZ, Instruction

BANKS = 2
QUEUE = 2  # cycles that a bank may be behind before the next instruction has to wait


def unserved(body: Sequence[Instruction]) -> list[set[int]]:
    """The registers that each FFMA of a loop reads from the file, and not from the reuse cache."""
    ffma = [one for one in body if one.name == "FFMA"]
    kept = _kept(ffma[-1]) if ffma else set()
    found: list[set[int]] = []
    for one in body:
        if one.name != "FFMA":
            found.append(set())
            continue
        found.append({each[1] for each in one.sources if each[:2] not in kept} - {RZ})
        kept = _kept(one)
    return found


def _kept(one: Instruction) -> set[tuple[int, int]]:
    return {(slot, register) for slot, register, stays in one.sources if stays}


def waits(body: Sequence[Instruction]) -> list[int]:
    """For how many cycles each instruction of a loop waits, in a round like the one before it."""
    reads = [
        [sum(register % BANKS == bank for register in registers) for bank in range(BANKS)]
        for registers in unserved(body)
    ]
    behind = [0] * BANKS  # cycles, when the next instruction could issue
    while True:
        before, found = behind, []
        for asked in reads:
            queued = [left + more for left, more in zip(behind, asked, strict=True)]
            wait = max(0, max(queued) - QUEUE)
            behind = [max(0, cycles - wait - 1) for cycles in queued]
            found.append(wait)
        if behind == before:  # so it ends after a few rounds: no reads have a longer period
            return found
