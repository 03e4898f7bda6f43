"""One instruction of compute capability 7.5 to 9.0: 128 bits, of which this reads some.

Bits 0-8 are the opcode, 9-11 the form: which operand is a register, a constant or an immediate;
12-15 the guard, 16-23 the result. Up to three registers are read, by bits 24-31, 32-39 and 64-71.
From bit 105 on stands what the compiler says to the scheduler. Nothing of this is documented by
NVIDIA: it was learnt by comparing half a million instructions with what nvdisasm 13 prints.
"""

from dataclasses import dataclass

RZ = 255
TRUE = 7  # the predicate that always holds

# The mnemonic of each opcode, and where it has the registers that it reads:
#   a b c d  at bits 24, 32, 64, 16, whatever the form
#   s        at bit 32, if the form has a register there: the last of two operands
#   t        the same, though it counts as the third
#   g        at bit 24, if the form has a register there: A of a warpgroup's product
#   B C      the second and third of three operands, which the form moves
OPCODES = {
    0x002: ("MOV", "s"),
    0x003: ("P2R", ""),
    0x004: ("R2P", "a"),
    0x005: ("CS2R", ""),
    0x006: ("VOTE", ""),
    0x007: ("SEL", "as"),
    0x008: ("FSEL", "as"),
    0x009: ("FMNMX", "as"),
    0x00A: ("FSET", "as"),
    0x00B: ("FSETP", "as"),
    0x00C: ("ISETP", "as"),
    0x010: ("IADD3", "aBC"),
    0x011: ("LEA", "aBC"),
    0x012: ("LOP3", "aBC"),
    0x013: ("IABS", "s"),
    0x014: ("VABSDIFF", "aBC"),
    0x016: ("PRMT", "aBC"),
    0x017: ("IMNMX", "as"),
    0x019: ("SHF", "aBC"),
    0x01C: ("PLOP3", ""),
    0x020: ("FMUL", "as"),
    0x021: ("FADD", "as"),
    0x023: ("FFMA", "aBC"),
    0x024: ("IMAD", "aBC"),
    0x025: ("IMAD.WIDE", "aBC"),
    0x026: ("IDP", "aBC"),
    0x027: ("IMAD.HI", "aBC"),
    0x028: ("DMUL", "as"),
    0x029: ("DADD", "aC"),
    0x02A: ("DSETP", "as"),
    0x02B: ("DFMA", "aBC"),
    0x02D: ("PREEXIT", ""),
    0x02E: ("ACQBULK", ""),
    0x02F: ("ELECT", ""),
    0x030: ("HADD2", "at"),
    0x031: ("HFMA2", "aBC"),
    0x032: ("HMUL2", "as"),
    0x035: ("HFMA2.MMA", "aBC"),
    0x036: ("VIADD", "as"),
    0x037: ("IMMA", "abc"),
    0x03A: ("MOVM", "a"),
    0x03B: ("LDSM", "a"),
    0x03C: ("HMMA", "abc"),
    0x03E: ("F2FP", "as"),
    0x03F: ("DMMA", "abc"),
    0x044: ("STSM", "ab"),
    0x045: ("I2FP", "s"),
    0x046: ("VIADDMNMX", "aBC"),
    0x048: ("VIMNMX", "as"),
    0x07A: ("QMMA", "abc"),
    0x082: ("UMOV", ""),
    0x086: ("VOTEU", ""),
    0x087: ("USEL", ""),
    0x08C: ("UISETP", ""),
    0x090: ("UIADD3", ""),
    0x091: ("ULEA", ""),
    0x092: ("ULOP3", ""),
    0x096: ("UPRMT", ""),
    0x097: ("UIADD3.64", ""),
    0x099: ("USHF", ""),
    0x09C: ("UPLOP3", ""),
    0x0A4: ("UIMAD", ""),
    0x0A5: ("UIMAD.WIDE", ""),
    0x0B9: ("ULDC", ""),
    0x0BD: ("UFLO", ""),
    0x0BF: ("UPOPC", ""),
    0x0CA: ("R2UR", "a"),
    0x100: ("FLO", "s"),
    0x101: ("BREV", "s"),
    0x102: ("FCHK", "as"),
    0x104: ("F2F", "s"),
    0x105: ("F2I", "s"),
    0x106: ("I2F", "s"),
    0x107: ("FRND", "s"),
    0x108: ("MUFU", "s"),
    0x109: ("POPC", "s"),
    0x110: ("F2F.64", "s"),
    0x111: ("F2I.64", "s"),
    0x112: ("I2F.64", "s"),
    0x118: ("NOP", ""),
    0x119: ("S2R", ""),
    0x11A: ("DEPBAR", ""),
    0x11B: ("ENDCOLLECTIVE", ""),
    0x11D: ("BAR", ""),
    0x141: ("BSYNC", ""),
    0x142: ("BREAK", ""),
    0x144: ("CALL", ""),
    0x145: ("BSSY", ""),
    0x146: ("YIELD", ""),
    0x147: ("BRA", ""),
    0x148: ("WARPSYNC", ""),
    0x149: ("BRX", "a"),
    0x14D: ("EXIT", ""),
    0x150: ("RET", "a"),
    0x155: ("BMOV", ""),
    0x15D: ("NANOSLEEP", ""),
    0x180: ("LD", "a"),
    0x181: ("LDG", "a"),
    0x182: ("LDC", "a"),
    0x183: ("LDL", "a"),
    0x184: ("LDS", "a"),
    0x185: ("ST", "ab"),
    0x186: ("STG", "ab"),
    0x187: ("STL", "ab"),
    0x188: ("STS", "ab"),
    0x189: ("SHFL", "a"),
    0x18A: ("ATOM", "ab"),
    0x18C: ("ATOMS", "ab"),
    0x18E: ("RED", "ab"),
    0x18F: ("CCTL", "a"),
    0x192: ("MEMBAR", ""),
    0x1A1: ("MATCH", "a"),
    0x1A6: ("RED", "ab"),
    0x1A7: ("SYNCS", "ab"),
    0x1A8: ("ATOMG", "ab"),
    0x1A9: ("ATOMG.CAS", "abc"),
    0x1AB: ("ERRBAR", ""),
    0x1AE: ("LDGSTS", "ad"),
    0x1AF: ("LDGDEPBAR", ""),
    0x1B2: ("SYNCS", ""),
    0x1B4: ("UTMALDG", ""),
    0x1B5: ("UTMASTG", ""),
    0x1B6: ("UTMAREDG", ""),
    0x1B7: ("UTMACMDFLUSH", ""),
    0x1B9: ("UTMACCTL", ""),
    0x1BA: ("UBLKCP", ""),
    0x1C2: ("R2UR", "a"),
    0x1C3: ("S2UR", ""),
    0x1C4: ("REDUX", "a"),
    0x1C5: ("WARPGROUP", ""),
    0x1C6: ("FENCE", ""),
    0x1C7: ("UCGABAR", ""),
    0x1C8: ("USETMAXREG", ""),
    0x1F0: ("HGMMA", "gc"),
    0x1F1: ("IGMMA", "gc"),
    0x1F3: ("QGMMA", "gc"),
}
OPCODE_OF = {name: opcode for opcode, (name, _) in reversed(OPCODES.items())}

