"""Machine code and cubins made by hand, for tests that need one bit or one byte as they want it."""

import struct
from collections.abc import Mapping, Sequence

from gemm_sass.instruction import OPCODE_OF, RZ, TRUE

ALWAYS = TRUE


def made(
    name: str, form: int = 1, *, guard: int = ALWAYS, stall: int = 1, **fields: tuple[int, int, int]
) -> int:
    """An instruction: its opcode, form, guard and stall, and (first bit, size, value) of others."""
    bits = OPCODE_OF[name] | form << 9 | guard << 12 | stall << 105
    for first, size, value in fields.values():
        assert 0 <= value < 1 << size
        bits |= value << first
    return bits


def ffma(d: int, a: int, b: int, c: int, keep: Sequence[int] = (), stall: int = 1) -> int:
    """FFMA of four registers, that leaves some of its slots in the reuse cache."""
    return made(
        "FFMA",
        stall=stall,
        d=(16, 8, d),
        a=(24, 8, a),
        b=(32, 8, b),
        c=(64, 8, c),
        keep=(122, 3, sum(1 << slot for slot in keep)),
    )


def lds(d: int, address: int, width: int = 128, guard: int = ALWAYS) -> int:
    """A load from shared memory."""
    code = {8: 0, 16: 2, 32: 4, 64: 5, 128: 6}[width]
    return made("LDS", 4, guard=guard, d=(16, 8, d), a=(24, 8, address), width=(73, 3, code))


def branch(at: int, target: int, guard: int = ALWAYS, generation: int = 90) -> int:
    """A branch that stands at one instruction and leads to another."""
    offset = 4 * (target - at - 1) & (1 << 48) - 1
    plain = (82, 23, TRUE << 5)
    if generation < 90:
        return made("BRA", 4, guard=guard, plain=plain, to=(34, 48, offset))
    low, high = (16, 8, offset & 255), (34, 48, offset >> 8 | (offset >> 47) * (255 << 40))
    return made("BRA", 4, guard=guard, plain=plain, low=low, high=high)


def other(name: str = "NOP", d: int = RZ, a: int = RZ, b: int = RZ, c: int = RZ) -> int:
    """Any other instruction of registers."""
    return made(name, d=(16, 8, d), a=(24, 8, a), b=(32, 8, b), c=(64, 8, c))


EXIT = made("EXIT", 4)


def code_of(instructions: Sequence[int]) -> bytes:
    """As they lie in memory."""
    return b"".join(bits.to_bytes(16, "little") for bits in instructions)


def cubin(
    kernels: Mapping[str, Sequence[int]], architecture: str = "sm_90a", registers: int = 168
) -> bytes:
    """A cubin of these kernels by ptxas 13.0."""
    note = (
        b"Cuda compilation tools, release 13.0, V13.0.88\0-arch %b -m 64\0" % architecture.encode()
    )
    names = b"\0" + b"".join(name.encode() + b"\0" for name in kernels)
    symbols, info, texts = bytes(24), b"", []
    for number, (name, instructions) in enumerate(kernels.items(), 1):
        symbols += struct.pack("<IBBHQQ", names.index(name.encode()), 0x12, 0x10, 0, 0, 0)
        info += struct.pack("<BBHII", 4, 0x2F, 8, number, registers)
        info += struct.pack("<BBH", 3, 0x1B, 0xFF)  # a tag without a value of its own
        texts.append((f".text.{name}", code_of(instructions)))
    sections = [("", b""), (".strtab", names), (".symtab", symbols), (".nv.info", info)]
    return elf([*sections, (".note.nv.tkinfo", note), *texts], machine=190)


def elf(sections: Sequence[tuple[str, bytes]], machine: int = 62) -> bytes:
    """An ELF file. The section after the last one of these has their names."""
    sections = [*sections, (".shstrtab", b"")]
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _ in sections)
    body, headers = bytearray(64), b""
    for name, content in [*sections[:-1], (".shstrtab", names)]:
        at = names.index(b"\0" + name.encode() + b"\0") + 1 if name else 0
        kind = 1 if name else 0
        headers += struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, len(body), len(content), 1, 0, 1, 0)
        body += content
    ident = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)
    header = struct.pack(
        *("<HHIQQQIHHHHHH", 1, machine, 1, 0, 0, len(body), 0, 64, 0, 0, 64),
        *(len(sections), len(sections) - 1),
    )
    body[:64] = ident + header
    return bytes(body) + headers


def fat(images: Sequence[bytes]) -> bytes:
    """A fat binary of images."""
    body = b"".join(images)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def image(content: bytes, kind: int = 2, flags: int = 0x11, packed: bytes = b"") -> bytes:
    """An image of a fat binary, compressed if `packed` is given."""
    stored = packed or content
    stored += bytes(-len(stored) % 8)
    header = struct.pack(
        "<HHIQIIIIIIQQQ",
        *(kind, 0x101, 64, len(stored), len(packed), 0, 0, 90, 0, 0, flags, 0, len(content)),
    )
    return header + stored
