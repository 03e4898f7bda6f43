"""Old name, until nothing asks for it."""

from gemm_report.text import *  # noqa: F403 (the old name)
