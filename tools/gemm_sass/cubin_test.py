"""Files of every kind, whole and damaged."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from gemm_report.document import InputError

from gemm_sass.assembler import EXIT, cubin, elf, fat, ffma, image
from gemm_sass.cubin import LZ4, ZSTD, Kernel, kernels_in, lz4_block

CODE = [ffma(8, 0, 1, 8), EXIT]
CUBIN = cubin({"first": CODE, "second": [EXIT]}, registers=40)


def read(folder: Path, content: bytes) -> list[Kernel]:
    path = folder / "kernel.o"
    path.write_bytes(content)
    return kernels_in(path)


def message(folder: Path, content: bytes) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, content)
    text = str(caught.value)
    assert text.startswith(f"{folder / 'kernel.o'}: ")
    assert "\n" not in text
    return text


def object_of(*images: bytes) -> bytes:
    return elf([("", b""), (".text", b"host"), (".nv_fatbin", fat(images))])


def test_a_cubin_has_kernels_with_registers_and_code(tmp_path: Path) -> None:
    first, second = read(tmp_path, CUBIN)
    assert (first.symbol, second.symbol) == ("first", "second")
    assert (first.architecture, first.compiler, first.registers) == ("sm_90a", "13.0", 40)
    assert [len(first.code), len(second.code)] == [32, 16]


def test_what_cannot_be_launched_is_no_kernel(tmp_path: Path) -> None:
    found = read(tmp_path, CUBIN.replace(b"\x12\x10", b"\x12\x00", 1))
    assert [kernel.symbol for kernel in found] == ["second"]


def test_an_object_has_those_of_all_images_but_ptx(tmp_path: Path) -> None:
    other = cubin({"first": CODE}, architecture="sm_75")
    content = object_of(image(b".version 9.0", kind=1), image(CUBIN), image(other))
    found = [(kernel.symbol, kernel.architecture) for kernel in read(tmp_path, content)]
    assert found == [("first", "sm_90a"), ("second", "sm_90a"), ("first", "sm_75")]


def test_a_program_has_the_fat_binaries_of_several_objects_with_gaps(tmp_path: Path) -> None:
    both = fat([image(CUBIN)]) + bytes(24) + fat([image(cubin({"third": CODE}))])
    found = read(tmp_path, elf([("", b""), (".nv_fatbin", both)]))
    assert [kernel.symbol for kernel in found] == ["first", "second", "third"]


def test_a_cubin_of_an_older_compiler_says_its_architecture_in_its_header(tmp_path: Path) -> None:
    content = bytearray(CUBIN.replace(b"-arch sm_90a", b"-xxxx xxxxxx"))
    content[48:52] = (0x06005604).to_bytes(4, "little")
    assert read(tmp_path, bytes(content))[0].architecture == "sm_86"
    content[8], content[48:52] = 7, (0x00500550).to_bytes(4, "little")
    assert read(tmp_path, bytes(content))[0].architecture == "sm_80"


# "ab", then 9 bytes from 2 back, then "c"; and counts that take a second and a third byte
PACKED = [
    (bytes([0x25]) + b"ab" + bytes([2, 0]) + bytes([0x10]) + b"c", b"ab" + b"ababababa" + b"c"),
    (bytes([0xF0, 5]) + bytes(range(20)), bytes(range(20))),
    (bytes([0xF0, 0]) + bytes(15), bytes(15)),
    (bytes([0xF0, 255, 15]) + bytes(285), bytes(285)),
    (bytes([0x1F]) + b"x" + bytes([1, 0, 11]) + bytes([0x10]) + b"y", b"x" * 31 + b"y"),
]


@pytest.mark.parametrize(("packed", "plain"), PACKED, ids=range(len(PACKED)))
def test_lz4_is_literals_and_repetitions(packed: bytes, plain: bytes) -> None:
    assert lz4_block(packed) == plain


def literals(content: bytes) -> bytes:
    """The shortest way to make an LZ4 block: nothing is repeated."""
    more, rest = divmod(len(content) - 15, 255)
    return bytes([0xF0, *[255] * more, rest]) + content


def test_a_compressed_image_is_read(tmp_path: Path) -> None:
    content = object_of(image(CUBIN, flags=0x11 | LZ4, packed=literals(CUBIN)))
    assert len(read(tmp_path, content)) == 2
    long = object_of(image(CUBIN, flags=0x11 | LZ4, packed=literals(CUBIN + b"more")))
    assert "refers to what is not in it" in message(tmp_path, long)
    short = object_of(image(CUBIN, flags=0x11 | LZ4, packed=literals(CUBIN[:-1])))
    assert "refers to what is not in it" in message(tmp_path, short)


@pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd here")
def test_an_image_compressed_with_zstd_is_read(tmp_path: Path) -> None:
    packed = subprocess.run(["zstd", "-c"], input=CUBIN, capture_output=True, check=True).stdout
    assert len(read(tmp_path, object_of(image(CUBIN, flags=0x11 | ZSTD, packed=packed)))) == 2


def test_without_zstd_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = message(tmp_path, object_of(image(CUBIN, flags=0x11 | ZSTD, packed=b"packed..")))
    assert "install zstd" in text


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert "is no cubin or object" in message(tmp_path, b"int main() {}")
    assert "is no cubin or object" in message(tmp_path, b"")
    assert "no code for a GPU" in message(tmp_path, elf([("", b""), (".text", b"host")]))
    assert "no 64-bit file" in message(tmp_path, b"\x7fELF\x01" + CUBIN[5:])
    ends = elf([*[("", b"")], (".nv_fatbin", fat([image(cubin({"k": CODE})[:-16])]))])
    assert "refers to what is not in it" in message(tmp_path, ends)
    with pytest.raises(InputError, match="no such file"):
        kernels_in(tmp_path / "none.cubin")


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "no proper name" in message(tmp_path, cubin({"two\nlines": CODE}))


def test_code_that_ends_within_an_instruction_is_refused(tmp_path: Path) -> None:
    names, symbols = b"\0k\0", bytes(24) + bytes([1, 0, 0, 0, 0x12, 0x10]) + bytes(18)
    sections = [("", b""), (".strtab", names), (".symtab", symbols), (".text.k", bytes(17))]
    assert "ends within an instruction" in message(tmp_path, elf(sections, machine=190))


@pytest.mark.parametrize("whole", [CUBIN, object_of(image(CUBIN))], ids=["cubin", "object"])
def test_a_file_that_ends_too_early_is_refused_in_one_line(tmp_path: Path, whole: bytes) -> None:
    for length in range(0, len(whole), 5):
        message(tmp_path, whole[:length])


@pytest.mark.parametrize("whole", [CUBIN, object_of(image(CUBIN))], ids=["cubin", "object"])
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path: Path, whole: bytes) -> None:
    chance = random.Random(1)
    for _ in range(500):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        try:
            read(tmp_path, bytes(content))
        except InputError as error:
            assert "\n" not in str(error)
