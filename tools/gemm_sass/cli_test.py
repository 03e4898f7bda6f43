"""tools/sass with a build whose disassembly was written by hand."""

import json
from pathlib import Path

import pytest

from gemm_sass import cli
from gemm_sass.instruction_test import EXIT, branch, ffma, printed
from gemm_sass.kernels_test import cubin, put_disassembler

LOAD = printed("LDS.128 R0, [R20]", stall=2)
LOOP = [LOAD, ffma(8, 0, 2, 4), ffma(9, 0, 1, 9), branch(0, "@P1"), EXIT]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a build of two kernels."""
    for source, symbol in (("tiled", "_Z5tiledILi16EEvv"), ("async_copy", "_Z4copyv")):
        path = tmp_path / "build/release/kernels/CMakeFiles/kernels.dir/simt" / f"{source}.cu.o"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(cubin({symbol: LOOP}))
    (tmp_path / "empty.o").touch()
    put_disassembler(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.delenv("GEMM_BENCH_BUILD", raising=False)
    monkeypatch.setattr(cli, "ROOT", tmp_path)
    monkeypatch.setattr(cli, "TABLE", tmp_path / "sass.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_of_the_kernels_of_the_build(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert lines[0::2] == ["simt/async_copy: copy", "simt/tiled: tiled<16>"]
    numbers = lines[1].replace(" FFMA", "").replace(" %", "").split()[1:]
    assert dict(zip(head.split(), numbers, strict=True)) == {
        **{"registers": "168", "loop": "4", "math": "2", "KiB": "0.1", "share": "50.0"},
        **{"moved": "50.0", "LDS.32/64/128": "0/0/1", "local": "0"},
    }
    for copies, size in ((2303, "36.0 "), (2304, "36.0!")):
        long = [*[ffma(8, 0, 1, 8)] * copies, branch(0, "@P1"), EXIT]
        Path("long.cubin").write_text(cubin({"long": long}))
        assert cli.main(["--file", "long.cubin"]) == 0
        out = capsys.readouterr().out
        assert size in out, "a loop that misses the instruction cache is marked"
        assert "simt" not in out


def test_the_listing_shows_registers_and_marks(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["copy", "--listing"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "     0 |  2       LDS.128 R0, [R20]",
        "    10 |  1       FFMA R8, R0, R2, R4",
        "    20 |  1       FFMA R9, R0, R1, R9",
        "    30 |  1 @P1   BRA 0x0",
        "    40    1       EXIT",
    ]


def test_naming_a_kernel_adds_it_to_the_table(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tiled", "--write"]) == 0
    entry = json.loads(cli.TABLE.read_text())["simt/tiled"]["tiled<16>"]["sm_90a"]
    assert (entry["instructions"], entry["moved"]) == (4, 1)
    cli.TABLE.write_text(cli.TABLE.read_text().replace('"moved": 1', '"moved": 0'))
    assert cli.main(["--write"]) == cli.main(["--write"]) == 0
    said = [line.partition(": ")[2][:6] for line in capsys.readouterr().out.splitlines()]
    assert said == ["1 of 1", "1 of 1", "0 of 1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nothing"], "nothing: no kernel has this in its name"),
        (["-a", "sm_75"], "any kernel: is built for sm_90a"),
        (["--file", "none.o"], "none.o: no such file"),
        (["--file", "empty.o"], "does not contain device code"),
        (["--file", "none.o", "--write"], "leave out --file"),
        (["--write", "-a", "sm_90a"], "leave out -a"),
    ],
)
def test_bad_input_gets_one_line(
    project: Path, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    out, said = capsys.readouterr()
    assert expected in said and said.count("\n") == 1 and out == ""
