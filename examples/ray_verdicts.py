"""Judges kernels on every GPU of a Ray cluster: a task a GPU.

    python examples/ray_verdicts.py FILE.cu ... --shapes 4096 8192 [--precision bf16]

It needs ray, and gemm-bench on each host. Ray hands each task a GPU of its own; with --cpu, a CPU.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray
from gemm_bench import Job, judge

Verdicts = list[dict[str, Any]]


def verdicts(jobs: list[Job], cpu: bool = False) -> Iterator[tuple[int, Verdicts]]:
    """The index of each job and its verdicts (verdict.schema.json), as they come. A task that dies
    with its host is tried again on another."""
    resources: dict[str, int] = {"num_cpus": 1} if cpu else {"num_gpus": 1}

    @ray.remote(**resources, max_retries=2)
    def task(index: int, job: Job) -> tuple[int, Verdicts]:
        # Of a GPU of its own CUDA sees no other: it is the first.
        return index, [one.line for one in judge(job, "cpu" if cpu else "0")]

    waiting = [task.remote(index, job) for index, job in enumerate(jobs)]
    while waiting:
        done, waiting = ray.wait(waiting)
        yield ray.get(done[0])


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--shapes", nargs="+", type=int, required=True)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    jobs = [
        Job(
            source=file.read_text(),
            language=file.suffix[1:],
            shapes=[(size, size, size) for size in options.shapes],
            precision=options.precision,
        )
        for file in options.files
    ]
    ray.init(address="auto")
    for index, found in verdicts(jobs, options.cpu):
        for line in found:
            print(json.dumps({"path": str(options.files[index]), **line}), flush=True)


if __name__ == "__main__":
    main()
