"""Old name, until nothing asks for it."""

from gemm_report.rows import *  # noqa: F403 (the old name)
