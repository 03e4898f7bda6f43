"""Our harness held against a foreign one: the same launches on the same rotated operands, timed by
our plan and by nvbench (cuda-bench), each in a process of its own, one after the other.

nvbench's cold samples are single launches after its own flush of the L2; its batch is many launches
in a row, which is what ours are.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gemm_peers.device import Device, Launch
from gemm_peers.family import Said, outcomes
from gemm_peers.peer import peer_named
from gemm_peers.plan import Plan

# One kernel from 10 us to milliseconds: the same code at every size.
PEER, VARIANT, PRECISION = "numba", "fast_matmul_repaired", "f32"
FAILED = 1
_BATCH_MEAN = "nv/batch/time/gpu/mean"
_HEAD = ("shape", "ours (us)", "nvbench cold (us)", "nvbench batch (us)", "ours / batch")


class _Stream:
    """Ours, as nvbench takes one."""

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._stream


def timed(device: Device, launches: Sequence[Launch]) -> dict[str, float]:
    """What nvbench makes of launches that take turns: the median of its cold samples, and the mean
    of its batches. In the process of a peer."""
    import cuda.bench as foreign
    from cuda.bench.results import BenchmarkResult

    turns = itertools.cycle(launches)

    def product(state: Any) -> None:
        state.set_stream(_Stream(device.stream))
        state.exec(lambda launch: next(turns)(), batched=True)

    foreign.register(product)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "nvbench.json"
        foreign.run_all_benchmarks(
            ["nvbench", "--devices", str(device.index), "--jsonbin", str(out)]
        )
        (states,) = BenchmarkResult.from_json(out).values()
        return figures(states[0])


def figures(state: Any) -> dict[str, float]:
    """Of one of nvbench's results."""
    if state.is_skipped:
        raise RuntimeError(f"nvbench skipped it: {state.skip_reason}")
    if not state.samples:
        raise RuntimeError("nvbench wrote no samples")
    batch = state.summaries.get(_BATCH_MEAN)
    if batch is None:
        raise RuntimeError(f"nvbench has no {_BATCH_MEAN}")
    return {"cold": statistics.median(state.samples), "batch": float(batch.value)}


def compare(
    shapes: Sequence[tuple[int, int, int]], options: argparse.Namespace, scratch: Path
) -> int:
    """Prints the table; 1 if one of the two could not time a shape."""
    peer = peer_named(PEER)
    rows = [
        {"variant": VARIANT, "precision": PRECISION, "layout": peer.layouts[PRECISION]}
        | {"m": m, "n": n, "k": k}
        for m, n, k in shapes
    ]
    task: Said = {
        "peer": PEER,
        "device": options.device,
        "seed": options.seed,
        "scratch": str(scratch),
        "plan": vars(Plan(budget_seconds=options.row_budget)),
    }
    pairs = []
    for row in rows:  # in turns, so that both meet the card in the same state
        ours, theirs = (
            next(outcomes({**task, "harness": harness}, [row], options.timeout))
            for harness in ("ours", "nvbench")
        )
        pairs.append((row, ours, theirs))
    print(table(pairs))
    causes = [
        f"{row['m']}x{row['n']}x{row['k']}: {who}: {cause}"
        for row, *both in pairs
        for who, said in zip(("ours", "nvbench"), both, strict=True)
        if (cause := said.get("failed") or said.get("skipped"))
    ]
    for cause in causes:
        print(f"peers: {cause}", file=sys.stderr)
    return FAILED if causes else 0


def table(pairs: Sequence[tuple[Said, Said, Said]]) -> str:
    """Medians side by side, in Markdown."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|" + " --- |" * len(_HEAD)]
    for row, ours, theirs in pairs:
        mine = ours["measured"]["seconds"]["median"] if "measured" in ours else None
        cold, batch = (theirs.get("nvbench", {}).get(key) for key in ("cold", "batch"))
        cells = [f"{row['m']}x{row['n']}x{row['k']}"]
        cells += [f"{1e6 * seconds:.2f}" if seconds else "-" for seconds in (mine, cold, batch)]
        cells.append(f"{mine / batch:.4f}" if mine and batch else "-")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
