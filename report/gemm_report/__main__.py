"""Lets `python -m gemm_report` do what the command gemm-report does."""

import sys

from gemm_report.cli import main

sys.exit(main())
