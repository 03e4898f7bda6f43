"""Old name, until nothing asks for it."""

from gemm_report.pages.markup import *  # noqa: F403 (the old name)
