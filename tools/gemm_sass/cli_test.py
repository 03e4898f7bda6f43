"""tools/sass with a build whose disassembly was written by hand."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gemm_sass.instruction_test import EXIT, branch, ffma, lds
from gemm_sass.kernels_test import cubin, put_disassembler

ROOT = Path(__file__).parents[2]
LOOP = [lds(0, 20), ffma(8, 0, 2, 4), ffma(9, 0, 1, 9, stall=2), branch(0, "@P1"), EXIT]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the tool and the report, and a build of two kernels."""
    for name in ("tools", "report"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for source, symbol in (("tiled", "_Z5tiledILi16EEvv"), ("async_copy", "_Z4copyv")):
        path = tmp_path / "build/release/kernels/CMakeFiles/kernels.dir/simt" / f"{source}.cu.o"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(cubin({symbol: LOOP}))
    (tmp_path / "kernels").mkdir()
    put_disassembler(tmp_path / "bin")
    return tmp_path


def sass(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "GEMM_BENCH_BUILD"}
    return subprocess.run(
        [project / "tools" / "sass", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**environment, "PATH": f"{project / 'bin'}:{os.environ['PATH']}"},
    )


def printed(project: Path, *arguments: str) -> str:
    done = sass(project, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_table_of_the_kernels_of_the_build(project: Path) -> None:
    head, *lines = printed(project).splitlines()
    assert lines[0::2] == ["simt/async_copy: copy", "simt/tiled: tiled<16>"]
    numbers = lines[1].replace(" FFMA", "").replace(" %", "").split()[1:]
    cell = dict(zip(head.split(), numbers, strict=True))
    wanted = {"registers": "168", "loop": "4", "math": "2", "KiB": "0.1", "share": "50.0"}
    wanted |= {"moved": "50.0", "LDS.32/64/128": "0/0/1"}
    wanted |= {"copies": "-", "stalls": "5", "local": "0"}
    assert cell == cell | wanted


def test_a_loop_that_misses_the_instruction_cache_is_marked(project: Path) -> None:
    path = project / "long.cubin"
    for copies, marked in ((2303, "36.0 "), (2304, "36.0!")):
        body = [*[ffma(8, 0, 1, 8)] * copies, branch(0, "@P1"), EXIT]
        path.write_text(cubin({"long": body}))
        assert marked in printed(project, "--file", str(path))


def test_the_listing_shows_registers_and_marks(project: Path) -> None:
    lines = printed(project, "copy", "--listing").splitlines()
    assert lines[1:] == [
        "     0 |  1       LDS.128 R0, [R20]",
        "    10 |  1       FFMA R8, R0, R2, R4",
        "    20 |  2       FFMA R9, R0, R1, R9",
        "    30 |  1 @P1   BRA 0x0",
        "    40    1       EXIT",
    ]


def test_another_file_replaces_the_build(project: Path) -> None:
    path = project / "attempt.cubin"
    path.write_text(cubin({"attempt": LOOP}, "sm_80"))
    out = printed(project, "--file", str(path))
    assert "attempt.cubin: attempt" in out and "simt" not in out


def test_naming_a_kernel_adds_it_to_the_table(project: Path) -> None:
    table = project / "kernels" / "sass.json"
    assert "1 of 1 entries" in printed(project, "tiled", "--write")
    entry = json.loads(table.read_text())["simt/tiled"]["tiled<16>"]["sm_90a"]
    assert (entry["instructions"], entry["moved"]) == (4, 1)
    table.write_text(table.read_text().replace('"moved": 1', '"moved": 0'))
    assert "1 of 1 entries" in printed(project, "--write")
    assert "0 of 1 entries" in printed(project, "--write")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nothing"], "nothing: no kernel has this in its name"),
        (["-a", "sm_75"], "any kernel: is built for sm_90a"),
        (["--file", "none.o"], "none.o: no such file"),
        (["--file", "tools/sass"], "does not contain device code"),
        (["--file", "tools/sass", "--write"], "leave out --file"),
        (["--write", "-a", "sm_90a"], "leave out -a"),
    ],
)
def test_bad_input_gets_one_line(project: Path, arguments: list[str], expected: str) -> None:
    paths = [str(project / each) if each.startswith("tools/") else each for each in arguments]
    done = sass(project, *paths)
    assert done.returncode == 2
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_a_kernel_of_the_table_that_is_gone_is_reported(project: Path) -> None:
    printed(project, "--write", "tiled")
    (project / "build/release/kernels/CMakeFiles/kernels.dir/simt/tiled.cu.o").unlink()
    done = sass(project, "--write")
    assert done.returncode == 2
    assert "simt/tiled has no tiled<16> any more" in done.stderr
