"""How many verdicts an hour this machine gives, and how far the reward of one kernel spreads.

    PYTHONPATH=python python studies/verdicts.py [--device cpu] [--seconds 120] [--verdicts 200]

On a GPU the kernel is examples/wmma_tile.cu in BF16 at 2048, on a CPU a call of NumPy in FP32 at
256. Each source differs in a comment, so that no compiled code is found again. Peaks are measured
before. "cold" keeps no baseline, "kept" does, and in "server" jobs wait for a server that compiles
ahead. The interval of a rate is that of a Poisson count.
"""

import argparse
import itertools
import math
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from http.client import HTTPConnection
from json import dumps, loads
from pathlib import Path

from gemm_bench import Job, Verdict, judge

ROOT = Path(__file__).resolve().parents[1]
NUMPY = """import numpy as np
def prepare(problem, a, b, c):
    a, b, c = (np.asarray(each) for each in (a, b, c))
    return lambda stream: np.matmul(a, b, out=c)
"""


def job_for(device: str) -> Job:
    """One honest kernel."""
    if device == "cpu":
        return Job(NUMPY, [(256, 256, 256)], language="py")
    source = (ROOT / "examples" / "wmma_tile.cu").read_text()
    return Job(source, [(2048, 2048, 2048)], "bf16")


def again(job: Job) -> Job:
    """The same kernel in another text."""
    mark = "#" if job.language == "py" else "//"
    return replace(job, source=f"{job.source}\n{mark} {secrets.token_hex(8)}\n")


def an_hour(name: str, one: Callable[[], object], seconds: float, workers: int = 1) -> None:
    """Prints the rate of calls, of so many at a time."""
    end = time.monotonic() + seconds
    start = time.monotonic()

    def work(_: int) -> int:
        count = 0
        while time.monotonic() < end:
            one()
            count += 1
        return count

    with ThreadPoolExecutor(workers) as pool:
        done = sum(pool.map(work, range(workers)))
    rate = 3600 / (time.monotonic() - start)
    print(
        f"{name:8} {done * rate:7.0f} an hour (+- {1.96 * math.sqrt(done) * rate:.0f})", flush=True
    )


def cold(job: Job, device: str) -> None:
    """With a cache that has the peaks, and no baseline."""
    for kept in Path(os.environ["XDG_CACHE_HOME"], "gemm_bench").glob("*.baselines.json"):
        kept.unlink()
    judge(again(job), device)


def spread(job: Job, device: str, verdicts: int) -> None:
    """Prints how far the reward of one kernel spreads."""
    found = [judge(again(job), device)[0] for _ in range(verdicts)]
    rewards = sorted(one.reward for one in found if one.passed)
    print(f"passed   {len(rewards)} of {verdicts}")
    for status in {one.status for one in found} - {"passed"}:
        print(f"         {status}: {sum(one.status == status for one in found)}")
    if len(rewards) > 1:
        middle = statistics.median(rewards)
        low, high = (rewards[round(share * (len(rewards) - 1))] for share in (0.05, 0.95))
        deviation = statistics.stdev(rewards)
        print(f"reward   {middle:.4f}; 5 to 95 %: {low:.4f} to {high:.4f}", end="")
        print(f" ({(high - low) / middle:.2%}); standard deviation {deviation / middle:.2%}")


class Server:
    """A server that is judged through: a call waits for its verdict."""

    def __init__(self, device: str, compilers: int) -> None:
        self._token = secrets.token_hex(16)
        options = ["--port=0", f"--devices={device}", f"--compilers={compilers}", "--queue=1000"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gemm_bench", "serve", *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GEMM_BENCH_TOKEN": self._token},
        )
        assert self._process.stderr
        lines = iter(self._process.stderr.readline, "")
        address = next(line for line in lines if line.startswith("http://"))
        self._port = int(address.rsplit(":", 1)[1])

    def _call(self, method: str, path: str, body: str | None = None) -> dict[str, object]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=120)
        connection.request(method, path, body, {"Authorization": f"Bearer {self._token}"})
        said: dict[str, object] = loads(connection.getresponse().read())
        connection.close()
        return said

    def judge(self, job: Job) -> Verdict:
        """The verdict of a job of one shape."""
        name = self._call("POST", "/jobs", dumps(asdict(job)))["id"]
        for _ in itertools.repeat(None):
            said = self._call("GET", f"/jobs/{name}?wait=60")
            if said["state"] == "error":
                raise RuntimeError(said["error"])
            if said["state"] == "done":
                lines = said["verdicts"]
                assert isinstance(lines, list)
                return Verdict.from_line(lines[0])
        raise AssertionError

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait()


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="0", help="index of a GPU, or cpu")
    parser.add_argument("--seconds", type=float, default=120, help="of each rate")
    parser.add_argument("--verdicts", type=int, default=200, help="for the spread")
    parser.add_argument("--compilers", type=int, default=8)
    options = parser.parse_args()
    job = job_for(options.device)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        (first,) = judge(job, options.device)
        print(f"{first.line['device']}, {first.line['name']}: {first.status}", flush=True)
        an_hour("cold", lambda: cold(job, options.device), options.seconds)
        an_hour("kept", lambda: judge(again(job), options.device), options.seconds)
        server = Server(options.device, options.compilers)
        try:
            workers = options.compilers + 2
            an_hour("server", lambda: server.judge(again(job)), options.seconds, workers)
        finally:
            server.close()
        spread(job, options.device, options.verdicts)


if __name__ == "__main__":
    main()
