"""A model of register bank conflicts of FFMA on compute capability 9.0.

Even and odd registers are in two banks, each with one read per cycle. A register that the FFMA
before read in the same slot, with a reuse flag, is not read again, whatever issued in between.
Reads queue: an FFMA waits only when a bank is more than two cycles behind. Any other instruction is
a cycle in which the banks catch up; its own reads, latency and the instruction cache are not
modelled. Fitted on an H200 to the rates of 26 instruction orders of one main loop
(kernels/ladder/fp32/NOTES.md), with a correlation of 0.8: measured times are 0.06 to 0.20 cycles longer.
"""

from collections.abc import Sequence

from gemm_sass.instruction import RZ, Instruction

BANKS = 2
QUEUE = 2  # cycles that a bank may be behind before the next instruction waits


def unserved(body: Sequence[Instruction]) -> list[set[int]]:
    """The registers that each FFMA of a loop reads from the register file, not the reuse cache."""
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
    """Cycles that each instruction of a loop waits, in steady state."""
    reads = [
        [sum(register % BANKS == bank for register in registers) for bank in range(BANKS)]
        for registers in unserved(body)
    ]
    behind = [0] * BANKS  # cycles
    while True:
        before, found = behind, []
        for asked in reads:
            queued = [left + more for left, more in zip(behind, asked, strict=True)]
            wait = max(0, max(queued) - QUEUE)
            behind = [max(0, cycles - wait - 1) for cycles in queued]
            found.append(wait)
        if behind == before:  # reached after a few iterations
            return found
