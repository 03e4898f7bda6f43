"""Old name, until nothing asks for it."""

from gemm_report.pages.shell import *  # noqa: F403 (the old name)
