"""What the records of gemm_bench mean: figures, a summary, and the README's numbers."""
