"""Lets `python -m gemm_report` do what the command gemm-report does."""

import sys
import traceback

try:
    from gemm_report.cli import command
except Exception:  # another module has the name of one that is needed: 1 would be a verdict
    traceback.print_exc()
    sys.exit(4)

command()
