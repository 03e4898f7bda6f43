"""Old name, until nothing asks for it."""

from gemm_report.pages.table import *  # noqa: F403 (the old name)
