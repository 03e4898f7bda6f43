"""The table that the program prints of what catches which negative control."""

import os
import subprocess
from pathlib import Path

import pytest
from own_files import own_files

ROOT = Path(__file__).parents[2]
LAUNCH_ONCE = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "bench" / "launch_once"


def launch_once(*arguments: str) -> subprocess.CompletedProcess[str]:
    if not LAUNCH_ONCE.exists():
        pytest.skip(f"{LAUNCH_ONCE} is not built")
    return subprocess.run([LAUNCH_ONCE, *arguments], capture_output=True, text=True, check=False)


def test_every_control_in_the_sources_is_in_the_list() -> None:
    listed = launch_once("table").stdout
    sources = own_files("bench/controls/wrong_*_test.cu")
    assert sources
    for source in sources:
        for line in source.read_text().splitlines():
            if '.name = "' in line:
                name = line.split('"')[1]
                assert f"`{name}`" in listed, source.name


def test_unknown_requests_are_refused() -> None:
    for request in ([], ["dance"], ["control"], ["table", "more"]):
        assert launch_once(*request).returncode == 2, request
    done = launch_once("kernel", "NoSuchKernel")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "launch_once: no GPU kernel of ours is called NoSuchKernel\n"
