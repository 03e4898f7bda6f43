"""Lets `python -m gemm_report` do what the command gemm-report does."""

from gemm_report.cli import command

command()
