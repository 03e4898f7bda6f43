"""gemm_bench for Python: the command gemm-bench, and what it runs."""

from gemm_bench.evaluate import Interval, Verdict, evaluate, judge
from gemm_bench.job import Job, JobError

__all__ = ["Interval", "Job", "JobError", "Verdict", "evaluate", "judge"]
