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


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a colon in its path, whose programs only pretend."""
    root = tmp_path / "a:clone"

    def script(name: str, text: str) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    script("tools/setup", 'touch "$HERE/installs"; echo export PYTHON=$PYTHON CUDA=OFF')
    for name in ("bench", "common.sh"):
        shutil.copy(ROOT / "tools" / name, root / "tools" / name)
    script("bin/cmake", 'echo "$*" >> "$HERE/cmake"')
    script("build/release/gemm_bench", MEASURES)
    return root


def environment(tree: Path, **variables: str) -> dict[str, str]:
    path = f"{tree.parent / 'bin'}:{os.environ['PATH']}"
    if not (tree.parent / "bin").exists():
        (tree.parent / "bin").symlink_to(tree / "bin")
    return {**os.environ, "PATH": path, "HERE": str(tree.parent), "PYTHON": "true", **variables}


def bench(tree: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [tree / "tools" / "bench", *arguments],
        env=environment(tree, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize("measured", ["0", "1"])
@pytest.mark.parametrize("python", ["true", "false"])
def test_the_exit_status_is_that_of_the_measurement(tree: Path, python: str, measured: str) -> None:
    done = bench(tree, PYTHON=python, STATUS=measured)
    assert done.returncode == int(measured), done.stderr
    assert f"record: {tree.parent}/record.json" in done.stdout
    assert ("no page was made" in done.stderr) == (python == "false")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_script_alone_ends_the_measurement(
    tree: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        ["env", f"--default-signal={number.name[3:]}", tree / "tools" / "bench"],
        env=environment(tree, WAITS="yes"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        end = time.monotonic() + 20
        while not (tree.parent / "began").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 143
    assert (tree.parent / "signals").read_text().count("got it") == 1
    assert "page:" in out, "what was measured is drawn"


def test_a_link_and_cdpath_lead_to_the_tree(tree: Path, tmp_path: Path) -> None:
    link = tmp_path / "link" / "bench"
    link.parent.mkdir()
    link.symlink_to(tree / "tools" / "bench")
    done = subprocess.run(
        ["bench"],
        env=environment(
            tree, CDPATH=str(tmp_path), PATH=f"{link.parent}:{tmp_path}/bin:/usr/bin:/bin"
        ),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_a_tree_that_was_moved_is_configured_afresh(tree: Path) -> None:
    cache = tree / "build" / "release" / "CMakeCache.txt"
    for home, fresh in ((tree, False), ("/elsewhere", True)):
        cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n")
        assert bench(tree).returncode == 0
        calls = (tree.parent / "cmake").read_text()
        assert ("--fresh" in calls) == fresh
        assert "--preset release" in calls
        assert "-DGEMM_BENCH_CUDA=OFF" in calls


def test_help_that_nobody_reads_installs_nothing(tree: Path) -> None:
    subprocess.run(
        ["bash", "-c", '"$0" --help >/dev/full; "$0" -h | true', tree / "tools" / "bench"],
        env=environment(tree),
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert not (tree.parent / "installs").exists()
