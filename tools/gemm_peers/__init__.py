"""Times what a user would pick instead of a kernel of ours, under the plan of gemm_bench."""
