"""gemm_bench for Python: the command gemm-bench, and what it runs."""
