"""tools/sanitize with a fake compute-sanitizer and fake kernels."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# TOOL finds something in CULPRIT; under the tool "none" BlockTile does not run.
SCRIPTS = {
    "build/bench/launch_once": """#!/bin/bash
[[ $1 != kernels ]] || printf '%s\\n' Naive Tiled BlockTile
""",
    "build/bench/bench_test": "",
    "path/compute-sanitizer": """#!/bin/bash
echo "$*" >>"$CALLS"
[[ "$*" == *BlockTile* && $TOOL == none ]] && echo "BlockTile runs at none of the sizes here"
[[ $2 == "$TOOL" && " $* " == *" $CULPRIT "* ]] && { echo "found in $CULPRIT"; exit 9; }
exit 0
""",
}


def sanitize(
    folder: Path, *options: str, tool: str = ""
) -> tuple["subprocess.CompletedProcess[str]", dict[str, list[str]]]:
    """What it did, and its table."""
    for name, script in SCRIPTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    environment = {
        **{"PATH": f"{folder / 'path'}:{os.defpath}", "GEMM_BENCH_BUILD": str(folder / "build")},
        **{"CALLS": str(folder / "calls"), "TOOL": tool, "CULPRIT": "Tiled"},
    }
    command = [ROOT / "tools" / "sanitize", *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.split("\n\n")[0].splitlines()
    return done, {line[:28].strip(): line[28:].split() for line in lines}


@pytest.mark.parametrize("tool", ["", "racecheck", "none"])
def test_the_table_names_the_culprit(tmp_path: Path, tool: str) -> None:
    done, rows = sanitize(tmp_path, tool=tool)
    bad = tool == "racecheck"
    assert done.returncode == bad, done.stderr
    assert rows == {
        "kernel": ["memcheck", "racecheck", "synccheck", "initcheck"],
        "Naive": ["ok"] * 4,
        "Tiled": ["ok", "FAILED" if bad else "ok", "ok", "ok"],
        "BlockTile": ["-" if tool == "none" else "ok"] * 4,
        "peak probes": ["ok", "-", "ok", "ok"],
    }
    assert ("=== racecheck/Tiled\nfound in Tiled" in done.stdout) == bad


def test_tools_and_kernels_can_be_chosen(tmp_path: Path) -> None:
    done, rows = sanitize(tmp_path, "synccheck", "--kernels=^(Naive|Block)", "--jobs=1")
    assert done.returncode == 0, done.stderr
    assert list(rows) == ["kernel", "Naive", "BlockTile"]
    calls = (tmp_path / "calls").read_text()
    assert "Tiled" not in calls and "--tool synccheck" in calls and "racecheck" not in calls


@pytest.mark.parametrize("bad", ["helgrind", "--kernels=NoSuchKernel", "--jobs=0"])
def test_bad_input_is_refused(tmp_path: Path, bad: str) -> None:
    done, _ = sanitize(tmp_path, bad)
    assert done.returncode == 2
    assert done.stderr.startswith("sanitize: ")
