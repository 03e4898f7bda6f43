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
assert "setup" in COMMANDS
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


def run(bare: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Asserts that nothing was changed or called that may not."""

    def files() -> set[Path]:
        return {path for path in bare.rglob("*") if "__pycache__" not in path.parts}

    before, calls = files(), bare.parent / "calls"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHON", "GEMM_BENCH_BUILD")}
    environment["PATH"] = f"{bare.parent / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [bare / "tools" / command, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**environment, "CALLS": str(calls)},
        cwd=bare.parent,
    )
    assert files() == before and not calls.exists()
    return done


@pytest.mark.parametrize("command", COMMANDS)
def test_help_changes_nothing(bare: Path, command: str) -> None:
    done = run(bare, command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"tools/{command}" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [["test", "-v"], ["setup", "--all"], ["setup", "test", "x"], ["portable", "buster"]],
)
def test_bad_options_are_refused_in_one_line(bare: Path, arguments: list[str]) -> None:
    done = run(bare, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{arguments[0]}: {arguments[-1]}: ")
    assert done.stderr.count("\n") == 1
