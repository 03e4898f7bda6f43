"""Lets `python -m gemm_bench` do what the command gemm-bench does."""

from gemm_bench.cli import command

command()
