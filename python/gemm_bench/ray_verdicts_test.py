"""examples/ray_verdicts.py on a cluster of two nodes of this machine, on its CPUs."""

import os
import sys
from pathlib import Path

import pytest

ray = pytest.importorskip("ray")
pytest.importorskip("numpy")
from ray.cluster_utils import Cluster  # noqa: E402

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release")
SOURCE = """
import numpy as np
def prepare(problem, a, b, c):
    a, b, c = (np.asarray(each) for each in (a, b, c))
    return lambda stream: np.matmul(a, b, out=c)
"""

pytestmark = pytest.mark.skipif(not (BUILD / "gemm_bench").exists(), reason="not built")


def test_each_job_is_judged_on_some_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMM_BENCH_BUILD", str(BUILD))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'python'}:{ROOT / 'examples'}")
    monkeypatch.setattr(sys, "path", [str(ROOT / "python"), str(ROOT / "examples"), *sys.path])
    from ray_verdicts import verdicts

    from gemm_bench import Job

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address)
        assert len([node for node in ray.nodes() if node["Alive"]]) == 2
        jobs = [
            Job(source, [(64, 64, 64)], language="py", baseline=None, peaks="nominal")
            for source in (SOURCE, SOURCE.replace("np.matmul(a, b, out=c)", "c.fill(0)"))
        ]
        found = dict(verdicts(jobs, cpu=True))
        assert [found[0][0]["status"], found[1][0]["status"]] == ["passed", "wrong"]
    finally:
        ray.shutdown()
        cluster.shutdown()
