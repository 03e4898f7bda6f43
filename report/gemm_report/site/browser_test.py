"""Old name, until nothing asks for it."""

from gemm_report.pages.browser_test import axe_findings as axe_findings  # the old name
