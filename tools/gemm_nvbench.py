"""Compares the timing of gemm_bench with nvbench's (tools/other_implementations --against-nvbench).

Both time one kernel on equally many rotated operand sets, one process after the other. nvbench's
cold samples are single launches after a flush of the L2; its batches are launches back to back, as
those of gemm_bench are.
"""

import itertools
import json
import runpy
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ENTRY = "fast_matmul_repaired"  # from 10 us to milliseconds with the same code at every size
HEAD = ("shape", "ours (us)", "nvbench cold (us)", "nvbench batch (us)", "ours / batch")
BATCH_MEAN = "nv/batch/time/gpu/mean"
UNKNOWN = ("seconds", "failed", "skipped")  # of a row, where there is no record


def compare(
    program: Path, python: str, file: Path, shapes: Sequence[str], options: Sequence[str]
) -> int:
    """Prints a Markdown table of medians (nvbench batch: mean). 1 if a shape could not be timed."""
    lines = [HEAD, ["---"] * len(HEAD)]
    causes = []
    for shape in shapes:
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "record.json"
            command = [str(program), f"--gemm_kernel={file}:{ENTRY}", f"--gemm_shapes={shape}"]
            command += [f"--benchmark_out={record}", *options]
            ours = subprocess.run(command, capture_output=True, text=True, check=False)
            text = record.read_text(encoding="utf-8") if record.is_file() else ""
        row = json.loads(text)["benchmarks"][0]["gemm"] if text else dict.fromkeys(UNKNOWN)
        if row["seconds"] is None:
            why = row["failed"] or row["skipped"] or _last_line(ours.stderr)
            causes.append(f"{shape}: gemm_bench: {why}")
            continue
        mine = row["seconds"]["median"]
        sizes = [str(row[key]) for key in ("m", "n", "k", "rotation_sets")]
        command = [python, __file__, str(file), *sizes]
        theirs = subprocess.run(command, capture_output=True, text=True, check=False)
        if theirs.returncode != 0:
            causes.append(f"{shape}: nvbench: {_last_line(theirs.stderr)}")
            continue
        cold, batch = json.loads(theirs.stdout.splitlines()[-1])
        cells = [f"{1e6 * seconds:.2f}" for seconds in (mine, cold, batch)]
        lines.append([shape, *cells, f"{mine / batch:.4f}"])
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))
    for cause in causes:
        print(f"other_implementations: {cause}", file=sys.stderr)
    return 1 if causes else 0


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "no output")


def timed(file: Path, m: int, n: int, k: int, sets: int) -> tuple[float, float]:
    """Seconds of one launch: median of nvbench's cold samples, mean of its batches."""
    import cuda.bench as nvbench
    import numpy as np
    from cuda.bench.results import BenchmarkResult
    from numba import cuda

    entry = runpy.run_path(str(file))[ENTRY]
    random = np.random.default_rng(1)

    def matrix(rows: int, columns: int) -> Any:
        return cuda.to_device(random.uniform(-1, 1, (rows, columns)).astype(np.float32))

    problem = SimpleNamespace(m=m, n=n, k=k)
    launches = [entry(problem, matrix(m, k), matrix(k, n), matrix(m, n)) for _ in range(sets)]
    launches[0](0)  # compiles
    cuda.synchronize()
    rotated = itertools.cycle(launches)

    def product(state: Any) -> None:
        state.exec(lambda launch: next(rotated)(launch.get_stream().addressof()), batched=True)

    nvbench.register(product)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "nvbench.json"
        nvbench.run_all_benchmarks(["nvbench", "--devices", "0", "--jsonbin", str(out)])
        (states,) = BenchmarkResult.from_json(out).values()
        return figures(states[0])


def figures(state: Any) -> tuple[float, float]:
    """Median of the cold samples and mean of the batches of an nvbench state."""
    if state.is_skipped:
        raise RuntimeError(f"nvbench skipped it: {state.skip_reason}")
    if not state.samples:
        raise RuntimeError("nvbench wrote no samples")
    batch = state.summaries.get(BATCH_MEAN)
    if batch is None:
        raise RuntimeError(f"nvbench reported no {BATCH_MEAN}")
    return statistics.median(state.samples), float(batch.value)


if __name__ == "__main__":
    print(json.dumps(timed(Path(sys.argv[1]), *map(int, sys.argv[2:]))))
