"""Old name, until nothing asks for it."""

from gemm_report.pages.render import *  # noqa: F403 (the old name)
