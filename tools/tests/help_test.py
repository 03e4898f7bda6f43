"""--help of every command in tools/ needs no installation and changes nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = [
    path.name
    for path in sorted((ROOT / "tools").iterdir())
    if path.is_file() and not path.suffix and os.access(path, os.X_OK)
]
# Commands that install, build or use a network.
FORBIDDEN = ("apt-get", "pip", "pip3", "uv", "cmake", "git", "curl")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources alone, in a folder with a space, and stubs that record forbidden commands."""
    root = tmp_path_factory.mktemp("help") / "a clone"
    for name in ("tools", "report"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FORBIDDEN:
        program = root.parent / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text('#!/bin/sh\necho "$0 $*" >>"$CALLS"\nexit 1\n', encoding="utf-8")
        program.chmod(0o755)
    return root


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_changes_nothing(bare: Path, command: str, option: str) -> None:
    calls = bare.parent / "calls"
    before = files(bare)
    path = f"{bare.parent / 'bin'}:{os.environ['PATH']}"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHON", "GEMM_BENCH_BUILD")}
    done = subprocess.run(
        [bare / "tools" / command, option],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={**environment, "PATH": path, "CALLS": str(calls)},
        cwd=bare.parent,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"tools/{command}" in done.stdout
    assert files(bare) == before
    assert not calls.exists(), calls.read_text(encoding="utf-8")


def test_the_commands_are_found() -> None:
    assert {"bench", "setup", "test", "report", "explain", "other_implementations"} <= set(COMMANDS)


@pytest.mark.parametrize("arguments", [["test", "-v"], ["setup", "--all"], ["setup", "test", "x"]])
def test_bad_options_are_refused_in_one_line(bare: Path, arguments: list[str]) -> None:
    command, *rest = arguments
    done = subprocess.run(
        [bare / "tools" / command, *rest], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"{command}: {rest[-1]}") and done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_portable_refuses_what_it_does_not_know(bare: Path) -> None:
    tool = bare / "tools" / "portable"
    done = subprocess.run([tool, "buster"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("portable: buster: give bookworm")
