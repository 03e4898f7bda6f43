"""launch_once refuses what it does not know."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAUNCH_ONCE = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "bench" / "launch_once"


@pytest.mark.skipif(not LAUNCH_ONCE.exists(), reason=f"{LAUNCH_ONCE} is not built")
def test_unknown_requests_are_refused() -> None:
    def launch_once(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([LAUNCH_ONCE, *arguments], capture_output=True, text=True)

    for request in ([], ["dance"], ["control"], ["kernels", "more"]):
        assert launch_once(*request).returncode == 2, request
    done = launch_once("kernel", "NoSuchKernel")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "launch_once: no GPU kernel of ours is called NoSuchKernel\n"
