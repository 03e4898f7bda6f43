"""tools/crosscheck with a fake gemm_bench and a fake ncu."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
KERNEL = "void gemm::simt::(anonymous namespace)::tiled<(int)32>(gemm::Problem, float const*)"

BENCH = """#!/usr/bin/env bash
for argument; do
  case $argument in
    --bad) echo "gemm_bench: unknown option --bad" >&2; exit 2 ;;
    --benchmark_out=*) cp "$RECORD" "${argument#*=}" ;;
  esac
done
"""

# The last argument of ncu's own is the kernel's name.
NCU = r"""#!/usr/bin/env bash
[[ "$*" == --version ]] && { echo "Version 2025.3.1.0 (build 1)"; exit; }
kernel=tiled us=14.0
[[ "$*" == *empty_kernel* ]] && kernel=empty_kernel us=1.5
echo '==PROF== Connected'
[[ "$*" == *"--page raw"* ]] || { echo "this is the details page" >&2; exit 9; }
echo '"ID","Kernel Name","gpu__time_duration.sum","sm__cycles_elapsed.avg.per_second"'
echo '"","","us","Ghz"'
for id in 1 2 3; do
  echo "\"$id\",\"$kernel\",\"$us\",\"1.98\""
done
"""


def record(seconds: float, overheads: bool = True) -> str:
    method = {"overheads": {"graph_node_seconds": 0.5e-6} if overheads else None}
    row = {
        "seconds": {"median": seconds},
        "clocks": {"sm_hz_by_timer": {"median": 2e9}},
        "device_kernels": [KERNEL],
        "launch": "graph",
    }
    entry = {"name": "Tiled/f32/8x8x8/manual_time", "run_type": "iteration", "gemm": row}
    return json.dumps({"context": {"gemm": {"method": method}}, "benchmarks": [entry]})


def run(
    folder: Path, *options: str, text: str, ncu: bool = True
) -> subprocess.CompletedProcess[str]:
    for name, script in {"build/gemm_bench": BENCH, "path/ncu": NCU}.items():
        if name.endswith("ncu") and not ncu:
            continue
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    (folder / "record.json").write_text(text)
    environment = {
        "PATH": f"{folder / 'path'}:{os.defpath}",
        "GEMM_BENCH_BUILD": str(folder / "build"),
        "RECORD": str(folder / "record.json"),
    }
    return subprocess.run(
        ["/usr/bin/env", "python3", ROOT / "tools" / "crosscheck", *options],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PATH": f"{environment['PATH']}:{os.environ['PATH']}"}
        if ncu
        else environment,
    )


def test_compares_the_kernels_of_a_launch_at_the_same_clock(tmp_path: Path) -> None:
    done = run(tmp_path, text=record(13e-6))
    assert done.returncode == 0, done.stderr
    assert "0.50 us by events, 1.50 us by ncu" in done.stdout
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("Tiled"))
    assert row.split()[-4:] == ["-7.14", "%", "-6.20", "%"], "13 us against 14, 2 against 1.98 GHz"


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    for arguments, kwargs, says in (
        (["--bad"], {}, "unknown option --bad"),
        ([], {"text": record(13e-6, overheads=False)}, "no row of a GPU"),
        ([], {"ncu": False}, "no ncu"),
    ):
        folder = tmp_path / says.replace(" ", "")
        folder.mkdir()
        done = run(folder, *arguments, **{"text": record(13e-6), **kwargs})
        assert done.returncode == 2, done.stdout
        assert says in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
