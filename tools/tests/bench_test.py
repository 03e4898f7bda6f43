"""tools/bench with stand-ins for setup, CMake and gemm_bench."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURES = """
for a in "$@"; do case $a in --gemm_tell_record=*) to=${a#*=};; esac; done
echo {} > "$HERE/record.json"
if [[ $WAITS ]]; then
  ends() { echo "got it" >> "$HERE/signals"; echo "$HERE/record.json" > "$to"; exit 143; }
  trap ends TERM INT
  touch "$HERE/began"
  while :; do sleep 0.05; done
fi
echo "$HERE/record.json" > "$to"
exit "${STATUS-0}"
"""
PROGRAMS = {
    "tools/setup": 'touch "$HERE/installs"; echo export PYTHON=$PYTHON CUDA=OFF',
    "bin/cmake": 'echo "$*" >> "$HERE/cmake"',
    "build/release/gemm_bench": MEASURES,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a colon in its path, whose programs only pretend."""
    root = tmp_path / "a:clone"
    for name, text in PROGRAMS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
    for name in ("bench", "common.sh"):
        shutil.copy(ROOT / "tools" / name, root / "tools" / name)
    (tmp_path / "bin").symlink_to(root / "bin")
    return root


def start(tree: Path, *command: object, **variables: str) -> "subprocess.Popen[str]":
    path = f"{tree.parent / 'bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HERE": str(tree.parent), "PYTHON": "true", **variables}
    pipe = subprocess.PIPE
    words = [*map(str, command)] or [str(tree / "tools" / "bench")]
    return subprocess.Popen(words, env=env, stdout=pipe, stderr=pipe, text=True, cwd=tree.parent)


def bench(tree: Path, *command: object, **variables: str) -> tuple[int, str, str]:
    process = start(tree, *command, **variables)
    out, error = process.communicate(timeout=60)
    return process.returncode, out, error


@pytest.mark.parametrize("measured", ["0", "1"])
@pytest.mark.parametrize("python", ["true", "false"])
def test_the_exit_status_is_that_of_the_measurement(tree: Path, python: str, measured: str) -> None:
    code, out, error = bench(tree, PYTHON=python, STATUS=measured)
    assert code == int(measured), error
    assert f"record: {tree.parent}/record.json" in out
    assert ("no page was made" in error) == (python == "false")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_script_alone_ends_the_measurement(
    tree: Path, number: signal.Signals
) -> None:
    # A shell cannot trap a signal that was ignored when it started, as in the background.
    heard = f"--default-signal={number.name[3:]}"
    process = start(tree, "env", heard, tree / "tools" / "bench", WAITS="yes")
    end = time.monotonic() + 60
    while not (tree.parent / "began").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert (tree.parent / "signals").read_text().count("got it") == 1
    assert "page:" in out, "what was measured is drawn"


def test_a_link_and_cdpath_lead_to_the_tree(tree: Path) -> None:
    link = tree.parent / "link" / "bench"
    link.parent.mkdir()
    link.symlink_to(tree / "tools" / "bench")
    code, _, error = bench(tree, link, CDPATH=str(tree.parent))
    assert code == 0, error


def test_a_tree_that_was_moved_is_configured_afresh(tree: Path) -> None:
    cache = tree / "build" / "release" / "CMakeCache.txt"
    for home, fresh in ((tree, False), ("/elsewhere", True)):
        cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n")
        assert bench(tree)[0] == 0
        calls = (tree.parent / "cmake").read_text()
        assert ("--fresh" in calls) == fresh
        assert "--preset release" in calls and "-DGEMM_BENCH_CUDA=OFF" in calls


def test_help_that_nobody_reads_installs_nothing(tree: Path) -> None:
    bench(tree, "bash", "-c", '"$0" --help >/dev/full; "$0" -h | true', tree / "tools" / "bench")
    assert not (tree.parent / "installs").exists()
