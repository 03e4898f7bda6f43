"""The kernels in a file: their names, architectures, registers and machine code.

A file is a cubin, or an object or program that nvcc made: there the cubins of all architectures lie
in the section .nv_fatbin, one image each. No tool of the CUDA toolkit is needed.
"""

import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gemm_report.document import InputError, Kind, read_bytes

FAT_MAGIC = 0xBA55ED50
MACHINE_CODE = 2  # the kind of an image; 1 is PTX
LZ4, ZSTD = 0x2000, 0x8000  # flags of an image
EM_CUDA = 190
CUDA_ENTRY = 0x10  # in st_other: what can be launched
EIATTR_REGCOUNT = 0x2F


KIND = Kind("cubin or object of nvcc", "the build")


@dataclass(frozen=True)
class Kernel:
    """One kernel as compiled for one architecture."""

    symbol: str  # as mangled
    architecture: str  # "sm_90a"
    compiler: str  # the release of ptxas: "13.0"; empty if its cubin does not say
    registers: int  # of a thread
    code: bytes


def kernels_in(path: Path) -> list[Kernel]:
    """All kernels of a file, in its order; InputError where it holds none, or is damaged."""
    content = bytes(read_bytes(path, KIND))
    try:
        if content[:4] != b"\x7fELF":
            raise InputError(f"is no {KIND.name}: give another file")
        elf = Elf(content)
        if elf.machine == EM_CUDA:
            return list(elf.kernels())
        fat = [section.content for section in elf.sections if section.name == ".nv_fatbin"]
        if not fat:
            raise InputError("holds no code for a GPU: give an object of a .cu file")
        cubins = [cubin for content in fat for cubin in cubins_in(content)]
        return [kernel for cubin in cubins for kernel in Elf(cubin).kernels()]
    except (struct.error, IndexError, UnicodeDecodeError):
        raise InputError(f"{path}: refers to what is not in it: {KIND.advice}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def cubins_in(fat: bytes) -> Iterator[bytes]:
    """The machine code in fat binaries, which the linker puts together with gaps."""
    at = 0
    while at + 16 <= len(fat):
        magic, _, header_size, size = struct.unpack_from("<IHHQ", fat, at)
        if magic != FAT_MAGIC:
            at += 8
            continue
        at += header_size
        end = at + size
        if end > len(fat):
            raise IndexError
        while at < end:
            kind, _, header_size, size = struct.unpack_from("<HHIQ", fat, at)
            compressed_size, flags, whole = *struct.unpack_from("<I", fat, at + 16), 0, 0
            if compressed_size:
                flags, _, whole = struct.unpack_from("<QQQ", fat, at + 40)
            if header_size == 0:
                raise IndexError
            body = piece(fat, at + header_size, size)
            at += header_size + size
            if kind == MACHINE_CODE:
                yield unpacked(body[: compressed_size or size], flags, whole)


def unpacked(body: bytes, flags: int, size: int) -> bytes:
    """An image as it was before nvcc compressed it."""
    if flags & LZ4:
        body = lz4_block(body)
    elif flags & ZSTD:
        if not (program := shutil.which("zstd")):
            raise InputError("is compressed: install zstd, or build with --compress-mode=none")
        done = subprocess.run([program, "-dcq"], input=body, capture_output=True, check=False)
        body = done.stdout
    else:
        return body
    if len(body) != size:
        raise IndexError
    return body


def lz4_block(packed: bytes) -> bytes:
    """What an LZ4 block holds: in turns literals, and repetitions of what came before."""
    out, at = bytearray(), 0

    def length(nibble: int) -> int:
        nonlocal at
        total, more = nibble, nibble == 15
        while more:
            total += packed[at]
            more = packed[at] == 255
            at += 1
        return total

    while at < len(packed):
        token = packed[at]
        at += 1
        literals = length(token >> 4)
        out += piece(packed, at, literals)
        at += literals
        if at == len(packed):
            break
        distance = int.from_bytes(piece(packed, at, 2), "little")
        at += 2
        start = len(out) - distance
        if not 0 <= start < len(out):
            raise IndexError
        for i in range(length(token & 15) + 4):
            out.append(out[start + i])
    return bytes(out)


def piece(content: bytes, offset: int, size: int) -> bytes:
    """A slice that must be there as a whole."""
    if offset + size > len(content):
        raise IndexError
    return content[offset : offset + size]


def text_at(texts: bytes, offset: int) -> str:
    """The text that begins there and ends with a zero."""
    return texts[offset:].partition(b"\0")[0].decode()


@dataclass(frozen=True)
class Section:
    """A section of an ELF file."""

    name: str
    link: int
    content: bytes


class Elf:
    """A 64-bit ELF file, as far as cubins need it."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        if content[4] != 2:
            raise InputError("is no 64-bit file: give another")
        (self.machine,) = struct.unpack_from("<H", content, 18)

    @cached_property
    def sections(self) -> list[Section]:
        """All sections; the content of those that take no room in the file is empty."""
        (table,) = struct.unpack_from("<Q", self._content, 40)
        size, count, names_at = struct.unpack_from("<HHH", self._content, 58)
        no_bits, headers = 8, []
        whole = piece(self._content, table, count * size)
        for i in range(count):
            name, kind, _, _, offset, length, link = struct.unpack_from("<IIQQQQI", whole, i * size)
            body = b"" if kind in (0, no_bits) else piece(self._content, offset, length)
            headers.append((name, link, body))
        names = headers[names_at][2] if headers else b""
        return [Section(text_at(names, name), link, body) for name, link, body in headers]

    def kernels(self) -> Iterator[Kernel]:
        """What a cubin holds."""
        sections = {section.name: section for section in self.sections}
        if ".symtab" not in sections:
            raise InputError(f"has no table of symbols: {KIND.advice}")
        names = self.sections[sections[".symtab"].link].content
        symbols = [
            (text_at(names, name), other)
            for name, _, other in struct.iter_unpack("<IBB18x", sections[".symtab"].content)
        ]
        registers = dict(self._registers(sections))
        architecture, compiler = self._made_for(sections)
        for number, (symbol, other) in enumerate(symbols):
            if other & CUDA_ENTRY and (text := sections.get(f".text.{symbol}")):
                if not symbol.isprintable():
                    raise InputError(f"a kernel in it has no proper name: {KIND.advice}")
                if len(text.content) % 16:
                    raise InputError(f"{symbol} ends within an instruction: {KIND.advice}")
                yield Kernel(symbol, architecture, compiler, registers.get(number, 0), text.content)

    @staticmethod
    def _registers(sections: dict[str, Section]) -> Iterator[tuple[int, int]]:
        """How many registers each symbol takes, by .nv.info: a list of tagged values."""
        content = sections[".nv.info"].content if ".nv.info" in sections else b""
        at, sized = 0, 4
        while at < len(content):
            form, tag, size = struct.unpack_from("<BBH", content, at)
            if form == sized and tag == EIATTR_REGCOUNT:
                yield struct.unpack_from("<II", content, at + 4)
            at += 4 + (size if form == sized else 0)

    def _made_for(self, sections: dict[str, Section]) -> tuple[str, str]:
        """Architecture and release of ptxas, which leaves a note; else what the header knows."""
        note = sections.get(".note.nv.tkinfo")
        text = note.content if note else b""
        architecture = re.search(rb"-arch (sm_\d+[a-z]?)\b", text)
        release = re.search(rb"release (\d+\.\d+)", text)
        (flags,) = struct.unpack_from("<I", self._content, 48)
        number = flags >> 8 & 0xFF if self._content[8] >= 8 else flags & 0xFF
        return (
            architecture[1].decode() if architecture else f"sm_{number}",
            release[1].decode() if release else "",
        )