# Where each form has the second and the third of three operands; 0: it is no register.
_MOVED = {1: (32, 64), 2: (64, 0), 3: (64, 0), 4: (0, 64), 5: (0, 64), 6: (0, 64), 7: (64, 0)}
_PLAIN_BRANCH = TRUE << 5
_SLOT = {"a": 0, "g": 0, "b": 1, "s": 1, "B": 1, "c": 2, "t": 2, "C": 2, "d": 3}


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the bits of an instruction say."""

    bits: int

    def field(self, first: int, size: int) -> int:
        """The number in `size` bits from `first` on."""
        return self.bits >> first & (1 << size) - 1

    @property
    def name(self) -> str:
        """The mnemonic, without most of its modifiers; a number where this module knows none."""
        opcode = self.field(0, 9)
        return OPCODES[opcode][0] if opcode in OPCODES else f"0x{opcode:03x}"

    @property
    def guard(self) -> str:
        """The predicate under which it runs, "@!P0"; empty if always."""
        predicate, negated = self.field(12, 3), self.field(15, 1)
        if predicate == TRUE and not negated:
            return ""
        uniform = "U" if self.name.startswith("U") else ""
        return f"@{'!' * negated}{uniform}P{'T' if predicate == TRUE else predicate}"

    @property
    def never_runs(self) -> bool:
        """Under "@!PT": the compiler puts such loads where the hardware wants a pause."""
        return self.field(12, 4) == TRUE + 8

    @property
    def result(self) -> int:
        """The first register that it writes, if it writes one."""
        return self.field(16, 8)

    @property
    def sources(self) -> tuple[tuple[int, int], ...]:
        """The registers that it reads, each with its slot: 0 for the first operand, and so on."""
        form = self.field(9, 3)
        second, third = _MOVED.get(form, (0, 0))
        places = {"a": 24, "b": 32, "c": 64, "d": 16, "B": second, "C": third}
        places |= dict.fromkeys("st", 32 if form == 1 else 0)
        places["g"] = 24 if form == 6 else 0
        letters = OPCODES.get(self.field(0, 9), ("", ""))[1]
        return tuple((_SLOT[x], self.field(places[x], 8)) for x in letters if places[x])

    def keeps(self, slot: int) -> bool:
        """Does it leave the register of the slot in the reuse cache, for the next instruction?"""
        return slot < 3 and bool(self.field(122 + slot, 1))

    @property
    def width(self) -> int:
        """How many bits a load or a store moves for each lane."""
        return (8, 8, 16, 16, 32, 64, 128, 128)[self.field(73, 3)]

    @property
    def stall(self) -> int:
        """For how many clocks the warp issues nothing afterwards."""
        return self.field(105, 4)

    @property
    def waits(self) -> int:
        """A bit for each of the six barriers that it waits for."""
        return self.field(116, 6)

    def target(self, at: int, generation: int) -> int | None:
        """The instruction to which it branches, being number `at` itself; none if it does not."""
        if self.name not in ("BRA", "BSSY"):
            return None
        offset = self.field(34, 48)
        if offset >= 1 << 47:
            offset -= 1 << 48
        if generation >= 90:
            offset = offset << 8 | self.field(16, 8)
        return at + 1 + offset // 4

    @property
    def ends_flow(self) -> bool:
        """Is what follows it reached only from elsewhere?"""
        if self.guard:
            return False
        if self.name == "BRA":  # not BRA.DIV, nor one with a second predicate
            return self.field(82, 23) == _PLAIN_BRANCH
        return self.name in ("EXIT", "RET", "BRX")
