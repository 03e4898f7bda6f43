"""What the records of gemm_bench mean: figures, pages, and the README's numbers."""
