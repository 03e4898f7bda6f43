"""Google Benchmark's own compare.py reads our records."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SLOWED = "Tiled/tile:16/f32/1024x1024x768/manual_time"


def compare_tool() -> Path | None:
    """From GBENCH_COMPARE, else where Debian's libbenchmark-tools or an installation puts it."""
    if named := os.environ.get("GBENCH_COMPARE"):
        return Path(named)
    folders = ("/usr/share/benchmark", "/usr/local/share/benchmark")
    tools = ("/usr/share/googlebenchmark/tools", "/usr/local/share/googlebenchmark/tools")
    found = [Path(folder) / "compare.py" for folder in (*folders, *tools)]
    return next((path for path in found if path.is_file()), None)


@pytest.fixture
def tool() -> Path:
    path = compare_tool()
    if path is None:
        pytest.skip(
            "compare.py is not installed: apt package libbenchmark-tools, or GBENCH_COMPARE"
        )
    if importlib.util.find_spec("scipy") is None:
        pytest.skip("compare.py needs scipy")
    return path


def compare(tool: Path, old: Path, new: Path, dump: Path) -> tuple[str, dict[str, Any]]:
    command = [sys.executable, tool, "--no-color", "-d", dump, "benchmarks", old, new]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(dump.read_text(encoding="utf-8"))
    return done.stdout, {entry["name"]: entry for entry in report}


def test_a_record_equals_itself(tool: Path, gpu_path: Path, tmp_path: Path) -> None:
    said, report = compare(tool, gpu_path, gpu_path, tmp_path / "dump.json")
    benchmarks = json.loads(gpu_path.read_text(encoding="utf-8"))["benchmarks"]
    for benchmark in benchmarks:
        assert benchmark["name"] in said
        assert all(m["time"] == 0 for m in report[benchmark["name"]]["measurements"])


def test_a_slower_kernel_is_seen(tool: Path, gpu_path: Path, tmp_path: Path) -> None:
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    for benchmark in document["benchmarks"]:
        if benchmark["name"] == SLOWED:
            benchmark["real_time"] *= 2
    slower = tmp_path / "slower.json"
    slower.write_text(json.dumps(document), encoding="utf-8")
    said, report = compare(tool, gpu_path, slower, tmp_path / "dump.json")
    (line,) = (line for line in said.splitlines() if line.startswith(SLOWED))
    assert "+1.0000" in line
    changed = {
        name
        for name, entry in report.items()
        if name != "OVERALL_GEOMEAN" and any(m["time"] for m in entry["measurements"])
    }
    assert changed == {SLOWED}
