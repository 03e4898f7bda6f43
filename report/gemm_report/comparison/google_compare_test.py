"""Google Benchmark's own compare.py reads our records."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SLOWED = "Tiled/tile:16/f32/1024x1024x768/manual_time"
# Debian's libbenchmark-tools has it in the first, an installation in the others.
PLACES = [f"{each}/benchmark" for each in ("/usr/share", "/usr/local/share")]
PLACES += [f"{each}/googlebenchmark/tools" for each in ("/usr/share", "/usr/local/share")]
TOOL = os.environ.get("GBENCH_COMPARE") or next(
    (f"{place}/compare.py" for place in PLACES if Path(place, "compare.py").is_file()), None
)


@pytest.mark.skipif(TOOL is None, reason="apt package libbenchmark-tools, or GBENCH_COMPARE")
@pytest.mark.parametrize("factor", [1, 2])
def test_compare_py_sees_the_kernel_that_is_slower(
    factor: int, gpu_path: Path, tmp_path: Path
) -> None:
    pytest.importorskip("scipy", reason="compare.py needs scipy")
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    for benchmark in document["benchmarks"]:
        if benchmark["name"] == SLOWED:
            benchmark["real_time"] *= factor
    new, dump = tmp_path / "new.json", tmp_path / "dump.json"
    new.write_text(json.dumps(document), encoding="utf-8")
    command = [sys.executable, str(TOOL), "--no-color", "-d", dump, "benchmarks", gpu_path, new]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {
        entry["name"]: [each["time"] for each in entry["measurements"]]
        for entry in json.loads(dump.read_text(encoding="utf-8"))
        if entry["name"] != "OVERALL_GEOMEAN"
    }
    assert found.keys() == {benchmark["name"] for benchmark in document["benchmarks"]}
    changed = [name for name, times in found.items() if any(times)]
    assert changed == ([SLOWED] if factor > 1 else [])
