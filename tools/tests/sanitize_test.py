"""tools/sanitize with a fake compute-sanitizer and fake kernels."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

LAUNCH_ONCE = """#!/usr/bin/env bash
[[ $1 != kernels ]] || printf '%s\\n' Naive Tiled BlockTile
"""
# Fails if CULPRIT is the kernel.
SANITIZER = """#!/usr/bin/env bash
echo "$*" >>"$CALLS"
[[ "$*" == *BlockTile* && $TOOL == none ]] && echo "BlockTile runs at none of the sizes here"
[[ $2 != "$TOOL" ]] && exit 0
[[ " $* " == *" $CULPRIT "* ]] && { echo "found in $CULPRIT"; exit 9; }
exit 0
"""


def sanitize(
    folder: Path, *options: str, tool: str = "", culprit: str = "-"
) -> subprocess.CompletedProcess[str]:
    scripts = {
        "build/bench/launch_once": LAUNCH_ONCE,
        "build/bench/bench_test": "",
        "path/compute-sanitizer": SANITIZER,
    }
    for name, script in scripts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    environment = {
        "PATH": f"{folder / 'path'}:{os.defpath}",
        "GEMM_BENCH_BUILD": str(folder / "build"),
        "CALLS": str(folder / "calls"),
        "TOOL": tool,
        "CULPRIT": culprit,
    }
    return subprocess.run(
        [ROOT / "tools" / "sanitize", *options],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def table(output: str) -> dict[str, list[str]]:
    rows = {}
    for line in output.split("\n\n")[0].splitlines():
        rows[line[:28].strip()] = line[28:].split()
    return rows


def test_a_clean_suite_is_clean(tmp_path: Path) -> None:
    done = sanitize(tmp_path)
    assert done.returncode == 0, done.stderr
    rows = table(done.stdout)
    assert rows["kernel"] == ["memcheck", "racecheck", "synccheck", "initcheck"]
    for kernel in ("Naive", "Tiled", "BlockTile"):
        assert rows[kernel] == ["ok"] * 4
    assert rows["peak probes"] == ["ok", "-", "ok", "ok"]


def test_the_culprit_is_named(tmp_path: Path) -> None:
    done = sanitize(tmp_path, "--jobs=1", tool="racecheck", culprit="Tiled")
    assert done.returncode == 1
    rows = table(done.stdout)
    assert rows["Tiled"] == ["ok", "FAILED", "ok", "ok"]
    assert rows["Naive"] == rows["BlockTile"] == ["ok"] * 4
    assert "=== racecheck/Tiled\nfound in Tiled" in done.stdout


def test_tools_and_kernels_can_be_chosen(tmp_path: Path) -> None:
    done = sanitize(tmp_path, "synccheck", "--kernels=^(Naive|Block)")
    assert done.returncode == 0, done.stderr
    assert list(table(done.stdout)) == ["kernel", "Naive", "BlockTile"]
    calls = (tmp_path / "calls").read_text()
    assert "Tiled" not in calls and "--tool synccheck" in calls and "racecheck" not in calls


def test_a_kernel_that_does_not_run_is_not_clean(tmp_path: Path) -> None:
    rows = table(sanitize(tmp_path, "initcheck", tool="none").stdout)
    assert rows["BlockTile"] == ["-"] and rows["Tiled"] == ["ok"]


def test_bad_input_is_refused(tmp_path: Path) -> None:
    for bad in ("helgrind", "--kernels=NoSuchKernel", "--jobs=0"):
        done = sanitize(tmp_path, bad)
        assert done.returncode == 2, bad
        assert done.stderr.startswith("sanitize: "), bad
    assert "Exit status" in sanitize(tmp_path, "--help").stdout
